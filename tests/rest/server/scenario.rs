//! A service in memory, with everything in order until a test says otherwise.

use call_assistant::id::{AccountId, CallId, CredentialId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::server::{
    AccountStatus, Admitted, Authorized, CallQuery, CallRow, CallsQuery, CursorKeys, Identified,
    RateWindows, Received, Rejection, RejectionReason, RequestHead, StoredKey,
};
use call_assistant::rest::{ApiError, ApiKey, ErrorCode, Mode, Scope};
use call_assistant::{Product, Timestamp};
use http::Response;

use crate::second;

pub(crate) type Answered = Result<Response<Vec<u8>>, Rejection>;

/// One account with one key, its calls, and the request to be made.
pub(crate) struct Scenario {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) host: Vec<Vec<u8>>,
    pub(crate) authorization: Vec<Vec<u8>>,
    pub(crate) key: StoredKey,
    /// What the host finds for the digest, whatever it is.
    pub(crate) found: bool,
    pub(crate) rates: RateWindows,
    pub(crate) status: AccountStatus,
    pub(crate) account: Account,
    pub(crate) calls: Vec<CallRow>,
    pub(crate) cursors: CursorKeys,
    pub(crate) now: Timestamp,
}

pub(crate) fn account_id() -> AccountId {
    AccountId::parse("acct_1").unwrap()
}

pub(crate) fn other_account_id() -> AccountId {
    AccountId::parse("acct_2").unwrap()
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
        host: vec![b"api.example.com".to_vec()],
        authorization: vec![format!("Bearer {}", api_key().reveal()).into_bytes()],
        key,
        found: true,
        rates: RateWindows::new(10),
        status: AccountStatus {
            account_id: account_id(),
            closing: false,
            subscribed: true,
            api_in_plan: true,
        },
        account: Account::new(account_id(), "Europe/Oslo"),
        calls: rows(3),
        cursors: CursorKeys::new(1, [0x7c; 32]),
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
        let head = self.host.iter().fold(head, |head, value| head.with_host(value));
        self.authorization.iter().fold(head, |head, value| head.with_authorization(value))
    }

    pub(crate) fn received(&self) -> Result<Received, Rejection> {
        Received::new(&self.head(), request_id())
    }

    #[track_caller]
    pub(crate) fn identified(&self, now: Timestamp) -> Identified {
        self.received().unwrap().identify(Some(&self.key), now).unwrap()
    }

    pub(crate) fn admitted(&mut self) -> Result<Admitted, Rejection> {
        let received = self.received()?;
        let key = received.digest().and(Some(&self.key)).filter(|_| self.found);
        received.identify(key, self.now)?.admit(&mut self.rates, self.now)
    }

    pub(crate) fn authorized(&mut self) -> Result<Authorized, Rejection> {
        self.admitted()?.authorize(&self.status, &self.cursors)
    }

    #[track_caller]
    pub(crate) fn calls_query(&mut self) -> CallsQuery {
        let authorized = self.authorized();
        let Ok(Authorized::Calls(query)) = authorized else { panic!("{authorized:?}") };
        query
    }

    #[track_caller]
    pub(crate) fn call_query(&mut self) -> CallQuery {
        let authorized = self.authorized();
        let Ok(Authorized::Call(query)) = authorized else { panic!("{authorized:?}") };
        query
    }

    /// Goes all the way, with a host that does its part.
    pub(crate) fn serve(&mut self) -> Answered {
        match self.authorized()? {
            Authorized::Account(query) => query.answer(self.account.clone()),
            Authorized::Calls(query) => {
                let rows = self.calls.iter().filter(|row| query.matches(row));
                let rows = rows.take(query.rows_to_read()).cloned().collect();
                query.answer(rows)
            }
            Authorized::Call(query) => {
                let row = self.calls.iter().find(|row| query.matches(row));
                query.answer(row.cloned())
            }
            other => panic!("{other:?}"),
        }
    }

    /// The answer as it is sent.
    pub(crate) fn answer(&mut self) -> Response<Vec<u8>> {
        self.serve().unwrap_or_else(Rejection::into_response)
    }

    /// The reason for the log and the code for the caller.
    #[track_caller]
    pub(crate) fn refused(&mut self) -> (RejectionReason, ErrorCode) {
        let rejection = self.serve().unwrap_err();
        let reason = rejection.reason().clone();
        (reason, checked(rejection).code)
    }
}

/// HTTP-2, HTTP-3, ERR-1: what holds for every refusal, and its envelope.
#[track_caller]
pub(crate) fn checked(rejection: Rejection) -> ApiError {
    assert_eq!(rejection.request_id(), &request_id());
    let (code, status) = (rejection.code(), rejection.status());
    let (head, body) = rejection.into_response().into_parts();
    assert_eq!(head.status, status);
    assert_eq!(code.status(), Some(status));
    assert_eq!(head.headers["content-type"], "application/json");
    assert_eq!(head.headers["cache-control"], "no-store");
    assert_eq!(head.headers["x-request-id"], request_id().as_str());
    let error = ApiError::from_json(&body).unwrap();
    assert_eq!(error.code, code);
    assert_eq!(error.error_type, code.error_type());
    assert_eq!(error.request_id, Some(request_id()));
    error
}

/// A rejection of each known code, in the order of [`ErrorCode::KNOWN`].
pub(crate) fn rejections() -> Vec<(ErrorCode, Rejection)> {
    /// A target, and what is wrong with the request, the account or the host.
    type Case = (&'static str, fn(&mut Scenario));
    let cases: [Case; 11] = [
        ("/v1/calls?limit=x", |_| {}),
        ("/v1/calls?cursor=x", |_| {}),
        ("/v1/calls", |it| it.found = false),
        ("/v1/calls", |it| it.status.subscribed = false),
        ("/v1/calls", |it| it.key.scopes.clear()),
        ("/v1/calls", |it| it.status.api_in_plan = false),
        ("/v1/calls", |it| it.status.closing = true),
        ("/v1/calls/call_9", |_| {}),
        ("/v1/account", |it| while it.answer().status() == 200 {}),
        ("/v1/calls/call_1", |it| it.status.account_id = AccountId::from_random([0; 16])),
        ("/v1/calls", |it| it.method = "POST"),
    ];
    let rejection = |(target, change)| get(target).with(change).serve().unwrap_err();
    ErrorCode::KNOWN.iter().cloned().zip(cases.map(rejection)).collect()
}
