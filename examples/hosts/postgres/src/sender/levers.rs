//! What operators have set: due deliveries that may not be sent, or not yet, wait here and not in the planner.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::counted::Counted;
use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, query};
use host::log;

/// How often to look what is set.
const EVERY: Duration = Duration::from_secs(1);

/// How much of what was allowed, and not used, may be used later: a tenth of a second.
const BURST: Duration = Duration::from_millis(100);

/// What a lever holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Of {
    Everything,
    Account(u32),
    Endpoint(u32),
}

/// How many attempts begin in a second at most, of what is set.
pub(super) type Rates = HashMap<Of, u32>;

/// The levers that are set, as they are told: by their numbers, what each holds back, and its limit.
pub(super) type Names = BTreeMap<i64, (String, u32)>;

/// Reads what is set.
pub(super) async fn read(database: &Database) -> Result<(Rates, Names), DbError> {
    let all = async |client: &Object| query(client, sql::LEVERS_ALL, &[]).await;
    let rows: Vec<tokio_postgres::Row> = database.read(all).await?;
    let name = |row: &tokio_postgres::Row| {
        let account: Option<&str> = row.field("account_id")?;
        let endpoint: Option<&str> = row.field("endpoint_id")?;
        // An id is not parsed: no pause may fail for one that cannot be.
        let of = match (account, endpoint) {
            (Some(account), _) => format!("account {account}"),
            (None, Some(endpoint)) => format!("endpoint {endpoint}"),
            (None, None) => "everything".to_owned(),
        };
        Ok((row.field("id")?, (of, row.field::<i32>("per_second")?.unsigned_abs())))
    };
    let of = |row: &tokio_postgres::Row| {
        let account: Option<i32> = row.field("account")?;
        let endpoint: Option<i32> = row.field("endpoint")?;
        let of = match (account, endpoint) {
            (Some(account), _) => Of::Account(account.cast_unsigned()),
            (None, Some(endpoint)) => Of::Endpoint(endpoint.cast_unsigned()),
            (None, None) => Of::Everything,
        };
        Ok((of, row.field::<i32>("per_second")?.unsigned_abs()))
    };
    let names = rows.iter().map(name).collect::<Result<_, DbError>>()?;
    Ok((rows.iter().map(of).collect::<Result<_, DbError>>()?, names))
}

/// Logs each lever that was set or undone, since it holds back what this sender would send.
pub(super) fn tell(before: &Names, now: &Names) {
    let line = |message: &'static str, id: &i64, (of, per_second): &(String, u32)| {
        let line = log::info(message).with("lever", format!("lvr_{id}")).with("on", of.as_str());
        line.with("per_second", *per_second).write();
    };
    for (id, lever) in now.iter().filter(|(id, lever)| before.get(id) != Some(lever)) {
        line("a lever holds back what is sent", id, lever);
    }
    for (id, lever) in before.iter().filter(|(id, _)| !now.contains_key(id)) {
        line("a lever is undone", id, lever);
    }
}

/// Reads what is set again and again, after the first time, until this is dropped.
pub(super) async fn keep(
    database: Database,
    rates: watch::Sender<Rates>,
    mut names: Names,
    counted: Counted,
) {
    tell(&Names::new(), &names);
    counted.round("levers");
    loop {
        sleep(EVERY).await;
        let read = read(&database).await;
        log::tried("levers", &read);
        // Where it is not read, what was set stays so.
        if let Ok((read, told)) = read {
            tell(&names, &told);
            names = told;
            rates.send_if_modified(|rates| {
                let is_other = *rates != read;
                *rates = read;
                is_other
            });
            counted.round("levers");
        }
    }
}

/// The valves of what is set.
#[derive(Debug, Default)]
pub(super) struct Valves(HashMap<Of, Valve>);

#[derive(Debug)]
struct Valve {
    per_second: u32,
    /// When the next attempt may begin.
    next: Instant,
    /// Deliveries that wait, with their endpoints.
    waiting: VecDeque<(u64, u32)>,
}

