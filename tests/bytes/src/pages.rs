//! What holds for every text as a cursor, and for every course of requests under a quota.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
use call_assistant::model::{Call, CallList};
use call_assistant::rest::server::{
    AccountStatus, Authorized, CallRow, CallsQuery, CursorError, CursorKeys, RateWindows, Received,
    RejectionReason, RequestHead, StoredKey,
};
use call_assistant::rest::{ApiKey, CallFilter, ListCalls, Mode, ParameterError, Quota, Scope};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The bytes as a text, which nobody signed, and as contents, which we sign: what opens is sealed
/// to the same text again, or if it is of the key that no longer signs, to one that says the same.
pub fn cursor(bytes: &[u8]) {
    if let Ok(text) = core::str::from_utf8(bytes) {
        let _ = opens_as_itself_or_not(text);
    }
    let mut signed = b"calls cursor\x01\x06acct_1".to_vec();
    signed.extend(bytes);
    let key = if bytes.get(1) == Some(&2) { [8; 32] } else { [7; 32] };
    let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let digest = mac.chain_update(&signed).finalize().into_bytes();
    let text = URL_SAFE_NO_PAD.encode([bytes, &digest[..16]].concat());
    let opened = opens_as_itself_or_not(&text);
    assert_ne!(opened, Err(CursorError::Digest));
    assert_ne!(opened, Err(CursorError::Encoding));
}

fn opens_as_itself_or_not(text: &str) -> Result<(), CursorError> {
    let (account, keys) = (&*ACCOUNT, &*KEYS);
    let opened = keys.open(account, Mode::Live, text)?;
    assert!(text.len() <= CursorKeys::MAX_LEN);
    let sealed = keys.seal(account, Mode::Live, &opened);
    match URL_SAFE_NO_PAD.decode(text).unwrap()[1] {
        1 => assert_eq!(sealed, text),
        _ => assert_eq!(keys.open(account, Mode::Live, &sealed).as_ref(), Ok(&opened)),
    }
    assert_eq!(keys.open(account, Mode::Test, text), Err(CursorError::Digest));
    Ok(())
}

static ACCOUNT: LazyLock<AccountId> = LazyLock::new(|| AccountId::parse("acct_1").unwrap());
static KEYS: LazyLock<CursorKeys> =
    LazyLock::new(|| CursorKeys::new(1, [7; 32]).with_key(2, [8; 32]).unwrap());
const BEARER: &str = "Bearer service_live_of-a-customer";
static KEY: LazyLock<StoredKey> = LazyLock::new(|| {
    let key = ApiKey::parse(&BEARER[7..]).unwrap();
    let id = CredentialId::from_random([1; 16]);
    StoredKey::new(id, ACCOUNT.clone(), &key, Timestamp::UNIX_EPOCH).with_scopes([Scope::CallsRead])
});

