//! Heads of requests.

use call_assistant::Product;
use call_assistant::api::Operation;
use call_assistant::credential::{ApiKey, Mode, Scope, StoredKey};
use call_assistant::error::{ApiError, ErrorCode};
use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::plan::Entitlements;
use call_assistant::service::cursor::{CursorKey, CursorKeys};
use call_assistant::service::exchange::{Authorized, CallRow, Received, RequestHead};
use call_assistant::service::rate::RateWindow;
use call_assistant::service::refusal::Refusal;
use call_assistant::service::standing::Standing;
use call_assistant::time::Timestamp;
use http::{Request, Response, Uri};

/// Whatever a head is made of, there is exactly one well-formed answer, with a code that is known.
///
/// The first byte says whether the credential is found; then come lines: method and target with a
/// blank between, and the values of `Authorization`.
pub fn head(bytes: &[u8]) {
    let (found, rest) = match bytes.split_first() {
        Some((first, rest)) => (first % 2 == 1, rest),
        None => (false, bytes),
    };
    let mut lines = rest.split(|byte| *byte == b'\n');
    let line = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let (method, target) = line.split_once(' ').unwrap_or(("GET", &line));
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let authorization: Vec<_> = lines.collect();
    let head = RequestHead::new(method, path, query);
    let head = authorization.iter().fold(head, |head, value| head.authorization(value));

    let answer = serve(&head, found);
    well_formed(&head, Operation::of_path(path), method, &answer);
    if let Some(same) = through_http(method, target, &authorization, found) {
        assert_eq!(same.status(), answer.status());
        assert_eq!(same.headers(), answer.headers());
        assert_eq!(same.body(), answer.body());
    }
}

fn request_id() -> RequestId {
    RequestId::from_random([9; 16])
}

fn serve(head: &RequestHead<'_>, found: bool) -> Response<Vec<u8>> {
    let account_id = AccountId::parse("acct_1").unwrap();
    let cursors = CursorKeys::new(CursorKey::new(1, [0x7c; 32]));
    let now = Timestamp::from_unix(1_767_225_600).unwrap();
    let api_key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    let serve = || -> Result<_, Refusal> {
        let received = Received::new(head, request_id())?;
        let mut key =
            StoredKey::new(CredentialId::from_random([1; 16]), account_id.clone(), &api_key, now)
                .with_scopes([Scope::AccountRead, Scope::CallsRead]);
        if let (true, Some(digest)) = (found, received.digest()) {
            key.digest = *digest;
        }
        let identified = received.identify(Some(&key), now)?;
        let admitted = identified.admit(&mut RateWindow::default(), now)?;
        let standing = Standing {
            account_id: account_id.clone(),
            closing: false,
            subscribed: true,
            plan: Entitlements::pro().with_public_api(),
        };
        let call = Call::new(CallId::parse("call_1").unwrap(), now, now);
        let row = CallRow { account_id: account_id.clone(), mode: Mode::Live, call };
        match admitted.authorize(&standing, &cursors)? {
            Authorized::Account(granted) => {
                granted.answer(Account::new(account_id.clone(), "Europe/Oslo"))
            }
            Authorized::Calls(granted) => {
                let matches = granted.query().matches(&row);
                granted.answer(Some(row).filter(|_| matches).into_iter().collect(), &cursors)
            }
            Authorized::Call(granted) => {
                let matches = granted.query().matches(&row);
                granted.answer(Some(row).filter(|_| matches))
            }
        }
    };
    serve().unwrap_or_else(Refusal::into_response)
}

/// The same head as a request of the `http` crate, if that can hold it.
fn through_http(
    method: &str,
    target: &str,
    authorization: &[&[u8]],
    found: bool,
) -> Option<Response<Vec<u8>>> {
    // `http` cuts a target off at `#`, which no server lets through.
    let uri = Uri::try_from(target).ok().filter(|_| !target.contains('#'))?;
    uri.authority().is_none().then_some(())?;
    let mut request = Request::builder().method(method).uri(uri);
    for value in authorization {
        request = request.header("authorization", *value);
    }
    let (parts, ()) = request.body(()).ok()?.into_parts();
    Some(serve(&RequestHead::from_parts(&parts), found))
}

fn well_formed(
    head: &RequestHead<'_>,
    operation: Option<Operation>,
    method: &str,
    answer: &Response<Vec<u8>>,
) {
    let headers = answer.headers();
    assert_eq!(headers["content-type"], "application/json");
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
        }
        assert_eq!(headers.len(), 3);
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
