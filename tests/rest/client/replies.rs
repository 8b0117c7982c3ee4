//! Requests and answers: HTTP-4, ERR-4, ERR-5, section 7's table, and whatever else may come back.

use call_assistant::id::{CallId, RequestId};
use call_assistant::json::{MAX_JSON_LEN, ParseErrorKind};
use call_assistant::model::{Account, Call, CallList, ListedCall};
use call_assistant::rest::client::{
    Action, Client, ClientError, ClientErrorReason, ResponseHead, RetryAfter,
};
use call_assistant::rest::{
    ApiKey, BaseUrl, ErrorCode, GetAccount, GetCall, ListCalls, ParameterError,
};
use http::Response;

use crate::dice::at;

const KEY: &str = "service_live_d41d8cd98f00b204e9800998ecf8427e";

pub(super) fn client() -> Client {
    Client::new("https://api.example.com/public/", KEY).unwrap()
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Result<Account, ClientError> {
    let mut response = Response::builder().status(status).header("server", "test");
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let (head, ()) = response.body(()).unwrap().into_parts();
    client().read(&GetAccount, &head, body.as_bytes())
}

fn list(body: &[u8]) -> Result<CallList, ClientError> {
    let mut head = ResponseHead::new(200);
    head.date = Some("Thu, 01 Jan 2026 00:00:00 GMT");
    client().read(&ListCalls::new(), head, body)
}

fn refused(status: u16, code: &str) -> Result<Account, ClientError> {
    let body =
        format!(r#"{{"error":{{"type":"t","code":"{code}","message":"m","request_id":"req_1"}}}}"#);
    answer(status, &[], &body)
}

/// HTTP-4: the key is in `Authorization` of every request, marked as sensitive, and nowhere else. HTTP-6: the
/// account is asked for by its path alone.
#[test]
fn the_three_requests() {
    let client = client();
    let get = GetCall::new(CallId::parse("call_1/2").unwrap());
    let get_url = "https://api.example.com/public/v1/calls/call_1%2F2";
    let list_url = "https://api.example.com/public/v1/calls?limit=50&cursor=a%2Bb";
    for (request, uri) in [
        (client.request(&GetAccount), "https://api.example.com/public/v1/account"),
        (client.request(&ListCalls::new().with_cursor("a+b")), list_url),
        (client.request(&get), get_url),
    ] {
        let request = request.unwrap();
        assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("GET", uri));
        let headers = request.headers();
        assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
        assert!(headers["authorization"].is_sensitive());
        assert_eq!(headers["accept"], "application/json");
        let agent = concat!("call-assistant/", env!("CARGO_PKG_VERSION"));
        assert_eq!((&headers["user-agent"], headers.len()), (&agent.parse().unwrap(), 3));
        assert!(!format!("{request:?}").contains("d41d8cd9"));
    }
    assert!(!format!("{client:?}").contains("d41d8cd9"));
    assert_eq!(client.authorization(), format!("Bearer {KEY}"));
    assert_eq!(client.url(&get).unwrap(), get_url);
    let dots = GetCall::new(CallId::parse("..").unwrap());
    assert_eq!(client.url(&dots).unwrap_err(), ParameterError::CallIdDots);
}

/// One error type for both texts, and a way in for values that were parsed already.
#[test]
fn a_client_is_made_of_two_texts_or_two_values() {
    let base = "https://api.example.com";
    for (base, key, expected) in
        [("api", KEY, BaseUrl::parse("api").err()), (base, "key", ApiKey::parse("key").err())]
    {
        assert_eq!(Client::new(base, key).err(), expected, "{base} {key}");
    }
    let values = Client::from_parts(base.parse::<BaseUrl>().unwrap(), KEY.parse().unwrap());
    let same = Client::new(base, KEY).unwrap();
    assert_eq!(values.url(&GetAccount), same.url(&GetAccount));
    assert_eq!([values.key(), same.key()], [&ApiKey::parse(KEY).unwrap(); 2]);
}

/// Section 7, and what each means: ERR-5's two are told apart.
#[test]
fn who_must_act_on_each_code() {
    // ERR-4: codes from the future go by their status. The code counts where a proxy has changed the status.
    const FUTURE: &str = "of_the_future";
    for (action, answers) in [
        (Action::RestartList, &[(400, "invalid_cursor")][..]),
        (Action::ReplaceKey, &[(401, "invalid_credentials"), (401, FUTURE)]),
        (Action::ReplaceKey, &[(403, "invalid_credentials")]),
        (Action::ResumeSubscription, &[(402, "subscription_inactive")]),
        (Action::GrantScope, &[(403, "insufficient_scope"), (500, "insufficient_scope")]),
        (Action::UpgradePlan, &[(403, "plan_upgrade_required")]),
        (Action::AccountClosed, &[(403, "account_closed")]),
        (Action::NotFound, &[(404, "resource_not_found"), (404, FUTURE)]),
        (Action::NotFound, &[(403, "resource_not_found")]),
        (Action::Retry, &[(429, "rate_limit_exceeded"), (429, FUTURE)]),
        (Action::Retry, &[(500, "internal_error"), (503, FUTURE)]),
        (Action::FixRequest, &[(400, "invalid_parameter"), (400, FUTURE)]),
        (Action::FixRequest, &[(403, "invalid_parameter"), (405, "method_not_allowed")]),
        (Action::ContactSupport, &[(403, FUTURE)]),
    ] {
        for (status, code) in answers {
            let error = refused(*status, code).unwrap_err();
            assert_eq!(error.action(), action, "{status} {code}");
            assert_eq!(error.code(), Some(&ErrorCode::from(*code)), "{status} {code}");
            let shown = format!("service refused with {status}: {code} (req_1)");
            assert_eq!(error.to_string(), shown, "{status} {code}");
        }
    }
    assert_eq!(refused(200, "insufficient_scope").unwrap_err().action(), Action::ContactSupport);
}

#[test]
fn headers_are_read_and_may_be_missing() {
    let id = |text| Some(RequestId::parse(text).unwrap());
    let body = r#"{"error":{"code":"rate_limit_exceeded","request_id":"req_body"}}"#;
    let [now, later] = ["Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:01:00 GMT"];
    for (headers, request_id, retry_after) in [
        (&[][..], id("req_body"), None),
        (&[("x-request-id", "req_head"), ("retry-after", "5")], id("req_head"), Some(5)),
        (&[("X-Request-Id", "other"), ("Retry-After", "soon")], id("req_body"), None),
        // KEY-7: what looks like a key is no id.
        (&[("x-request-id", &format!("req_{KEY}"))], id("req_body"), None),
        // Which of two is meant cannot be told.
        (&[("retry-after", "5"), ("retry-after", "6")], id("req_body"), None),
        (&[("retry-after", later), ("date", now)], id("req_body"), Some(60)),
    ] {
        let error = answer(429, headers, body).unwrap_err();
        assert_eq!(error.request_id, request_id, "{headers:?}");
        assert_eq!(error.retry_after, retry_after.map(RetryAfter::Seconds), "{headers:?}");
        assert_eq!(error.action(), Action::Retry, "{headers:?}");
    }
    let error = answer(503, &[("retry-after", later)], "").unwrap_err();
    assert_eq!(error.retry_after, Some(RetryAfter::At(at(60_000))));
}

/// What stands between client and service answers too: it is kept, bounded, and shown on demand.
#[test]
fn answers_that_are_not_the_services() {
    for (status, action, bodies) in [
        (502, Action::Retry, &["<h1>Bad gateway</h1>", ""][..]),
        (503, Action::Retry, &[r#"{"message":"down"}"#]),
        (500, Action::Retry, &[r#"{"error":"no such key"}"#, r#"{"error":{"type":"x"}}"#]),
        (500, Action::Retry, &[r#"{"error":{"code":7}}"#, r#"{"error":{"code":"account_closed"}"#]),
        // Fields in order are not an object, though serde would take them for one.
        (500, Action::Retry, &[r#"{"error":["t","account_closed"]}"#]),
        (500, Action::Retry, &[r#"[{"code":"account_closed"}]"#]),
        (403, Action::CheckRoute, &["denied", "null"]),
        (401, Action::CheckRoute, &["who are you"]),
        (404, Action::CheckRoute, &["<h1>nginx</h1>"]),
        (302, Action::CheckRoute, &[""]),
        (204, Action::CheckRoute, &[""]),
        (200, Action::CheckRoute, &["<h1>Log in</h1>", "[]"]),
    ] {
        for body in bodies {
            let error = answer(status, &[], body).unwrap_err();
            assert_eq!(foreign(&error), *body, "{status}");
            assert_eq!((error.action(), error.code()), (action, None), "{status} {body}");
            assert_eq!(error.to_string(), format!("response {status} is not the service's"));
        }
    }
    // However long: an envelope of 64 KiB is nobody's, and little of it is kept.
    assert_eq!(ClientError::MAX_BODY_LEN, 65_536);
    let message = "m".repeat(ClientError::MAX_BODY_LEN);
    let long = format!(r#"{{"error":{{"code":"internal_error","message":"{message}"}}}}"#);
    let error = answer(500, &[], &long).unwrap_err();
    assert_eq!(foreign(&error), &long[..2048]);
    // Blanks make it as long, and it is no more the service's for that.
    let message = "m".repeat(4096);
    let envelope = format!(r#"{{"error":{{"code":"internal_error","message":"{message}"}}}}"#);
    let padded = |len| envelope.clone() + &" ".repeat(len - envelope.len());
    let refused = answer(500, &[], &padded(ClientError::MAX_BODY_LEN)).unwrap_err();
    assert_eq!(refused.code(), Some(&ErrorCode::InternalError));
    let error = answer(500, &[], &padded(ClientError::MAX_BODY_LEN + 1)).unwrap_err();
    assert_eq!(foreign(&error), &envelope[..2048]);
}

#[track_caller]
fn foreign(error: &ClientError) -> &str {
    assert_eq!(error.reason, ClientErrorReason::NotFromService, "{error:?}");
    error.excerpt()
}

#[test]
fn what_is_kept_of_a_foreign_body_is_bounded_and_cut_between_characters() {
    let kept = |body: &[u8]| {
        let error = client().read(&GetAccount, ResponseHead::new(502), body).unwrap_err();
        foreign(&error).to_owned()
    };
    assert_eq!(ClientError::MAX_EXCERPT_LEN, 2048);
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
    assert_eq!(foreign(&error), "you sent: Bearer service_live_[redacted]");
    assert!(!format!("{error} {error:?}").contains("Bearer"), "{error:?}");
    assert!(format!("{error:?}").contains("excerpt: 40 bytes"), "{error:?}");
    let error = answer(502, &[], r#"["acme_test_0a",1]"#).unwrap_err();
    assert_eq!(foreign(&error), r#"["acme_test_[redacted]",1]"#);
}

/// A list of calls is about people: an error about it shows nothing of it.
#[test]
fn successes_that_cannot_be_read() {
    let mut call = Call::new(CallId::parse("call_1").unwrap(), at(0), at(0));
    call.caller.phone_number = Some("+4712345678".into());
    call.caller.display_name = Some("\u{c5}se \u{1f4de}".into());
    let page = CallList::new(vec![call], None);
    let whole = page.to_json();
    assert_eq!(list(&whole), Ok(page));

    // Fields that are not known yet may break off, too.
    let new = r#"{"score":-1.5e-3,"ratios":[0.5E+2,true,null,"\u00e5"],"#;
    let more = String::from_utf8(whole.clone()).unwrap().replacen('{', new, 1);
    let more = more.replacen(r#"{"id""#, &format!(r#"{new}"id""#), 1).into_bytes();
    assert!(list(&more).is_ok());
    for whole in [&whole, &more] {
        for len in 0..whole.len() {
            let error = list(&whole[..len]).unwrap_err();
            let told = (error.reason.clone(), error.action());
            assert_eq!(told, (ClientErrorReason::Truncated, Action::Retry), "{len} bytes");
            assert_eq!(error.to_string(), "response is truncated", "{len} bytes");
        }
    }
    // In another encoding, it is whole: to ask again would not help.
    let mut latin = whole.clone();
    let at = latin.windows(2).position(|bytes| bytes == "\u{c5}".as_bytes()).unwrap();
    latin.splice(at..at + 2, [0xc5]);
    let whole = String::from_utf8(whole).unwrap();
    for (body, kind) in [
        (latin, ParseErrorKind::NotUtf8),
        (whole.replace(r#""data""#, r#""rows""#).into(), ParseErrorKind::Missing),
        (whole.replace(r#"[{"#, r#"{"a":[{"#).into(), ParseErrorKind::Value),
        (whole.replace("],\"next", "]],\"next").into(), ParseErrorKind::Syntax),
    ] {
        let error = list(&body).unwrap_err();
        let ClientErrorReason::Unreadable(parse) = &error.reason else { panic!("{error:?}") };
        assert_eq!((parse.kind(), error.action()), (kind, Action::ContactSupport));
        assert!(!format!("{error} {error:?}").contains("4712345678"), "{error:?}");
    }
}

/// D-74: an item that cannot be read is kept, and the page is there.
#[test]
fn a_page_with_an_item_that_cannot_be_read() {
    let body = r#"{"data":[{"id":"call_1","summary":"\ud83d"}],"has_more":false}"#;
    let page = list(body.as_bytes()).unwrap();
    let [ListedCall::Unreadable(item)] = &page.data[..] else { panic!("{page:?}") };
    assert_eq!(item.id().unwrap().as_str(), "call_1");
    // A single call has no page to save.
    let get = GetCall::new(CallId::parse("call_1").unwrap());
    let error = client().read(&get, ResponseHead::new(200), item.json().get().as_bytes());
    assert_eq!(error.unwrap_err().action(), Action::ContactSupport);
}

/// D-94: the answer to a single call is that call, or it is nobody's, and nothing of it is shown.
#[test]
fn another_call_is_no_answer() {
    let call = |id| CallId::parse(id).unwrap();
    let body = Call::new(call("call_2"), at(0), at(0)).to_json();
    let client = Client::new("https://h", "service_live_a").unwrap();
    let read = |id| client.read(&GetCall::new(call(id)), ResponseHead::new(200), &body);
    assert_eq!(read("call_2").unwrap().id, call("call_2"));
    for id in ["call_1", "call_22", "CALL_2"] {
        let error = read(id).unwrap_err();
        assert_eq!((foreign(&error), error.action()), ("", Action::CheckRoute), "{id}");
    }
}

/// What the HTTP client says of a request without a response is shown in one line, without a key.
#[test]
fn what_an_http_client_says() {
    /// An error as HTTP clients make them: some repeat what is behind them, some do not.
    #[derive(Debug, thiserror::Error)]
    #[error("{said}")]
    struct Said {
        said: String,
        #[source]
        behind: Option<Box<Said>>,
    }
    let said = |words: &[&str]| {
        let link = |behind: Option<Box<Said>>, said: &&str| {
            Some(Box::new(Said { said: (*said).to_owned(), behind }))
        };
        *words.iter().rev().fold(None, link).unwrap()
    };
    let long = "x".repeat(10_000);
    for (words, shown) in [
        (&[""][..], "no response".to_owned()),
        (&["refused"], "no response: refused".into()),
        (&["sending", "connecting", "refused"], "no response: sending: connecting: refused".into()),
        (&["sending: refused", "refused"], "no response: sending: refused".into()),
        (&["with service_live_0123456789", "and whsec_0123456789"], {
            "no response: with service_live_[redacted] and whsec_[redacted]".into()
        }),
        (&["one\r\ntwo\u{1b}[2J"], "no response: one\\r\\ntwo\\u{1b}[2J".into()),
        (&[&long, "refused"], format!("no response: {}...", &long[..500])),
    ] {
        let error = ClientError::no_response(said(words));
        assert_eq!(error.to_string(), shown, "{words:?}");
        assert_eq!((error.action(), error.status, error.code()), (Action::Retry, None, None));
        assert!(!format!("{error:?}").contains("0123456789"), "{words:?}");
    }
    let boxed: Box<dyn std::error::Error + Send + Sync> = "by a box".into();
    assert_eq!(ClientError::no_response(boxed).to_string(), "no response: by a box");
}

/// What an HTTP client made of an answer before it was reported is told to whoever reads the error.
#[test]
fn what_was_lost_on_the_way_is_told() {
    const STATUS: &str = "an error of a status";
    for (cause, is_status) in [
        ("http status: 401", true),                                  // ureq 3
        ("https://api.example.com/v1/calls: status code 503", true), // ureq 2
        ("HTTP status client error (429 Too Many Requests) for url (https://h/v1/calls)", true), // reqwest
        ("HTTP status server error (500 Internal Server Error) for url (https://h/)", true),
        ("timeout: global", false),
        ("connection refused (os error 111)", false),
        ("proxy refused it with status 407", false),
        ("the tunnel ended with status 407", false),
        ("exit status: 101", false),
        ("status of the connection is unknown after 30000 ms", false),
    ] {
        let error = ClientError::no_response(cause);
        assert_eq!(error.action(), Action::Retry, "{cause}");
        let told = error.to_string();
        assert!(told.starts_with(&format!("no response: {cause}")), "{told}");
        assert_eq!(told.contains(STATUS), is_status, "{told}");
        assert_eq!(told.contains("http_status_as_error(false)"), is_status, "{told}");
    }

    let (list, refusal) = (ListCalls::new(), br#"{"error":{"code":"rate_limit_exceeded"}}"#);
    let told = |head: ResponseHead<'_>, body: &[u8]| {
        client().read(&list, head, body).unwrap_err().to_string()
    };
    let bare = ResponseHead::new(429);
    let expected = "service refused with 429: rate_limit_exceeded; \
        the answer was reported without headers: keep them, for Retry-After and Date";
    assert_eq!(told(bare, refusal), expected);
    let parts = |name: Option<&str>| {
        let response =
            name.into_iter().fold(Response::builder().status(429), |it, name| it.header(name, "1"));
        response.body(()).unwrap().into_parts().0
    };
    assert_eq!(told((&parts(None)).into(), refusal), expected);
    for name in ["x-request-id", "retry-after", "date", "server"] {
        let told = told((&parts(Some(name))).into(), refusal);
        assert!(!told.contains("headers"), "{name}: {told}");
    }

    for (len, is_long) in [(MAX_JSON_LEN, false), (MAX_JSON_LEN + 1, true)] {
        let mut body = vec![b' '; len];
        body[0] = b'{';
        let mut head = ResponseHead::new(200);
        head.request_id = Some("req_1");
        let told = told(head, &body);
        let long = "bytes, more than 16777216 (req_1); read no more than that of any answer";
        assert_eq!(told.ends_with(long), is_long, "{told}");
    }
}
