//! The customer's side: whatever answers come back, and in whatever order calls appear.

use std::collections::BTreeMap;
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

/// A sync against a service that keeps to its word loses nothing and doubles nothing; against one
/// that answers anything at all it doubles nothing and comes to an end.
pub fn sync(bytes: &[u8]) {
    match bytes {
        [] => {}
        [first, script @ ..] if first % 2 == 0 => honest(&mut Script(script)),
        [_, script @ ..] => arbitrary(&mut Script(script)),
    }
}

struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> Option<i64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(i64::from(*first))
    }
}

const LAG: i64 = 8;

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix(1_767_225_600 + second).unwrap()
}

/// Two of three are written within a second, one of them at its first nanosecond.
fn call(id: usize, started: i64, created: i64) -> Call {
    let created = at(created).saturating_add(Duration::from_nanos([0, 1, 500_000_000][id % 3]));
    Call::new(CallId::parse(&format!("call_{id:03}")).unwrap(), at(started), created)
}

fn new_sync() -> CallSync {
    CallSync::new().with_lag(Duration::from_secs(LAG.unsigned_abs()))
}

/// Takes a step, and counts what it returned.
fn save(fresh: Vec<Call>, returned: &mut BTreeMap<CallId, u32>) {
    for call in fresh {
        *returned.entry(call.id).or_default() += 1;
    }
}

/// What is stored is all there is. A script may end after any step, so its end suffices.
fn survives_storing(sync: &CallSync) {
    let text = serde_json::to_vec(sync).unwrap();
    assert_eq!(serde_json::from_slice::<CallSync>(&text).unwrap(), *sync);
}

/// A number of calls, three bytes for each, then one for each thing that happens.
fn honest(script: &mut Script<'_>) {
    let mut calls: Vec<(Call, i64)> = Vec::new();
    for id in 0..script.next().unwrap_or(0) % 32 {
        let [Some(started), Some(length), Some(transaction)] = [(); 3].map(|()| script.next())
        else {
            break;
        };
        let created = started + length % 64;
        // Not before it was written, and within the lag.
        let visible = created + (transaction % (LAG + 1)).max((id % 3).signum());
        calls.push((call(id.unsigned_abs() as usize, started, created), visible));
    }
    calls.sort_by(|(one, _), (other, _)| {
        (other.started_at, &other.id).cmp(&(one.started_at, &one.id))
    });
    let list = |query: &ListCalls, now: i64| {
        let after = query.cursor.as_ref().map_or(0, |cursor| {
            calls.iter().position(|(call, _)| call.id.as_str() == cursor).unwrap() + 1
        });
        let mut rows = calls[after..]
            .iter()
            .filter(|(call, visible)| *visible <= now && query.filter.matches(call));
        let data: Vec<Call> =
            rows.by_ref().take(query.limit).map(|(call, _)| call.clone()).collect();
        let cursor = rows.next().and(data.last()).map(|last| last.id.as_str().into());
        CallList::new(data, cursor)
    };

    let mut sync = new_sync();
    let mut returned = BTreeMap::new();
    let mut now = 0;
    while let Some(happens) = script.next() {
        // Time goes on by up to 15 seconds, pages have up to four calls.
        now += happens / 16;
        let query = sync.query().with_limit(1 + (happens % 4) as usize);
        // A clock that is ahead, a restart, a crash before saving, an event; mostly a page taken.
        match (happens / 4) % 4 {
            0 => {
                let step = sync.apply(&list(&query, now), None, at(now + 1_000)).unwrap();
                save(step.calls, &mut returned);
                sync = step.next;
            }
            1 if happens % 4 == 0 => sync = sync.restarted(),
            1 if happens % 4 == 1 => {
                let _ = sync.apply(&list(&query, now), None, at(now)).unwrap();
            }
            1 => {
                let written = calls
                    .iter()
                    .find(|(call, visible)| *visible <= now && !returned.contains_key(&call.id));
                if let Some((call, _)) = written {
                    let next = sync.take_call(call).expect("a call not returned is fresh");
                    assert_eq!(next.take_call(call), None);
                    save(vec![call.clone()], &mut returned);
                    sync = next;
                }
            }
            _ => {
                let step = sync.apply(&list(&query, now), None, at(now)).unwrap();
                save(step.calls, &mut returned);
                sync = step.next;
            }
        }
    }
    survives_storing(&sync);
    // Everything has settled: the rest of the walk, and a whole one.
    now += 1_000;
    for _ in 0..2 {
        let mut pages = 0;
        loop {
            let step = sync.apply(&list(&sync.query(), now), None, at(now)).unwrap();
            save(step.calls, &mut returned);
            sync = step.next;
            pages += 1;
            assert!(pages <= calls.len() + 1, "a walk without an end");
            if !sync.is_walking() {
                break;
            }
        }
    }
    for (call, visible) in &calls {
        assert_eq!(returned.get(&call.id), Some(&1), "{call:?} visible at {visible}");
    }
}

/// Pages of anything, over and over: one byte for the calls, the cursor and what else happens.
fn arbitrary(script: &mut Script<'_>) {
    // A call never changes, whatever else is wrong.
    let calls: Vec<Call> = (0..16)
        .map(|id| {
            let started = script.next().unwrap_or(0);
            call(id, started, started + script.next().unwrap_or(0) % 64)
        })
        .collect();
    let mut pages = Vec::new();
    while let Some(shape) = script.next() {
        let data = (0..shape % 4).filter_map(|_| {
            let which = script.next()?;
            Some(calls[which as usize % 16].clone())
        });
        let mut page = CallList::new(data.collect(), None);
        page.next_cursor = (shape & 4 == 0).then(|| format!("c{}", shape >> 5));
        page.has_more = [None, None, Some(true), Some(false)][(shape as usize >> 3) % 4];
        pages.push(page);
    }
    if pages.is_empty() {
        return;
    }
    let mut sync = new_sync();
    let mut returned = BTreeMap::new();
    // Walks that fail are restarted, so later ones are exercised too.
    let mut taken = 0;
    let mut walk = 0;
    while taken < 4 * pages.len() {
        let page = &pages[taken % pages.len()];
        taken += 1;
        walk += 1;
        match sync.apply(page, None, at(500)) {
            Ok(step) => {
                save(step.calls, &mut returned);
                sync = step.next;
            }
            Err(_) => {
                sync = sync.restarted();
                walk = 0;
            }
        }
        if !sync.is_walking() {
            walk = 0;
        }
        // Eight cursors: one of them comes again, and is found out.
        assert!(walk <= 32, "a walk without an end");
    }
    survives_storing(&sync);
    for (id, times) in returned {
        assert_eq!(times, 1, "{id}");
    }
}
