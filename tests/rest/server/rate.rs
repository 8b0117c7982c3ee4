//! The sliding window: exactness, clocks that step back, size, and its stored form.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use call_assistant::Timestamp;
use call_assistant::rest::Quota;
use call_assistant::rest::server::{RateLimitError, RateLimitReason, RateWindow};
use proptest::prelude::*;

use crate::{at, second};

pub(super) const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

pub(super) fn quota(per_minute: u16) -> Quota {
    Quota::READS.with_per_minute(NonZeroU16::new(per_minute).unwrap())
}

fn wait_of(checked: Result<(), RateLimitError>) -> Duration {
    let exceeded = checked.unwrap_err();
    assert_eq!(exceeded.reason, RateLimitReason::Quota);
    exceeded.wait
}

/// The same, as one would write it first: every instant kept as it is.
#[derive(Clone, Default)]
struct Naive(VecDeque<i128>);

impl Naive {
    fn check(&mut self, per_minute: u16, now: i128) -> Result<(), i128> {
        let minute = i128::from(MINUTE);
        let newest = self.0.back().copied().unwrap_or(now);
        if newest - now > minute {
            self.0.iter_mut().for_each(|admitted| *admitted -= newest - now);
        }
        let counts_as = now.max(self.0.back().copied().unwrap_or(now));
        self.0.retain(|admitted| counts_as - admitted < minute);
        match self.0.len().checked_sub(usize::from(per_minute)) {
            None => {
                self.0.push_back(counts_as);
                Ok(())
            }
            Some(older) => Err(self.0[older] + minute - now),
        }
    }
}

// RATE-1, RATE-2, RATE-3: in a burst, and again in the next minute, where a bucket would by now
// have let twice as many through.
#[test]
fn the_specified_quotas() {
    for (quota, per_minute, name) in [(Quota::ACCOUNT, 60, "account"), (Quota::READS, 600, "reads")]
    {
        assert_eq!((quota.per_minute(), quota.name()), (per_minute, name));
        let mut window = RateWindow::default();
        let mut admitted_by = |nanos| {
            let mut admitted = 0;
            while window.check(quota, at(nanos)).is_ok() {
                admitted += 1;
            }
            admitted
        };
        assert_eq!(admitted_by(0), per_minute);
        assert_eq!(admitted_by(MINUTE / 2), 0);
        assert_eq!(admitted_by(MINUTE - 1), 0);
        assert_eq!(admitted_by(MINUTE), per_minute);
        assert_eq!(admitted_by(10 * MINUTE), per_minute);
    }
}

// D-30: as soon as 60 seconds have passed since the oldest of the last N, one by one.
#[test]
fn room_comes_back_one_by_one() {
    let mut window = RateWindow::default();
    for admitted in [0, 10, 20] {
        assert_eq!(window.check(quota(3), second(admitted)), Ok(()));
    }
    assert_eq!(wait_of(window.check(quota(3), second(20))), Duration::from_secs(40));
    assert_eq!(wait_of(window.check(quota(3), at(MINUTE - 1))), Duration::from_nanos(1));
    assert_eq!(window.check(quota(3), second(60)), Ok(()));
    assert_eq!(wait_of(window.check(quota(3), second(60))), Duration::from_secs(10));
    assert_eq!(window.check(quota(3), second(75)), Ok(()));
    assert_eq!(window.admitted(), 3);
    assert!(!window.is_idle(second(134)) && window.is_idle(second(135)));
}

// D-30: what is refused costs nothing.
#[test]
fn refusals_cost_nothing() {
    let mut window = RateWindow::default();
    assert_eq!(window.check(quota(1), second(0)), Ok(()));
    let before = window.clone();
    for tries in 0..59 {
        assert_eq!(wait_of(window.check(quota(1), second(tries))).as_secs(), 60 - tries);
    }
    assert_eq!(window, before);
    // So a process may keep a refusal, and need not ask again until it ends.
    let refused = window.check(quota(1), second(40)).unwrap_err();
    assert_eq!(refused.until(second(40)), second(60));
    assert_eq!(window.check(quota(1), second(60)), Ok(()));
}

