//! The customer's side: whatever answers come back, and in whatever order calls appear.

use std::collections::BTreeSet;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::client::{
    Action, CallSync, Client, ClientError, ClientErrorReason, ResponseHead, Retry, RetryAfter,
};
use call_assistant::rest::{GetAccount, GetCall, ListCalls};

/// Any answer is read or refused, an error holds little of it, and of a success nothing.
///
/// Two bytes for the status, a line for `Retry-After` and, behind a `|`, for `Date`; the rest is
/// the body.
pub fn reply(bytes: &[u8]) {
    let [high, low, rest @ ..] = bytes else { return };
    let status = match u16::from_be_bytes([*high, *low]) {
        0 => 200,
        number => 100 + number % 900,
    };
    let (line, body) = match rest.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (&[][..], rest),
    };
    let mut lines =
        line.splitn(2, |byte| *byte == b'|').map(|text| core::str::from_utf8(text).ok());
    let mut head = ResponseHead::new(status);
    (head.retry_after, head.date) = (lines.next().flatten(), lines.next().flatten());

    let client = Client::new("https://h", "service_live_a").unwrap();
    let get = GetCall::new(CallId::parse("call_1").unwrap());
    for error in [
        client.read(&GetAccount, head, body).err(),
        client.read(&get, head, body).err(),
        client.read(&ListCalls::new(), head, body).err(),
    ] {
        let Some(error) = error else {
            assert_eq!(status, 200);
            continue;
        };
        let is_transient = error.action() == Action::Retry;
        let printed = format!("{error} {error:?}");
        // A character that is escaped becomes ten at most.
        assert!(printed.len() < 12 * 1024 && !printed.contains(char::is_control), "{printed:?}");
        shows_no_secret(&printed);
        match &error.reason {
            ClientErrorReason::Refused(refused) => {
                assert_ne!(status, 200);
                let permanent = refused.code.status().is_some_and(|status| status.as_u16() < 429);
                assert!(!(permanent && is_transient));
            }
            ClientErrorReason::NotFromService => {
                let shown = error.excerpt();
                // A byte that is not UTF-8 becomes a character of three.
                assert!(shown.len() <= 3 * ClientError::MAX_EXCERPT_LEN);
                shows_no_secret(shown);
                // A success in JSON is at most another call, of which nothing is kept.
                let is_json = body.trim_ascii_start().first() == Some(&b'{');
                assert!(status != 200 || !is_json || shown.is_empty());
            }
            ClientErrorReason::Truncated | ClientErrorReason::Unreadable(_) => {
                assert_eq!(status, 200);
            }
            other => panic!("unexpected: {other:?}"),
        }
        let tried = u32::from(*low);
        match Retry::new().wait(&error, tried, [*high; 8], Timestamp::MIN) {
            Some(span) => {
                assert!(is_transient && !(400..=404).contains(&status));
                // The longest `Retry-After`, and twice the longest backoff.
                assert!(span <= Retry::MAX_RETRY_AFTER + Duration::from_secs(2 * 30), "{span:?}");
            }
            None => assert!(!is_transient || tried >= 5),
        }
    }
}

/// Nothing follows the prefix of a key or of a secret that could be part of one.
fn shows_no_secret(shown: &str) {
    for mark in ["whsec_", "_live_", "_test_"] {
        for (at, _) in shown.match_indices(mark) {
            let next = shown[at + mark.len()..].chars().next();
            assert!(
                !next.is_some_and(|c| c.is_ascii_alphanumeric() || "-_+/=".contains(c)),
                "{shown}"
            );
        }
    }
}

