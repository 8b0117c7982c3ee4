//! A service in virtual time, which writes calls and lists them as LIST-1 to LIST-7 say.

use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList, UnreadableCall};
use call_assistant::rest::ListCalls;

use crate::dice::{Dice, SECOND, at};

/// A call, and when its writing transaction commits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) call: Call,
    pub(crate) visible: i64,
}

/// How a service behaves within what the specification leaves it.
#[derive(Debug)]
pub(crate) struct Manner {
    /// The longest writing transaction.
    pub(crate) transaction: i64,
    /// How far behind the replica that answers may be.
    pub(crate) staleness: i64,
    /// What times are rounded down to: whole seconds make for many equal ones.
    pub(crate) precision: i64,
    /// Whether equal `started_at` are ordered by id upwards, which the specification leaves open.
    pub(crate) ids_upwards: bool,
    /// Whether `has_more` is left out, and pages are empty now and then (D-24).
    pub(crate) terse: bool,
    /// Of a hundred calls, so many are written in a way that nobody can read (D-74).
    pub(crate) unreadable: u64,
}

/// What a step hands over: calls, and items that cannot be read by what they call themselves.
pub(crate) fn handed(calls: &[Call], unreadable: &[UnreadableCall]) -> Vec<CallId> {
    let unreadable = unreadable.iter().map(|item| match item.id() {
        Some(id) => id.clone(),
        None => {
            let (_, id) = item.json().get().split_once(r#""ref":""#).unwrap();
            CallId::parse(id.split('"').next().unwrap()).unwrap()
        }
    });
    calls.iter().map(|call| call.id.clone()).chain(unreadable).collect()
}

pub(crate) struct Service {
    manner: Manner,
    /// In the list's order.
    calls: Vec<Written>,
    /// Cursors of another epoch are not taken any more.
    pub(crate) epoch: u32,
}

impl Service {
    /// A service whose calls, `count` of them, arrive within a time and last up to `longest`.
    pub(crate) fn new(
        manner: Manner,
        count: i64,
        (from, until): (i64, i64),
        longest: i64,
        dice: &mut Dice,
    ) -> Self {
        let round = |millis: i64| millis.div_euclid(manner.precision) * manner.precision;
        let write = |created: i64, transaction: i64, dice: &mut Dice| {
            let started = created - SECOND - dice.span(longest);
            let id = CallId::parse(&format!("call_{:012x}", dice.bits() >> 16)).unwrap();
            // The clock that stamps a call is the one that transactions are measured with, so
            // rounding a stamp down makes its transaction that much longer.
            let visible = round(created) + transaction;
            let visible = visible.max(round(started));
            Written { call: Call::new(id, at(round(started)), at(round(created))), visible }
        };
        let mut calls: Vec<Written> = Vec::new();
        for _ in 0..count {
            let created = from + dice.up_to(until - from) + SECOND + dice.span(longest);
            // As long as a transaction may take, sometimes to the millisecond.
            let transaction = match dice.up_to(3) {
                0 => manner.transaction,
                1 => dice.up_to(manner.transaction),
                _ => dice.span(manner.transaction),
            };
            let written = write(created, transaction, dice);
            // When it shows, another may be about to that has taken as long as can be: whoever
            // looks between the two needs all of the lag to find the other one later.
            if dice.chance(10) {
                let created = written.visible - manner.transaction + 1 + dice.span(SECOND);
                calls.push(write(created, manner.transaction, dice));
            }
            calls.push(written);
        }
        let mut service = Self { manner, calls, epoch: 0 };
        service.sort();
        service.calls.dedup_by(|one, other| one.call.id == other.call.id);
        service
    }

    fn sort(&mut self) {
        let upwards = self.manner.ids_upwards;
        self.calls.sort_by(|one, other| {
            let ids = one.call.id.cmp(&other.call.id);
            let ids = if upwards { ids } else { ids.reverse() };
            other.call.started_at.cmp(&one.call.started_at).then(ids)
        });
    }

    /// Of a hundred calls, dates so many ahead of when they show: by up to a time, or to the year
    /// 9999.
    pub(crate) fn date_ahead(&mut self, percent: u64, by: Option<i64>, dice: &mut Dice) {
        const YEAR_9999: i64 = 251_634_988_800 * SECOND;
        for Written { call, visible } in &mut self.calls {
            if dice.chance(percent) {
                let created = by.map_or(YEAR_9999, |by| *visible + SECOND + dice.span(by));
                call.created_at = at(created);
                if dice.chance(30) {
                    call.started_at = at(created - SECOND);
                }
            }
        }
        self.sort();
    }

    pub(crate) fn calls(&self) -> &[Written] {
        &self.calls
    }

    /// When everything is visible to everybody.
    pub(crate) fn settled(&self) -> i64 {
        let last = self.calls.iter().map(|written| written.visible).max().unwrap_or(0);
        last + self.manner.staleness + 1
    }

    /// When the next call shows, and its event is sent.
    pub(crate) fn next_visible(&self, now: i64) -> Option<i64> {
        self.calls.iter().map(|written| written.visible).filter(|visible| *visible > now).min()
    }

    /// Answers a query at an instant. `None` is `invalid_cursor`.
    pub(crate) fn list(&self, query: &ListCalls, now: i64, dice: &mut Dice) -> Option<CallList> {
        let snapshot = now - dice.up_to(self.manner.staleness);
        let mut after = 0;
        if let Some(cursor) = &query.cursor {
            let (epoch, id) = cursor.split_once(' ').unwrap();
            if epoch != self.epoch.to_string() {
                return None;
            }
            let id = id.trim_start_matches('.');
            after = match id {
                "" => 0,
                _ => self.calls.iter().position(|written| written.call.id.as_str() == id)? + 1,
            };
        }
        let mut limit = query.limit;
        if self.manner.terse && dice.chance(10) {
            limit = 0;
        }
        let mut rows = self.calls[after..]
            .iter()
            .filter(|written| written.visible <= snapshot && query.filter.matches(&written.call));
        let data: Vec<&Call> = rows.by_ref().take(limit).map(|row| &row.call).collect();
        let has_more = rows.next().is_some();
        let next_cursor = has_more.then(|| match data.last() {
            Some(last) => format!("{} {}", self.epoch, last.id),
            // An empty page's cursor leads to the same place, by another name.
            None => {
                let here = query.cursor.as_ref().and_then(|cursor| cursor.split_once(' '));
                format!("{} .{}", self.epoch, here.map_or("", |(_, id)| id))
            }
        });
        let mut list = if data.iter().all(|call| self.is_readable(call)) {
            CallList::new(data.into_iter().cloned().collect(), next_cursor)
        } else {
            self.page(&data, next_cursor)
        };
        if self.manner.terse {
            list.has_more = None;
        }
        Some(list)
    }

    fn page(&self, data: &[&Call], next_cursor: Option<String>) -> CallList {
        let items: Vec<String> = data.iter().map(|call| self.item(call)).collect();
        let body = format!(
            r#"{{"data":[{}],"next_cursor":{},"has_more":{}}}"#,
            items.join(","),
            serde_json::to_string(&next_cursor).unwrap(),
            next_cursor.is_some(),
        );
        CallList::from_json(body.as_bytes()).unwrap()
    }

    /// Whether a call is written so that it can be read, always in the same way.
    pub(crate) fn is_readable(&self, call: &Call) -> bool {
        self.way(call) >= self.manner.unreadable
    }

    fn way(&self, call: &Call) -> u64 {
        u64::from_str_radix(&call.id.as_str()["call_".len()..], 16).unwrap() % 100
    }

    fn item(&self, call: &Call) -> String {
        let way = self.way(call);
        let json = String::from_utf8(call.to_json()).unwrap();
        let json = match way % 3 {
            0 if way < self.manner.unreadable => json.replace(r#""created_at":""#, r#""at":""#),
            _ => json,
        };
        match way {
            way if way >= self.manner.unreadable => json,
            // What is left of an emoji that was cut in two, under a name that can be read or not.
            way if way % 2 == 0 => json.replace(r#""summary":null"#, r#""summary":"\ud83d""#),
            _ => json.replace(r#""id":""#, r#""id":7,"ref":""#),
        }
    }
}
