//! What work on anybody's input costs in memory: nothing where that is promised, a fixed amount for
//! what is refused unread, and otherwise no more than a few times the input, whatever its shape.
//!
//! That each bound is where it is documented, is pinned in the room of what has it.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

use std::num::NonZeroU16;
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
use call_assistant::json::{self, JsonObject, ParseError, ParseErrorKind};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::client::{Client, ClientError, ClientErrorReason, RetryAfter};
use call_assistant::rest::server::{
    self, Cursor, CursorError, CursorKeys, KeyDigest, RateWindows, Received, RequestHead,
};
use call_assistant::rest::{ApiError, ApiKey, BaseUrl, ListCalls, Mode, Operation, Quota};
use call_assistant::webhook::event::{Event, EventError};
use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::sender::{
    self, DisabledReason, DueDelivery, DueKind, EndpointChange, EndpointUrl, Excerpt, Outcome,
    Planner, SenderLimits,
};
use call_assistant::webhook::{
    DeliveryHeaders, Signer, SigningSecret, Verifier, VerifyError, receiver,
};
use call_assistant::{Product, Timestamp};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use support::secret;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const MEBIBYTE: usize = 1024 * 1024;

/// The result, and what it took beside the memory it still holds.
fn counted<T>(work: impl FnOnce() -> T) -> (T, AllocationInfo) {
    let mut result = None;
    let mut work = Some(work);
    let info = measure(|| result = work.take().map(|work| work()));
    (result.unwrap(), info)
}

fn free<T>(work: impl FnOnce() -> T) -> T {
    let (result, info) = counted(work);
    assert_eq!(info.count_total, 0, "{info:?}");
    result
}

/// In time no more than a few pages, whatever the input.
fn cheap<T>(work: impl FnOnce() -> T) -> T {
    let (result, info) = counted(work);
    assert!(info.bytes_total < 8 * 1024, "{info:?}");
    result
}

fn head(status: u16) -> Parts {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.into_parts().0
}

/// The counter counts.
#[test]
fn what_allocates_is_seen() {
    let (text, info) = counted(|| "x".repeat(1000));
    assert_eq!((info.count_total, info.bytes_total, text.len()), (1, 1000, 1000));
    let (_, info) = counted(|| drop("x".repeat(1000)));
    assert_eq!((info.bytes_current, info.bytes_max), (0, 1000));
}

/// Whatever becomes of it, and however the headers are handed in.
#[test]
fn verifying_allocates_nothing() {
    let verifier = Verifier::new(secret("whsec_new")).with_secret(secret("whsec_test"));
    let signer = Signer::new(secret("whsec_test"));
    for len in [0, 1, 200, 64 * 1024] {
        let body = vec![b'x'; len];
        let right = free(|| signer.sign(&body, NOW));
        let right = right.as_str();
        let wrong = free(|| signer.sign(b"another", NOW));
        let long =
            format!("{right}{},x={}", ",x=y".repeat(13), "y".repeat(1024 - right.len() - 55));
        assert_eq!(long.len(), 1024);
        for (text, expected) in [
            (right, "signed by secret 1"),
            (wrong.as_str(), "no v1"),
            (&right.to_uppercase().replace("T=", "t=").replace("V1=", "v1="), "uppercase"),
            (&long, "signed by secret 1"),
            (&format!("{long}y"), "1025 bytes"),
            (&format!("{right}{}", ",x=y".repeat(15)), "16 parts"),
            ("", "not name=value"),
        ] {
            let headers = DeliveryHeaders::new().signature(text.as_bytes());
            let mut map = HeaderMap::new();
            map.insert("x-service-signature", HeaderValue::from_str(text).unwrap());
            let pairs = [("X-Service-Signature", text), ("X-Service-Event", "ping")];
            let product = Product::default();
            let in_pairs =
                || verifier.verify_parts(DeliveryHeaders::from_pairs(&product, pairs), &body, NOW);
            for verdict in [
                free(|| verifier.verify_parts(headers, &body, NOW)),
                free(|| verifier.verify(&map, &body, NOW)),
                free(in_pairs),
            ] {
                let words = match verdict {
                    Ok(verified) => format!("signed by secret {}", verified.secret_index()),
                    Err(error) => error.to_string(),
                };
                assert!(words.contains(expected), "{words}, not {expected}");
            }
        }
        let headers = DeliveryHeaders::new().signature(right.as_bytes());
        let late = NOW.saturating_add(Duration::from_secs(301));
        let refused = free(|| verifier.verify_parts(headers, &body, late)).unwrap_err();
        assert!(matches!(refused, VerifyError::TooOld { .. }));
        assert!(matches!(
            free(|| verifier.verify_parts(DeliveryHeaders::new(), &body, NOW)),
            Err(VerifyError::Missing)
        ));
    }
}

