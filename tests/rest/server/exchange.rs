//! The exchange, state by state.

use std::time::Duration;

use call_assistant::id::{CallId, CredentialId, EventId, RequestId};
use call_assistant::model::{Account, Appointment, CallList, TransferredCall};
use call_assistant::rest::server::{
    Authorized, CallRow, CursorError, RateWindows, Received, Rejection, RejectionReason as Reason,
    RequestHead,
};
use call_assistant::rest::{
    ApiError, BaseUrl, ErrorCode as Code, Mode, ParameterError, Quota, Scope,
};
use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
use http::Response;

use super::scenario::{
    Scenario, account_id, api_key, checked, get, other_account_id, request_id, rows,
};
use crate::second;

/// Something wrong, the reason that is logged, and the code that is told.
type Fault = (fn(&mut Scenario), Reason, Code);

/// Rows that were not asked for, and what is noticed about them.
type Wrong = (fn(&mut Vec<CallRow>), &'static str);

const TARGETS: [&str; 3] = ["/v1/account", "/v1/calls", "/v1/calls/call_1"];

fn text(response: &Response<Vec<u8>>) -> &str {
    core::str::from_utf8(response.body()).unwrap()
}

/// HTTP-1, HTTP-2, RES-1, RES-3, RES-7, D-21, D-81: the three answers, byte for byte.
#[test]
fn answers_are_the_specifications() {
    let account =
        r#"{"id":"acct_1","business_name":null,"timezone":"Europe/Oslo","livemode":true}"#;
    let call = r#"{"id":"call_1","caller":{"contact_id":null,"phone_number":null,"display_name":null},"started_at":"2026-01-01T00:00:01Z","answered_at":null,"ended_at":null,"duration_seconds":null,"summary":null,"appointment_ids":[],"created_at":"2026-01-01T00:00:02Z"}"#;
    let list = format!(r#"{{"data":[{call}],"next_cursor":null,"has_more":false}}"#);
    for (target, body) in TARGETS.into_iter().zip([account, &list, call]) {
        let response = get(target).with(|it| it.calls = rows(1)).answer();
        assert_eq!((response.status().as_u16(), text(&response)), (200, body));
        let headers = response.headers();
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["x-request-id"], request_id().as_str());
        assert_eq!(headers["content-length"], body.len().to_string().as_str());
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers.len(), 4);
    }
}

/// D-3: `HEAD` as `GET` without a body, successes and rejections alike.
#[test]
fn head_is_get_without_the_body() {
    let requests: [fn(&mut Scenario); 6] = [
        |_| {},
        |it| it.path.push('/'),
        |it| it.found = false,
        |it| it.status.closing = true,
        |it| it.query = Some("limit=0".into()),
        |it| it.calls.clear(),
    ];
    for target in TARGETS {
        for change in requests {
            let full = get(target).with(change).answer();
            let head = get(target).with(change).with(|it| it.method = "HEAD").answer();
            assert_eq!(head.status(), full.status());
            assert_eq!(head.headers(), full.headers());
            assert!(head.body().is_empty() && !full.body().is_empty());
            assert_eq!(head.headers()["content-length"], full.body().len().to_string().as_str());
        }
    }
}

