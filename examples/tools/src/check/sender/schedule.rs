//! The schedule of attempts, and the end of a sender.

use std::thread;
use std::time::Duration;

use serde_json::json;
use testing::receiver::{Got, Reply};

use super::requests::signature_of;
use super::{SETTLES, Sender};
use crate::check::case::{Case, Seen, case, ensure};

const BAD: Reply = Reply::Status(500);

/// The waits between attempts, in seconds.
const WAITS: [u32; 5] = [10, 60, 600, 3600, 21_600];

pub(super) const CASES: &[Case<Sender>] = &[
    // DEL-4, D-51
    case("schedule.short_waits", "Deliveries", "A receiver has no time for a restart.", |sender| {
        follows(sender, 0.005, 0..3)
    }),
    case("schedule.long_waits", "Deliveries", "A night's outage loses events.", |sender| {
        follows(sender, 0.0002, 3..5)
    }),
    // DEL-4, D-50
    case(
        "schedule.unscaled",
        "Deliveries",
        "A sender follows the schedule only in tests.",
        |sender| {
            let got = run(sender, 1.0, 2)?;
            gap(&got, 0, Duration::from_secs(10))?;
            let times: Vec<_> = got.iter().map(signature_of).collect::<Seen<_>>()?;
            let t = |text: &String| text.split(',').next().map(str::to_owned);
            let is_fresh = times.len() < 2 || times.first().map(t) != times.get(1).map(t);
            ensure(is_fresh, || {
                "the second attempt has the t of the first: it will be refused as old".to_owned()
            })
        },
    ),
    // D-57
    case(
        "stop.is_an_end",
        "Leases and clocks",
        "A sender that was stopped goes on sending.",
        |sender| {
            sender.begin(super::FAST)?;
            let hook = sender.hook(&[BAD])?;
            sender.emit()?;
            sender.came(&hook, 1)?;
            sender.verb("POST", "/stop", &json!({}))?;
            *sender.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = (0.0, vec![]);
            let before = sender.got(&hook).len();
            thread::sleep(SETTLES);
            let more = sender.got(&hook).len().saturating_sub(before);
            ensure(more == 0, || format!("{more} requests after it had stopped"))
        },
    ),
];

/// Lets a delivery fail, with time multiplied so. Returns the requests that came, so many at most.
fn run(sender: &Sender, scale: f64, count: usize) -> Seen<Vec<Got>> {
    sender.begin(scale)?;
    let hook = sender.hook(&[BAD])?;
    sender.emit()?;
    // One that makes fewer attempts breaks another rule.
    let _ = sender.came(&hook, count);
    Ok(sender.got(&hook))
}

/// Requires these waits of the schedule.
fn follows(sender: &Sender, scale: f64, waits: std::ops::Range<usize>) -> Seen {
    let got = run(sender, scale, waits.end.saturating_add(1))?;
    waits.clone().try_for_each(|place| {
        let wait = WAITS.get(place).copied().unwrap_or_default();
        gap(&got, place, Duration::from_secs(wait.into()).mul_f64(scale))
    })
}

/// Requires this wait behind an attempt, or a tenth and half a second more: an attempt takes a moment itself.
fn gap(got: &[Got], place: usize, wait: Duration) -> Seen {
    let (Some(one), Some(next)) = (got.get(place), got.get(place.saturating_add(1))) else {
        return Ok(());
    };
    let took = next.at.since(one.at);
    let most = wait.mul_f64(1.1).saturating_add(Duration::from_millis(500));
    ensure(took >= wait && took <= most, || {
        let attempt = place.saturating_add(1);
        let next = attempt.saturating_add(1);
        format!("{took:?} between attempts {attempt} and {next}: expected {wait:?} to {most:?}")
    })
}