// D-31: whole seconds, rounded up, at least 1.
#[test]
fn retry_after() {
    for (passed, retry_after) in [
        (0, 60),
        (1, 60),
        (SECOND - 1, 60),
        (SECOND, 59),
        (SECOND + 1, 59),
        (MINUTE - SECOND - 1, 2),
        (MINUTE - SECOND, 1),
        (MINUTE - 1, 1),
    ] {
        let mut window = RateWindow::default();
        assert_eq!(window.check(quota(1), at(0)), Ok(()));
        let exceeded = window.check(quota(1), at(passed)).unwrap_err();
        assert_eq!(exceeded.retry_after(), retry_after, "{passed}");
        assert_eq!(window.check(quota(1), at(passed + retry_after * SECOND)), Ok(()));
    }
}

#[test]
fn a_refusal_reads_well() {
    let mut window = RateWindow::default();
    window.check(quota(1), at(0)).unwrap();
    let exceeded = window.check(quota(1), at(SECOND / 2)).unwrap_err();
    assert_eq!(exceeded.to_string(), "the quota is used up, a request is admitted in 59.5s");
}

// A quota that changes applies at once, to what was admitted before.
#[test]
fn quotas_change() {
    let mut window = RateWindow::default();
    for admitted in [0, 10, 20, 30] {
        assert_eq!(window.check(quota(4), second(admitted)), Ok(()));
    }
    assert_eq!(wait_of(window.check(quota(4), second(30))).as_secs(), 30);
    assert_eq!(wait_of(window.check(quota(3), second(30))).as_secs(), 40);
    assert_eq!(wait_of(window.check(quota(1), second(30))).as_secs(), 60);
    assert_eq!(window.check(quota(5), second(30)), Ok(()));
}

// A clock that steps back: room neither appears nor stays away for long.
#[test]
fn clocks_step_back() {
    let full = || {
        let mut window = RateWindow::default();
        assert_eq!(window.check(quota(2), second(1_000)), Ok(()));
        assert_eq!(window.check(quota(2), second(1_010)), Ok(()));
        window
    };
    for (now, wait) in [
        (1_010, 50),
        (1_000, 60),
        (951, 109),
        (950, 110), // 60 seconds back: the last step that may be a difference between hosts
        (949, 50),  // more: now counts as the instant of the newest
        (0, 50),
    ] {
        let mut window = full();
        assert_eq!(wait_of(window.check(quota(2), second(now))).as_secs(), wait, "{now}");
        assert!(wait_of(window.check(quota(2), at((now + wait) * SECOND - 1))).as_nanos() == 1);
        assert_eq!(window.check(quota(2), second(now + wait)), Ok(()), "{now}");
    }
    // One clock years ahead once, and the others are not locked out.
    let mut window = RateWindow::default();
    assert_eq!(window.check(quota(1), Timestamp::MAX), Ok(()));
    assert_eq!(wait_of(window.check(quota(1), second(0))).as_secs(), 60);
    assert_eq!(window.check(quota(1), second(60)), Ok(()));
}

// The ends of time, both ways.
#[test]
fn instants_at_the_ends() {
    for (first, then) in [
        (Timestamp::MIN, Timestamp::MIN),
        (Timestamp::MAX, Timestamp::MAX),
        (Timestamp::MAX, Timestamp::MIN),
    ] {
        let mut window = RateWindow::default();
        assert_eq!(window.check(quota(2), first), Ok(()));
        assert_eq!(window.check(quota(2), then), Ok(()));
        assert_eq!(wait_of(window.check(quota(2), then)).as_secs(), 60);
    }
    let mut window = RateWindow::default();
    assert_eq!(window.check(quota(1), Timestamp::MIN), Ok(()));
    assert_eq!(window.check(quota(1), Timestamp::MAX), Ok(()));
}

#[test]
fn the_value_is_small() {
    assert!(size_of::<RateWindow>() <= 56);
    // The worst for the bytes of gaps: one that four bytes do not hold, and then many.
    let mut window = RateWindow::default();
    for nth in 0..100_u64 {
        let nanos = nth.min(13) * ((1 << 32) - 1) + nth;
        assert_eq!(window.check(Quota::READS, at(nanos)), Ok(()));
        assert!(window.heap_bytes() <= 8 * window.admitted() + 160);
    }
    assert_eq!(window.admitted(), 100);
    // Four bytes for each gap at least.
    assert!(window.heap_bytes() >= 4 * 99);
    // And when all have gone, so has what held them.
    assert!(window.check(quota(1), second(200)).is_ok());
    // A little is kept, so that a window in use does not allocate anew each minute.
    assert!((1..=64).contains(&window.heap_bytes()));
}

fn bytes_after(gaps: u64) -> usize {
    let mut window = RateWindow::default();
    for nth in 0..=gaps {
        window.check(Quota::READS, at(nth)).unwrap();
    }
    window.heap_bytes()
}