/// What a table of rate windows holds for each credential and each request, and that it gives all of it
/// back.
#[test]
fn rate_windows_hold_little_and_give_it_back() {
    let credential = |number| CredentialId::parse(&format!("cred_{number:032}")).unwrap();
    for (count, requests) in [(10_000, 1), (10_000, 5), (100, 60), (100, 600)] {
        let credentials: Vec<_> = (0..count).map(credential).collect();
        let quota = Quota::READS.with_per_minute(NonZeroU16::new(requests).unwrap());
        let mut windows = RateWindows::new(count);
        let ((), info) = counted(|| {
            for credential in &credentials {
                while windows.check(credential, quota, NOW).is_ok() {}
            }
        });
        let most = 400 + 16 * i64::from(requests).max(2);
        let held = info.bytes_current;
        println!("{count} credentials, {requests} requests: {} bytes each", held / count as i64);
        assert!(info.bytes_max <= count as u64 * most as u64, "{requests}: {info:?}");
        // A newcomer that is refused, and a request beyond the quota, hold nothing.
        let ((), info) = counted(|| {
            windows.check(&credential(count), quota, NOW).unwrap_err();
            windows.check(&credentials[0], quota, NOW).unwrap_err();
        });
        assert_eq!(info.bytes_current, 0, "{requests}: {info:?}");
        // A newcomer each minute: the table gives back what is idle.
        let ((), info) = counted(|| {
            for newcomer in count.. {
                let now = NOW.saturating_add(Quota::SPAN * (newcomer - count + 1) as u32);
                windows.check(&credential(newcomer), quota, now).unwrap();
                if windows.len() == 1 {
                    break;
                }
            }
        });
        assert!(held + info.bytes_current <= 2_048, "{requests}: {info:?}");
    }
}

/// A million deliveries, of one endpoint or each of another: 200 bytes each, and the memory is free again
/// after their end. (D-89)
#[test]
fn a_million_deliveries_are_planned_in_two_hundred_megabytes() {
    const MILLION: u64 = 1_000_000;
    let limits = SenderLimits { overall: 448, per_endpoint: 8 };
    for endpoints in [1, MILLION] {
        let pending = |delivery| {
            let endpoint = u32::try_from(delivery % endpoints).unwrap();
            let (account, shard, event_created_at, due) = (endpoint / 10, 0, NOW, NOW);
            let kind = if delivery % 3 == 0 { DueKind::Retry } else { DueKind::First };
            DueDelivery { delivery, endpoint, account, shard, event_created_at, due, kind }
        };
        // One by one, so that nodes of trees are half empty.
        let (mut planner, filled) = counted(|| {
            let mut planner = Planner::new(limits);
            (0..MILLION).for_each(|delivery| _ = planner.add(pending(delivery)));
            planner
        });
        let mebibytes = filled.bytes_max as f64 / MEBIBYTE as f64;
        let ((), ended) = counted(|| {
            while planner.pending() > 0 {
                while let Some(DueDelivery { delivery, endpoint, .. }) = planner.next(NOW) {
                    planner.finished(endpoint, Outcome::Refused, Duration::ZERO);
                    planner.release(delivery, None);
                }
            }
        });
        let left = filled.bytes_current + ended.bytes_current;
        println!("{endpoints} endpoints: {mebibytes:.1} MiB, {left} bytes after the end");
        assert!(filled.bytes_max <= 200 * MILLION, "{endpoints}: {filled:?}");
        // The tables of endpoints and accounts stay.
        assert!(left.unsigned_abs() <= 4_096 + 128 * endpoints, "{endpoints}: {left}");
    }
}

