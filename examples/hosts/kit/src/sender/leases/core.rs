//! The leases as a machine: what happened goes in, what to do comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::time::Duration;

use super::{Claim, Command, Event, LEASE, Renewal, TRUSTED};
use crate::log;
use crate::rows::Shards;
use crate::sender::Owned;

/// How often leases are renewed.
const RENEW: Duration = Duration::from_secs(1);

/// How often to look, at the end, whether anything of a shard is still in flight.
const FREED: Duration = Duration::from_millis(50);

/// How long a shard that is to be let go waits for what is in flight. Nothing of it begins meanwhile,
/// so an endpoint that is silent must not hold up the others of its shard: what is still in flight
/// then is sent again by the next owner, and the first result that is stored counts.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long after its lease a sender's row stays: one hour. A sender that was away for longer finds none.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// How many renewals of this sender, a second apart, a sender that lost shards to it has to come back: 10. After an
/// outage the first sender that is back takes the shards of those that come back a moment later. Renewals that fail do
/// not count: then nobody renews.
const JUDGED: u8 = 10;

/// The decisions about the leases of a sender.
#[derive(Debug, Default)]
pub struct Leases {
    sender: String,
    /// How many shards there are.
    all: usize,
    owned: Owned,
    /// Shards that are to be let go, with their epochs, and until when that can wait.
    leaving: BTreeMap<u16, (i64, Duration)>,
    /// The result of the last renewal. `None`: the others do not count on this sender.
    last: Option<Renewal>,
    /// Senders that lost shards to this one: how many shards, and how many renewals are left.
    absent: BTreeMap<String, (usize, u8)>,
    taken: usize,
    stage: Stage,
    /// When the round under way began, and when its leases were to be renewed.
    began: Duration,
    renewed: Duration,
}

/// The stages of a sender on its way to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Running,
    Stopping,
    Ended,
}

impl Leases {
    /// Creates a sender with this name, without shards. The first event that it hears is [`Event::Woken`].
    pub fn new(sender: String, all: NonZeroU16) -> Self {
        Self { sender, all: all.get().into(), ..Self::default() }
    }

