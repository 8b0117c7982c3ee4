//! What holds for every text as a cursor, and for every course of requests under a quota.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use call_assistant::credential::Mode;
use call_assistant::id::AccountId;
use call_assistant::quota::Quota;
use call_assistant::service::cursor::{CursorFault, CursorKey, CursorKeys, MAX_LEN};
use call_assistant::service::rate::RateWindow;
use call_assistant::time::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The bytes as a text, which nobody signed, and as contents, which we sign: what opens is sealed
/// to the same text again.
pub(crate) fn cursor(bytes: &[u8]) {
    if let Ok(text) = core::str::from_utf8(bytes) {
        let _ = opens_as_itself_or_not(text);
    }
    let mut signed = b"calls cursor\x01\x06acct_1".to_vec();
    signed.extend(bytes);
    let mac = Hmac::<Sha256>::new_from_slice(&[7; 32]).unwrap();
    let digest = mac.chain_update(&signed).finalize().into_bytes();
    let text = URL_SAFE_NO_PAD.encode([bytes, &digest[..16]].concat());
    let opened = opens_as_itself_or_not(&text);
    assert_ne!(opened, Err(CursorFault::Digest));
    assert_ne!(opened, Err(CursorFault::Encoding));
}

fn opens_as_itself_or_not(text: &str) -> Result<(), CursorFault> {
    let keys = CursorKeys::new(CursorKey::new(1, [7; 32]));
    let account = AccountId::parse("acct_1").unwrap();
    let opened = keys.open(&account, Mode::Live, text)?;
    assert!(text.len() <= MAX_LEN);
    assert_eq!(keys.seal(&account, Mode::Live, &opened), text);
    assert_eq!(keys.open(&account, Mode::Test, text), Err(CursorFault::Digest));
    Ok(())
}

/// The bytes as a stored window, and as steps of a clock: a window is as a queue of instants,
/// survives being stored, and is never larger than its bound.
pub(crate) fn rate(bytes: &[u8]) {
    let gaps = URL_SAFE_NO_PAD.encode(bytes);
    let stored = format!(r#"{{"newest":"2026-01-01T00:00:00Z","gaps":"{gaps}"}}"#);
    let mut window = serde_json::from_str::<RateWindow>(&stored).unwrap_or_default();
    if window != RateWindow::default() {
        assert_eq!(serde_json::to_string(&window).unwrap(), stored);
    }
    // Newest last, as instants: a stored window is the queue its gaps say.
    let mut naive = instants(&window);
    let mut clock = 1_000_000_000_000_000_i128;
    let start = Timestamp::from_unix(1_767_225_600 - 1_000_000).unwrap();
    for step in bytes.chunks_exact(3) {
        // A step of 0 to 2^42 ns, seldom back, under a quota of 1 to 8.
        let span = i128::from(step[0] & 0x3f | 1) << (step[1] % 37);
        clock += if step[0] & 0xc0 == 0xc0 { -span } else { span };
        clock = clock.max(0);
        let per_minute = usize::from(step[2] % 8) + 1;
        let quota = Quota::READS.with_per_minute(NonZeroU16::new(per_minute as u16).unwrap());
        let now = start.checked_add(Duration::from_nanos(clock as u64)).unwrap();
        let ours = window.check(quota, now).map_err(|exceeded| exceeded.wait.as_nanos() as i128);
        assert_eq!(ours, check(&mut naive, per_minute, clock));
        assert_eq!(window.admitted(), naive.len());
        assert!(window.heap_bytes() <= 8 * naive.len() + 160);
    }
    let stored = serde_json::to_string(&window).unwrap();
    assert_eq!(serde_json::from_str::<RateWindow>(&stored).unwrap(), window);
}

const MINUTE: i128 = 60_000_000_000;

/// What its stored form says, read by nothing of the library's. The newest is at 10^15.
fn instants(window: &RateWindow) -> VecDeque<i128> {
    let stored = serde_json::to_value(window).unwrap();
    if stored["newest"].is_null() {
        return VecDeque::new();
    }
    let bytes = URL_SAFE_NO_PAD.decode(stored["gaps"].as_str().unwrap()).unwrap();
    let mut instants = VecDeque::from([0]);
    let (mut gap, mut shift) = (0, 0);
    for byte in bytes {
        gap |= i128::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            instants.push_back(instants[instants.len() - 1] + gap);
            (gap, shift) = (0, 0);
        }
    }
    let late = 1_000_000_000_000_000 - instants[instants.len() - 1];
    instants.iter_mut().for_each(|instant| *instant += late);
    instants
}

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
