//! Accounts, what each has in flight, and which of them wait for a turn.

use alloc::vec::Vec;

use super::slab::index;
use super::slab::{IndexList, Links};

/// All accounts, by their numbers.
pub(super) struct Accounts {
    /// The largest number of second and further attempts of an account.
    most_further: u32,
    /// Apart from the rest, because while nothing is in a list nothing else is read.
    held: Vec<Held>,
    table: Vec<Account>,
    /// The accounts that wait, by [`Part`].
    waiting: [Waiting; 2],
}

/// The number of attempts that an account has in flight.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    pub(super) all: u32,
    /// The second and further attempts of their endpoints among those.
    pub(super) further: u32,
}

/// The endpoints of an account that wait, and its place among the accounts that wait.
#[derive(Clone, Copy, Default)]
struct Account {
    /// The endpoints, by [`Room`].
    rooms: Rooms,
    /// The place among the accounts, by [`Part`].
    links: [Links; 2],
}

/// The endpoints of an account that wait, by [`Room`].
pub(super) type Rooms = [IndexList; 3];

/// The kind of room that an endpoint waits for, in the order in which an account gives them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// The part of slow endpoints.
    Slow,
    /// Any, for an endpoint that has nothing in flight.
    Any,
    /// The part of second and further attempts.
    Further,
}

/// The kind of turn that an account waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A turn of its slow endpoints.
    Slow,
    /// A turn of its others.
    Others,
}

/// The accounts that wait for one part.
#[derive(Default)]
struct Waiting {
    /// A queue for each number of attempts in flight. Who has waited longest is first.
    lists: Vec<IndexList>,
    /// A number of attempts: no account waits that has fewer in flight.
    lowest: usize,
    len: usize,
}

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "each account is in the table before it is used"
)]
impl Accounts {
    pub(super) fn new(most_further: u32) -> Self {
        let waiting = Default::default();
        Self { most_further, held: Vec::new(), table: Vec::new(), waiting }
    }

    /// Makes room for an account number.
    pub(super) fn reach(&mut self, account: u32) {
        if index(account) >= self.table.len() {
            self.held.resize(index(account) + 1, Held::default());
            self.table.resize(index(account) + 1, Account::default());
        }
    }

    pub(super) fn held(&mut self, account: u32) -> &mut Held {
        &mut self.held[index(account)]
    }

    pub(super) fn has_further_room(&self, held: Held) -> bool {
        held.further < self.most_further
    }

    pub(super) fn nobody_waits(&self) -> bool {
        self.waiting.iter().all(|waiting| waiting.len == 0)
    }

    /// Returns the next endpoint of this part: of the first account that has at most so many in flight.
    pub(super) fn first(&mut self, part: Part, most: u32) -> Option<u32> {
        let waiting = &mut self.waiting[part.index()];
        if waiting.len == 0 {
            return None;
        }
        while waiting.lists[waiting.lowest].is_empty() {
            waiting.lowest += 1;
        }
        let account = waiting.lists[waiting.lowest].first;
        let [slow, any, further] = self.table[index(account)].rooms;
        let list = match part {
            Part::Slow => slow,
            Part::Others if any.is_empty() => further,
            Part::Others => any,
        };
        (waiting.lowest <= index(most)).then_some(list.first)
    }

    /// Changes what an account has in flight and which of its endpoints wait. If it waits and has
    /// another number in flight than before, it goes behind those that have as many.
    pub(super) fn change(&mut self, account: u32, change: impl FnOnce(&mut Held, &mut Rooms)) {
        let before = self.place(account);
        change(&mut self.held[index(account)], &mut self.table[index(account)].rooms);
        let after = self.place(account);
        for part in [Part::Slow, Part::Others] {
            let at = part.index();
            if before[at] == after[at] {
                continue;
            }
            let waiting = &mut self.waiting[at];
            if let Some(held) = before[at] {
                waiting.lists[held].remove(account, &mut self.table, |of| &mut of.links[at]);
                waiting.len -= 1;
            }
            if let Some(held) = after[at] {
                if held >= waiting.lists.len() {
                    waiting.lists.resize(held + 1, IndexList::default());
                }
                waiting.lists[held].push(account, &mut self.table, |of| &mut of.links[at]);
                waiting.lowest = waiting.lowest.min(held);
                waiting.len += 1;
            }
        }
    }

    /// Returns the number of the queue in which an account waits for each part.
    fn place(&self, account: u32) -> [Option<usize>; 2] {
        let held = self.held[index(account)];
        let [slow, any, further] = self.table[index(account)].rooms.map(|list| !list.is_empty());
        let others = any || further && self.has_further_room(held);
        [slow, others].map(|waits| waits.then_some(index(held.all)))
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

impl Room {
    pub(super) fn index(self) -> usize {
        match self {
            Self::Slow => 0,
            Self::Any => 1,
            Self::Further => 2,
        }
    }
}
