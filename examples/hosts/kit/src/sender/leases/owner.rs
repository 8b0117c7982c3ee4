//! What carries the commands of [`Leases`] out.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;

use super::{Command, Event, LeaseRows, Leases};
use crate::program::shutdown::Shutdown;
use crate::rows::Done;
use crate::sender::{Clock, History, Load, Notes, Owned};

/// An owner of leases, and all that it works with.
#[derive(Debug)]
pub struct Owner<L, C, N> {
    pub leases: Leases,
    pub rows: L,
    pub clock: C,
    pub notes: N,
    pub owned: watch::Sender<Owned>,
    /// What the sender has in hand.
    pub load: Load,
    pub history: History,
}

impl<L: LeaseRows, C: Clock, N: Notes> Owner<L, C, N> {
    /// Renews, takes and releases leases until shutdown, and then gives back what is free. Once the sender has ended,
    /// it gives all back.
    pub async fn run(mut self, stop: &Shutdown, ended: impl Future) {
        let (mut event, mut is_stopping, mut ended) = (Event::Woken, false, pin!(ended));
        loop {
            let (until, done) = self.round(event).await;
            self.notes.tried("leases", &done);
            if done.is_ok() {
                self.notes.round("leases");
            }
            let Some(until) = until else { return };
            let wait = until.saturating_sub(self.clock.at().steady);
            event = tokio::select! {
                biased;
                _ = &mut ended, if is_stopping => Event::Ended,
                () = stop.requested(), if !is_stopping => {
                    is_stopping = true;
                    Event::Stopped
                }
                () = self.clock.sleep(wait) => Event::Woken,
            };
        }
    }

    /// Carries out what follows from an event, up to the next wait. Returns until when that is; `None` at the end.
    pub async fn round(&mut self, mut event: Event) -> (Option<Duration>, Done<()>) {
        let mut done = Ok(());
        loop {
            let mut answer = Ok(Event::Refused);
            let at = self.clock.at().steady;
            for command in self.leases.hear(event, at, |shard| self.load.is_free(shard)) {
                answer = match command {
                    Command::Own(owned) => {
                        self.notes.owns(owned.shards.len(), self.leases.taken());
                        self.owned.send_replace(owned);
                        continue;
                    }
                    Command::LookAgain(why) => {
                        self.history.look_again(why.as_deref());
                        continue;
                    }
                    Command::Compare => self.rows.agrees().await.map(Event::Compared),
                    Command::Renew(held) => self.rows.renew(&held).await.map(Event::Renewed),
                    Command::Claim(wanted) => self.rows.claim(wanted).await.map(Event::Claimed),
                    Command::Release(shards, leaves) => {
                        let released = self.rows.release(&shards, leaves).await;
                        released.map(|()| Event::Released(shards, leaves))
                    }
                    Command::Wait(until) => return (Some(until), done),
                    Command::End => return (None, done),
                };
            }
            (event, done) = match answer {
                Ok(event) => (event, done),
                Err(failure) => (Event::Refused, Err(failure)),
            };
        }
    }
}