impl Valve {
    /// Allows an attempt now, if it is time for one.
    fn allows(&mut self, now: Instant) -> bool {
        let Some(interval) = Duration::from_secs(1).checked_div(self.per_second) else {
            return false;
        };
        let allows = self.next <= now;
        if allows {
            let from = now.checked_sub(BURST).map_or(now, |earliest| self.next.max(earliest));
            self.next = from.checked_add(interval).unwrap_or(now);
        }
        allows
    }
}

impl Valves {
    /// Sets what is set now. Returns what has waited: it is to be planned again.
    pub(super) fn set(&mut self, rates: &Rates) -> Vec<(u64, u32)> {
        let waited = self.0.drain().flat_map(|(_, valve)| valve.waiting).collect();
        let next = Instant::now();
        let valve = |per_second| Valve { per_second, next, waiting: VecDeque::new() };
        self.0 = rates.iter().map(|(of, per_second)| (*of, valve(*per_second))).collect();
        waited
    }

    /// Tells whether a delivery may be sent now. If not, it waits here.
    pub(super) fn admits(&mut self, account: u32, endpoint: u32, delivery: u64) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let applying = [Of::Everything, Of::Account(account), Of::Endpoint(endpoint)];
        let rate = |of: &Of| Some((self.0.get(of)?.per_second, *of));
        let slowest = applying.iter().filter_map(rate).min_by_key(|(per_second, _)| *per_second);
        let Some(valve) = slowest.and_then(|(_, of)| self.0.get_mut(&of)) else { return true };
        let admits = valve.waiting.is_empty() && valve.allows(Instant::now());
        if !admits {
            valve.waiting.push_back((delivery, endpoint));
        }
        admits
    }

    /// Takes what may be sent now of what waits.
    pub(super) fn open(&mut self) -> Vec<(u64, u32)> {
        let now = Instant::now();
        let mut opened = Vec::new();
        for valve in self.0.values_mut() {
            while !valve.waiting.is_empty() && valve.allows(now) {
                opened.extend(valve.waiting.pop_front());
            }
        }
        opened
    }

    /// Returns when to open next, if anything waits for a time.
    pub(super) fn next(&self) -> Option<Instant> {
        let waits =
            self.0.values().filter(|valve| valve.per_second > 0 && !valve.waiting.is_empty());
        waits.map(|valve| valve.next).min()
    }

    /// Keeps only the deliveries for which `keep` returns true.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u64, u32) -> bool) {
        for valve in self.0.values_mut() {
            valve.waiting.retain(|(delivery, endpoint)| keep(*delivery, *endpoint));
        }
    }

    /// Returns how many deliveries wait.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(|valve| valve.waiting.len()).fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_slowest_that_applies_counts() {
        let mut valves = Valves::default();
        assert!(valves.admits(1, 1, 1), "nothing is set");
        let rates = [(Of::Everything, 100), (Of::Account(1), 0), (Of::Endpoint(5), 20)];
        assert!(valves.set(&rates.into()).is_empty());
        assert!(!valves.admits(1, 1, 1), "paused");
        assert!(valves.admits(2, 2, 2), "a hundred a second");
        assert!(valves.admits(2, 5, 3), "twenty a second");
        assert_eq!(valves.next(), None, "a pause has no end");
        // Twenty a second: 50 ms apart.
        let mut began = 0;
        for delivery in 10..50 {
            began += u32::from(valves.admits(2, 5, delivery));
        }
        assert!(began <= 2, "{began}");
        for _ in 0..10 {
            sleep(Duration::from_millis(100)).await;
            began += u32::try_from(valves.open().len()).unwrap_or(u32::MAX);
        }
        assert!((19..=23).contains(&began), "{began}");

        // What waits is returned when the levers change, and nothing else.
        valves.retain(|delivery, _| delivery % 2 == 1);
        let waits = valves.len();
        let waited = valves.set(&Rates::new());
        assert_eq!((waited.len(), valves.len()), (waits, 0));
        assert!(waited.contains(&(1, 1)) && waited.iter().all(|(id, _)| id % 2 == 1));
        assert!(valves.admits(1, 1, 1), "nothing is set");
    }
}
