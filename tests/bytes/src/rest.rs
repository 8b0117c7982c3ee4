//! Heads of requests.

use std::sync::LazyLock;
use std::time::Duration;

use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::server::{
    AccountStatus, Authorized, CallRow, Cursor, CursorKeys, Received, Rejection, RequestHead,
    StoredKey,
};
use call_assistant::rest::{ApiError, ApiKey, CallFilter, ErrorCode, Mode, Operation, Scope};
use call_assistant::{Product, Timestamp};
use http::{Request, Response, Uri};

/// Whatever a head is made of, there is exactly one well-formed answer, with a code that is known
/// and, of all that is wrong with credential and account, the one that D-1 puts first.
///
/// The bits of the first byte say how those stand; then come lines: method and target with a blank
/// between, and the values of `Authorization`. `{cursor}` in the target is one we have sealed.
pub fn head(bytes: &[u8]) {
    let (first, rest) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let stands = Stands(first);
    let mut lines = rest.split(|byte| *byte == b'\n');
    let line = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let (method, target) = line.split_once(' ').unwrap_or(("GET", &line));
    let target = target.replace("{cursor}", &FIXED.sealed);
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&*target, None),
    };
    let authorization: Vec<_> = lines.collect();
    let head = RequestHead::new(method, path, query).with_host(b"api.example.com");
    let head = authorization.iter().fold(head, |head, value| head.with_authorization(value));

    let answer = serve(&head, stands);
    well_formed(&head, Operation::from_path(path), method, &answer);
    in_order(stands, &answer);
    if let Some(same) = through_http(method, &target, &authorization, stands) {
        assert_eq!(same.status(), answer.status());
        assert_eq!(same.headers(), answer.headers());
        assert_eq!(same.body(), answer.body());
    }
}

/// How the credential and its account stand, a bit for each thing.
#[derive(Clone, Copy)]
struct Stands(u8);

impl Stands {
    const FOUND: u8 = 1;
    const NO_SCOPE: u8 = 2;
    const CLOSING: u8 = 4;
    const UNSUBSCRIBED: u8 = 8;
    const NO_API: u8 = 16;
    const OVER_QUOTA: u8 = 32;
    const REVOKED: u8 = 64;
    const EXPIRED: u8 = 128;

