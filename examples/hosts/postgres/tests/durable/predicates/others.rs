//! Reminders, uses of keys, the endpoints of an event, and the newest calls.

use std::time::Duration;

use call_assistant::id::{AccountId, CredentialId};
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::{ApiKey, Mode};
use call_assistant::webhook::sender::{DisabledReason, EndpointColumns, EndpointHealth};
use call_assistant::{Product, Timestamp};
use call_assistant_postgres::db::{At, endpoint_of};
use tokio_postgres::types::ToSql;

use super::{Filled, shard};

const DAY: Duration = Duration::from_secs(86_400);

/// Gives endpoint 0 these columns.
async fn become_endpoint(filled: &Filled, endpoint: EndpointHealth) {
    let columns = EndpointColumns::from(endpoint);
    let sql = "UPDATE endpoints SET disabled = $1, since = $2, failures = $3, generation = $4,
            version = $5, first_failures = $6, first_failed_at = $7, reminders = $8
        WHERE number = 0";
    let values: [&(dyn ToSql + Sync); 8] = [
        &columns.disabled.map(|reason| reason.as_str()),
        &At(columns.since),
        &columns.failures,
        &columns.generation,
        &columns.version,
        &columns.first_failures,
        &columns.first_failed_at.map(At),
        &columns.reminders,
    ];
    assert_eq!(filled.session.execute(sql, &values).await.unwrap(), 1);
}

// Whoever the library would remind is found, and nobody else: a page is never full of those that wait for their
// second reminder.
#[tokio::test]
async fn who_is_to_be_reminded_is_found() {
    let mut filled = Filled::new(1).await;
    let sql =
        filled.session.prepare(&checker::sql::statement("queue/lock_disabled")).await.unwrap();
    let all = [
        None,
        Some(DisabledReason::Gone),
        Some(DisabledReason::Failing),
        Some(DisabledReason::Paused),
        Some(DisabledReason::Deleted),
    ];
    let mut reminded = 0;
    for round in 0..400 {
        let since = filled.now.saturating_sub(DAY * u32::try_from(filled.dice.roll(5)).unwrap());
        let since = since.saturating_sub(Duration::from_micros(filled.dice.roll(3)));
        let endpoint = EndpointHealth::from_columns(
            0,
            EndpointColumns {
                disabled: filled.dice.one_of(&all),
                since: since.saturating_add(Duration::from_micros(1)).floor_to_micros(),
                reminders: i16::try_from(filled.dice.roll(3)).unwrap(),
                ..EndpointColumns::from(EndpointHealth::new(0, filled.now))
            },
        );
        let Ok(mut endpoint) = endpoint else { continue };
        become_endpoint(&filled, endpoint).await;
        let due = [1, 3].map(|days| At(filled.now.saturating_sub(days * DAY)));
        let rows =
            filled.session.query(&sql, &[&vec![shard(0)], &due[0], &due[1], &-1]).await.unwrap();
        let is_found = !rows.is_empty();
        if let [row] = &rows[..] {
            assert_eq!(endpoint_of(row, "").unwrap(), endpoint, "round {round}");
        }
        let is_due = endpoint.remind(filled.now).is_some();
        assert_eq!(is_found, is_due, "round {round}: {endpoint:?}");
        reminded += u32::from(is_due);
    }
    assert!(reminded > 20, "{reminded}");
}

