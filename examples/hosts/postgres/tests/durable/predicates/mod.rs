//! What a statement decides that the library decides, too: the same on random rows of two
//! endpoints.

mod deliveries;
mod missed;
mod others;

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, DeliveryColumns, DeliveryStatus, EndpointHealth};
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{At, Session};
use private_server::Settings;
use tokio_postgres::types::ToSql;

use crate::support::World;

/// Numbers that are the same each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.roll(all.len() as u64)).unwrap()]
    }

    pub(crate) fn some_of<T: Copy>(&mut self, all: &[T]) -> Vec<T> {
        all.iter().copied().filter(|_| self.roll(2) == 0).collect()
    }

    /// One of few instants of the last days: bounds meet rows.
    pub(crate) fn instant(&mut self, now: Timestamp) -> Timestamp {
        let ago = Duration::from_micros(self.roll(4) * 86_400_000_000 + self.roll(3));
        now.saturating_sub(ago).floor_to_micros()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) endpoint: i32,
    pub(crate) event: String,
    pub(crate) kind: &'static str,
    pub(crate) erased: bool,
    pub(crate) delivery: Delivery,
}

pub(crate) const KINDS: [&str; 2] = ["call.ended", "ping"];

/// A database with two endpoints of an account, whose deliveries are in every state.
pub(crate) struct Filled {
    pub(crate) world: World,
    pub(crate) session: Session,
    pub(crate) now: Timestamp,
    pub(crate) dice: Dice,
    pub(crate) rows: Vec<Row>,
}

impl Filled {
    pub(crate) async fn new(seed: u64) -> Self {
        let world = World::new(Settings::default()).await;
        let session = world.session().await;
        let (now, mut dice) = (clock::now().floor_to_micros(), Dice(seed));
        let endpoints = "INSERT INTO accounts (id, timezone, plan, subscription_active, closing)
                VALUES ('acct_1', 'UTC', 'pro', true, false);
            INSERT INTO endpoints (id, account_id, shard, created_at, url, allow_loopback, secrets,
                since, failures, generation, version)
            SELECT 'we_' || n, 'acct_1', n, now(), 'https://x.example/', false, '', now(), 0, 0, 0
                FROM generate_series(0, 1) AS n;";
        session.batch_execute(endpoints).await.unwrap();
        let mut rows = Vec::new();
        for id in 0_i64..400 {
            let created = dice.instant(now);
            let status = dice.one_of(DeliveryStatus::ALL);
            let columns = DeliveryColumns {
                event_created_at: created,
                status,
                at: dice.instant(now),
                attempts: i16::try_from(dice.roll(7)).unwrap(),
                manual: dice.roll(3) == 0,
                generation: i32::try_from(dice.roll(3)).unwrap(),
                version: 1,
            };
            let endpoint = i32::try_from(dice.roll(2)).unwrap();
            let (number, of) = (id.cast_unsigned(), u64::from(endpoint.cast_unsigned()));
            let delivery = Delivery::from_columns(number, of, columns);
            let row = Row {
                id,
                endpoint,
                event: format!("evt_{id}"),
                kind: dice.one_of(&KINDS),
                erased: dice.roll(8) == 0,
                delivery: delivery.unwrap(),
            };
            store(&session, &row).await;
            rows.push(row);
        }
        Self { world, session, now, dice, rows }
    }

    /// Those of an endpoint, oldest first.
    pub(crate) fn of(&self, endpoint: i32) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.endpoint == endpoint)
    }
}

/// An endpoint that is active in this generation.
pub(crate) fn endpoint_in(generation: u32, now: Timestamp) -> EndpointHealth {
    let mut endpoint = EndpointHealth::new(1, now);
    while endpoint.generation() != generation {
        endpoint.pause(now);
        endpoint.enable(now);
    }
    endpoint
}

/// The shard of an endpoint here.
pub(crate) fn shard(endpoint: i32) -> i16 {
    i16::try_from(endpoint).unwrap()
}

async fn store(session: &Session, row: &Row) {
    let columns = DeliveryColumns::from(row.delivery);
    let created = At(columns.event_created_at);
    let body = (!row.erased).then_some(b"{}".as_slice());
    let event: [&(dyn ToSql + Sync); 4] = [&row.event, &created, &row.kind, &body];
    let insert = "INSERT INTO events (account_id, id, created_at, type, body)
                  VALUES ('acct_1', $1, $2, $3, $4)";
    session.execute(insert, &event).await.unwrap();
    let table = if row.delivery.is_pending() { "deliveries" } else { "ended" };
    let sql = format!(
        "INSERT INTO {table} (id, shard, endpoint, account_id, event_id, event_created_at, status,
             at, attempts, manual, generation, version)
         VALUES ($1, $2, $3, 'acct_1', $4, $5, $6, $7, $8, $9, $10, $11)"
    );
    let (shard, status, at) = (shard(row.endpoint), columns.status.as_str(), At(columns.at));
    let of: [&(dyn ToSql + Sync); 7] =
        [&row.id, &shard, &row.endpoint, &row.event, &created, &status, &at];
    let DeliveryColumns { attempts, manual, generation, version, .. } = columns;
    let values = [&of[..], &[&attempts, &manual, &generation, &version]].concat();
    session.execute(&sql, &values).await.unwrap();
}