/// A list of calls and a walk over it, beside one that filters, sorts and takes: nothing is left
/// out or met twice, whatever the limits; and rows that a store should not have given are refused.
///
/// One byte for the number of calls and three for each, two for the filters, then one for each
/// page.
pub fn pages(bytes: &[u8]) {
    let mut script = bytes.iter().copied();
    let mut next = || script.next().unwrap_or(0);
    let mut calls: Vec<Call> = Vec::new();
    for _ in 0..next() % 20 {
        let (started, id, created) = (next(), next(), next());
        let id = format!("{}{}", char::from(b'!' + id % 94), ["", "a", "Z"][usize::from(id) % 3]);
        let call = Call::new(CallId::parse(&id).unwrap(), instant(started % 4), instant(created));
        if calls.iter().all(|other| other.id != call.id) {
            calls.push(call);
        }
    }
    let bounds = [next(), next()].map(|byte| (byte & 1 == 1).then(|| instant(byte)));
    let [after, before] = bounds;
    let filter = after.into_iter().fold(CallFilter::new(), CallFilter::with_created_after);
    let filter = before.into_iter().fold(filter, CallFilter::with_created_before);
    let filtered = |list: ListCalls| list.with_filter(filter.clone());
    if matches!(bounds, [Some(after), Some(before)] if after > before) {
        let refused = filtered(ListCalls::new()).query();
        return assert_eq!(refused, Err(ParameterError::CreatedRange));
    }

    let within = |call: &Call| {
        after.is_none_or(|after| call.created_at >= after)
            && before.is_none_or(|before| call.created_at < before)
    };
    let mut expected: Vec<&Call> = calls.iter().filter(|call| within(call)).collect();
    expected.sort_by(|a, b| {
        let ids = || b.id.as_str().as_bytes().cmp(a.id.as_str().as_bytes());
        b.started_at.cmp(&a.started_at).then_with(ids)
    });

    let place = |call: &Call| expected.iter().position(|other| other.id == call.id);
    let places: Vec<Option<usize>> = calls.iter().map(place).collect();

    let mut met = 0;
    let mut asked = filtered(ListCalls::new());
    for how in script {
        asked.limit = usize::from(how % 5) + 1;
        // As text there and back, as it is sent.
        let seen = ListCalls::from_query(&asked.query().unwrap());
        assert_eq!(seen.as_ref(), Ok(&asked), "{asked:?}");
        if asked.cursor.is_some() {
            // A filter that was not there before, or another.
            let other = [instant(how), instant(how >> 1)];
            for (one, same) in [
                (CallFilter::new().with_created_after(other[0]), after == Some(other[0])),
                (CallFilter::new().with_created_before(other[1]), before == Some(other[1])),
            ] {
                let asked = asked.clone().with_filter(one);
                let refused = RejectionReason::Cursor(CursorError::Filters);
                assert_eq!(granted(&asked).err(), (!same).then_some(refused), "{asked:?}");
            }
        }
        let query = granted(&asked).unwrap();
        assert_eq!(*query.filter(), filter, "{asked:?}");
        for (call, place) in calls.iter().zip(&places) {
            let seen = query.matches_call(call);
            assert_eq!(seen, place.is_some_and(|place| place >= met), "{asked:?}");
        }
        let rows: Vec<Call> =
            expected[met..].iter().take(query.rows_to_read()).map(|call| (*call).clone()).collect();
        refuses_others(&asked, &query, &rows, how, within, &calls);

        let more = rows.len() > asked.limit;
        let page = query.answer(rows.into_iter().map(row).collect()).unwrap();
        let page = CallList::from_json(page.body()).unwrap();
        assert_eq!(page.has_more, Some(more), "{asked:?}");
        assert!(page.calls().eq(expected[met..].iter().copied().take(asked.limit)), "{asked:?}");
        met += page.data.len();
        asked.cursor = page.next_cursor;
        if asked.cursor.is_none() {
            assert_eq!(met, expected.len(), "{asked:?}");
            break;
        }
        // The filters may be repeated or left out.
        asked.filter = if how >> 7 == 1 { filter.clone() } else { CallFilter::new() };
    }
    // A store that keeps microseconds finds the same rows with the bounds made for it.
    let coarse = filter.ceil_to_micros();
    for call in calls.iter().filter(|call| call.created_at.subsec_nanos() % 1_000 == 0) {
        assert_eq!(coarse.matches(call), filter.matches(call), "{call:?}");
    }
}

/// A call of the account that asks.
fn row(call: Call) -> CallRow {
    CallRow { account_id: ACCOUNT.clone(), mode: Mode::Live, call }
}

/// The query of an authorised request, or why it has none.
fn granted(list: &ListCalls) -> Result<CallsQuery, RejectionReason> {
    let query = list.query().unwrap();
    let head = RequestHead::new("GET", "/v1/calls", Some(&query))
        .with_host(b"api.example.com")
        .with_authorization(BEARER.as_bytes());
    let received = Received::new(&head, RequestId::from_random([1; 16])).unwrap();
    let identified = received.identify(Some(&KEY), Timestamp::UNIX_EPOCH).unwrap();
    let status = AccountStatus {
        account_id: ACCOUNT.clone(),
        closing: false,
        subscribed: true,
        api_in_plan: true,
    };
    match identified.admit_decided(Ok(())).unwrap().authorize(&status, &KEYS) {
        Ok(Authorized::Calls(query)) => Ok(query),
        Ok(other) => panic!("{other:?}"),
        Err(rejection) => Err(rejection.reason().clone()),
    }
}

/// Instants that are often equal, and differ by nanoseconds, microseconds or seconds.
fn instant(byte: u8) -> Timestamp {
    let nanos = [0, 1, 999, 1_000][usize::from(byte >> 1 & 3)];
    let second = Timestamp::from_unix(1_767_225_600 + i64::from(byte >> 5)).unwrap();
    second.saturating_add(Duration::from_nanos(nanos))
}

