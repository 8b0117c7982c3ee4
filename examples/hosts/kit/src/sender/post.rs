//! One attempt over the network.

use std::time::Duration;

use call_assistant::webhook::sender::Outcome;
use http_body_util::Full;

use super::{Begun, Clock, Slot};
use crate::post::signed::Signed;
use crate::post::{Client, Sent};
use crate::program::scale::Scale;

/// What makes attempts.
pub trait Post: Clone + Send + Sync + 'static {
    /// Makes an attempt. The slot is held by whatever is left of it.
    fn post(&self, begun: &Begun, slot: &Slot) -> impl Future<Output = Sent> + Send;
}

/// What makes attempts as the specification says.
#[derive(Clone, Debug)]
pub struct Poster<C> {
    pub client: Client,
    pub scale: Scale,
    pub clock: C,
}

impl<C: Clock> Post for Poster<C> {
    async fn post(&self, begun: &Begun, slot: &Slot) -> Sent {
        // What is stored and planned is by the store's clock; receivers compare with their own.
        let machine = self.clock.machine();
        let request = begun
            .opened
            .destination
            .as_ref()
            .and_then(|it| Some((it, begun.attempt.request(it, &begun.body, machine).ok()?)));
        let Some((destination, request)) = request else {
            return Sent::without_answer(Outcome::Unsent, begun.at.now);
        };
        let waited = self.clock.at().steady.saturating_sub(begun.at.steady);
        let now = begun.at.now.saturating_add(waited);
        let patience = self.patience(begun);
        let request = request.map(Full::from);
        let sent = self.client.send(destination.target(), request, patience, now, slot).await;
        Sent { signed: Some(Signed::new(&begun.opened.signer, machine)), ..sent }
    }
}

impl<C> Poster<C> {
    /// Returns how long an attempt may take.
    pub fn patience(&self, begun: &Begun) -> Duration {
        self.scale.timeout(begun.attempt.deadline().since(begun.attempt.began_at()))
    }
}
