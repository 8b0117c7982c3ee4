//! Deliveries that are listed, parked and redelivered.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns, DeliveryStatus};
use call_assistant_postgres::db::{At, delivery_of, endpoint_of};
use call_assistant_postgres::queue::{self, Locked};
use tokio_postgres::types::ToSql;

use super::{Filled, KINDS, Row, shard};

#[tokio::test]
async fn a_page_of_deliveries_is_what_its_filter_says() {
    let Filled { world: _world, session, now, mut dice, rows } = Filled::new(54).await;
    let sql = session.prepare(&checker::sql::statement("store/deliveries_page")).await.unwrap();
    for round in 0..200 {
        let endpoints = dice.one_of::<&[i32]>(&[&[0], &[1], &[0, 1]]).to_vec();
        let shards: Vec<i16> = endpoints.iter().map(|number| shard(*number)).collect();
        let some = (dice.roll(2) == 0).then(|| dice.some_of(DeliveryStatus::ALL));
        let statuses: Option<Vec<&str>> =
            some.map(|some| some.iter().map(|status| status.as_str()).collect());
        let kind = (dice.roll(3) == 0).then(|| dice.one_of(&KINDS));
        let event = (dice.roll(9) == 0).then(|| format!("evt_{}", dice.roll(400)));
        let from = now.saturating_sub(Duration::from_secs(dice.roll(4) * 86_400));
        let until = now.saturating_sub(Duration::from_secs(dice.roll(2) * 86_400));
        let below = i64::try_from(dice.roll(500)).unwrap();
        let limit = i64::try_from(1 + dice.roll(60)).unwrap();
        let id = (dice.roll(9) == 0).then(|| i64::try_from(dice.roll(400)).unwrap());
        let failing = dice.roll(4) == 0;
        let from_id =
            if dice.roll(2) == 0 { i64::MIN } else { i64::try_from(dice.roll(400)).unwrap() };
        let of: [&(dyn ToSql + Sync); 5] = [&shards, &endpoints, &statuses, &kind, &event];
        let bounds: [&(dyn ToSql + Sync); 5] = [&At(from), &At(until), &below, &limit, &100_i32];
        let values = [&of[..], &bounds, &[&id, &failing, &from_id]].concat();
        let found = session.query(&sql, &values).await.unwrap();
        let bodies = |row: &tokio_postgres::Row| row.get::<_, Option<&[u8]>>("body").is_some();
        let found: Vec<(i64, bool)> =
            found.iter().map(|row| (row.get("id"), bodies(row))).collect();
        let fits = |row: &&Row| {
            let created = row.delivery.event_created_at();
            endpoints.contains(&row.endpoint)
                && statuses.as_ref().is_none_or(|all| all.contains(&row.delivery.status().as_str()))
                && (!failing
                    || (row.delivery.attempts() > 0
                        && row.delivery.status() != DeliveryStatus::Delivered))
                && kind.is_none_or(|kind| row.kind == kind)
                && event.as_ref().is_none_or(|event| row.event == *event)
                && from <= created
                && created < until
                && row.id < below
                && row.id >= from_id
                && id.is_none_or(|id| row.id == id)
        };
        let expected = rows.iter().rev().filter(fits).take(usize::try_from(limit).unwrap());
        let expected: Vec<(i64, bool)> = expected.map(|row| (row.id, !row.erased)).collect();
        assert_eq!(found, expected, "round {round}");
    }
}

/// Of each endpoint the latest, by the hour in which their events were created.
#[tokio::test]
async fn the_hours_of_a_day_are_what_its_rows_say() {
    let Filled { world: _world, session, now, mut dice, rows } = Filled::new(58).await;
    let sql = session.prepare(&checker::sql::statement("store/endpoints_day")).await.unwrap();
    let hour_of = |at: Timestamp, from: Timestamp| {
        (at.unix_micros() - from.unix_micros()).div_euclid(3_600_000_000)
    };
    let mut all = 0;
    for round in 0..100 {
        let back = Duration::from_secs(dice.roll(4) * 86_400 + dice.roll(24) * 3600);
        let from = now.saturating_sub(back);
        let midnight = from.unix_seconds().div_euclid(86_400) * 86_400;
        let midnight = Timestamp::from_unix(midnight).unwrap();
        let until = from.saturating_add(Duration::from_secs(86_400));
        let limit = 1 + dice.roll(80);
        let endpoints = [0, 1];
        let shards = endpoints.map(shard);
        let count = i64::try_from(limit).unwrap();
        let values: [&(dyn ToSql + Sync); 6] =
            [&&shards[..], &&endpoints[..], &At(from), &At(midnight), &count, &At(until)];
        let found = session.query(&sql, &values).await.unwrap();
        let hour = |row: &tokio_postgres::Row| -> (i32, i64, [i64; 4]) {
            let counts = ["delivered", "failing", "missed", "waiting"].map(|name| row.get(name));
            (row.get("number"), row.get::<_, i32>("hour").into(), counts)
        };
        let mut found: Vec<_> = found.iter().map(hour).collect();
        found.sort_unstable();
        let mut expected: BTreeMap<(i32, i64), [i64; 4]> = BTreeMap::new();
        for endpoint in endpoints {
            let latest = rows.iter().rev().filter(|row| {
                let at = row.delivery.event_created_at();
                let of_day = at >= midnight && at < until;
                row.endpoint == endpoint && (row.delivery.is_pending() || of_day)
            });
            for row in latest.take(usize::try_from(limit).unwrap()) {
                let Row { delivery, .. } = row;
                let tried = delivery.attempts() > 0;
                let kind = match (delivery.is_pending(), delivery.status()) {
                    (true, _) if tried => 1,
                    (true, _) => 3,
                    (false, DeliveryStatus::Delivered) => 0,
                    (false, _) => 2,
                };
                let hour = hour_of(delivery.event_created_at(), from);
                expected.entry((endpoint, hour)).or_default()[kind] += 1;
            }
        }
        let expected: Vec<_> =
            expected.into_iter().map(|((a, b), counts)| (a, b, counts)).collect();
        all += found.len();
        assert_eq!(found, expected, "round {round}");
    }
    assert!(all > 100, "{all}");
}