#[tokio::test]
async fn a_use_of_a_key_is_noted_when_the_library_says() {
    let mut filled = Filled::new(2).await;
    let secret = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    let (id, account) =
        (CredentialId::parse("cred_1").unwrap(), AccountId::parse("acct_1").unwrap());
    let mut key = StoredKey::new(id, account, &secret, filled.now);
    let sql = "INSERT INTO keys (id, account_id, digest, livemode, name, hint, scopes, created_at)
        VALUES ('cred_1', 'acct_1', $1, true, '', '', '{}', now())";
    filled.session.execute(sql, &[&key.digest.as_bytes().as_slice()]).await.unwrap();
    let note =
        filled.session.prepare(&checker::sql::statement("store/api_note_use")).await.unwrap();
    let minute = Duration::from_secs(60);
    let mut noted = 0;
    for round in 0..300 {
        let near = Duration::from_micros(filled.dice.roll(4) * 30_000_000 + filled.dice.roll(3));
        let used_at = match filled.dice.roll(3) {
            0 => filled.now.saturating_sub(near),
            _ => filled.now.saturating_add(near),
        };
        let affected =
            filled.session.execute(&note, &[&vec!["cred_1"], &At(used_at)]).await.unwrap();
        let expected = key.note_use(minute, used_at);
        assert_eq!(affected, u64::from(expected), "round {round}: {used_at}");
        noted += affected;
    }
    assert!((50..250).contains(&noted), "{noted}");
}

// D-55, D-83: an event goes to each endpoint that is not deleted, whatever else it is, of an account
// whose plan has webhooks.
#[tokio::test]
async fn an_event_goes_to_what_is_not_deleted() {
    let filled = Filled::new(3).await;
    let sql = checker::sql::statement("accept/endpoints");
    let mut endpoint = EndpointHealth::new(1, filled.now);
    for deleted in [false, true] {
        if deleted {
            endpoint.delete(filled.now);
        }
        become_endpoint(&filled, endpoint).await;
        for (plans, only, expected) in [
            (vec!["pro", "business"], None, vec![0, 1]),
            (vec!["pro"], Some(0), vec![0]),
            (vec!["pro"], Some(1), vec![1]),
            (vec!["business"], None, vec![]),
        ] {
            let rows = filled.session.query(&sql, &[&"acct_1", &plans, &only]).await.unwrap();
            let found: Vec<i32> = rows.iter().map(|row| row.get("number")).collect();
            let expected: Vec<i32> =
                expected.into_iter().filter(|number| *number != 0 || !deleted).collect();
            assert_eq!(found, expected, "{plans:?}, {only:?}, deleted: {deleted}");
        }
    }
}