/// KEY-4, KEY-5, D-10, D-11: what is wrong with a credential is in the log alone.
#[test]
fn unusable_credentials_cannot_be_told_apart() {
    let good = || format!("Bearer {}", api_key().reveal()).into_bytes();
    let set = |values: Vec<Vec<u8>>| get("/v1/account").with(|it| it.authorization = values);
    let with = |change: fn(&mut Scenario)| get("/v1/account").with(change);
    let mut rows = vec![
        (set(vec![]), Reason::NoCredential),
        (set(vec![good(), good()]), Reason::SeveralCredentials),
        (set(vec![good().split_off("Bearer ".len())]), Reason::OtherScheme),
        (with(|it| it.found = false), Reason::UnknownCredential),
        (with(|it| it.key.expires_at = Some(it.now)), Reason::ExpiredCredential),
        (with(|it| it.key.revoke(second(1))), Reason::RevokedCredential),
    ];
    for (reason, values) in [
        (Reason::OtherScheme, &["", " Bearer abc", "Basic abc", "Bearerabc", "Bearer\tabc"][..]),
        (Reason::MalformedCredential, &["Bearer", "Bearer ", "Bearer \t", "Bearer a b"]),
        (Reason::MalformedCredential, &["Bearer abc ", "Bearer \u{e9}"]),
        (Reason::UnknownCredential, &["Bearer service_live_guess"]),
    ] {
        rows.extend(values.iter().map(|value| (set(vec![(*value).into()]), reason.clone())));
    }
    rows.push((set(vec![b"Bearer abc\xff".to_vec()]), Reason::MalformedCredential));
    let mut answers = Vec::new();
    for (mut scenario, reason) in rows {
        let rejection = scenario.serve().unwrap_err();
        assert_eq!((rejection.reason(), rejection.credential_id()), (&reason, None));
        assert_eq!(checked(rejection.clone()).code, Code::InvalidCredentials);
        answers.push(rejection.into_response());
    }
    // The same for every operation, too.
    answers.extend(TARGETS.map(|target| get(target).with(|it| it.found = false).answer()));
    for answer in &answers {
        assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        assert_eq!(answer.status(), answers[0].status());
        assert_eq!(answer.headers(), answers[0].headers());
        assert_eq!(answer.body(), answers[0].body());
    }
}

/// D-10: the scheme in any case, and any number of blanks.
#[test]
fn schemes_are_read_in_any_case() {
    for scheme in ["Bearer ", "bearer ", "BEARER    "] {
        let value = format!("{scheme}{}", api_key().reveal()).into_bytes();
        let mut scenario = get("/v1/account").with(|it| it.authorization = vec![value]);
        assert_eq!(scenario.answer().status(), 200, "{scheme}");
    }
}

/// RES-2, D-12: the stored mode decides, not the key's text nor the account's record.
#[test]
fn livemode_is_the_stored_keys() {
    for mode in [Mode::Live, Mode::Test] {
        for recorded in [true, false] {
            let mut scenario = get("/v1/account").with(|it| it.key.mode = mode);
            scenario.account.livemode = recorded;
            let account = Account::from_json(scenario.answer().body()).unwrap();
            assert_eq!(account.livemode, mode == Mode::Live, "{recorded}");
        }
    }
}

/// AUTH-1, AUTH-2, D-1: every set of scopes against every operation. A missing scope is named.
#[test]
fn scopes_grant_what_they_say_and_no_more() {
    let scopes = [
        Scope::AccountRead,
        Scope::CallsRead,
        Scope::from("calls:write"),
        Scope::from("appointments:read"),
        Scope::from("*"),
    ];
    for subset in 0..1_u32 << scopes.len() {
        let held: Vec<_> = (0..scopes.len()).filter(|bit| subset >> bit & 1 == 1).collect();
        for target in TARGETS {
            let mut scenario = get(target);
            scenario.key.scopes = held.iter().map(|at| scopes[*at].clone()).collect();
            let needed = usize::from(target != "/v1/account");
            if held.contains(&needed) {
                assert_eq!(scenario.answer().status(), 200, "{target} with {held:?}");
                continue;
            }
            let rejection = scenario.serve().unwrap_err();
            assert_eq!(rejection.reason(), &Reason::ScopeMissing(scopes[needed].clone()));
            let (error, named) = (checked(rejection), ["account:read", "calls:read"][needed]);
            assert_eq!(error.code, Code::InsufficientScope, "{target} with {held:?}");
            assert_eq!(error.message, format!("The API key lacks the scope {named}."));
        }
    }
}

/// AUTH-3, AUTH-4, AUTH-5, ERR-5.
#[test]
fn the_accounts_status_decides() {
    let rows: [Fault; 3] = [
        (|it| it.status.closing = true, Reason::AccountClosing, Code::AccountClosed),
        (|it| it.status.subscribed = false, Reason::NoSubscription, Code::SubscriptionInactive),
        (|it| it.status.api_in_plan = false, Reason::PlanLacksApi, Code::PlanUpgradeRequired),
    ];
    for target in TARGETS {
        for (change, reason, code) in &rows {
            assert_eq!(get(target).with(change).refused(), (reason.clone(), code.clone()));
        }
    }
}