// D-55: what is parked of an endpoint is what the library says is pending, in steps. A recovery makes room for what is
// under way: manual, and pending.
#[tokio::test]
async fn what_is_parked_or_under_way_is_pending() {
    let filled = Filled::new(55).await;
    let sql = filled.session.prepare(&checker::sql::statement("queue/park")).await.unwrap();
    for number in 0..2_i32 {
        for after in [i64::MIN, 0, 57, 200, 399] {
            let found = filled.session.query(&sql, &[&number, &after]).await.unwrap();
            let found: Vec<i64> = found.iter().map(|row| row.get("id")).collect();
            let is_next = |row: &&Row| row.delivery.is_pending() && row.id > after;
            let expected: Vec<i64> = filled.of(number).filter(is_next).map(|row| row.id).collect();
            assert_eq!(found, expected, "endpoint {number} after {after}");
        }
        let sql = checker::sql::statement("queue/count_redeliveries");
        let row = filled.session.query_one(&sql, &[&shard(number), &number]).await.unwrap();
        let is_under_way =
            |row: &&Row| row.delivery.is_pending() && DeliveryColumns::from(row.delivery).manual;
        let expected = filled.of(number).filter(is_under_way).count();
        assert!(expected > 5, "{expected}");
        assert_eq!(usize::try_from(row.get::<_, i64>(0)), Ok(expected), "endpoint {number}");
    }
}

// D-56: a delivery is found in one of the two tables, with what the library needs to decide on it, and
// what it decides is written over the version that was read and no other.
#[tokio::test]
async fn what_is_redelivered_is_what_the_library_says() {
    let mut filled = Filled::new(56).await;
    let change = filled.session.transaction().await.unwrap();
    let statement =
        async |name: &str| change.prepare(&checker::sql::statement(name)).await.unwrap();
    let ended = statement("store/deliveries_redeliver_ended").await;
    let pending = statement("store/deliveries_redeliver_pending").await;
    let mut redelivered = 0;
    for row in &filled.rows {
        let (read, other) = match row.delivery.is_pending() {
            true => (&pending, &ended),
            false => (&ended, &pending),
        };
        for (statement, endpoint) in [(other, row.endpoint), (read, 1 - row.endpoint)] {
            let found = change.query_opt(statement, &[&endpoint, &row.id]).await.unwrap();
            assert!(found.is_none(), "{row:?} is in one table, of one endpoint");
        }
        let found = change.query_one(read, &[&row.endpoint, &row.id]).await.unwrap();
        assert_eq!(delivery_of(&found).unwrap(), row.delivery, "{row:?}");
        assert_eq!(found.get::<_, bool>("erased"), row.erased, "{row:?}");
        assert_eq!(found.get::<_, &str>("plan"), "pro", "{row:?}");
        let endpoint = endpoint_of(&found, "endpoint_").unwrap();
        let mut read = row.delivery;
        if read.redeliver(&endpoint, filled.now).is_err() {
            continue;
        }
        // As it is read with another version, and where nothing has changed.
        let other = DeliveryColumns { version: 7_000, ..row.delivery.into() };
        let mut other = Delivery::from_columns(row.id as u64, row.endpoint as u64, other).unwrap();
        other.redeliver(&endpoint, filled.now).unwrap();
        for (write, expected) in [(other, false), (read.into_stored(), false), (read, true)] {
            let written = queue::write(&change, [(Locked::of(row.delivery), write)]).await.unwrap();
            assert_eq!(written, expected, "{row:?}");
        }
        let found = change.query_one(&pending, &[&row.endpoint, &row.id]).await.unwrap();
        assert_eq!(delivery_of(&found).unwrap(), read, "{row:?}");
        redelivered += 1;
    }
    assert!(redelivered > 100, "{redelivered}");
}