// LIST-1: a page is the same whether the late calls within its bounds are few, and sorted, or many, and
// walked, and whichever pages are asked for with it.
#[tokio::test]
async fn a_page_of_calls_is_what_its_bounds_say() {
    let mut filled = Filled::new(5).await;
    let hour = Duration::from_secs(3_600);
    let delays = [Duration::ZERO, hour, hour + Duration::from_micros(1), DAY, 2 * DAY];
    let mut calls = Vec::new();
    for number in 0..4_000 {
        let started = filled.dice.instant(filled.now);
        let created = match filled.dice.roll(8) {
            0 => started.saturating_sub(hour),
            _ => started.saturating_add(filled.dice.one_of(&delays)),
        };
        calls.push((started, format!("call_{number}"), created));
    }
    let ids: Vec<&str> = calls.iter().map(|(_, id, _)| id.as_str()).collect();
    let started: Vec<At> = calls.iter().map(|(started, ..)| At(*started)).collect();
    let created: Vec<At> = calls.iter().map(|(.., created)| At(*created)).collect();
    let insert = checker::sql::statement("store/calls_insert");
    // A call's id is its body, too.
    let values: [&(dyn ToSql + Sync); 6] = [&"acct_1", &true, &ids, &started, &created, &ids];
    filled.session.execute(&insert, &values).await.unwrap();
    // As many of test keys, and of another account, are in no page.
    let others = "INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
            VALUES ('acct_2', 'UTC', 'pro', true, false);
        INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
        SELECT 'acct_1', false, 'test_' || id, started_at, created_at, 'test' FROM calls
        UNION ALL SELECT 'acct_2', true, id, started_at, created_at, 'another' FROM calls";
    filled.session.batch_execute(others).await.unwrap();
    calls.sort_unstable();
    let late = "SELECT count(*) FROM calls WHERE late AND created_at >= $1 AND created_at < $2
        AND account_id = 'acct_1' AND livemode";

    let sql = filled.session.prepare(&checker::sql::statement("store/api_page")).await.unwrap();
    let (mut few, mut many) = (0, 0);
    for batch in 0..60 {
        let mut asked = Vec::new();
        for _ in 0..=filled.dice.roll(9) {
            let mut bound = |end| match filled.dice.roll(3) {
                0 => end,
                _ => filled.dice.instant(filled.now),
            };
            let (since, until) = (bound(Timestamp::MIN), bound(Timestamp::MAX));
            let (at, id) = match filled.dice.roll(3) {
                0 => (Timestamp::MAX, ""),
                _ => {
                    let (started, id, _) = filled.dice.one_of(&calls.iter().collect::<Vec<_>>());
                    (*started, id.as_str())
                }
            };
            asked.push((since, until, at, id, usize::try_from(1 + filled.dice.roll(101)).unwrap()));
        }
        let values: [&(dyn ToSql + Sync); 7] = [
            &vec!["acct_1"; asked.len()],
            &vec![true; asked.len()],
            &asked.iter().map(|(since, ..)| At(*since)).collect::<Vec<_>>(),
            &asked.iter().map(|(_, until, ..)| At(*until)).collect::<Vec<_>>(),
            &asked.iter().map(|(.., at, _, _)| At(*at)).collect::<Vec<_>>(),
            &asked.iter().map(|(.., id, _)| *id).collect::<Vec<_>>(),
            &asked.iter().map(|(.., rows)| i64::try_from(*rows).unwrap()).collect::<Vec<_>>(),
        ];
        let rows = filled.session.query(&sql, &values).await.unwrap();
        for (nth, (since, until, at, id, most)) in (1_i64..).zip(asked) {
            let own = rows.iter().filter(|row| row.get::<_, i64>("nth") == nth);
            let mut found: Vec<&str> = own.map(|row| row.get("body")).collect();
            let expected: Vec<&str> = calls
                .iter()
                .rev()
                .filter(|(.., created)| since <= *created && *created < until)
                .filter(|(started, call, _)| (*started, call.as_str()) < (at, id))
                .take(most)
                .map(|(_, call, _)| call.as_str())
                .collect();
            // The host puts the rows in order.
            found.sort_by_key(|id| calls.iter().rev().position(|(_, call, _)| call == id));
            found.truncate(most);
            let what = format!("batch {batch}: {since} to {until}, after {at} {id}");
            assert_eq!(found, expected, "{what}");
            let late = filled.session.query_one(late, &[&At(since), &At(until)]).await.unwrap();
            match late.get::<_, i64>(0) {
                0..=1_000 => few += usize::from(!found.is_empty()),
                _ => many += usize::from(!found.is_empty()),
            }
        }
    }
    assert!(few > 30 && many > 30, "{few}, {many}");

    // The newest ones are those of both indexes, as one list and one count.
    let sql = checker::sql::statement("store/calls_latest");
    for (skipped, most) in [(0_usize, 1), (0, 20), (0, 300), (1, 1), (20, 70), (100, 300)] {
        let last = skipped.checked_sub(1).and_then(|nth| calls.iter().rev().nth(nth));
        let (at, id) = last.map_or((Timestamp::MAX, ""), |(started, id, _)| (*started, id));
        let limit = i64::try_from(most).unwrap();
        let values: [&(dyn ToSql + Sync); 4] = [&"acct_1", &At(at), &id, &limit];
        let rows = filled.session.query(&sql, &values).await.unwrap();
        let found: Vec<&str> = rows.iter().map(|row| row.get("id")).collect();
        let newest = calls.iter().rev().skip(skipped).take(most);
        let expected: Vec<&str> = newest.map(|(_, id, _)| id.as_str()).collect();
        assert_eq!(found, expected, "{skipped}, {most}");
    }
    let sql = checker::sql::statement("store/accounts_one");
    let row = filled.session.query_one(&sql, &[&"acct_1"]).await.unwrap();
    assert_eq!(usize::try_from(row.get::<_, i64>("calls")), Ok(calls.len()));
}