/// AUTH-6, VER-2: a token that is checked elsewhere goes the same way to the same answers.
#[test]
fn a_token_goes_the_same_way_as_a_key() {
    for target in TARGETS {
        let mut scenario = get(target).with(|it| {
            it.authorization = vec![b"Bearer eyJ.x.y".to_vec()];
            it.key.id = CredentialId::parse("token_1").unwrap();
            it.key.digest = *it.received().unwrap().digest().unwrap();
        });
        assert_eq!(scenario.answer().body(), get(target).answer().body());
        scenario.found = false;
        assert_eq!(scenario.refused(), (Reason::UnknownCredential, Code::InvalidCredentials));
    }
}

/// RATE-1 to RATE-3, D-31: quotas per credential, each its own, and what a 429 says.
#[test]
fn quotas_are_counted_by_credential_and_kind() {
    let scenario = get("/v1/account");
    let (now, mut windows) = (scenario.now, RateWindows::new(10));
    let mut ask = |target: &str, credential: &str, now| {
        let id = CredentialId::parse(credential).unwrap();
        let identified = get(target).with(|it| it.key.id = id).identified(now);
        let quota = if target == "/v1/account" { Quota::ACCOUNT } else { Quota::READS };
        assert_eq!(identified.quota(), quota, "{target}");
        identified.admit(&mut windows, now).map(drop)
    };
    for request in 0..300 {
        if request < 60 {
            ask("/v1/account", "cred_1", now).unwrap();
        }
        ask("/v1/calls", "cred_1", now).unwrap();
        ask("/v1/calls/call_1", "cred_1", now).unwrap();
    }
    let later = now.saturating_add(Duration::from_millis(12_300));
    for target in TARGETS {
        let rejection = ask(target, "cred_1", later).unwrap_err();
        let Reason::RateLimited(exceeded) = rejection.reason() else { panic!("{rejection}") };
        assert_eq!(exceeded.wait, Duration::from_millis(47_700));
        assert_eq!(rejection.credential_id(), Some(&scenario.key.id));
        let response = rejection.into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "48");
    }
    // Another credential of the account has a quota of its own.
    assert_eq!(ask("/v1/account", "cred_2", later), Ok(()));
    assert_eq!(ask("/v1/account", "cred_1", now.saturating_add(Quota::SPAN)), Ok(()));
}

/// D-31: a wait found elsewhere is rounded up, and never 0. The host may refuse for any reason, such as a full table.
#[test]
fn waits_found_elsewhere_are_rounded_up() {
    let rows = [(0, "1"), (1, "1"), (999, "1"), (1_000, "1"), (1_001, "2"), (60_000, "60")];
    for (millis, seconds) in rows {
        let scenario = get("/v1/account");
        let identified = scenario.identified(scenario.now);
        let wait = Duration::from_millis(millis);
        let rejection = identified.admit_decided(Err(wait)).unwrap_err();
        let said = format!("the host's rate limit refused the request, with a wait of {wait:?}");
        assert_eq!(rejection.reason().to_string(), said);
        assert_eq!(rejection.into_response().headers()["retry-after"], seconds);
    }
}

/// D-13: the service's own id, whatever came along.
#[test]
fn an_incoming_request_id_is_ignored() {
    let request = http::Request::get("/v1/account").header("host", "api.example.com");
    let request = request.header("x-request-id", "req_theirs").body(()).unwrap();
    let response = without_key(&RequestHead::from_parts(&request.into_parts().0)).into_response();
    assert_eq!(response.headers()["x-request-id"], request_id().as_str());
    assert!(!text(&response).contains("theirs"));
}

