//! What an endpoint missed: counted, and a few at a time.

use std::collections::BTreeMap;

use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::{DeliveryStatus, RecoveryFilter, oldest_kept};
use call_assistant_postgres::db::{At, delivery_of};
use tokio_postgres::types::ToSql;

use super::{Dice, Filled, KINDS, Row, endpoint_in, shard};
use call_assistant::Timestamp;

/// What an endpoint missed until it was enabled, or of a range that a person asks for.
fn some_missed(dice: &mut Dice, now: Timestamp) -> RecoveryFilter {
    let mut endpoint = endpoint_in(u32::try_from(dice.roll(3)).unwrap(), now);
    let missed = match dice.roll(2) {
        0 => {
            endpoint.pause(dice.instant(now));
            endpoint.enable(dice.instant(now)).unwrap()
        }
        _ => {
            let missed = RecoveryFilter::between(dice.instant(now), dice.instant(now), now);
            if dice.roll(2) == 0 { missed.with_endpoint(&endpoint) } else { missed }
        }
    };
    let missed = match dice.roll(3) {
        0 => missed,
        _ => missed.with_statuses(dice.some_of(DeliveryStatus::ALL)),
    };
    match dice.roll(2) {
        0 => missed,
        _ => missed.with_types([EventType::from(dice.one_of(&KINDS))]),
    }
}

// D-54 to D-56: what an enabled endpoint missed is what the library says of each row.
//
// D-56: both tables' statements are the library's condition, of any range, statuses and types. However few are missed, a
// step ends with the last of so many deliveries that may be: each that is missed is at or before the last of them.
#[tokio::test]
async fn what_was_missed_and_is_recovered_is_what_the_library_says() {
    let mut filled = Filled::new(22).await;
    let now = filled.now;
    for generation in 0..3 {
        let mut endpoint = endpoint_in(generation, now);
        endpoint.pause(now);
        let missed = endpoint.enable(now).unwrap();
        for number in 0..2_i32 {
            let from = At(oldest_kept(now).floor_to_micros());
            let sql = checker::sql::statement("queue/missed_newest");
            let found = filled.session.query(&sql, &[&number, &from]).await.unwrap();
            let found: Vec<i64> = found
                .iter()
                .filter(|row| missed.includes(&delivery_of(row).unwrap()))
                .map(|row| row.get("id"))
                .collect();
            let of_it = filled.of(number).rev();
            let expected: Vec<i64> =
                of_it.filter(|row| missed.includes(&row.delivery)).map(|row| row.id).collect();
            assert!(!expected.is_empty(), "endpoint {number}, generation {generation}");
            assert_eq!(found, expected, "endpoint {number}, generation {generation}");
        }
    }

    let session = &filled.session;
    let count = session.prepare(&checker::sql::statement("queue/missed_count")).await.unwrap();
    let pending = session.prepare(&checker::sql::statement("queue/missed_pending")).await.unwrap();
    let ended = session.prepare(&checker::sql::statement("queue/missed_ended")).await.unwrap();
    let window = session.prepare(&checker::sql::statement("queue/missed_window")).await.unwrap();
    let (mut counted_in_all, mut pending_in_all, mut last_windows) = (0, 0, 0);
    for round in 0..500 {
        let missed = some_missed(&mut filled.dice, filled.now);
        let nth = i32::try_from(filled.dice.roll(2)).unwrap();
        let after = i64::try_from(filled.dice.roll(500)).unwrap() - 50;
        let most = i64::try_from(1 + filled.dice.roll(30)).unwrap();
        let to = after + i64::try_from(filled.dice.roll(400)).unwrap();
        let is_missed = |row: &&Row| {
            missed.includes(&row.delivery)
                && missed.includes_type(&EventType::from(row.kind))
                && !row.erased
        };
        let expected: Vec<&Row> = filled.of(nth).filter(is_missed).collect();

        let statuses: Vec<&str> = missed.statuses().iter().map(|status| status.as_str()).collect();
        let types: Vec<&str> = missed.types().iter().map(EventType::as_str).collect();
        let [from, until, failed] = [missed.from(), missed.until(), missed.failed_from()].map(At);
        let (inactive, active) = (missed.ended_generation(), missed.active_generation());
        let shard = shard(nth);
        let values: [&(dyn ToSql + Sync); 11] = [
            &shard, &nth, &from, &until, &statuses, &inactive, &failed, &active, &types, &after,
            &to,
        ];
        let [shard, number, from, until, statuses, inactive, failed, active, types, ..] = values;
        let is_between = |row: &&&Row| row.id > after && row.id <= to;
        let rows = filled.session.query(&count, &values).await.unwrap();
        let counted: BTreeMap<&str, i64> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let mut by_kind = BTreeMap::new();
        for row in expected.iter().filter(is_between) {
            *by_kind.entry(row.kind).or_insert(0_i64) += 1;
        }
        assert_eq!(counted, by_kind, "round {round}: {missed:?}");

        let left: [&(dyn ToSql + Sync); 9] =
            [shard, number, from, until, active, types, &after, &to, &most];
        let gone: [&(dyn ToSql + Sync); 10] =
            [number, from, until, statuses, inactive, failed, types, &after, &to, &most];
        for (table, found, is_pending) in [
            ("pending", filled.session.query(&pending, &left).await.unwrap(), true),
            ("ended", filled.session.query(&ended, &gone).await.unwrap(), false),
        ] {
            let found: Vec<i64> = found
                .iter()
                .inspect(|row| assert!(missed.includes(&delivery_of(row).unwrap()), "{row:?}"))
                .map(|row| row.get("id"))
                .collect();
            let expected = expected
                .iter()
                .filter(is_between)
                .filter(|row| row.delivery.is_pending() == is_pending)
                .map(|row| row.id)
                .take(usize::try_from(most).unwrap());
            assert_eq!(found, expected.collect::<Vec<_>>(), "round {round}, {table}: {missed:?}");
            pending_in_all += if is_pending { found.len() } else { 0 };
        }
        counted_in_all += expected.len();

        let values: [&(dyn ToSql + Sync); 5] = [number, from, until, &after, &most];
        let last = filled.session.query_opt(&window, &values).await.unwrap();
        let last: Option<i64> = last.map(|row| row.get(0));
        let is_within = |row: &&Row| row.id > after && last.is_none_or(|last| row.id <= last);
        let found = filled.of(nth).filter(is_within).filter(|row| missed.includes(&row.delivery));
        let found = found.count();
        assert!(found <= usize::try_from(most).unwrap(), "round {round}: {found} of {most}");
        last_windows += i32::from(last.is_none());
    }
    assert!(counted_in_all > 5_000 && pending_in_all > 200, "{counted_in_all}, {pending_in_all}");
    assert!((50..450).contains(&last_windows), "{last_windows} windows were not full");
}