#[test]
fn room_for_gaps_grows_by_half_and_seldom() {
    let mut grown = 0;
    let mut held = 0;
    for gaps in 1..600 {
        let bytes = bytes_after(gaps);
        let needed = usize::try_from(4 * gaps).unwrap();
        assert!((needed..=needed / 2 * 3 + 32).contains(&bytes), "{bytes} for {gaps}");
        grown += u32::from(bytes != held);
        held = bytes;
    }
    assert!(grown <= 12, "{grown}");
}

#[test]
fn room_for_gaps_shrinks_when_most_of_it_is_free() {
    // So many admissions, a second apart, and what is held once only so many gaps are left. A check
    // that is refused forgets what is old, and adds nothing.
    let after = |admissions: u64, left: u64| {
        let mut window = RateWindow::default();
        for nth in 0..admissions {
            window.check(Quota::READS, at(nth * SECOND / 20)).unwrap();
        }
        let before = window.heap_bytes();
        let now = at(MINUTE + (admissions - left - 2) * SECOND / 20);
        wait_of(window.check(quota(1), now));
        assert_eq!(window.admitted(), usize::try_from(left).unwrap() + 1);
        (before, window.heap_bytes())
    };
    // A small room stays, and one that is half full.
    let (before, small) = after(10, 2);
    assert_eq!(before, small);
    let (before, half) = after(18, 12);
    assert_eq!(before, half);
    // Of a large one, what is left and half as much; never less than a small one.
    let (_, shrunk) = after(600, 99);
    assert!((5 * 99..=7 * 99).contains(&shrunk), "{shrunk}");
    let (_, least) = after(600, 1);
    assert!((32..=64).contains(&least), "{least}");
}

// The gap at which the packing changes its form, and its neighbours.
#[test]
fn gaps_about_four_bytes_are_counted_whole() {
    let most = u64::from(u32::MAX);
    for gap in [most - 1, most, most + 1, 2 * most - 1, 2 * most, 13 * most] {
        let mut window = RateWindow::default();
        for nanos in [0, gap, gap + 1] {
            window.check(Quota::READS, at(nanos)).unwrap();
        }
        // What the first has to wait for is the first's own minute, then the second's.
        assert_eq!(
            wait_of(window.check(quota(3), at(gap + 1))).as_nanos(),
            u128::from(MINUTE - gap - 1)
        );
        assert_eq!(wait_of(window.check(quota(2), at(gap + 1))).as_nanos(), u128::from(MINUTE - 1));
        let mut stored: RateWindow =
            serde_json::from_str(&serde_json::to_string(&window).unwrap()).unwrap();
        assert_eq!(stored, window);
        for window in [&mut window, &mut stored] {
            assert_eq!(wait_of(window.check(quota(1), at(MINUTE))).as_nanos(), u128::from(gap + 1));
            assert_eq!(window.admitted(), 2, "{gap}");
        }
    }
}