/// What a service does for every request.
#[test]
fn credentials_rates_and_cursors_allocate_next_to_nothing() {
    let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    free(|| assert!(KeyDigest::compute(key.reveal().as_bytes()) == key.digest()));

    let mut windows = RateWindows::new(10);
    let credential = CredentialId::parse("cred_1").unwrap();
    windows.check(&credential, Quota::ACCOUNT, NOW).unwrap();
    for _ in 1..60 {
        let (_, info) = counted(|| windows.check(&credential, Quota::ACCOUNT, NOW).unwrap());
        assert!(info.bytes_total <= 512, "{info:?}");
    }
    // Anybody can be refused for nothing.
    free(|| windows.check(&credential, Quota::ACCOUNT, NOW).unwrap_err());

    let keys = CursorKeys::new(1, [7; 32]);
    let account = AccountId::parse("acct_1").unwrap();
    let id = CallId::parse(&"c".repeat(255)).unwrap();
    let cursor = Cursor::new(NOW, id);
    let (text, info) = counted(|| keys.seal(&account, Mode::Live, &cursor));
    assert_eq!(info.count_total, 1, "the text: {info:?}");
    let (_, info) = counted(|| keys.open(&account, Mode::Live, &text).unwrap());
    assert_eq!(info.count_total, 1, "the id: {info:?}");
    assert_eq!(free(|| keys.open(&account, Mode::Live, "")), Err(CursorError::Empty));
    for length in [401, 64 * MEBIBYTE] {
        let text = "A".repeat(length);
        let error = free(|| keys.open(&account, Mode::Live, &text)).unwrap_err();
        assert!(matches!(error, CursorError::TooLong { len, .. } if len == length), "{error}");
    }
    let altered = text.replace(&text[..2], "AA");
    free(|| keys.open(&account, Mode::Live, &altered).unwrap_err());
}

/// Servers bound a head, each in its own way; where one does not, nothing here grows with it but the
/// text of a parameter that is read.
#[test]
fn heads_of_a_mebibyte() {
    let long = "a".repeat(MEBIBYTE);
    let [path, escaped] =
        [&long[..], &"%61".repeat(MEBIBYTE / 3)].map(|id| format!("/v1/calls/{id}"));
    let bearer = format!("Bearer {long}");
    let id = || RequestId::parse("req_1").unwrap();
    for query in [
        "&".repeat(MEBIBYTE),
        format!("limit={}", "1".repeat(MEBIBYTE)),
        format!("limit=1{}", "&limit=1".repeat(MEBIBYTE / 8)),
        format!("{long}=1"),
        format!("created_after={long}"),
        format!("cursor={long}"),
        format!("cursor={}", "%41".repeat(MEBIBYTE / 3)),
    ] {
        let (_, info) = counted(|| ListCalls::from_query(&query));
        assert!(info.bytes_max <= 2 * MEBIBYTE as u64, "{}: {info:?}", &query[..10]);
        let head = RequestHead::new("GET", "/v1/calls", Some(&query)).with_host(b"h");
        let head = head.with_authorization(bearer.as_bytes());
        // The query is not looked at before the credential is known.
        let (received, info) = counted(|| Received::new(&head, id()).unwrap());
        assert!(info.bytes_total <= query.len() as u64 + 1024, "{}: {info:?}", &query[..10]);
        assert_eq!(received.digest(), Some(&KeyDigest::compute(long.as_bytes())));
    }
    for path in [&path, &escaped, &long, &"/".repeat(MEBIBYTE)] {
        let head = RequestHead::new("GET", path, None).with_host(b"h");
        let (_, info) = counted(|| Received::new(&head, id()).is_ok());
        assert!(info.bytes_max <= 2 * MEBIBYTE as u64, "{}: {info:?}", &path[..10]);
    }
    cheap(|| EndpointUrl::parse(&format!("https://example.com/{}", &long[..10])).unwrap());
    let url = format!("https://example.com/{long}");
    free(|| EndpointUrl::parse(&url).unwrap_err());
    free(|| BaseUrl::parse(&url).unwrap_err());
    free(|| SigningSecret::parse(&long).unwrap_err());
    let product = Product::default();
    free(|| ApiKey::parse_for(&product, &long).unwrap_err());
    free(|| CallId::parse(&long).unwrap_err());
    free(|| Product::new(&long).unwrap_err());
    free(|| Timestamp::parse(&long).unwrap_err());
    let number = "9".repeat(MEBIBYTE);
    free(|| RetryAfter::parse(&number));
}

