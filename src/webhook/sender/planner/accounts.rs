//! Accounts, what each has in flight, and which of them wait for a turn.

use alloc::vec::Vec;

use super::line::{Line, NONE};
use super::slots::index;

/// All accounts, by their numbers.
#[derive(Default)]
pub(super) struct Accounts {
    /// Apart from the rest, because while nobody waits nothing else is looked at.
    held: Vec<Held>,
    table: Vec<Account>,
    /// Those that wait, by [`Part`].
    waiting: [Waiting; 2],
}

/// What an account has in flight.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    pub(super) all: u32,
    /// Of those, the second and further attempts of their endpoints.
    pub(super) further: u32,
}

/// Who and what of an account waits.
#[derive(Clone, Copy, Default)]
struct Account {
    /// Its endpoints that have a line, by the kind of room they wait for; in each at most once. An
    /// entry may be outdated, but an endpoint is always in the line where it belongs.
    rooms: [Line; 3],
    neighbours: [Neighbours; 2],
}

/// What an account waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A turn of its slow endpoints.
    Slow,
    /// A turn of its others.
    Others,
}

/// The accounts that wait for one part, by how many attempts each has in flight. Of those that
/// have as many, who has waited longest is first.
#[derive(Default)]
struct Waiting {
    /// The first and the last account, by attempts in flight.
    ends: Vec<[u32; 2]>,
    /// Nobody waits who has fewer in flight.
    lowest: usize,
    len: usize,
}

/// The accounts before and behind one that waits. [`NONE`] at an end.
#[derive(Clone, Copy)]
struct Neighbours {
    before: u32,
    behind: u32,
}

/// The neighbour of an account that does not wait.
const ABSENT: u32 = NONE - 1;

impl Default for Neighbours {
    fn default() -> Self {
        Self { before: ABSENT, behind: ABSENT }
    }
}

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "each account is in the table before it is used, and its neighbours are"
)]
impl Accounts {
    /// Makes room for an account number.
    pub(super) fn reach(&mut self, account: u32) {
        if index(account) >= self.table.len() {
            self.held.resize(index(account) + 1, Held::default());
            self.table.resize(index(account) + 1, Account::default());
        }
    }

    pub(super) fn held(&self, account: u32) -> Held {
        self.held[index(account)]
    }

    pub(super) fn rooms(&mut self, account: u32) -> &mut [Line; 3] {
        &mut self.table[index(account)].rooms
    }

    pub(super) fn nobody_waits(&self) -> bool {
        self.waiting.iter().all(|waiting| waiting.len == 0)
    }

    /// The first of those that wait for this part and have at most so many in flight.
    pub(super) fn first(&mut self, part: Part, most: u32) -> Option<u32> {
        let waiting = &mut self.waiting[part.index()];
        if waiting.len == 0 {
            return None;
        }
        while waiting.ends[waiting.lowest][0] == NONE {
            waiting.lowest += 1;
        }
        (waiting.lowest <= index(most)).then(|| waiting.ends[waiting.lowest][0])
    }

    /// Changes what an account has in flight. If it waits, it goes behind those that have as many.
    pub(super) fn hold(&mut self, account: u32, held: Held) {
        if self.nobody_waits() {
            self.held[index(account)] = held;
            return;
        }
        let waits = [Part::Slow, Part::Others].map(|part| (part, self.waits(account, part)));
        for (part, _) in waits {
            self.set_waiting(account, part, false);
        }
        self.held[index(account)] = held;
        for (part, waits) in waits {
            self.set_waiting(account, part, waits);
        }
    }

    /// Makes an account wait, or wait no more. One that waits already keeps its place.
    pub(super) fn set_waiting(&mut self, account: u32, part: Part, waits: bool) {
        if waits != self.waits(account, part) {
            if waits { self.push(account, part) } else { self.remove(account, part) }
        }
    }

    fn waits(&self, account: u32, part: Part) -> bool {
        self.table[index(account)].neighbours[part.index()].before != ABSENT
    }

    fn neighbours(&mut self, account: u32, part: Part) -> &mut Neighbours {
        &mut self.table[index(account)].neighbours[part.index()]
    }

    fn push(&mut self, account: u32, part: Part) {
        let held = index(self.held(account).all);
        let waiting = &mut self.waiting[part.index()];
        if held >= waiting.ends.len() {
            waiting.ends.resize(held + 1, [NONE; 2]);
        }
        let [first, last] = &mut waiting.ends[held];
        let before = core::mem::replace(last, account);
        if *first == NONE {
            *first = account;
        }
        waiting.lowest = waiting.lowest.min(held);
        waiting.len += 1;
        *self.neighbours(account, part) = Neighbours { before, behind: NONE };
        if before != NONE {
            self.neighbours(before, part).behind = account;
        }
    }

    fn remove(&mut self, account: u32, part: Part) {
        let held = index(self.held(account).all);
        let Neighbours { before, behind } = core::mem::take(self.neighbours(account, part));
        match before {
            NONE => self.waiting[part.index()].ends[held][0] = behind,
            before => self.neighbours(before, part).behind = behind,
        }
        match behind {
            NONE => self.waiting[part.index()].ends[held][1] = before,
            behind => self.neighbours(behind, part).before = before,
        }
        self.waiting[part.index()].len -= 1;
    }
}

impl Part {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Slow => Self::Others,
            Self::Others => Self::Slow,
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Slow => 0,
            Self::Others => 1,
        }
    }
}
