//! The world of the tour: a service in memory, and the time.

use std::error::Error;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use call_assistant::id::{AccountId, CallId, CredentialId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::client::{Client, ClientError, Flow, FlowError, FlowTask, Retry, Step};
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::testing::Service;
use call_assistant::rest::{ApiKey, ApiRequest, BaseUrl, Mode, Scope};
use call_assistant::{Product, Timestamp};

/// A service, the one account whose customer we follow, and what time it is.
pub(crate) struct World {
    service: Service,
    /// Stands for the random source, so that every tour is the same.
    serial: u8,
}

impl Deref for World {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Service {
        &mut self.service
    }
}

impl World {
    /// Creates a service and its customer.
    ///
    /// # Errors
    /// A text in here is not what it should be.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let now: Timestamp = "2026-01-05T09:00:00Z".parse()?;
        let key = ApiKey::from_random(&Product::default(), Mode::Live, [0; 32]);
        Ok(Self { service: Service::new(&key, now), serial: 0 })
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now.saturating_add(span);
    }

    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        self.serial = self.serial.wrapping_add(1);
        [self.serial; N]
    }

    /// Makes this the account that is asked for.
    pub(crate) fn enter(&mut self, id: &str) -> Result<AccountId, Box<dyn Error>> {
        let id = AccountId::parse(id)?;
        self.account = Account::new(id.clone(), "Europe/Oslo");
        self.status.account_id = id.clone();
        Ok(id)
    }

    /// Makes a new key of the account. The service keeps its digest; the client is all that ever sees the
    /// secret.
    pub(crate) fn make_key(
        &mut self,
        mode: Mode,
        scopes: &[Scope],
    ) -> Result<Client, Box<dyn Error>> {
        let key = ApiKey::from_random(&Product::default(), mode, self.random());
        let id = CredentialId::from_random(self.random());
        let stored = StoredKey::new(id, self.account.id.clone(), &key, self.now);
        self.keys.push(stored.with_scopes(scopes.to_vec()));
        Ok(Client::from_parts(BaseUrl::parse("https://api.example.com")?, key))
    }

    pub(crate) fn revoke(&mut self, client: &Client) {
        let (now, digest) = (self.now, client.key().digest());
        for key in self.keys.iter_mut().filter(|key| key.digest == digest) {
            key.revoke(now);
        }
    }

    /// Makes a call that ended just now.
    pub(crate) fn new_call(&mut self, id: &str) -> Result<Call, Box<dyn Error>> {
        let started_at = self.now.saturating_sub(Duration::from_secs(95));
        let mut call = Call::new(CallId::parse(id)?, started_at, self.now);
        call.ended_at = Some(self.now);
        call.duration_seconds = Some(95);
        call.summary = Some("Asked for an appointment on Friday.".to_owned());
        Ok(call)
    }

    /// Asks once, as the customer.
    pub(crate) fn ask<R: ApiRequest>(
        &mut self,
        client: &Client,
        operation: R,
    ) -> Result<R::Response, FlowError> {
        let flow = client.fetch(operation);
        self.run(&mut flow.with_retry(Retry::new().with_tries(1)), |_, never| match *never {})
    }

    /// Drives a flow to its end, in no time but that of the world.
    pub(crate) fn run<T: FlowTask>(
        &mut self,
        flow: &mut Flow<T>,
        mut store: impl FnMut(&mut Self, &T::Batch),
    ) -> Result<T::Output, FlowError> {
        loop {
            match flow.next([0; 8], self.now) {
                Step::Send { request, ticket, .. } => {
                    let answer: Result<_, ClientError> = Ok(self.respond(&request));
                    flow.report(ticket, answer, self.now);
                }
                Step::Wait(until) => self.now = until,
                Step::Store(batch) => {
                    store(self, batch);
                    flow.stored();
                }
                Step::Done(result) => return result,
            }
        }
    }
}
