//! What a transaction writes, by the statements of the durable host, in their order.

use call_assistant::webhook::sender::{Delivery, EndpointHealth, LogEntry};
use host::rows::{Done, Failure, Key, Locked, Writes};

use super::tables::{
    DeliveryRow, EndpointRow, Place, RecoveryRow, Row, Tables, judged, judged_endpoint,
    judged_entry,
};
use super::{Step, Tx, refused};
use crate::judge;

impl Tables {
    /// Puts a delivery where it belongs. One that comes to the pending ones is news.
    pub(super) fn put(&mut self, tx: u64, row: DeliveryRow) {
        let id = row.delivery.id();
        let place = place_of(row.delivery.is_pending(), id);
        if row.delivery.is_pending()
            && let Some(open) = self.open.get_mut(&tx)
        {
            open.news.insert(id);
        }
        self.write(tx, place, Some(Row::Delivery(row)));
    }
}

fn place_of(is_pending: bool, id: u64) -> Place {
    if is_pending { Place::Pending(id) } else { Place::Ended(id) }
}

impl Tx {
    pub(super) async fn write_all(&mut self, writes: &Writes<'_>) -> Done<()> {
        self.step(Step::Write).await?;
        let mut of_deliveries: Vec<&(Locked, Delivery)> = writes.deliveries.iter().collect();
        of_deliveries.sort_by_key(|(_, now)| now.id());
        let kind = |(locked, now): &(Locked, Delivery)| (!locked.is_pending, !now.is_pending());
        let has = |wanted| of_deliveries.iter().any(|write| kind(write) == wanted);
        let mut are_all = true;
        let locks_first = has((false, false)) && has((false, true));
        if locks_first {
            let pending = of_deliveries.iter().filter(|(locked, _)| locked.is_pending);
            let places = self.found(pending.map(|(_, now)| Place::Pending(now.id())));
            self.lock_found(places, |_| true).await?;
            // While that is answered, the statement of the endpoints is under way.
            are_all &= self.write_endpoints(writes).await?;
        }
        // One statement each: what waits, what ends, what has ended and is amended, what is pending again.
        for wanted in [(false, false), (false, true), (true, true), (true, false)] {
            let mut found = Vec::new();
            for (locked, now) in of_deliveries.iter().filter(|write| kind(write) == wanted) {
                let (tables, place) = (self.tables(), place_of(locked.is_pending, now.id()));
                match tables.delivery(self.number, place).filter(|row| fits(row, now)) {
                    Some(row) => found.push((place, row.born, now)),
                    None => are_all = false,
                }
            }
            for (place, born, now) in found {
                let locked = self.lock_found(vec![(place, born)], |row| fits(row, now)).await?;
                match locked.first() {
                    Some(row) => self.write_delivery(place, row, *now),
                    None => are_all = false,
                }
            }
        }
        if !locks_first {
            are_all &= self.write_endpoints(writes).await?;
        }
        self.write_attempts(writes);
        if !are_all {
            return Err(Failure::Outdated);
        }
        self.write_rest(writes)
    }

    fn write_delivery(&self, place: Place, row: &DeliveryRow, now: Delivery) {
        let mut tables = self.tables();
        let delivery = now.into_stored();
        let (id, before) = (delivery.id().cast_signed(), Some(judged(&row.delivery)));
        let after = Some(judged(&delivery));
        self.store.note(&mut tables, self.number, judge::Change::Delivery { id, before, after });
        let mut row = DeliveryRow { delivery, ..row.clone() };
        match place == place_of(delivery.is_pending(), delivery.id()) {
            true => tables.write(self.number, place, Some(Row::Delivery(row))),
            false => {
                row.born = tables.number();
                tables.write(self.number, place, None);
                tables.put(self.number, row);
            }
        }
    }

    async fn write_endpoints(&self, writes: &Writes<'_>) -> Done<bool> {
        let mut are_all = true;
        for (number, health) in writes.endpoints {
            are_all &= self.write_endpoint(*number, health).await?;
        }
        Ok(are_all)
    }

