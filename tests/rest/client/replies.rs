//! Requests and answers: HTTP-4, ERR-4, ERR-5, section 7's table, and whatever else may come back.

use call_assistant::Product;
use call_assistant::id::{AccountId, CallId, RequestId};
use call_assistant::json::ParseErrorKind;
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::ApiKey;
use call_assistant::rest::client::{
    Client, ClientError, Failure, Fault, KeyCheck, MAX_ERROR_LEN, Obstacle, Remedy, ResponseHead,
    RetryAfter, UnexpectedBody, read,
};
use call_assistant::rest::{ApiError, ErrorCode};
use call_assistant::rest::{BaseUrl, GetAccount, GetCall, ListCalls, UnsendableError};
use http::{Response, StatusCode};

const KEY: &str = "service_live_d41d8cd98f00b204e9800998ecf8427e";

fn client() -> Client {
    let key = ApiKey::parse(&Product::default(), KEY).unwrap();
    Client::new(BaseUrl::parse("https://api.example.com/public/").unwrap(), key)
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Result<Account, ClientError> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let (head, ()) = response.body(()).unwrap().into_parts();
    read(&head, body.as_bytes())
}

fn refused(status: u16, code: &str) -> Result<Account, ClientError> {
    let body =
        format!(r#"{{"error":{{"type":"t","code":"{code}","message":"m","request_id":"req_1"}}}}"#);
    answer(status, &[], &body)
}

/// HTTP-4: the key is in `Authorization` of every request, marked as sensitive, and nowhere else.
#[test]
fn the_three_requests() {
    let client = client();
    let call_id = CallId::parse("call_1/2").unwrap();
    for (request, uri) in [
        (client.request(&GetAccount), "https://api.example.com/public/v1/account"),
        (
            client.request(&ListCalls::new().with_cursor("a+b")),
            "https://api.example.com/public/v1/calls?limit=50&cursor=a%2Bb",
        ),
        (
            client.request(&GetCall { call_id: call_id.clone() }),
            "https://api.example.com/public/v1/calls/call_1%2F2",
        ),
    ] {
        let request = request.unwrap();
        assert_eq!(request.method(), "GET");
        assert_eq!(request.uri(), uri);
        assert_eq!(request.headers()["authorization"], format!("Bearer {KEY}"));
        assert!(request.headers()["authorization"].is_sensitive());
        assert_eq!(request.headers()["accept"], "application/json");
        assert_eq!(request.headers().len(), 2);
        assert!(!format!("{request:?}").contains("d41d8cd9"));
        assert!(!request.uri().to_string().contains("service_live"));
    }
    assert!(!format!("{client:?}").contains("d41d8cd9"));
    assert_eq!(client.authorization(), format!("Bearer {KEY}"));
    let url = client.url(&GetCall { call_id }).unwrap();
    assert_eq!(url, "https://api.example.com/public/v1/calls/call_1%2F2");
    let dots = GetCall { call_id: CallId::parse("..").unwrap() };
    assert_eq!(client.request(&dots).unwrap_err(), UnsendableError::DotId);
    assert_eq!(client.url(&dots).unwrap_err(), UnsendableError::DotId);
}

/// KEY-6: a new key is checked, and then takes the old one's place.
#[test]
fn a_client_changes_its_key_and_nothing_else() {
    let text = KEY.replace("d41d8cd9", "0cc175b9");
    let client = client().with_key(ApiKey::parse(&Product::default(), &text).unwrap());
    assert_eq!(client.authorization(), format!("Bearer {text}"));
    assert_eq!(client.key().reveal(), text);
    let request = client.request(&GetAccount).unwrap();
    assert_eq!(request.headers()["authorization"], format!("Bearer {text}"));
    assert_eq!(request.uri(), "https://api.example.com/public/v1/account");
}

/// Section 7, and what each means: ERR-5's two are told apart.
#[test]
fn who_must_act_on_each_code() {
    for (status, code, remedy) in [
        (400, "invalid_parameter", Remedy::MendRequest),
        (400, "invalid_cursor", Remedy::BeginListAgain),
        (401, "invalid_credentials", Remedy::ReplaceKey),
        (402, "subscription_inactive", Remedy::ResumeSubscription),
        (403, "insufficient_scope", Remedy::GrantScope),
        (403, "plan_upgrade_required", Remedy::UpgradePlan),
        (403, "account_closed", Remedy::AccountClosed),
        (404, "resource_not_found", Remedy::Absent),
        (429, "rate_limit_exceeded", Remedy::TryAgain),
        (500, "internal_error", Remedy::TryAgain),
        (405, "method_not_allowed", Remedy::MendRequest),
        // ERR-4: codes from the future go by their status.
        (400, "of_the_future", Remedy::MendRequest),
        (401, "of_the_future", Remedy::ReplaceKey),
        (403, "of_the_future", Remedy::AskSupport),
        (404, "of_the_future", Remedy::Absent),
        (429, "of_the_future", Remedy::TryAgain),
        (503, "of_the_future", Remedy::TryAgain),
        // The code counts where a proxy has changed the status.
        (500, "insufficient_scope", Remedy::GrantScope),
        (403, "invalid_credentials", Remedy::ReplaceKey),
        (403, "resource_not_found", Remedy::Absent),
        (403, "invalid_parameter", Remedy::MendRequest),
        (200, "insufficient_scope", Remedy::AskSupport),
    ] {
        let error = refused(status, code).unwrap_err();
        assert_eq!(error.remedy(), remedy, "{status} {code}");
        if status != 200 {
            assert_eq!(error.code(), Some(&ErrorCode::from(code)));
            let shown = format!("service refused with {status}: {code} (req_1)");
            assert_eq!(error.to_string(), shown);
        }
    }
}

#[test]
fn headers_are_read_and_may_be_missing() {
    let id = |text| Some(RequestId::parse(text).unwrap());
    let body = r#"{"error":{"code":"rate_limit_exceeded","request_id":"req_body"}}"#;
    for (headers, request_id, retry_after) in [
        (&[][..], id("req_body"), None),
        (&[("x-request-id", "req_head"), ("retry-after", "5")], id("req_head"), Some(5)),
        (&[("X-Request-Id", "other"), ("Retry-After", "soon")], id("req_body"), None),
        // Which of two is meant cannot be told.
        (&[("retry-after", "5"), ("retry-after", "6")], id("req_body"), None),
        (
            &[
                ("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT"),
                ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
            ],
            id("req_body"),
            Some(60),
        ),
    ] {
        let error = answer(429, headers, body).unwrap_err();
        assert_eq!(error.request_id, request_id);
        assert_eq!(error.retry_after, retry_after.map(RetryAfter::Seconds), "{headers:?}");
        let failure = Failure::answered(429).with_code(ErrorCode::RateLimitExceeded);
        assert_eq!(Failure::from(&error), failure.with_retry_after(error.retry_after));
    }
    let error = answer(503, &[("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT")], "").unwrap_err();
    let instant = "2026-01-01T00:01:00Z".parse().unwrap();
    assert_eq!(error.retry_after, Some(RetryAfter::At(instant)));
}

/// What stands between client and service answers too: it is kept, bounded, and shown on demand.
#[test]
fn answers_that_are_not_the_services() {
    for (status, body, remedy) in [
        (502, "<h1>Bad gateway</h1>", Remedy::TryAgain),
        (502, "", Remedy::TryAgain),
        (503, r#"{"message":"down"}"#, Remedy::TryAgain),
        (500, r#"{"error":"no such key"}"#, Remedy::TryAgain),
        (500, r#"{"error":{"type":"x"}}"#, Remedy::TryAgain),
        (500, r#"{"error":{"code":7}}"#, Remedy::TryAgain),
        (500, r#"{"error":{"code":"account_closed"}"#, Remedy::TryAgain),
        // Fields in order are not an object, though serde would take them for one.
        (500, r#"{"error":["t","account_closed"]}"#, Remedy::TryAgain),
        (500, r#"[{"code":"account_closed"}]"#, Remedy::TryAgain),
        (403, "denied", Remedy::CheckRoute),
        (403, "null", Remedy::CheckRoute),
        (401, "who are you", Remedy::CheckRoute),
        (404, "<h1>nginx</h1>", Remedy::CheckRoute),
        (302, "", Remedy::CheckRoute),
        (204, "", Remedy::CheckRoute),
        (200, "<h1>Log in</h1>", Remedy::CheckRoute),
        (200, "[]", Remedy::CheckRoute),
    ] {
        let error = answer(status, &[], body).unwrap_err();
        assert_eq!(foreign(&error).as_str(), body, "{status}");
        assert_eq!(error.remedy(), remedy, "{status} {body}");
        assert_eq!(error.to_string(), format!("answer {status} is not the service's"));
        assert_eq!(error.code(), None);
    }
    // However long: an envelope of 64 KiB is nobody's, and little of it is kept.
    assert_eq!(MAX_ERROR_LEN, 65_536);
    let message = "m".repeat(MAX_ERROR_LEN);
    let long = format!(r#"{{"error":{{"code":"internal_error","message":"{message}"}}}}"#);
    let error = answer(500, &[], &long).unwrap_err();
    assert_eq!(foreign(&error).as_str(), &long[..2048]);
    // Blanks make it as long, and it is no more the service's for that.
    let message = "m".repeat(4096);
    let envelope = format!(r#"{{"error":{{"code":"internal_error","message":"{message}"}}}}"#);
    let padded = |len| envelope.clone() + &" ".repeat(len - envelope.len());
    let refused = answer(500, &[], &padded(MAX_ERROR_LEN)).unwrap_err();
    assert_eq!(refused.code(), Some(&ErrorCode::InternalError));
    let error = answer(500, &[], &padded(MAX_ERROR_LEN + 1)).unwrap_err();
    assert_eq!(foreign(&error).as_str(), &envelope[..2048]);
}

fn foreign(error: &ClientError) -> &UnexpectedBody {
    let Fault::Foreign(body) = &error.fault else { panic!("{error:?}") };
    body
}

#[test]
fn what_is_kept_of_a_foreign_body_is_bounded_and_cut_between_characters() {
    let kept = |body: &[u8]| {
        let error = ResponseHead::new(StatusCode::BAD_GATEWAY).read::<Account>(body).unwrap_err();
        foreign(&error).as_str().to_owned()
    };
    assert_eq!(UnexpectedBody::MAX_LEN, 2048);
    assert_eq!(kept(format!("{}\u{e9}", "x".repeat(2047)).as_bytes()), "x".repeat(2047));
    assert_eq!(kept("y".repeat(2048).as_bytes()), "y".repeat(2048));
    assert_eq!(kept("y".repeat(2049).as_bytes()), "y".repeat(2048));
    assert_eq!(kept(b"caf\xe9"), "caf\u{fffd}");
    // Nothing was cut off here: the last byte is as wrong as it looks.
    let wrong = [&[b'z'; 2047][..], b"\xff"].concat();
    assert_eq!(kept(&wrong), format!("{}\u{fffd}", "z".repeat(2047)));
}

/// KEY-7: a page may repeat what it was sent, and errors are logged.
#[test]
fn a_foreign_body_shows_no_key() {
    let error = answer(502, &[], &format!("you sent: {}", client().authorization())).unwrap_err();
    assert_eq!(foreign(&error).as_str(), "you sent: Bearer service_live_[redacted]");
    assert!(!format!("{error} {error:?}").contains("Bearer"), "{error:?}");
    assert!(format!("{error:?}").contains("UnexpectedBody(40 bytes)"), "{error:?}");
    let error = answer(502, &[], r#"["acme_test_0a",1]"#).unwrap_err();
    assert_eq!(foreign(&error).as_str(), r#"["acme_test_[redacted]",1]"#);
}

/// A list of calls is about people: an error about it shows nothing of it.
#[test]
fn successes_that_cannot_be_read() {
    let call = Call::new(
        CallId::parse("call_1").unwrap(),
        "2026-01-01T00:00:00Z".parse().unwrap(),
        "2026-01-01T00:00:00Z".parse().unwrap(),
    );
    let mut call = CallList::new(vec![call], None);
    call.data[0].caller.phone_number = Some("+4712345678".into());
    call.data[0].caller.display_name = Some("\u{c5}se \u{1f4de}".into());
    let whole = call.to_json();
    let head = ResponseHead::new(StatusCode::OK);
    assert_eq!(head.read::<CallList>(&whole), Ok(call));

    // Fields that are not known yet may break off, too.
    let new = r#"{"score":-1.5e-3,"ratios":[0.5E+2,true,null,"\u00e5"],"#;
    let more = String::from_utf8(whole.clone()).unwrap().replacen('{', new, 1);
    let more = more.replacen(r#"{"id""#, &format!(r#"{new}"id""#), 1).into_bytes();
    assert!(head.read::<CallList>(&more).is_ok());
    for whole in [&whole, &more] {
        for len in 0..whole.len() {
            let error = head.read::<CallList>(&whole[..len]).unwrap_err();
            assert_eq!(error.fault, Fault::BrokenOff, "{len} bytes");
            assert_eq!(error.remedy(), Remedy::TryAgain);
            assert_eq!(error.to_string(), "answer broke off");
        }
    }
    // In another encoding, it is whole: to ask again would not help.
    let mut latin = whole.clone();
    let at = latin.windows(2).position(|bytes| bytes == "\u{c5}".as_bytes()).unwrap();
    latin.splice(at..at + 2, [0xc5]);
    let error = head.read::<CallList>(&latin).unwrap_err();
    let Fault::Unreadable(parse) = &error.fault else { panic!("{error:?}") };
    assert_eq!((parse.kind(), error.remedy()), (ParseErrorKind::NotUtf8, Remedy::AskSupport));
    for (from, to, kind) in [
        (r#""data""#, r#""rows""#, ParseErrorKind::Missing),
        ("call_1", "", ParseErrorKind::Value),
        (r#""+4712345678""#, "4712345678", ParseErrorKind::Value),
        ("],\"next", "]],\"next", ParseErrorKind::Syntax),
    ] {
        let body = String::from_utf8(whole.clone()).unwrap().replace(from, to);
        let error = head.read::<CallList>(body.as_bytes()).unwrap_err();
        let Fault::Unreadable(parse) = &error.fault else { panic!("{error:?}") };
        assert_eq!(parse.kind(), kind, "{from}");
        assert_eq!(error.remedy(), Remedy::AskSupport);
        assert!(!format!("{error} {error:?}").contains("4712345678"), "{error:?}");
    }
}

/// Every answer to the question whether a key is any good.
#[test]
fn what_an_answer_says_about_a_key() {
    let account = Account::new(AccountId::parse("acct_1").unwrap(), "Europe/Oslo");
    assert_eq!(KeyCheck::from(Ok(account.clone())), KeyCheck::Valid(account));

    for (status, code, by) in [
        (403, "plan_upgrade_required", Obstacle::Plan),
        (402, "subscription_inactive", Obstacle::Subscription),
        (403, "account_closed", Obstacle::Closing),
        (403, "insufficient_scope", Obstacle::Scope),
    ] {
        let error = refused(status, code).unwrap_err();
        let expected = KeyCheck::Obstructed { by, error };
        assert_eq!(KeyCheck::from(refused(status, code)), expected, "{code}");
    }
    let invalid = refused(401, "invalid_credentials");
    assert_eq!(KeyCheck::from(invalid.clone()), KeyCheck::Invalid(invalid.unwrap_err()));
    for (status, code) in [
        (429, "rate_limit_exceeded"),
        (500, "internal_error"),
        (404, "resource_not_found"),
        (405, "method_not_allowed"),
        (400, "invalid_parameter"),
        (403, "of_the_future"),
        (503, "of_the_future"),
    ] {
        let answer = refused(status, code);
        let expected = KeyCheck::Unknown(answer.clone().err());
        assert_eq!(KeyCheck::from(answer), expected, "{status} {code}");
    }
    // A proxy's 401 says nothing about the key.
    let proxy = answer(401, &[], "proxy authentication");
    assert_eq!(KeyCheck::from(proxy.clone()), KeyCheck::Unknown(proxy.err()));
}

/// What the service writes is what the client reads, for every code.
#[test]
fn errors_of_this_crates_service() {
    for code in ErrorCode::KNOWN {
        let id = RequestId::parse("req_1").unwrap();
        let sent = ApiError::new(code.clone(), id.clone());
        let reply = call_assistant::rest::ErrorReply::new(code.clone(), id);
        let (head, body) = reply.into_response().into_parts();
        let error = read::<Account>(&head, &body).unwrap_err();
        assert_eq!(error.fault, Fault::Refused(Box::new(sent)));
        assert_eq!(Some(error.status), code.status());
    }
}