/// LIST-2, LIST-3, LIST-4: what the caller is told is what is wrong, and no more.
#[test]
fn parameters_are_refused_in_words() {
    let mut scenario = get("/v1/calls?limit=101");
    let rejection = scenario.serve().unwrap_err();
    assert_eq!(rejection.reason(), &Reason::Parameter(ParameterError::LimitRange));
    assert_eq!(checked(rejection).message, "limit is not from 1 to 100");

    let mut scenario = get("/v1/calls/%zz");
    let message = checked(scenario.serve().unwrap_err()).message;
    assert!(message.starts_with("call_id has broken percent-encoding"), "{message}");

    let rows =
        [("", CursorError::Empty), ("!", CursorError::Encoding), ("AAAA", CursorError::Short)];
    let mut answers = Vec::new();
    for (text, fault) in rows {
        let mut scenario = get(&format!("/v1/calls?cursor={text}"));
        assert_eq!(scenario.refused(), (Reason::Cursor(fault), Code::InvalidCursor));
        answers.push(scenario.answer().into_body());
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

/// LIST-4, D-22: a cursor is good for its own account and mode only.
#[test]
fn cursors_do_not_travel() {
    let list = CallList::from_json(get("/v1/calls?limit=1").answer().body()).unwrap();
    let target = format!("/v1/calls?limit=1&cursor={}", list.next_cursor.unwrap());
    assert_eq!(get(&target).answer().status(), 200);
    let mut theirs = get(&target).with(|it| {
        it.key.account_id = other_account_id();
        it.status.account_id = other_account_id();
    });
    let mut test = get(&target).with(|it| it.key.mode = Mode::Test);
    for scenario in [&mut theirs, &mut test] {
        assert_eq!(scenario.refused(), (Reason::Cursor(CursorError::Digest), Code::InvalidCursor));
    }
}

/// HTTP-7, D-7, D-77: whatever stands in the way of a call, it is simply not there.
#[test]
fn calls_that_are_not_theirs_are_not_there() {
    let missing = get("/v1/calls/call_9").answer();
    assert_eq!(missing.status(), 404);
    let [own] = &rows(1)[..] else { panic!("one row") };
    let other = CallRow { account_id: other_account_id(), ..own.clone() };
    let test = CallRow { mode: Mode::Test, ..own.clone() };
    // A store in memory that keeps what matches.
    for (row, matches) in [(own, true), (&other, false), (&test, false)] {
        assert_eq!(get("/v1/calls").calls_query().matches(row), matches, "{row:?}");
        assert_eq!(get("/v1/calls/call_1").call_query().matches(row), matches, "{row:?}");
    }
    // A host that looks calls up by their id alone.
    let careless = |row| get("/v1/calls/call_1").call_query().answer(row).unwrap_err();
    let no_id = Reason::NotAnId(CallId::parse(" ").unwrap_err());
    for (rejection, reason) in [
        (careless(None), Reason::NoSuchCall),
        (careless(Some(other)), Reason::NotTheirCall),
        (careless(Some(test)), Reason::NotTheirCall),
        (get("/v1/calls/%C3%A9").serve().unwrap_err(), no_id),
    ] {
        assert_eq!(rejection.reason(), &reason);
        let response = rejection.into_response();
        assert_eq!(response.status(), missing.status(), "{reason}");
        assert_eq!(response.headers(), missing.headers(), "{reason}");
        assert_eq!(response.body(), missing.body(), "{reason}");
    }
}

/// RES-7, LIST-1, D-77: what a host gives that was not asked for is a fault, and none of it is served.
#[test]
fn records_that_were_not_asked_for_are_not_served() {
    let mut rejections = Vec::new();
    let wrong: [Wrong; 3] = [
        (|rows| rows[1].account_id = other_account_id(), "Rows(WrongOwner { row: 1 })"),
        (|rows| rows[2].mode = Mode::Test, "Rows(WrongOwner { row: 2 })"),
        (|rows| rows.reverse(), "Rows(OutOfOrder { row: 1 })"),
    ];
    for (change, reason) in wrong {
        let mut given = rows(3);
        change(&mut given);
        let rejection = get("/v1/calls?limit=2").calls_query().answer(given).unwrap_err();
        assert_eq!(format!("{:?}", rejection.reason()), reason);
        rejections.push(rejection);
    }

    let mut row = rows(1).pop().unwrap();
    row.call.id = CallId::parse("call_2").unwrap();
    rejections.push(get("/v1/calls/call_1").call_query().answer(Some(row)).unwrap_err());
    assert_eq!(rejections.last().unwrap().reason(), &Reason::WrongCall);

    let records: [fn(&mut Scenario); 2] =
        [|it| it.account.id = other_account_id(), |it| it.status.account_id = other_account_id()];
    for change in records {
        rejections.push(get("/v1/account").with(change).serve().unwrap_err());
        assert_eq!(rejections.last().unwrap().reason(), &Reason::WrongAccount);
    }
    for body in rejections.into_iter().map(checked) {
        assert_eq!(body.code, Code::InternalError);
        assert_eq!(body.message, "The service failed to answer.");
    }
}

/// A host that fails at a step answers 500 from there.
#[test]
fn every_state_has_its_500() {
    for target in TARGETS {
        for method in ["GET", "HEAD"] {
            let mut scenario = get(target).with(|it| it.method = method);
            let now = scenario.now;
            for rejection in [
                scenario.received().unwrap().internal_error(),
                scenario.identified(now).internal_error(),
                scenario.identified(now).admit_decided(Ok(())).unwrap().internal_error(),
                scenario.authorized().unwrap().internal_error(),
            ] {
                assert_eq!(rejection.reason(), &Reason::Internal);
                assert_eq!(rejection.operation().unwrap().method(), http::Method::GET);
                let response = rejection.into_response();
                assert_eq!(response.status(), 500);
                assert_eq!(response.headers()["x-request-id"], request_id().as_str());
                assert_eq!(response.body().is_empty(), method == "HEAD");
            }
        }
    }
    let alone = Rejection::internal_error(request_id());
    assert_eq!(checked(alone).code, Code::InternalError);
}

/// What a host needs for its look-ups, from the state in which it makes them. KEY-3: what to store after
/// a key was used, also where the request then goes wrong.
#[test]
fn every_state_says_whose_request_it_is() {
    for (target, mode) in TARGETS.into_iter().zip([Mode::Live, Mode::Test, Mode::Test]) {
        let mut scenario = get(target).with(|it| it.key.mode = mode);
        let received = scenario.received().unwrap();
        assert_eq!(received.digest(), Some(&api_key().digest()));
        let identified = received.identify(Some(&scenario.key), scenario.now).unwrap();
        assert_eq!(identified.account_id(), &account_id());
        assert_eq!(identified.credential_id(), &scenario.key.id);
        assert_eq!(identified.used_at(), scenario.now);
        let admitted = identified.admit(&mut scenario.rates, scenario.now).unwrap();
        assert_eq!(admitted.account_id(), &account_id());
        let whose = match admitted.authorize(&scenario.status, &scenario.cursors).unwrap() {
            Authorized::Account(query) => (query.account_id().clone(), Mode::Live),
            Authorized::Calls(query) => (query.account_id().clone(), query.mode()),
            Authorized::Call(query) => {
                assert_eq!(query.call_id().as_str(), "call_1");
                (query.account_id().clone(), query.mode())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(whose, (account_id(), mode));
    }
}

/// The line for the log says who, what and why.
#[test]
fn rejections_display_for_the_log() {
    let rejection = get("/v1/calls?cursor=x").serve().unwrap_err();
    assert_eq!(
        rejection.to_string(),
        format!("{}: invalid_cursor: cursor is not canonical base64url", request_id()),
    );
    assert_eq!(rejection.operation().unwrap().name(), "list_calls");
    assert_eq!(rejection.credential_id().unwrap().as_str(), "cred_1");
}

/// HTTP-1: a service below a path of its host.
#[test]
fn heads_are_read_below_a_base() {
    let base = BaseUrl::parse("https://example.com/voice").unwrap();
    let of = |path| {
        let head = RequestHead::new("GET", path, None).with_host(b"example.com").with_base(&base);
        Received::new(&head, request_id()).map(|received| received.operation().name())
    };
    assert_eq!(of("/voice/v1/account"), Ok("get_account"));
    for path in ["/v1/account", "/voicev1/account", "/voice", "/voice/voice/v1/account"] {
        assert_eq!(of(path).unwrap_err().reason(), &Reason::UnknownPath, "{path}");
    }
}

/// Ids of requests come back whole, whatever they are made of.
#[test]
fn request_ids_of_any_form_fit() {
    let long = format!("req_{}", "~".repeat(251));
    for id in ["req_", "req_!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", &long] {
        let id = RequestId::parse(id).unwrap();
        let response = Rejection::internal_error(id.clone()).into_response();
        assert_eq!(response.headers()["x-request-id"], id.as_str());
        assert_eq!(ApiError::from_json(response.body()).unwrap().request_id, Some(id));
    }
}

/// HTTP-4: a key in the URL is no credential, whatever the parameter is called.
#[test]
fn a_key_in_the_url_opens_nothing() {
    let secret = api_key().reveal().to_owned();
    let bare = |target: &str| get(target).with(|it| it.authorization.clear());
    for target in TARGETS {
        for name in ["key", "api_key", "access_token", "token", "authorization"] {
            let rejection = bare(&format!("{target}?{name}={secret}")).serve().unwrap_err();
            assert_eq!(rejection.reason(), &Reason::NoCredential, "{name}");
            let shown = format!("{rejection:?} {rejection}");
            let shown = shown + text(&rejection.into_response());
            assert!(!shown.contains(&secret), "{name}: {shown}");
        }
        assert_eq!(bare(&format!("/{secret}{target}")).answer().status(), 404);
    }
}

/// HTTP-6: the account's row is all it takes, and a body that comes along changes nothing.
#[test]
fn an_account_needs_no_calls() {
    let answered = get("/v1/account").answer();
    let mut scenario = get("/v1/account").with(|it| it.calls.clear());
    let Authorized::Account(query) = scenario.authorized().unwrap() else {
        panic!("the account was asked for")
    };
    let response = query.answer(scenario.account.clone()).unwrap();
    assert_eq!(response.body(), answered.body());

    let (parts, _) = http::Request::get("/v1/account")
        .header("host", "api.example.com")
        .header("authorization", format!("Bearer {}", api_key().reveal()))
        .header("content-type", "application/json")
        .header("content-length", "17")
        .body(r#"{"livemode":false}"#)
        .unwrap()
        .into_parts();
    assert!(RequestHead::from_parts(&parts) == get("/v1/account").head());
    let shown = format!("{:?}", RequestHead::from_parts(&parts));
    assert_eq!(shown, r#"RequestHead { method: "GET", path: "/v1/account", .. }"#);
}

/// RES-8: the same bytes alone, in a list, in an event and in a transfer's, however often, and
/// also after an appointment it booked was cancelled.
#[test]
fn a_call_is_the_same_wherever_it_is_read() {
    let mut row = rows(1).pop().unwrap();
    row.call.caller.display_name = Some("Kari \"K\" \u{2028}".into());
    row.call.ended_at = Some(second(2));
    row.call.summary = Some(String::new());
    row.call.appointment_ids = ["appt_2", "appt_1"].map(|id| id.parse().unwrap()).into();
    let object = String::from_utf8(row.call.to_json()).unwrap();
    let event = || {
        let (id, version) = (EventId::parse("evt_1"), ApiVersion::parse("2026-01-15"));
        NewEvent::new(id.unwrap(), account_id(), version.unwrap(), Origin::voice(), second(3))
    };
    let serve = |target| get(target).with(|it| it.calls = vec![row.clone()]).answer();
    for _ in 0..2 {
        assert_eq!(text(&serve("/v1/calls/call_1")), object);
        let moved = TransferredCall::new(row.call.clone(), "desk", second(2));
        let open = object.strip_suffix('}').unwrap();
        for (read, expected) in [
            (text(&serve("/v1/calls")), format!(r#""data":[{object}]"#)),
            (event().call_ended(&row.call).unwrap().as_str(), format!(r#""object":{object}"#)),
            (event().call_transferred(&moved).unwrap().as_str(), format!(r#""object":{open},"#)),
        ] {
            assert!(read.contains(&expected), "{read}");
        }
        let booked = Appointment::from_json(br#"{"id":"appt_1","status":"booked"}"#).unwrap();
        let _ = event().appointment_cancelled(&booked);
    }
}

/// D-4, D-82: `Host` comes before all else, on every path, and nothing is counted.
#[test]
fn a_bad_host_is_refused_before_all_else() {
    use Reason::{MalformedHost, NoHost, SeveralHosts};
    let good = || b"api.example.com".to_vec();
    let malformed = [
        "", " ", "a b", "user@h", "@h", "h:port", "h:99999", "http://h", "h/", "a,b@", "[::1",
        ":80", "h\u{e9}",
    ];
    let mut rows = vec![(vec![], NoHost), (vec![good(), good()], SeveralHosts)];
    rows.extend(malformed.map(|host| (vec![host.as_bytes().to_vec()], MalformedHost)));
    for (host, reason) in rows {
        for target in ["/v1/account", "/v1/calls", "/v1/calls/call_1", "/v2"] {
            for method in ["GET", "POST"] {
                let mut scenario = get(target).with(|it| {
                    it.host.clone_from(&host);
                    it.method = method;
                    it.found = false;
                });
                let rejection = scenario.serve().unwrap_err();
                assert_eq!(rejection.reason(), &reason, "{method} {target} {host:?}");
                let error = checked(rejection);
                assert_eq!(error.code, Code::InvalidParameter, "{method} {target} {host:?}");
                assert!(error.message.starts_with("Host "), "{}", error.message);
                assert!(scenario.rates.is_empty(), "{method} {target} {host:?}");
            }
        }
    }
    for host in ["h", "h:80", "h:", "API.example.com:8443", "127.0.0.1:1", "[::1]", "[::1]:443"] {
        let mut scenario = get("/v1/account").with(|it| it.host = vec![host.as_bytes().to_vec()]);
        assert_eq!(scenario.answer().status(), 200, "{host}");
    }
    // HTTP/2 has the authority in its place; an HTTP/1.1 target in absolute form does not.
    for (version, status) in [(http::Version::HTTP_2, 401), (http::Version::HTTP_11, 400)] {
        let request = http::Request::get("https://api.example.com/v1/account").version(version);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(without_key(&RequestHead::from_parts(&parts)).status(), status, "{version:?}");
    }
}

/// D-87: HTTP/1.0 needs no `Host`; what it gives is checked all the same.
#[test]
fn http_1_0_may_come_without_a_host() {
    use Reason::{MalformedHost, NoCredential, NoHost, SeveralHosts};
    for (hosts, reason_of_1_0, reason_of_1_1) in [
        (&[][..], NoCredential, NoHost),
        (&["h:80"], NoCredential, NoCredential),
        (&["h", "h"], SeveralHosts, SeveralHosts),
        (&["user@h"], MalformedHost, MalformedHost),
    ] {
        let head = RequestHead::new("GET", "/v1/account", None);
        let head = hosts.iter().fold(head, |head, host| head.with_host(host.as_bytes()));
        for (version, head, reason) in [
            (http::Version::HTTP_10, head.with_http_1_0(), reason_of_1_0),
            (http::Version::HTTP_11, head, reason_of_1_1),
        ] {
            let request = http::Request::get("/v1/account").version(version);
            let request = hosts.iter().fold(request, |request, host| request.header("host", *host));
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert!(RequestHead::from_parts(&parts) == head, "{version:?} {hosts:?}");
            assert_eq!(without_key(&head).reason(), &reason, "{version:?} {hosts:?}");
        }
    }
}

/// The refusal of a request whose key nobody knows.
#[track_caller]
fn without_key(head: &RequestHead<'_>) -> Rejection {
    let received = Received::new(head, request_id());
    received.and_then(|it| it.identify(None, second(0))).unwrap_err()
}