    async fn write_endpoint(&self, number: u32, health: &EndpointHealth) -> Done<bool> {
        let place = Place::Endpoint(number);
        let fits =
            |row: &&EndpointRow| health.if_version() == Some(row.health.version().cast_signed());
        if self.tables().endpoint(self.number, number).filter(fits).is_none() {
            return Ok(false);
        }
        self.lock_row(place).await?;
        let mut tables = self.tables();
        let Some(row) = tables.endpoint(self.number, number).filter(fits).cloned() else {
            return Ok(false);
        };
        let health = health.into_stored();
        let (before, after) = (judged_endpoint(&row.health), judged_endpoint(&health));
        let (number, before, after) = (number.into(), Some(before), Some(after));
        self.store.note(
            &mut tables,
            self.number,
            judge::Change::Endpoint { number, before, after },
        );
        tables.write(self.number, place, Some(Row::Endpoint(EndpointRow { health, ..row })));
        Ok(true)
    }

    fn write_attempts(&self, writes: &Writes<'_>) {
        let mut tables = self.tables();
        for (key, entry, _) in &writes.attempts {
            let range = Place::Attempt(key.delivery, 0)..=Place::Attempt(key.delivery, u64::MAX);
            let is_it = |row: &Row| match row {
                Row::Attempt(of, other) => {
                    let same = |entry: &LogEntry| (entry.began_at, entry.attempt, entry.outcome);
                    of.event_created_at == key.event_created_at && same(other) == same(entry)
                }
                _ => false,
            };
            if writes.may_be_there && tables.rows.range(range).any(|(_, row)| is_it(row)) {
                continue;
            }
            let place = Place::Attempt(key.delivery, tables.number());
            tables.write(self.number, place, Some(Row::Attempt(*key, (*entry).clone())));
            let (delivery, entry) = (key.delivery.cast_signed(), judged_entry(entry));
            self.store.note(&mut tables, self.number, judge::Change::Attempt { delivery, entry });
        }
    }

    /// Writes alerts, what is news again, recoveries, and counts of what was missed.
    fn write_rest(&self, writes: &Writes<'_>) -> Done<()> {
        let (mut tables, tx) = (self.tables(), self.number);
        for (number, alert) in writes.alerts {
            let endpoint = writes.endpoints.iter().find(|(of, _)| of == number);
            let Some((_, health)) = endpoint else { continue };
            let place = Place::Alert(*number, health.version());
            if tables.visible(tx, place).is_none() {
                tables.write(tx, place, Some(Row::Alert(alert.clone(), None)));
            }
        }
        if writes.are_news {
            let again = writes.deliveries.iter();
            let again = again.filter(|(locked, now)| locked.is_pending && now.is_pending());
            tables.open.get_mut(&tx).unwrap().news.extend(again.map(|(_, now)| now.id()));
        }
        if let Some((id, recovery, progress)) = writes.recovery {
            let Some(row) = tables.recovery(tx, id).cloned() else {
                return Err(refused("there is no such recovery"));
            };
            let mut new = RecoveryRow { progress: progress.unwrap_or(row.progress), ..row.clone() };
            if let Some(version) = recovery.if_version() {
                if row.recovery.version().cast_signed() != version {
                    return Err(refused("a locked recovery has changed"));
                }
                new.recovery = recovery.clone().into_stored();
            }
            if recovery.if_version().is_some() || progress.is_some() {
                tables.write(tx, Place::Recovery(id), Some(Row::Recovery(new)));
            }
        }
        if let Some((health, missed)) = writes.missed {
            let place = Place::Alert(u32::try_from(health.id()).unwrap(), health.version());
            if let Some(Row::Alert(alert, _)) = tables.visible(tx, place).cloned() {
                tables.write(tx, place, Some(Row::Alert(alert, Some(missed))));
            }
        }
        Ok(())
    }
}

/// Tells whether a stored row is the one that was read.
fn fits(row: &DeliveryRow, now: &Delivery) -> bool {
    Key::of(&row.delivery) == Key::of(now)
        && now.if_version() == Some(row.delivery.version().cast_signed())
}
