//! The three operations: requests and answers, written by one end and read by the other.

use call_assistant::id::CallId;
use call_assistant::rest::client::{Client, ClientErrorReason, RetryAfter};
use call_assistant::rest::server::{Authorized, RejectionReason};
use call_assistant::rest::{
    ApiKey, ApiRequest, BaseUrl, ErrorCode, GetAccount, GetCall, ListCalls, Mode, Operation,
    ParameterError, Quota, Scope,
};
use call_assistant::{Product, Timestamp};
use proptest::prelude::*;

use crate::server::scenario::{checked, get, rejections};

use crate::{filters, second, within};

fn base(text: &str) -> BaseUrl {
    BaseUrl::parse(text).unwrap()
}

fn key() -> ApiKey {
    ApiKey::from_random(&Product::default(), Mode::Live, [7; 32])
}

fn client(base: &BaseUrl) -> Client {
    Client::from_parts(base.clone(), key())
}

fn call_id(text: &str) -> GetCall {
    GetCall::new(CallId::parse(text).unwrap())
}

/// The id of the call that a service reads from a path, or why it reads none.
fn read_call_id(segment: &str) -> Result<CallId, RejectionReason> {
    match get(&format!("/v1/calls/{segment}")).authorized() {
        Ok(Authorized::Call(query)) => Ok(query.call_id().clone()),
        Ok(other) => panic!("{segment}: {other:?}"),
        Err(rejection) => Err(rejection.reason().clone()),
    }
}

/// HTTP-1, AUTH-1, RATE-1, RATE-2, VER-1: section 4 of the specification, row by row.
#[test]
fn the_table_is_the_specifications() {
    use ErrorCode as C;
    let always = [
        C::InvalidCredentials,
        C::InsufficientScope,
        C::PlanUpgradeRequired,
        C::AccountClosed,
        C::SubscriptionInactive,
        C::RateLimitExceeded,
        C::InternalError,
    ];
    let of_list = &["limit", "cursor", "created_after", "created_before"][..];
    let [of_lists, of_calls] =
        [C::InvalidCursor, C::ResourceNotFound].map(|code| [C::InvalidParameter, code]);
    let (account, calls) = (Scope::AccountRead, Scope::CallsRead);
    let rows = [
        ("/v1/account", account, Quota::ACCOUNT, &[][..], &[][..]),
        ("/v1/calls", calls.clone(), Quota::READS, &of_lists, of_list),
        ("/v1/calls/{call_id}", calls, Quota::READS, &of_calls, &["call_id"]),
    ];
    assert_eq!(Operation::ALL.len(), rows.len());
    for (operation, (path, scope, quota, codes, parameters)) in Operation::ALL.iter().zip(rows) {
        assert_eq!((operation.method(), operation.path()), (http::Method::GET, path));
        assert_eq!((operation.scope(), operation.quota()), (scope, quota), "{operation}");
        let mut expected = [&always[..], codes].concat();
        expected.sort();
        let mut errors = operation.errors();
        errors.sort();
        assert_eq!(errors, expected, "{operation}");
        assert_eq!(format!("{operation:>12}"), format!("{:>12}", operation.name()));
        assert_eq!(operation.parameters(), parameters, "{operation}");
    }
}

/// HTTP-1, D-3, D-7.
#[test]
fn paths_lead_to_operations_or_nowhere() {
    use Operation::{GetAccount, GetCall, ListCalls};
    for (operation, paths) in [
        // Each segment is decoded once, after the path was split.
        (Some(GetAccount), &["/v1/account", "/v1/%61ccount"][..]),
        (Some(ListCalls), &["/v1/calls", "/%761/c%61lls"]),
        (
            Some(GetCall),
            &["/v1/calls/call_1", "/v1/calls/a%2Fb", "/v1/calls/%2e%2e", "/v1/calls/.."],
        ),
        (None, &["/v1/%2561ccount", "/v1%2Fcalls", "/v1/%zzaccount"]),
        (None, &["/v1/account/", "/v1/calls/", "/v1/calls/a/", "/v1/calls/a/b", "/v1/account/a"]),
        (None, &["//v1/calls", "/v1//calls", "/v1/Calls", "/V1/calls", "/v2/calls"]),
        (None, &["/v1", "/", "", "*", "v1/calls"]),
    ] {
        for path in paths {
            assert_eq!(Operation::from_path(path), operation, "{path}");
            for method in ["GET", "POST", "OPTIONS"].into_iter().filter(|_| operation.is_none()) {
                let refused = get(path).with(|it| it.method = method).refused();
                let expected = (RejectionReason::UnknownPath, ErrorCode::ResourceNotFound);
                assert_eq!(refused, expected, "{method} {path}");
            }
        }
    }
}

