//! The day of `simulate`, smaller: what comes out of it adds up.
#![allow(clippy::as_conversions, clippy::indexing_slicing)]

use std::time::Duration;

use call_assistant::webhook::sender::LONGEST_DELIVERY;
use call_assistant::webhook::sender::SenderLimits;
use tools::simulate::chart;
use tools::simulate::day::{MANNERS, Manner, Scale, run};

#[test]
fn a_day_adds_up() {
    let scale = Scale {
        endpoints: 400,
        deliveries: 60_000,
        limits: SenderLimits { overall: 60, per_endpoint: 4 },
        seed: 7,
    };
    let mut last = 0.0;
    let report = run(scale, |share, _| last = share);
    assert!((last - 1.0_f64).abs() < 1e-9);
    assert_eq!(report.samples.len(), 288);

    let accepted: u64 = report.tallies.iter().map(|tally| tally.accepted).sum();
    assert!(accepted.abs_diff(scale.deliveries) < 1_440, "{accepted}");
    for (manner, tally) in MANNERS.iter().zip(&report.tallies) {
        // Nothing is lost: each is somewhere, and in one place.
        let ended = tally.delivered + tally.failed + tally.gone + tally.parked + tally.skipped;
        assert_eq!(ended + tally.pending, tally.accepted, "{manner:?}");
        assert!(tally.attempts >= tally.delivered + tally.gone, "{manner:?}");
        assert!(tally.disabled_gone + tally.disabled_failing <= tally.endpoints, "{manner:?}");
    }
    let of = |manner: Manner| report.tallies[manner as usize];
    // DEL-6, DEL-7: who is gone or fails is disabled; who is slow or healthy is not.
    assert!(of(Manner::Leaving).disabled_gone > 0);
    // Where a day is long enough for deliveries to fail for good.
    let long_enough = LONGEST_DELIVERY < Duration::from_secs(20 * 3_600);
    assert_eq!(of(Manner::Dead).disabled_failing > 0, long_enough);
    assert_eq!(of(Manner::Healthy).disabled_gone + of(Manner::Healthy).disabled_failing, 0);
    assert_eq!(of(Manner::Slow).disabled_gone + of(Manner::Slow).disabled_failing, 0);
    assert_eq!(of(Manner::Healthy).failed + of(Manner::Dead).delivered, 0);
    // Slow and dead endpoints hold nobody else up for as long as one of their attempts takes.
    assert!(of(Manner::Healthy).longest_delay < Duration::from_secs(10));

    let table = chart::table(&report);
    assert_eq!(table.lines().count(), 7, "{table}");
    let svg = chart::svg(&report, "a day");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(chart::grouped(10_000_000), "10 000 000");
    assert_eq!((chart::grouped(0), chart::grouped(999)), ("0".into(), "999".into()));
    assert_eq!(svg.matches("<polyline ").count(), 4);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}