    /// Returns how many shards senders that have vanished lost to this one.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Hears what happened at this steady instant, and returns what is to be done. The event of the last command is
    /// heard next. `is_free` tells whether nothing of a shard is in hand.
    pub fn hear(
        &mut self,
        event: Event,
        at: Duration,
        is_free: impl Fn(u16) -> bool,
    ) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Woken if self.stage == Stage::Running => {
                self.began = at;
                return vec![Command::Compare];
            }
            Event::Woken => {}
            Event::Compared(true) => {
                self.renewed = at;
                return vec![Command::Renew(self.held())];
            }
            // Deliveries that wait can be sent later.
            Event::Compared(false) => out.push(self.let_all_go(at.saturating_add(PATIENCE))),
            Event::Renewed(renewal) => {
                let wanted = self.renewed(renewal, &mut out);
                if wanted > 0 {
                    out.push(Command::Claim(wanted));
                    return out;
                }
            }
            Event::Claimed(claims) => out.push(self.claimed(claims)),
            Event::Released(shards, leaves) => {
                self.leaving.retain(|shard, _| !shards.contains_key(shard));
                self.last.take_if(|_| leaves);
                return vec![self.rest(at, FREED)];
            }
            Event::Refused => return vec![self.rest(at, RENEW)],
            // What is in flight would be sent again by the next owner: its shards stay until their leases end.
            Event::Stopped => {
                self.stage = Stage::Stopping;
                out.push(self.let_all_go(at.saturating_add(LEASE)));
            }
            // If they are not given back, its leases end by themselves.
            Event::Ended => {
                self.stage = Stage::Ended;
                return vec![self.let_all_go(at), Command::Release(self.held(), true)];
            }
        }
        let leaving = self.leaving.iter();
        let free = leaving.filter(|(shard, (_, until))| is_free(**shard) || *until < at);
        let free: Shards = free.map(|(shard, (epoch, _))| (*shard, *epoch)).collect();
        // A sender that begins nothing leaves, once.
        let leaves = self.owned.until.is_zero() && self.last.is_some();
        out.push(match free.is_empty() && !leaves {
            true => self.rest(at, FREED),
            false => Command::Release(free, leaves),
        });
        out
    }

    /// Returns all shards whose leases last.
    fn held(&self) -> Shards {
        let leaving = self.leaving.iter().map(|(shard, (epoch, _))| (*shard, *epoch));
        self.owned.shards.clone().into_iter().chain(leaving).collect()
    }

    /// Hears that leases are renewed, lets go what is too much, and returns how many shards are missing.
    fn renewed(&mut self, now: Renewal, out: &mut Vec<Command>) -> usize {
        out.extend(self.last.as_ref().and_then(|last| compared(&now, last)));
        self.absent.retain(|sender, (shards, left)| {
            *left = left.saturating_sub(1);
            if *left == 0 && !now.others.contains(sender) {
                self.taken = self.taken.saturating_add(*shards);
                log::warn!(sender = sender.as_str(), shards = *shards, "a sender has vanished");
            }
            *left > 0
        });
        let share = self.all.div_ceil(now.live.max(1));
        let mut shards = self.owned.shards.clone();
        shards.retain(|shard, _| now.kept.contains(shard));
        self.leaving.retain(|shard, _| now.kept.contains(shard));
        while shards.len() > share
            && let Some((shard, epoch)) = shards.pop_last()
        {
            self.leaving.insert(shard, (epoch, self.renewed.saturating_add(PATIENCE)));
        }
        self.last = Some(now);
        let wanted = share.saturating_sub(shards.len());
        out.push(self.own(Owned { shards, until: self.renewed.saturating_add(TRUSTED) }, 0));
        wanted
    }

    fn claimed(&mut self, claims: Vec<Claim>) -> Command {
        let (mut owned, mut taken) = (self.owned.clone(), 0_usize);
        for Claim { shard, epoch, before } in claims {
            self.leaving.remove(&shard);
            owned.shards.insert(shard, epoch);
            if let Some(other) = before.filter(|other| *other != self.sender) {
                taken = taken.saturating_add(1);
                let (shards, _) = self.absent.entry(other).or_insert((0, JUDGED));
                *shards = shards.saturating_add(1);
            }
        }
        self.own(owned, taken)
    }

    /// Begins nothing more, and lets all shards go, those of what is in flight at this instant at the latest.
    fn let_all_go(&mut self, until: Duration) -> Command {
        let owned = self.owned.shards.iter();
        self.leaving.extend(owned.map(|(shard, epoch)| (*shard, (*epoch, until))));
        self.own(Owned::default(), 0)
    }

    /// Returns the command to wait for the next round; at the end for so long.
    fn rest(&self, at: Duration, wait: Duration) -> Command {
        match self.stage {
            Stage::Running => Command::Wait(self.began.saturating_add(RENEW).max(at)),
            Stage::Stopping => Command::Wait(at.saturating_add(wait)),
            Stage::Ended => Command::End,
        }
    }

    /// Lets the sender own this, and logs which shards have come and gone, and how many of them another had not given
    /// back.
    fn own(&mut self, owned: Owned, taken: usize) -> Command {
        let [before, now] =
            [&self.owned, &owned].map(|owned| owned.shards.keys().collect::<BTreeSet<_>>());
        if before != now {
            let listed = |one: &BTreeSet<&u16>, other| {
                let listed: Vec<String> = one.difference(other).map(|it| it.to_string()).collect();
                (!listed.is_empty()).then(|| listed.join(","))
            };
            log::info!(
                sender = self.sender.as_str(),
                owned = now.len(),
                gained = listed(&now, &before),
                lost = listed(&before, &now),
                taken_over = taken,
                "shards",
            );
        }
        self.owned = owned.clone();
        Command::Own(owned)
    }
}

/// Compares a renewal with the one before. Where they are not of one history, everything is found again.
fn compared(now: &Renewal, last: &Renewal) -> Option<Command> {
    let went_back = match now.count {
        // Others have removed its row, so its count is gone.
        1 if now.at.since(last.at) >= FORGOTTEN => {
            log::warn!("this sender has renewed no lease since {}", last.at);
            None
        }
        // What this sender had written is not there.
        count if count <= last.count => Some(format!(
            "the leases of this sender were renewed {} times until {}; the database now says {} times until {}",
            last.count, last.at, now.count, now.at
        )),
        _ if now.timeline != last.timeline => {
            let (is, was) = (&now.timeline, &last.timeline);
            log::warn!("another server leads: timeline {is} after {was}");
            None
        }
        _ => return None,
    };
    Some(Command::LookAgain(went_back))
}
