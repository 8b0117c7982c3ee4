//! The world of the tour: a service with everything in memory, and the time.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use call_assistant::Product;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::client::{Client, ClientError};
use call_assistant::rest::server::AccountStatus;
use call_assistant::rest::server::CursorKeys;
use call_assistant::rest::server::RateWindows;
use call_assistant::rest::server::Rejection;
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::server::{Authorized, CallRow, Received, RequestHead};
use call_assistant::rest::{ApiKey, Mode, Scope};
use call_assistant::rest::{ApiRequest, BaseUrl};
use http::header::HOST;
use http::{HeaderValue, Request, Response};

/// A service, the one account whose customer we follow, and what time it is.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    keys: HashMap<[u8; 32], StoredKey>,
    accounts: HashMap<AccountId, (Account, AccountStatus)>,
    rates: RateWindows,
    calls: Vec<CallRow>,
    cursors: CursorKeys,
    /// Whether the store is out of order.
    pub(crate) broken: bool,
    /// Stands for the random source, so that every tour is the same.
    serial: u8,
}

impl World {
    /// # Errors
    /// A text in here is not what it should be.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            now: "2026-01-05T09:00:00Z".parse()?,
            keys: HashMap::new(),
            accounts: HashMap::new(),
            rates: RateWindows::new(1_000),
            calls: Vec::new(),
            cursors: CursorKeys::new(1, [0x7c; 32]),
            broken: false,
            serial: 0,
        })
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now.saturating_add(span);
    }

    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        self.serial = self.serial.wrapping_add(1);
        [self.serial; N]
    }

    /// An account in good order.
    pub(crate) fn open_account(&mut self, id: &str) -> Result<AccountId, Box<dyn Error>> {
        let id = AccountId::parse(id)?;
        let status = AccountStatus {
            account_id: id.clone(),
            closing: false,
            subscribed: true,
            api_in_plan: true,
        };
        self.accounts.insert(id.clone(), (Account::new(id.clone(), "Europe/Oslo"), status));
        Ok(id)
    }

    pub(crate) fn status(&mut self, account: &AccountId) -> Option<&mut AccountStatus> {
        self.accounts.get_mut(account).map(|(_, status)| status)
    }

    /// A new key. The service keeps its digest; the client is all that ever sees the secret.
    pub(crate) fn make_key(
        &mut self,
        account: &AccountId,
        mode: Mode,
        scopes: &[Scope],
    ) -> Result<Client, Box<dyn Error>> {
        let key = ApiKey::from_random(&Product::default(), mode, self.random());
        let id = CredentialId::from_random(self.random());
        let stored =
            StoredKey::new(id, account.clone(), &key, self.now).with_scopes(scopes.to_vec());
        self.keys.insert(*stored.digest.as_bytes(), stored);
        Ok(Client::from_parts(BaseUrl::parse("https://api.example.com")?, key))
    }

    pub(crate) fn revoke(&mut self, client: &Client) {
        if let Some(key) = self.keys.get_mut(client.key().digest().as_bytes()) {
            key.revoke(self.now);
        }
    }

    /// The assistant has answered a call, and its record is written now.
    pub(crate) fn record(&mut self, account: &AccountId, call: &Call) {
        let call = call.clone();
        self.calls.push(CallRow { account_id: account.clone(), mode: Mode::Live, call });
        self.calls
            .sort_by(|a, b| (b.call.started_at, &b.call.id).cmp(&(a.call.started_at, &a.call.id)));
    }

    /// A call that ended just now.
    pub(crate) fn new_call(&mut self, id: &str) -> Result<Call, Box<dyn Error>> {
        let started_at = self.now.saturating_sub(Duration::from_secs(95));
        let mut call = Call::new(CallId::parse(id)?, started_at, self.now);
        call.ended_at = Some(self.now);
        call.duration_seconds = Some(95);
        call.summary = Some("Asked for an appointment on Friday.".to_owned());
        Ok(call)
    }

    pub(crate) fn count(&self, account: &AccountId) -> usize {
        self.calls.iter().filter(|row| row.account_id == *account).count()
    }

    /// The customer asks, the service answers, the customer reads.
    pub(crate) fn ask<E: ApiRequest>(
        &mut self,
        client: &Client,
        operation: &E,
    ) -> Result<Result<E::Response, ClientError>, Box<dyn Error>> {
        let request = client.request(operation)?;
        let (head, body) = self.answer(&request).into_parts();
        Ok(client.read(operation, &head, &body))
    }

    /// What the service answers to any request.
    pub(crate) fn answer(&mut self, request: &Request<()>) -> Response<Vec<u8>> {
        let (mut parts, ()) = request.clone().into_parts();
        // As every HTTP client does.
        parts.headers.insert(HOST, HeaderValue::from_static("api.example.com"));
        self.serve(&RequestHead::from_parts(&parts)).unwrap_or_else(Rejection::into_response)
    }

    fn serve(&mut self, head: &RequestHead<'_>) -> Result<Response<Vec<u8>>, Rejection> {
        let received = Received::new(head, RequestId::from_random(self.random()))?;
        if self.broken {
            return Err(received.internal_error());
        }
        let mut key = received.digest().and_then(|digest| self.keys.get_mut(digest.as_bytes()));
        let identified = received.identify(key.as_deref(), self.now)?;
        if let Some(key) = &mut key {
            key.last_used_at = Some(identified.used_at());
        }
        let admitted = identified.admit_in(&mut self.rates, self.now)?;
        let Some((account, status)) = self.accounts.get(admitted.account_id()) else {
            return Err(admitted.internal_error());
        };
        match admitted.authorize(status, &self.cursors)? {
            Authorized::Account(granted) => granted.answer(account.clone()),
            Authorized::Calls(granted) => {
                let query = granted.query();
                let rows = self.calls.iter().filter(|row| query.matches(row));
                let rows = rows.take(query.fetch()).cloned().collect();
                granted.answer(rows)
            }
            Authorized::Call(granted) => {
                let row = self.calls.iter().find(|row| granted.query().matches(row));
                granted.answer(row.cloned())
            }
            other => Err(other.internal_error()),
        }
    }
}