/// `Retry-After` is seconds, a date or nothing; and no wait is shorter than it says, nor endless.
pub fn retry_after(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let read = RetryAfter::parse(text);
    let trimmed = text.trim_matches([' ', '\t']);
    let digits = !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit());
    let now = Timestamp::from_unix(1_767_225_600).unwrap();
    match read {
        Some(RetryAfter::Seconds(seconds)) => {
            assert!(digits);
            let significant = trimmed.trim_start_matches('0');
            assert!(
                significant.is_empty() && seconds == 0
                    || significant == seconds.to_string()
                    || significant.len() >= 20 && seconds == u64::MAX
            );
        }
        Some(RetryAfter::At(instant)) => {
            assert!(!digits);
            // Written anew in the first form, it is the same instant.
            let written = written(instant);
            assert_eq!(RetryAfter::parse(&written), read, "{text} {written}");
        }
        None => assert!(!digits),
    }
    let most = Retry::MAX_RETRY_AFTER;
    let asked = match read {
        Some(RetryAfter::Seconds(seconds)) => Duration::from_secs(seconds).min(most),
        Some(RetryAfter::At(instant)) => instant.since(now).min(most),
        None => Duration::ZERO,
    };
    let mut failure = ClientError::no_response("reset");
    failure.retry_after = read;
    let random = [bytes.first().copied().unwrap_or_default(); 8];
    match Retry::new().wait(&failure, 1, random, now) {
        Some(span) => {
            assert!(span >= asked + Duration::from_millis(500));
            assert!(span < asked + Duration::from_millis(1_000));
        }
        None => panic!("no response is worth another try"),
    }
}

fn written(instant: Timestamp) -> String {
    let date = ::time::OffsetDateTime::from_unix_timestamp(instant.unix_seconds()).unwrap();
    let (weekday, month) = (date.weekday().to_string(), date.month().to_string());
    format!(
        "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
        &weekday[..3],
        date.day(),
        &month[..3],
        date.year(),
        date.hour(),
        date.minute(),
        date.second(),
    )
}

/// A sync against a service that answers anything at all doubles nothing and comes to an end: pages of anything, over
/// and over. One byte chooses the calls, the cursor and other faults. `tests/rest/client/sync.rs` tests a sync against
/// an honest service.
pub fn sync(bytes: &[u8]) {
    let at = |second| Timestamp::from_unix(1_767_225_600 + second).unwrap();
    let mut script = bytes.iter().skip(1).map(|byte| i64::from(*byte));
    // A call never changes, whatever else is wrong. Two of three are written within a second, one of them at its
    // first nanosecond.
    let calls: Vec<Call> = (0..16)
        .map(|id| {
            let started = script.next().unwrap_or(0);
            let nanos = Duration::from_nanos([0, 1, 500_000_000][id % 3]);
            let created = at(started + script.next().unwrap_or(0) % 64).saturating_add(nanos);
            Call::new(CallId::parse(&format!("call_{id:03}")).unwrap(), at(started), created)
        })
        .collect();
    let mut pages = Vec::new();
    while let Some(shape) = script.next() {
        let data = script.by_ref().take(shape as usize % 4);
        let data = data.map(|which| calls[which as usize % 16].clone()).collect();
        let mut page = CallList::new(data, None);
        page.next_cursor = (shape & 4 == 0).then(|| format!("c{}", shape >> 5));
        page.has_more = [None, None, Some(true), Some(false)][(shape as usize >> 3) % 4];
        pages.push(page);
    }
    let mut sync = CallSync::new().with_lag(Duration::from_secs(8));
    let mut returned = BTreeSet::new();
    let mut walk = 0;
    for page in pages.iter().cycle().take(4 * pages.len()) {
        walk += 1;
        // Walks that fail are restarted, so later ones are exercised too.
        let step = sync.apply(page, None, at(500));
        walk *= u32::from(step.is_ok());
        sync = match step {
            Ok(step) => {
                for call in step.calls {
                    assert!(returned.insert(call.id.clone()), "{} twice", call.id);
                }
                step.next
            }
            Err(_) => sync.restarted(),
        };
        walk *= u32::from(sync.is_walking());
        // Eight cursors: one of them comes again, and is found out.
        assert!(walk <= 32, "a walk without an end");
    }
    // What is stored is all there is. A script may end after any step, so its end suffices.
    let text = serde_json::to_vec(&sync).unwrap();
    assert_eq!(serde_json::from_slice::<CallSync>(&text).unwrap(), sync);
}
