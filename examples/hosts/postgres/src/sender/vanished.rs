//! Senders that lost shards to this one: whether they have vanished, or could not renew in time.
//!
//! After an outage of the database every lease has ended. The first sender that is back takes the shards of those
//! that come back a moment later. So a sender that lost shards is judged some renewals later.

use std::collections::BTreeMap;

/// How many renewals of this sender, a second apart, a sender that lost shards has to come back: 10. Renewals
/// that fail do not count: then nobody renews.
const RENEWALS: u8 = 10;

/// The senders that lost shards to this one, and are not judged yet.
#[derive(Debug, Default)]
pub(super) struct Absent(BTreeMap<String, Absence>);

#[derive(Debug)]
struct Absence {
    shards: usize,
    /// How many renewals are left.
    left: u8,
}

impl Absent {
    /// Notes a shard that a sender lost to this one.
    pub(super) fn lost(&mut self, sender: String) {
        let absence = self.0.entry(sender).or_insert(Absence { shards: 0, left: RENEWALS });
        absence.shards = absence.shards.saturating_add(1);
    }

    /// Notes a renewal of this sender, and returns the senders that have vanished, each with the number of shards
    /// that it lost. `living` has the senders that live.
    pub(super) fn renewed(&mut self, living: &[String]) -> Vec<(String, usize)> {
        let mut vanished = Vec::new();
        self.0.retain(|sender, absence| {
            absence.left = absence.left.saturating_sub(1);
            if absence.left == 0 && !living.contains(sender) {
                vanished.push((sender.clone(), absence.shards));
            }
            absence.left > 0
        });
        vanished
    }
}

#[cfg(test)]
mod tests {
    use super::{Absent, RENEWALS};

    #[test]
    fn who_comes_back_has_not_vanished() {
        let sender = |name: &str| name.to_owned();
        let mut absent = Absent::default();
        for _ in 0..3 {
            absent.lost(sender("dead"));
        }
        absent.lost(sender("late"));
        let first = [sender("late")];
        for renewal in 1..RENEWALS {
            // Its lease of before may still last.
            assert_eq!(absent.renewed(&[sender("dead")]), [], "{renewal}");
        }
        assert_eq!(absent.renewed(&first), [(sender("dead"), 3)]);
        assert_eq!(absent.renewed(&[]), [], "each is judged once");

        // It may lose shards again, and is judged again.
        absent.lost(sender("late"));
        let judged = (0..RENEWALS).flat_map(|_| absent.renewed(&[])).collect::<Vec<_>>();
        assert_eq!(judged, [(sender("late"), 1)]);
    }
}