// The stored form, word for word.
#[test]
fn stored_form() {
    let mut window = RateWindow::default();
    assert_eq!(serde_json::to_string(&window).unwrap(), r#"{"newest":null,"gaps":""}"#);
    for nanos in [0, 0, 1, 128, SECOND, 59 * SECOND] {
        window.check(Quota::READS, at(nanos)).unwrap();
    }
    let text = r#"{"newest":"2026-01-01T00:00:59Z","gaps":"AAF_gJPr3AOAiMeI2AE"}"#;
    assert_eq!(serde_json::to_string(&window).unwrap(), text);
    let mut read: RateWindow = serde_json::from_str(text).unwrap();
    assert_eq!(read, window);
    assert_eq!(wait_of(read.check(quota(6), second(59))).as_secs(), 1);
}

#[test]
fn stored_forms_that_are_read_too() {
    let one = r#"{"newest":"2026-01-01T00:00:59Z","gaps":""}"#;
    for (text, same) in [
        ("{}", r#"{"newest":null,"gaps":""}"#),
        (r#"{"newest":null}"#, r#"{"newest":null,"gaps":""}"#),
        (r#"{"newest":"2026-01-01T00:00:59Z"}"#, one),
        (r#"{"gaps":"","newest":"2026-01-01T01:00:59+01:00","later":[1]}"#, one),
    ] {
        let window: RateWindow = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&window).unwrap(), same);
    }
}

#[test]
fn stored_forms_that_are_refused() {
    let many = "A".repeat(65_536 / 3 * 4);
    for (gaps, why) in [
        ("AA=", "gaps are not base64url"),
        ("AB", "gaps are not base64url"),
        ("gA", "a gap is cut off"),
        ("gICAgICAAQ", "a gap is too long"),
        ("gAA", "a gap has more bytes than it needs"),
        ("gLDEw98B", "gaps add up to 60 seconds or more"),
        ("gJjiod8BgJjiod8B", "gaps add up to 60 seconds or more"),
        (many.as_str(), "more admissions than any quota has"),
    ] {
        let text = format!(r#"{{"newest":"2026-01-01T00:00:59Z","gaps":"{gaps}"}}"#);
        let error = serde_json::from_str::<RateWindow>(&text).unwrap_err().to_string();
        assert!(error.starts_with(why), "{gaps:.20}: {error}");
    }
    // As many as the greatest quota admits, and one more.
    for (zeros, admitted) in [(65_534, Some(65_535)), (65_535, None)] {
        let gaps = URL_SAFE_NO_PAD.encode(vec![0; zeros]);
        let text = format!(r#"{{"newest":"2026-01-01T00:00:59Z","gaps":"{gaps}"}}"#);
        let window = serde_json::from_str::<RateWindow>(&text).ok();
        assert_eq!(window.map(|window| window.admitted()), admitted);
    }
    let error = serde_json::from_str::<RateWindow>(r#"{"gaps":"AA"}"#).unwrap_err().to_string();
    assert!(error.starts_with("gaps without newest"), "{error}");
    let text = r#"{"newest":"2026-01-01","gaps":""}"#;
    let error = serde_json::from_str::<RateWindow>(text).unwrap_err().to_string();
    assert!(error.starts_with("expected 'T' at byte 10"), "{error}");
}

// The bytes form, byte for byte: in nanoseconds, and in microseconds where those are enough.
#[test]
fn bytes_form() {
    assert!(RateWindow::default().to_bytes().is_empty());
    assert_eq!(RateWindow::from_bytes(&[]), Ok(RateWindow::default()));
    for (steps, bytes) in [
        (vec![0], "02 000000006955b900 00000000"),
        (vec![0, 0, 1_000, 59 * SECOND], "02 000000006955b93b 00000000 00 01 bf89911c"),
        (vec![0, 1, 128, 59 * SECOND], "01 000000006955b93b 00000000 01 7f 809bb2e5db01"),
    ] {
        let mut window = RateWindow::default();
        for nanos in &steps {
            window.check(Quota::READS, at(*nanos)).unwrap();
        }
        assert_eq!(hex::encode(window.to_bytes()), bytes.replace(' ', ""), "{steps:?}");
        assert_eq!(RateWindow::from_bytes(&window.to_bytes()), Ok(window), "{steps:?}");
    }
}

#[test]
fn bytes_that_are_refused() {
    let newest = "000000006955b90000000000";
    let many = "00".repeat(65_536);
    for (bytes, why) in [
        ("00", "unknown form"),
        ("03", "unknown form"),
        ("01", "cut off"),
        ("020000000069", "cut off"),
        ("02000000006955b900000000", "cut off"),
        ("027fffffffffffffff00000000", "newest is out of range"),
        ("02000000006955b9003b9aca00", "newest is out of range"),
        (&format!("02{newest}80"), "a gap is cut off"),
        (&format!("02{newest}8000"), "a gap has more bytes than it needs"),
        (&format!("02{newest}80808080808001"), "a gap is too long"),
        (&format!("02{newest}808ece1c"), "gaps add up to 60 seconds or more"),
        (&format!("02{newest}ffffffffff7f"), "gaps add up to 60 seconds or more"),
        (&format!("01{newest}{many}"), "more admissions than any quota has"),
    ] {
        let error = RateWindow::from_bytes(&hex::decode(bytes).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), format!("not a rate window: {why}"), "{bytes:.40}");
    }
}

// What a full window takes: evenly used, on a clock of microseconds.
#[test]
fn bytes_are_few() {
    let mut window = RateWindow::default();
    for nth in 0..600 {
        window.check(Quota::READS, at(nth * (SECOND / 10 - 7_000))).unwrap();
    }
    let (bytes, json) = (window.to_bytes().len(), serde_json::to_string(&window).unwrap().len());
    assert_eq!((bytes, json), (13 + 3 * 599, 3_245));
}

/// Steps between arrivals: none, a nanosecond, moments, and about as long as the window.
fn any_step() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..SECOND, 0..30 * SECOND, MINUTE - 2..MINUTE + 2, Just(MINUTE),]
}

/// How far a clock is set back, mostly not at all.
fn any_step_back() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => Just(0),
        1 => 0..30 * SECOND,
        1 => MINUTE - 1..MINUTE + 2,
        1 => 0..100 * MINUTE,
    ]
}

proptest! {
    // D-30: no span of 60 seconds admits more than N, for any sequence of arrivals; in real time,
    // also while the clock is set back again and again.
    #[test]
    fn no_minute_admits_more(
        per_minute in 1..8_u16,
        arrivals in proptest::collection::vec((any_step(), any_step_back()), 0..200),
    ) {
        let mut window = RateWindow::default();
        let (mut real, mut clock) = (0, 1_000_000 * MINUTE);
        let mut admitted = Vec::new();
        for (step, back) in arrivals {
            real += step;
            clock = clock + step - back;
            if window.check(quota(per_minute), at(clock)).is_ok() {
                admitted.push(real);
            }
            let stored = serde_json::to_string(&window).unwrap();
            prop_assert_eq!(serde_json::from_str::<RateWindow>(&stored).unwrap(), window.clone());
            prop_assert_eq!(RateWindow::from_bytes(&window.to_bytes()).unwrap(), window.clone());
            prop_assert!(window.heap_bytes() <= 8 * window.admitted() + 160);
        }
        for span in admitted.windows(usize::from(per_minute) + 1) {
            prop_assert!(span[span.len() - 1] - span[0] >= MINUTE);
        }
    }

    // D-30, D-31: what is refused is admitted once the wait has passed, and not before.
    #[test]
    fn the_wait_is_exact(
        per_minute in 1..8_u16,
        arrivals in proptest::collection::vec((any_step(), any_step_back()), 0..100),
    ) {
        let mut window = RateWindow::default();
        let mut clock = 1_000_000 * MINUTE;
        for (step, back) in arrivals {
            clock = clock + step - back;
            if let Err(exceeded) = window.check(quota(per_minute), at(clock)) {
                let wait = exceeded.wait.as_nanos() as u64;
                prop_assert!((1..=2 * MINUTE).contains(&wait));
                let too_soon = window.clone().check(quota(per_minute), at(clock + wait - 1));
                prop_assert_eq!(wait_of(too_soon), Duration::from_nanos(1));
                prop_assert_eq!(window.clone().check(quota(per_minute), at(clock + wait)), Ok(()));
                let retry_after = exceeded.retry_after();
                prop_assert!(retry_after >= 1 && retry_after * SECOND >= wait);
                prop_assert!(retry_after == 1 || (retry_after - 1) * SECOND < wait);
            }
        }
    }

    // Against the second implementation, with quotas that change and clocks that jump about.
    #[test]
    fn as_the_naive_window(
        arrivals in proptest::collection::vec(
            (any_step(), any_step_back(), prop_oneof![9 => Just(5_u16), 1 => 1..12_u16]),
            0..300,
        ),
    ) {
        let (mut window, mut naive) = (RateWindow::default(), Naive::default());
        let mut clock = 1_000_000 * MINUTE;
        for (step, back, per_minute) in arrivals {
            clock = clock + step - back;
            let ours = window.check(quota(per_minute), at(clock));
            let ours = ours.map_err(|exceeded| exceeded.wait.as_nanos() as i128);
            prop_assert_eq!(ours, naive.check(per_minute, i128::from(clock)));
            prop_assert_eq!(window.admitted(), naive.0.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // The whole of a large quota, so that long and short gaps meet in one window.
    #[test]
    fn as_the_naive_window_in_bulk(
        steps in proptest::collection::vec(prop_oneof![0..1_000_u64, 0..SECOND / 4], 1_000..2_000),
    ) {
        let (mut window, mut naive) = (RateWindow::default(), Naive::default());
        let mut clock = 0;
        for step in steps {
            clock += step;
            let ours = window.check(Quota::READS, at(clock));
            let ours = ours.map_err(|exceeded| exceeded.wait.as_nanos() as i128);
            prop_assert_eq!(ours, naive.check(600, i128::from(clock)));
            prop_assert!(window.heap_bytes() <= 8 * window.admitted() + 160);
        }
        // Stored, 8 bytes for each admission are enough too.
        let stored = serde_json::to_string(&window).unwrap();
        prop_assert!(stored.len() <= 8 * window.admitted() + 512);
    }
}