/// HTTP-5, D-3: every method but `GET` and `HEAD`, which are case-sensitive, is refused.
#[test]
fn only_get_and_head_are_read() {
    let with = |method| get("/v1/account").with(|it| it.method = method);
    for method in ["GET", "HEAD"] {
        assert_eq!(with(method).answer().status(), 200, "{method}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", ""] {
        let expected = (RejectionReason::Method, ErrorCode::MethodNotAllowed);
        assert_eq!(with(method).refused(), expected, "{method}");
    }
}

/// D-4: what an operation does not take is ignored where a typo cannot widen the result.
#[test]
fn parameters_of_other_operations_are_ignored() {
    for target in ["/v1/account", "/v1/calls/call_1"] {
        let with = get(&format!("{target}?limit=0&cursor=&%zz&&x=1&x=1")).answer();
        assert_eq!(with.body(), get(target).answer().body(), "{target}");
        assert_eq!(with.status(), 200, "{target}");
    }
}

/// LIST-2, D-5, D-6.
#[test]
fn limits_are_read_strictly() {
    for (query, limit) in
        [("", 50), ("limit=1", 1), ("limit=100", 100), ("limit=%31%30", 10), ("li%6Dit=7", 7)]
    {
        assert_eq!(ListCalls::from_query(query).unwrap().limit, limit, "{query}");
    }
    for (expected, queries) in [
        (
            "LimitRange",
            &["limit=0", "limit=101", "limit=256", "limit=99999999999999999999999999"][..],
        ),
        ("LimitForm", &["limit=007", "limit=00", "limit=+7", "limit=%2B7", "limit=-1", "limit=7+"]),
        ("LimitForm", &["limit=1e1", "limit=7.0", "limit=0x7", "limit=%D9%A7", "limit=7=7"]),
        (r#"Empty { parameter: "limit" }"#, &["limit=", "limit"]),
        (r#"Encoding { parameter: "limit" }"#, &["limit=%2"]),
        (r#"NotUtf8 { parameter: "limit" }"#, &["limit=%ff"]),
        (r#"Repeated { parameter: "limit" }"#, &["limit=7&limit=7"]),
    ] {
        for query in queries {
            let error = ListCalls::from_query(query).unwrap_err();
            assert_eq!(format!("{error:?}"), expected, "{query}");
            assert!(error.to_string().starts_with("limit "), "{query}: {error}");
            assert_eq!(error.parameter(), Some("limit"), "{query}");
        }
    }
}

/// LIST-5, D-5, D-8, D-9.
#[test]
fn instants_are_read_whole_and_named_when_wrong() {
    let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    let rows = [
        ("created_after=2026-03-05T10:00:00Z", at("2026-03-05T10:00:00Z"), None),
        ("created_before=2026-03-05t10:00:00z", None, at("2026-03-05T10:00:00Z")),
        (
            "created_before=2026-03-05T10%3A00%3A00.000000002%2B00:00&\
             created_after=2026-03-05T10:00:00.000000001-00:00",
            at("2026-03-05T10:00:00.000000001Z"),
            at("2026-03-05T10:00:00.000000002Z"),
        ),
        (
            "created_after=2026-03-05T10:00:00Z&created_before=2026-03-05T12:00:00%2B02:00",
            at("2026-03-05T10:00:00Z"),
            at("2026-03-05T10:00:00Z"),
        ),
    ];
    for (query, after, before) in rows {
        let list = ListCalls::new().with_filter(within(after, before));
        assert_eq!(ListCalls::from_query(query), Ok(list), "{query}");
    }

    let wrong = |parameter, decoded| {
        let error = Timestamp::parse(decoded).unwrap_err();
        format!("Timestamp {{ parameter: {parameter:?}, error: {error:?} }}")
    };
    let of = |name, parameter| format!("{name} {{ parameter: {parameter:?} }}");
    let (after, before) = ("created_after", "created_before");
    let day = "created_after=2026-03-05T10:00:00";
    for (query, expected) in [
        (format!("{day}+00:00"), wrong(after, "2026-03-05T10:00:00 00:00")),
        (day.replace(after, before), wrong(before, "2026-03-05T10:00:00")),
        (format!("{before}=2026-03-05+10:00:00Z"), wrong(before, "2026-03-05 10:00:00Z")),
        (format!("{after}="), of("Empty", after)),
        (format!("{after}=%C3"), of("NotUtf8", after)),
        (format!("{before}=%C"), of("Encoding", before)),
        (format!("{day}Z&{day}Z"), of("Repeated", after)),
        (format!("{day}.000000001Z&{before}=2026-03-05T10:00:00Z"), "CreatedRange".into()),
    ] {
        let error = ListCalls::from_query(&query).unwrap_err();
        assert_eq!(format!("{error:?}"), expected, "{query}");
        let name = error.parameter().unwrap();
        assert!(error.to_string().starts_with(name), "{error}");
        assert!(!error.to_string().contains("05T10"), "no value is repeated: {error}");
    }
    let range = ParameterError::CreatedRange;
    assert_eq!(range.parameter(), Some(before));
    assert_eq!(range.to_string(), "created_before is earlier than created_after");
    let hint = ListCalls::from_query(&format!("{day}+00:00")).unwrap_err();
    assert!(hint.to_string().contains("write + as %2B"), "{hint}");
}

/// D-5: what is unknown is named, and anything that is hardly a name is not shown.
#[test]
fn unknown_parameters_are_named_but_never_leak() {
    let of_list = "expected limit, cursor, created_after or created_before";
    let (secret, longest) = (format!("limit=5&{}", key().reveal()), "n".repeat(32));
    let (full, long) = (format!("{longest}=6"), format!("{longest}n=6"));
    for (named, queries) in [
        ("created_afer", &["limit=5&created_afer=2026-07-24T10:00:00Z"][..]),
        ("Limit", &["Limit=5"]),
        ("limit[]", &["limit[]=5"]),
        ("call_id", &["&&call_id=5"]),
        (&longest, &[&full]),
        ("number 2 of the query", &[&secret]),
        ("number 1 of the query", &[&long, "=5", "limit;=5", "%zz=5", "%00", "a b=5", "\u{e9}=5"]),
    ] {
        for query in queries {
            let error = ListCalls::from_query(query).unwrap_err();
            assert_eq!(error.to_string(), format!("unknown parameter {named}: {of_list}"));
            assert_eq!(error.parameter(), None, "{query}");
        }
    }
    let unknown = ListCalls::from_query("limit=5&limt=6").unwrap_err();
    let ParameterError::Unknown { name, position, .. } = unknown else { panic!("{unknown}") };
    assert_eq!((name.as_deref(), position), (Some("limt"), 2));
}

/// What is written needs no more escapes than RFC 3986 asks for.
#[test]
fn unreserved_characters_are_written_as_they_are() {
    let list = ListCalls::new().with_limit(7).with_cursor("aZ09-._~+/ \u{e9}");
    assert_eq!(list.target().unwrap(), "/v1/calls?limit=7&cursor=aZ09-._~%2B%2F%20%C3%A9");
    assert_eq!(call_id("call_1.~-/%").target().unwrap(), "/v1/calls/call_1.~-%2F%25");
}

/// LIST-3, D-5: a cursor is opaque, and whatever it is, it is not a matter of parameters.
#[test]
fn cursors_are_taken_as_they_are() {
    let cursor = |query| ListCalls::from_query(query).unwrap().cursor;
    assert_eq!(cursor(""), None);
    assert_eq!(cursor("cursor=abc_-"), Some("abc_-".into()));
    assert_eq!(cursor("cursor=a%2Bb"), Some("a+b".into()));
    assert_eq!(cursor("cursor=+"), Some(" ".into()));
    assert_eq!(cursor("cursor=a+b%41"), Some("a bA".into()));
    assert_eq!(cursor("cursor="), Some(String::new()));
    assert_eq!(cursor("cursor"), Some(String::new()));
    assert_eq!(cursor("cursor=%ff"), Some("%ff".into()));
    let repeated = ListCalls::from_query("cursor=a&cursor=a");
    assert!(matches!(repeated, Err(ParameterError::Repeated { parameter: "cursor", .. })));
}

/// D-7.
#[test]
fn call_ids_are_decoded_once() {
    let long = "x".repeat(255);
    for (segment, id) in [
        ("call_1", "call_1"),
        ("a%2Fb", "a/b"),
        ("%2561", "%61"),
        ("a+b", "a+b"),
        ("a%2Bb", "a+b"),
        ("..", ".."),
        ("%3F%23", "?#"),
        (&"%78".repeat(255), &long),
    ] {
        assert_eq!(read_call_id(segment), Ok(CallId::parse(id).unwrap()), "{segment}");
    }

    let (long, escaped) = (long + "x", "%C3%A9".repeat(128));
    for (expected, segments) in [
        (r#"Encoding { parameter: "call_id" }"#, &["%", "%2", "a%g0", "a%0g"][..]),
        (r#"NotUtf8 { parameter: "call_id" }"#, &["%ff"]),
        ("CallIdLength", &[&long, &escaped]),
    ] {
        for segment in segments {
            let reason = read_call_id(segment).unwrap_err();
            assert_eq!(reason.code(), ErrorCode::InvalidParameter, "{segment}");
            let RejectionReason::Parameter(error) = reason else { panic!("{segment}: {reason}") };
            assert_eq!(format!("{error:?}"), expected, "{segment}");
            assert!(error.to_string().starts_with("call_id "), "{segment}: {error}");
            assert_eq!(error.parameter(), Some("call_id"), "{segment}");
        }
    }

    // Text that is no id is nobody's id, which is no fault of the request's form.
    for (segment, at) in [("%C3%A9", 0), ("\u{e9}", 0), ("a%20b", 1), ("a%00", 1)] {
        let error = CallId::parse(&format!("{} ", "x".repeat(at))).unwrap_err();
        let reason = RejectionReason::NotAnId(error);
        assert_eq!(reason.code(), ErrorCode::ResourceNotFound, "{segment}");
        assert_eq!(read_call_id(segment), Err(reason), "{segment}");
    }
}

#[test]
fn addresses_that_would_be_folded_are_not_sent() {
    let client = client(&base("https://api.example.com"));
    for dots in [".", ".."] {
        let refused = client.request(&call_id(dots)).unwrap_err();
        assert_eq!(refused, ParameterError::CallIdDots, "{dots}");
    }
    for dots in ["...", ".a", "a.", "a..b", "../x"] {
        let url = client.url(&call_id(dots)).unwrap();
        assert_eq!(url::Url::parse(&url).unwrap().as_str(), url, "{dots}");
    }
    let list = ListCalls::new().with_cursor("x".repeat(8193));
    assert_eq!(client.url(&list), Err(ParameterError::CursorLength));
    let list = ListCalls::new().with_cursor("\u{e9}".repeat(4096));
    assert!(client.request(&list).is_ok());
}

/// LIST-2, D-9: a request that the service would refuse is not sent.
#[test]
fn limits_and_bounds_are_checked_where_the_request_is_written() {
    for limit in [1, 100] {
        assert!(ListCalls::new().with_limit(limit).target().is_ok(), "{limit}");
    }
    for limit in [0, 101, usize::MAX] {
        let error = ListCalls::new().with_limit(limit).target().unwrap_err();
        assert_eq!(error, ParameterError::LimitRange, "{limit}");
        assert_eq!(error.to_string(), "limit is not from 1 to 100", "{limit}");
    }
    let bounds = |after, before| within(Some(second(after)), Some(second(before)));
    assert!(ListCalls::new().with_filter(bounds(1, 1)).target().is_ok());
    let reversed = ListCalls::new().with_filter(bounds(2, 1)).target();
    assert_eq!(reversed, Err(ParameterError::CreatedRange));
}

#[test]
fn base_urls_are_what_every_parser_agrees_on() {
    let host = format!("https://{}{}", "a.".repeat(126), "b");
    let longest = format!("https://h/{}", "a".repeat(BaseUrl::MAX_LEN - 10));
    let rows = [
        ("https://api.example.com", "https://api.example.com", ""),
        ("https://api.example.com/", "https://api.example.com", ""),
        ("HTTPS://API.Example.com/V/", "https://api.example.com/V", "/V"),
        ("http://localhost:8080", "http://localhost:8080", ""),
        ("https://127.0.0.1:65535/a/b", "https://127.0.0.1:65535/a/b", "/a/b"),
        ("https://[::1]:8080/a", "https://[::1]:8080/a", "/a"),
        ("https://3com.1a", "https://3com.1a", ""),
        ("https://h/a%20b", "https://h/a%20b", "/a%20b"),
        // As many bytes as a host, and an address, may have.
        (&host, &host, ""),
        (&longest, &longest, &longest["https://h".len()..]),
    ];
    for (text, normal, path) in rows {
        let base = base(text);
        assert_eq!((base.as_str(), base.path()), (normal, path), "{text}");
        assert_eq!(text.parse(), Ok(base.clone()), "{text}");
        let url = client(&base).url(&GetAccount).unwrap();
        assert_eq!(url::Url::parse(&url).unwrap().as_str(), url, "{text}");
        let request = client(&base).request(&GetAccount).unwrap();
        assert_eq!(base.below(request.uri().path()), Some("/v1/account"), "{text}");
    }

    const SCHEME: &str = "does not begin with https:// or http://";
    const USER_INFO: &str = "has a user name or password in it";
    const HOST: &str = "has a host that is missing or malformed";
    const PORT: &str = "has a port that is not from 1 to 65535";
    const PATH: &str = "has a path with an empty segment, one of dots, or malformed encoding";
    let long = format!("https://{}", "a".repeat(2048));
    let long_host = format!("{host}c");
    for (error, texts) in [
        (SCHEME, &["", "api.example.com", "https:api.example.com", "https:/api.example.com"][..]),
        (SCHEME, &["ftp://api.example.com", "//api.example.com"]),
        (HOST, &["https://", "https:///v1", "https://a..b", "https://h%6Fst", &long_host]),
        (HOST, &["https://0x7f.1", "https://127.1", "https://0177.0.0.1", "https://2130706433"]),
        (HOST, &["https://a.1", "https://a.0x7f", "https://a.0Xg", "https://h:1:2"]),
        (HOST, &["https://[::1", "https://[::g]", "https://[::1]x"]),
        (PORT, &["https://h:", "https://h:0", "https://h:080", "https://h:65536", "https://h:8o"]),
        (USER_INFO, &["https://user:pass@h", "https://@h"]),
        ("has a query", &["https://h?x", "https://h/?"]),
        ("has a fragment", &["https://h/#"]),
        (PATH, &["https://h//", "https://h/a//b", "https://h/a/../b", "https://h/."]),
        (PATH, &["https://h/%2E%2e/b", "https://h/%", "https://h/[a]"]),
        ("has a byte at 0 that is not allowed in a URL", &[" https://h"]),
        ("has a byte at 9 that is not allowed in a URL", &["https://h\\b", "https://h\n"]),
        ("has a byte at 9 that is not allowed in a URL", &["https://b\u{fc}cher.example"]),
        ("has 2056 bytes, more than 2048", &[&long]),
    ] {
        for text in texts {
            let refused = BaseUrl::parse(text).unwrap_err();
            assert_eq!(refused.to_string(), format!("base URL {error}"), "{text}");
            assert_eq!(text.parse::<BaseUrl>(), Err(refused), "{text}");
        }
    }
}

/// HTTP-2, HTTP-3, ERR-1 to ERR-3, D-2, D-10, D-31, D-81: every code can be the answer, and is read as it was written.
#[test]
fn errors_are_read_as_they_were_written() {
    for (code, rejection) in rejections() {
        let error = checked(rejection.clone());
        assert_eq!(error.code, code);
        let (head, body) = rejection.into_response().into_parts();
        let of = |name| head.headers.get(name).map(|value| value.to_str().unwrap());
        let only = |wanted, text| (code == wanted).then_some(text);
        let challenge = only(ErrorCode::InvalidCredentials, "Bearer");
        assert_eq!(of("www-authenticate"), challenge, "{code}");
        assert_eq!(of("allow"), only(ErrorCode::MethodNotAllowed, "GET, HEAD"), "{code}");
        let wait = only(ErrorCode::RateLimitExceeded, "60");
        assert_eq!(of("retry-after"), wait, "{code}");
        let mut names = head.headers.keys();
        assert!(names.all(|name| !name.as_str().starts_with("access-control")), "{code}");

        let read = client(&base("https://h")).read(&GetAccount, &head, &body).unwrap_err();
        assert_eq!(read.request_id, error.request_id, "{code}");
        assert_eq!(read.retry_after, wait.map(|_| RetryAfter::Seconds(60)), "{code}");
        assert_eq!(read.reason, ClientErrorReason::Refused(error.into()), "{code}");
    }
}

fn bases() -> impl Strategy<Value = BaseUrl> {
    "https?://([a-z][a-z0-9-]{0,9}(\\.[a-z][a-z0-9]{0,9})?|\\[::1\\])(:[1-9][0-9]{0,3})?(/[a-z0-9!$&'()*+,;=:@~_-]{1,9}){0,2}/?"
        .prop_map(|text| BaseUrl::parse(&text).unwrap())
}

/// The path and query that a service reads of a request that was sent to this base.
fn sent<R: ApiRequest>(base: &BaseUrl, request: &R) -> (String, String) {
    let client = client(base);
    let url = client.request(request).unwrap().uri().clone();
    assert_eq!(url.to_string(), client.url(request).unwrap());
    let path = base.below(url.path()).unwrap();
    assert_eq!(Operation::from_path(path), Some(R::OPERATION));
    (path.into(), url.query().unwrap_or_default().into())
}

proptest! {
    /// Hostile ids and cursors arrive as they were sent, at every base.
    #[test]
    fn requests_arrive_as_they_were_sent(
        base in bases(),
        id in "[!-~]{1,255}",
        limit in 1..=100_usize,
        cursor in proptest::option::of(any::<String>()),
        filter in filters(),
    ) {
        prop_assume!(!matches!(id.as_str(), "." | ".."));
        prop_assert_eq!(sent(&base, &GetAccount), ("/v1/account".into(), String::new()));
        let (path, query) = sent(&base, &call_id(&id));
        prop_assert_eq!(query, "");
        let segment = path.strip_prefix("/v1/calls/").unwrap();
        prop_assert_eq!(read_call_id(segment), Ok(CallId::parse(&id).unwrap()));
        let mut list = ListCalls::new().with_limit(limit).with_filter(filter);
        list.cursor = cursor;
        let (_, query) = sent(&base, &list);
        prop_assert_eq!(ListCalls::from_query(&query), Ok(list));
        // A reader would take a `+` for a space.
        prop_assert!(!query.contains('+'));
    }
}
