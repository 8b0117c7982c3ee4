//! The judge of a run, over records that are made by hand.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, missing_docs)]

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, EndpointHealth, Outcome};
use testing::event::ping;
use testing::judge::{Change, Entry, Noted, Record, Snapshot, check};

const SECOND: Duration = Duration::from_secs(1);

/// Returns what is wrong with a failed attempt that begins just before its endpoint moves, and whose result is stored
/// so long afterwards. Its endpoint is not told, for the attempt is of the life before.
fn stored_after(waited: Duration, sent_before: Duration) -> Vec<String> {
    let created = Timestamp::from_unix(1_770_000_000).unwrap();
    let began = created.saturating_add(SECOND);
    let moved = began.saturating_add(SECOND / 10);
    let took = SECOND / 2;
    let ended = began.saturating_add(took);
    let stored = ended.saturating_add(waited);

    let first = EndpointHealth::new(1, created);
    let accepted = Delivery::accept(&ping("evt_1", "acct_1", created), &first, created);
    let mut row = accepted;
    let attempt = row.begin(&first, began).unwrap();
    let _ = row.finish(&attempt, Outcome::TimedOut, ended).unwrap();
    let mut second = first;
    second.moved(moved);

    let entry = Entry {
        number: 1,
        manual: false,
        outcome: Outcome::TimedOut,
        late: false,
        began_at: stored.saturating_sub(took).saturating_sub(sent_before),
        took,
    };
    let endpoint = |before, after| Change::Endpoint { number: 1, before, after: Some(after) };
    let changes = [
        (created, endpoint(None, first)),
        (created, Change::Delivery { id: 1, before: None, after: Some(accepted) }),
        (moved, endpoint(Some(first), second)),
        (moved, Change::Look),
        (stored, Change::Delivery { id: 1, before: Some(accepted), after: Some(row) }),
        (stored, Change::Attempt { delivery: 1, entry }),
    ];
    // Each in a transaction of its own, but for the last two.
    let noted = |(tx, (at, change)): (u64, (Timestamp, Change))| {
        let tx = tx.min(4);
        let snapshot = Snapshot { xmin: tx, xmax: tx, running: Vec::new() };
        Noted { tx, snapshot, at, process: None, change }
    };
    let rows = (0..).zip(changes).map(noted).collect();
    check(&Record { rows, places: HashMap::from([(1, (1, 0))]), time_scale: 1.0 }, &[])
}

#[test]
fn a_result_may_wait_for_a_leader() {
    for (waited, sent_before, is_right) in [
        (SECOND, SECOND, true),
        (24 * SECOND, 24 * SECOND, true),
        // Its sender began it in the new life, and has not told the endpoint.
        (24 * SECOND, Duration::ZERO, false),
        // No result waits for so long, whatever its sender's clock says.
        (90 * SECOND, 90 * SECOND, false),
        (90 * SECOND, 3600 * SECOND, false),
    ] {
        let wrong = stored_after(waited, sent_before);
        assert_eq!(wrong.is_empty(), is_right, "{waited:?}, {sent_before:?}: {wrong:?}");
    }
}