/// Bodies that the host should have refused long before: proven like any other, and not read.
#[test]
fn sixty_four_mebibytes() {
    let mut body = vec![b'x'; 64 * MEBIBYTE];
    body[..6].copy_from_slice(b"{\"a\":\"");
    let signature = Signer::new(secret("whsec_test")).sign(&body, NOW);
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    let verifier = Verifier::new(secret("whsec_test"));
    let verified = free(|| verifier.verify_parts(headers, &body, NOW)).unwrap();
    assert_eq!(verified.bytes().len(), body.len());
    let too_long = |error: ParseError| {
        assert_eq!(error.kind(), ParseErrorKind::TooLong);
        assert_eq!(error.to_string(), "text of 67108864 bytes, more than 16777216");
    };
    match cheap(|| verified.event()).unwrap_err() {
        EventError::Malformed(error) => too_long(error),
        other => panic!("{other:?}"),
    }
    too_long(cheap(|| Event::from_bytes_verified_earlier(&body)).unwrap_err());
    too_long(cheap(|| CallList::from_json(&body)).unwrap_err());
    too_long(cheap(|| Account::from_json(&body)).unwrap_err());

    let client = Client::new("https://h", "service_live_a").unwrap();
    for status in [200, 400, 502] {
        let read = cheap(|| client.read(&ListCalls::new(), &head(status), &body));
        let failed = read.unwrap_err();
        let shown = failed.excerpt().len();
        match failed.reason {
            ClientErrorReason::Unreadable(error) if status == 200 => too_long(error),
            ClientErrorReason::NotFromService => {
                assert_eq!((shown, status == 200), (ClientError::MAX_EXCERPT_LEN, false));
            }
            other => panic!("{status}: {other:?}"),
        }
    }
    let excerpt = cheap(|| Excerpt::new(&body));
    assert_eq!((excerpt.text.len(), excerpt.cut), (Excerpt::MAX_LEN, true));

    let explanation = cheap(|| Evidence::new(headers, &body, "whsec_test").explain(NOW));
    assert!(explanation.is_proven() && explanation.causes().is_empty(), "{explanation}");
}