/// The rows of a page with one taken again, one exchanged or one too many are refused exactly if
/// they are not such a page.
fn refuses_others(
    asked: &ListCalls,
    query: &CallsQuery,
    rows: &[Call],
    how: u8,
    within: impl Fn(&Call) -> bool,
    calls: &[Call],
) {
    let mut wrong = rows.to_vec();
    let place = usize::from(how) % (rows.len() + 1);
    match how / 5 % 4 {
        0 if !calls.is_empty() => {
            wrong.insert(place, calls[usize::from(how) % calls.len()].clone())
        }
        1 if !rows.is_empty() => wrong.swap(0, place % rows.len()),
        2 if !rows.is_empty() => drop(wrong.remove(place % rows.len())),
        _ => {}
    }
    let position = |call: &Call| (call.started_at, call.id.as_str().to_owned());
    let mut before = query.after().map(|(started_at, id)| (started_at, id.as_str().to_owned()));
    let mut fault = None;
    for (row, call) in wrong.iter().enumerate() {
        let at = position(call);
        if !within(call) {
            fault = Some(format!("OutsideFilter {{ row: {row} }}"));
        } else if before.is_some_and(|before| at >= before) {
            fault = Some(format!("OutOfOrder {{ row: {row} }}"));
        }
        if fault.is_some() {
            break;
        }
        before = Some(at);
    }
    if wrong.len() > query.rows_to_read() {
        let (rows, asked) = (wrong.len(), query.rows_to_read());
        fault = Some(format!("TooMany {{ rows: {rows}, asked: {asked} }}"));
    }
    let answered = granted(asked).unwrap().answer(wrong.into_iter().map(row).collect());
    let refused = answered.err().map(|rejection| format!("{:?}", rejection.reason()));
    assert_eq!(refused, fault.map(|reason| format!("Rows({reason})")));
}

/// The bytes as steps of a clock: the window of a credential is as a queue of instants, and the wait of a refusal
/// is exact. D-30, D-31.
pub fn rate(bytes: &[u8]) {
    let credential = CredentialId::parse("cred_1").unwrap();
    let mut windows = RateWindows::new(1);
    let mut naive = VecDeque::new();
    let (mut clock, mut waits) = (1_000_000_000_000_000_i128, 0);
    let start = Timestamp::from_unix(1_767_225_600 - 1_000_000).unwrap();
    for step in bytes.chunks_exact(3) {
        // A step of 0 to 2^42 ns, seldom back, under a quota of 1 to 8.
        let span = i128::from(step[0] & 0x3f | 1) << (step[1] % 37);
        clock += match step[0] >> 6 {
            3 => -span,
            // Until the next request is admitted, or a nanosecond less.
            2 if waits > 0 => waits - i128::from(step[1] & 1),
            _ => span,
        };
        clock = clock.max(0);
        let per_minute = usize::from(step[2] % 8) + 1;
        let quota = Quota::READS.with_per_minute(NonZeroU16::new(per_minute as u16).unwrap());
        let now = start.checked_add(Duration::from_nanos(clock as u64)).unwrap();
        let refused = windows.check(&credential, quota, now).err();
        let expected = check(&mut naive, per_minute, clock).err();
        assert_eq!(refused.map(|refused| refused.wait.as_nanos() as i128), expected, "{clock:?}");
        waits = expected.unwrap_or(0);
        let seconds = refused.map(|refused| i128::from(refused.retry_after()));
        assert_eq!(seconds, expected.map(|wait| ((wait + 999_999_999) / 1_000_000_000).max(1)));
    }
}

const MINUTE: i128 = 60_000_000_000;

fn check(naive: &mut VecDeque<i128>, per_minute: usize, now: i128) -> Result<(), i128> {
    let newest = naive.back().copied().unwrap_or(now);
    if newest - now > MINUTE {
        naive.iter_mut().for_each(|admitted| *admitted -= newest - now);
    }
    let counts_as = now.max(naive.back().copied().unwrap_or(now));
    naive.retain(|admitted| counts_as - admitted < MINUTE);
    match naive.len().checked_sub(per_minute) {
        None => {
            naive.push_back(counts_as);
            Ok(())
        }
        Some(older) => Err(naive[older] + MINUTE - now),
    }
}
