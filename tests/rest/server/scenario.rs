//! A service in memory, with everything in order until a test says otherwise.

use call_assistant::Product;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, CredentialId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::server::AccountStatus;
use call_assistant::rest::server::Entitlements;
use call_assistant::rest::server::RateWindows;
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::server::{Admitted, Authorized, CallRow, Received, RequestHead};
use call_assistant::rest::server::{CursorKey, CursorKeys};
use call_assistant::rest::server::{Rejection, RejectionReason};
use call_assistant::rest::{ApiError, ErrorCode};
use call_assistant::rest::{ApiKey, Mode, Scope};
use http::Response;

use crate::second;

pub(crate) type Answered = Result<Response<Vec<u8>>, Rejection>;

/// One account with one key, its calls, and the request to be made.
pub(crate) struct Scenario {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) authorization: Vec<Vec<u8>>,
    pub(crate) key: StoredKey,
    /// What the host finds for the digest, whatever it is.
    pub(crate) found: bool,
    pub(crate) rates: RateWindows,
    pub(crate) standing: AccountStatus,
    pub(crate) account: Account,
    pub(crate) calls: Vec<CallRow>,
    pub(crate) cursors: CursorKeys,
    pub(crate) now: Timestamp,
}

pub(crate) fn account_id() -> AccountId {
    AccountId::parse("acct_1").unwrap()
}

pub(crate) fn api_key() -> ApiKey {
    ApiKey::from_random(&Product::default(), Mode::Live, [7; 32])
}

pub(crate) use crate::request_id;

/// The account's calls `call_1` to `call_N`, newest first.
pub(crate) fn rows(count: u64) -> Vec<CallRow> {
    let row = |number| {
        let id = CallId::parse(&format!("call_{number}")).unwrap();
        let call = Call::new(id, second(number), second(number + 1));
        CallRow { account_id: account_id(), mode: Mode::Live, call }
    };
    (1..=count).rev().map(row).collect()
}

/// `GET path?query` of a good credential.
pub(crate) fn get(target: &str) -> Scenario {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (target, None),
    };
    let key =
        StoredKey::new(CredentialId::parse("cred_1").unwrap(), account_id(), &api_key(), second(0))
            .with_scopes([Scope::AccountRead, Scope::CallsRead]);
    Scenario {
        method: "GET",
        path: path.into(),
        query,
        authorization: vec![format!("Bearer {}", api_key().reveal()).into_bytes()],
        key,
        found: true,
        rates: RateWindows::new(10, [0; 16]),
        standing: AccountStatus {
            account_id: account_id(),
            closing: false,
            subscribed: true,
            plan: Entitlements::pro().with_public_api(),
        },
        account: Account::new(account_id(), "Europe/Oslo"),
        calls: rows(3),
        cursors: CursorKeys::new(CursorKey::new(1, [0x7c; 32])),
        now: second(100),
    }
}

impl Scenario {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        let head = RequestHead::new(self.method, &self.path, self.query.as_deref());
        self.authorization.iter().fold(head, |head, value| head.authorization(value))
    }

    pub(crate) fn admitted(&mut self) -> Result<Admitted, Rejection> {
        let received = Received::new(&self.head(), request_id())?;
        let key = received.digest().and(Some(&self.key)).filter(|_| self.found);
        received.identify(key, self.now)?.admit_in(&mut self.rates, self.now)
    }

    pub(crate) fn authorized(&mut self) -> Result<Authorized, Rejection> {
        self.admitted()?.authorize(&self.standing, &self.cursors)
    }

    /// Goes all the way, with a host that does its part.
    pub(crate) fn serve(&mut self) -> Answered {
        match self.authorized()? {
            Authorized::Account(granted) => granted.answer(self.account.clone()),
            Authorized::Calls(granted) => {
                let query = granted.query();
                let rows = self.calls.iter().filter(|row| query.matches(row));
                let rows = rows.take(query.page().fetch()).cloned().collect();
                granted.answer(rows, &self.cursors)
            }
            Authorized::Call(granted) => {
                let row = self.calls.iter().find(|row| granted.query().matches(row));
                granted.answer(row.cloned())
            }
        }
    }

    /// The answer as it is sent.
    pub(crate) fn answer(&mut self) -> Response<Vec<u8>> {
        self.serve().unwrap_or_else(Rejection::into_response)
    }

    /// The cause for the log and the code for the caller.
    pub(crate) fn refused(&mut self) -> (RejectionReason, ErrorCode) {
        let refusal = self.serve().unwrap_err();
        let cause = refusal.cause().clone();
        (cause, checked(refusal).code)
    }
}

/// HTTP-2, HTTP-3, ERR-1: what holds for every refusal, and its envelope.
pub(crate) fn checked(refusal: Rejection) -> ApiError {
    assert_eq!(refusal.request_id(), &request_id());
    let (code, status) = (refusal.code(), refusal.status());
    let (head, body) = refusal.into_response().into_parts();
    assert_eq!(head.status, status);
    assert_eq!(code.status(), Some(status));
    assert_eq!(head.headers["content-type"], "application/json");
    assert_eq!(head.headers["x-request-id"], request_id().as_str());
    let error = ApiError::from_json(&body).unwrap();
    assert_eq!(error.code, code);
    assert_eq!(error.error_type, code.error_type());
    assert_eq!(error.request_id, Some(request_id()));
    error
}