/// A body that is searched is read into a tree; a longer one than may be searched is only hashed.
#[test]
fn explaining_takes_a_few_times_the_body() {
    let long = format!("{{\"summary\": \"{}\\u00e9\"}},", "word ".repeat(200));
    for (len, unit, most) in [
        (16 * 1024, r#"{"id": "evt_\u00e9"},"#, 32 * 16 * 1024),
        (Evidence::MAX_SEARCHED, &long, 16 * Evidence::MAX_SEARCHED),
        (Evidence::MAX_SEARCHED + 1, r#"{"id": "evt_1"},"#, 2 * Evidence::MAX_SEARCHED),
    ] {
        let mut body = format!("[{}7", unit.repeat((len - 3) / unit.len())).into_bytes();
        body.resize(len - 1, b' ');
        body.push(b']');
        let signature = Signer::new(secret("whsec_other")).sign(&body, NOW);
        let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
        let explain = || Evidence::new(headers, &body, "whsec_test").explain(NOW);
        let (explanation, info) = counted(explain);
        assert!(explanation.causes().is_empty() && !explanation.is_proven(), "{explanation}");
        assert!(info.bytes_max <= most as u64, "{len}: {info:?}");
    }
}

#[test]
fn counting_is_free() {
    let error = Err(VerifyError::Missing.into());
    let mut received = receiver::ReceiverMetrics::default();
    let mut answered = server::ApiMetrics::default();
    let mut sent = sender::SenderMetrics::default();
    let response = Ok(Response::new(()));
    free(|| {
        received.received(&error);
        answered.answered(Some(Operation::GetCall), &response, Duration::from_secs(1));
        sent.changed(&EndpointChange::Disabled(DisabledReason::Gone));
        sent.lost_write();
    });
    assert!(size_of::<sender::SenderMetrics>() < 1_024, "{}", size_of::<sender::SenderMetrics>());
}

/// Much of one thing, in the place where it costs most.
#[test]
fn a_text_of_any_shape_takes_a_few_times_its_length() {
    let many = |unit: &str| unit.repeat(MEBIBYTE / 4 / unit.len());
    for (text, times) in [
        (format!(r#"{{"x":{}"#, many("[")), 2),
        (format!(r#"{{"x":{}"#, many(r#"{"a":"#)), 2),
        (format!(r#"{{"x":{}{}}}"#, many("[]").replace(']', ""), many("[]").replace('[', "")), 2),
        (format!(r#"{{"x":"{}"}}"#, many("\\n")), 2),
        (format!(r#"{{"summary":"{}"}}"#, many("\\n")), 4),
        (format!(r#"{{"data":{{"object":"{}"}}}}"#, many("\\ud83d\\ude00")), 4),
        (format!(r#"{{{}"a":1}}"#, many(r#""b":1,"#)), 2),
        (format!(r#"{{"{}":1}}"#, many("k")), 2),
        (format!(r#"{{"x":{}}}"#, many("9")), 2),
        (format!(r#"{{"duration_seconds":{}}}"#, many("9")), 2),
        (format!(r#"{{"data":[{}1]}}"#, many("{},")), 2),
        (many("\n"), 2),
        // A short id is a word of its own, and a pointer to it.
        (format!(r#"{{"appointment_ids":[{}1]}}"#, many(r#""a","#)), 12),
    ] {
        let most = (times * text.len() + 8 * 1024) as u64;
        let bytes = text.as_bytes();
        let begins = &text[..24.min(text.len())];
        let mut errors: Vec<ParseError> = Vec::new();
        for read in [
            |bytes: &[u8]| Call::from_json(bytes).err(),
            |bytes: &[u8]| CallList::from_json(bytes).err(),
            |bytes: &[u8]| Account::from_json(bytes).err(),
            |bytes: &[u8]| ApiError::from_json(bytes).err(),
            |bytes: &[u8]| Event::from_bytes_verified_earlier(bytes).err(),
        ] {
            let (error, info) = counted(|| read(bytes));
            assert!(info.bytes_max <= most, "{begins}: {info:?}");
            errors.extend(error);
        }
        let (object, info) = counted(|| JsonObject::parse(&text));
        assert!(info.bytes_max <= most, "{begins}: {info:?}");
        if let Ok(object) = object {
            let (found, info) = counted(|| object.get("b").map(|value| value.get().len()));
            assert_eq!(found, text.contains(r#""b""#).then_some(1), "{begins}");
            assert!(info.bytes_max <= most, "{begins}: {info:?}");
        }
        assert!(errors.len() >= 3, "{begins}: {errors:?}");
        for error in errors {
            assert!(error.to_string().len() < 256, "{begins}: {error}");
        }
    }
    assert_eq!(json::MAX_JSON_LEN, 16 * MEBIBYTE);
}