    fn is(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// What every request is answered from.
struct Fixed {
    now: Timestamp,
    account_id: AccountId,
    cursors: CursorKeys,
    sealed: String,
    key: StoredKey,
    rows: [CallRow; 3],
}

static FIXED: LazyLock<Fixed> = LazyLock::new(|| {
    let now = Timestamp::from_unix(1_767_225_600).unwrap();
    let account_id = AccountId::parse("acct_1").unwrap();
    let cursors = CursorKeys::new(1, [0x7c; 32]);
    let rows = ["call_2", "call_1", "call_0"].map(|id| {
        let call = Call::new(CallId::parse(id).unwrap(), now, now);
        CallRow { account_id: account_id.clone(), mode: Mode::Live, call }
    });
    let cursor = Cursor::new(now, rows[0].call.id.clone())
        .with_filter(CallFilter::new().with_created_after(now));
    let sealed = cursors.seal(&account_id, Mode::Live, &cursor);
    let api_key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    let id = CredentialId::from_random([1; 16]);
    let key = StoredKey::new(id, account_id.clone(), &api_key, now);
    Fixed { now, account_id, cursors, sealed, key, rows }
});

fn request_id() -> RequestId {
    RequestId::from_random([9; 16])
}

fn serve(head: &RequestHead<'_>, stands: Stands) -> Response<Vec<u8>> {
    let Fixed { now, account_id, cursors, key, rows, .. } = &*FIXED;
    let serve = || -> Result<_, Rejection> {
        let received = Received::new(head, request_id())?;
        let mut key = key.clone();
        if !stands.is(Stands::NO_SCOPE) {
            key.scopes = [Scope::AccountRead, Scope::CallsRead].into();
        }
        if let (true, Some(digest)) = (stands.is(Stands::FOUND), received.digest()) {
            key.digest = *digest;
        }
        key.revoked_at = stands.is(Stands::REVOKED).then_some(*now);
        key.expires_at = stands.is(Stands::EXPIRED).then_some(*now);
        let identified = received.identify(Some(&key), *now)?;
        let admitted = identified.admit_decided(match stands.is(Stands::OVER_QUOTA) {
            true => Err(Duration::from_millis(1_500)),
            false => Ok(()),
        })?;
        let status = AccountStatus {
            account_id: account_id.clone(),
            closing: stands.is(Stands::CLOSING),
            subscribed: !stands.is(Stands::UNSUBSCRIBED),
            api_in_plan: !stands.is(Stands::NO_API),
        };
        match admitted.authorize(&status, cursors)? {
            Authorized::Account(query) => {
                query.answer(Account::new(account_id.clone(), "Europe/Oslo"))
            }
            Authorized::Calls(query) => {
                let found = rows.iter().filter(|row| query.matches(row)).take(query.rows_to_read());
                let found = found.cloned().collect();
                query.answer(found)
            }
            Authorized::Call(query) => {
                let row = rows.iter().find(|row| query.matches(row)).cloned();
                query.answer(row)
            }
            other => Err(other.internal_error()),
        }
    };
    serve().unwrap_or_else(Rejection::into_response)
}

/// The order of refusals, as far as it is not the request's own text that decides.
fn in_order(stands: Stands, answer: &Response<Vec<u8>>) {
    let expected = [
        (Stands::OVER_QUOTA, ErrorCode::RateLimitExceeded),
        (Stands::CLOSING, ErrorCode::AccountClosed),
        (Stands::UNSUBSCRIBED, ErrorCode::SubscriptionInactive),
        (Stands::NO_API, ErrorCode::PlanUpgradeRequired),
        (Stands::NO_SCOPE, ErrorCode::InsufficientScope),
    ];
    let first = expected.iter().find(|(bit, _)| stands.is(*bit)).map(|(_, code)| code);
    // A HEAD's answer has no body to read: of its status alone little can be said.
    let Ok(error) = ApiError::from_json(answer.body()) else {
        assert!(answer.status() != 200 || first.is_none());
        return;
    };
    let valid = stands.0 & (Stands::FOUND | Stands::REVOKED | Stands::EXPIRED) == Stands::FOUND;
    match error.code {
        ErrorCode::MethodNotAllowed | ErrorCode::InvalidCredentials => {}
        // No such path, or no such call of an account that may ask for one.
        ErrorCode::ResourceNotFound => {}
        code => {
            assert!(valid, "{code}");
            assert!(first.is_none_or(|first| *first == code), "{code}");
            let theirs = expected.iter().any(|(_, other)| *other == code);
            assert_eq!(theirs, first.is_some(), "{code}");
        }
    }
}

/// The same head as a request of the `http` crate, if that can hold it.
fn through_http(
    method: &str,
    target: &str,
    authorization: &[&[u8]],
    stands: Stands,
) -> Option<Response<Vec<u8>>> {
    // `http` cuts a target off at `#`, which no server lets through.
    let uri = Uri::try_from(target).ok().filter(|_| !target.contains('#'))?;
    uri.authority().is_none().then_some(())?;
    let mut request = Request::builder().method(method).uri(uri).header("host", "api.example.com");
    for value in authorization {
        request = request.header("authorization", *value);
    }
    let (parts, ()) = request.body(()).ok()?.into_parts();
    Some(serve(&RequestHead::from_parts(&parts), stands))
}

fn well_formed(
    head: &RequestHead<'_>,
    operation: Option<Operation>,
    method: &str,
    answer: &Response<Vec<u8>>,
) {
    let headers = answer.headers();
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["x-request-id"], request_id().as_str());
    assert_eq!(headers.get_all("x-request-id").iter().count(), 1);
    let len: usize = headers["content-length"].to_str().unwrap().parse().unwrap();
    let body = answer.body();
    if method == "HEAD" {
        assert!(body.is_empty() && len > 0);
        return;
    }
    assert_eq!(body.len(), len);
    let status = answer.status();
    if status == 200 {
        match operation.expect("only an operation succeeds") {
            Operation::GetAccount => drop(Account::from_json(body).unwrap()),
            Operation::ListCalls => drop(CallList::from_json(body).unwrap()),
            Operation::GetCall => drop(Call::from_json(body).unwrap()),
            other => panic!("{other}"),
        }
        assert_eq!(headers.len(), 4);
        return;
    }
    let error = ApiError::from_json(body).unwrap();
    assert!(ErrorCode::KNOWN.contains(&error.code), "{head:?}");
    assert_eq!(error.code.status(), Some(status));
    assert_eq!(error.request_id, Some(request_id()));
    match operation {
        None => assert_eq!(error.code, ErrorCode::ResourceNotFound),
        Some(_) if method != "GET" => assert_eq!(error.code, ErrorCode::MethodNotAllowed),
        Some(operation) => assert!(operation.errors().contains(&error.code), "{head:?}: {error}"),
    }
    assert_ne!(error.code, ErrorCode::InternalError);
    let has = |name| headers.contains_key(name);
    assert_eq!(has("www-authenticate"), status == 401);
    assert_eq!(has("allow"), status == 405);
    assert_eq!(has("retry-after"), status == 429);
}
