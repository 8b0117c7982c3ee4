//! A request that has arrived.

use super::{Asked, Context, Identified, RequestHead};
use crate::Timestamp;
use crate::id::RequestId;
use crate::rest::Operation;
use crate::rest::operation::route;
use crate::rest::server::call_row::Owner;
use crate::rest::server::{KeyDigest, KeyState, Rejection, RejectionReason, StoredKey};

/// A request for one of the API's operations. The sender is not yet known.
///
/// ```
/// use call_assistant::id::RequestId;
/// use call_assistant::rest::server::{Received, RequestHead};
///
/// let head = RequestHead::new("GET", "/v1/account", None).with_host(b"api.example.com");
/// let received = Received::new(&head, RequestId::from_random([1; 16]))?;
/// assert_eq!(received.operation().name(), "get_account");
/// assert_eq!(received.digest(), None); // there is no Authorization header
/// # Ok::<(), call_assistant::rest::server::Rejection>(())
/// ```
#[derive(Debug)]
pub struct Received {
    pub(super) context: Context,
    operation: Operation,
    asked: Result<Asked, RejectionReason>,
    credential: Result<KeyDigest, RejectionReason>,
}

impl Received {
    /// Reads a request's head, without a look-up. The host creates a new id for each request.
    ///
    /// # Errors
    /// An invalid `Host` causes a 400. A path that no operation has causes a 404. A method other than `GET`
    /// and `HEAD` causes a 405.
    pub fn new(head: &RequestHead<'_>, request_id: RequestId) -> Result<Self, Rejection> {
        let mut context = Context {
            request_id,
            operation: None,
            credential_id: None,
            head_only: head.method == "HEAD",
        };
        head.check_host().map_err(|reason| context.reject(reason))?;
        let Some((operation, segment)) = route(head.path) else {
            return Err(context.reject(RejectionReason::UnknownPath));
        };
        context.operation = Some(operation);
        if !matches!(head.method, "GET" | "HEAD") {
            return Err(context.reject(RejectionReason::Method));
        }
        // An error in the parameters is kept for those who may ask at all.
        let asked = Asked::read(operation, segment, head.query);
        Ok(Self { context, operation, asked, credential: head.credential() })
    }

    /// Returns the digest by which to look up the key. Returns `None` if there is no well-formed credential.
    #[must_use]
    pub fn digest(&self) -> Option<&KeyDigest> {
        self.credential.as_ref().ok()
    }

    /// Returns the requested operation.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Checks the key that the host found, if any. Compares the key's digest with the request's digest in
    /// constant time.
    ///
    /// If a host accepts other credentials, for example OAuth tokens, it creates a [`StoredKey`] from the
    /// [`digest`](Self::digest) of this request and the token's account, mode and scopes.
    ///
    /// # Errors
    /// If there is no key, or if the key is expired or revoked, the response is 401 in all these cases.
    pub fn identify(
        self,
        key: Option<&StoredKey>,
        now: Timestamp,
    ) -> Result<Identified, Rejection> {
        let Self { mut context, operation, asked, credential } = self;
        let found = match (credential, key) {
            (Err(reason), _) => Err(reason),
            (Ok(digest), Some(key)) if key.digest == digest => match key.state(now) {
                KeyState::Valid => Ok(key),
                KeyState::Expired => Err(RejectionReason::ExpiredCredential),
                KeyState::Revoked => Err(RejectionReason::RevokedCredential),
            },
            _ => Err(RejectionReason::UnknownCredential),
        };
        let key = found.map_err(|reason| context.reject(reason))?;
        context.credential_id = Some(key.id.clone());
        let scope = operation.scope();
        Ok(Identified {
            context,
            quota: operation.quota(),
            asked,
            credential_id: key.id.clone(),
            owner: Owner { account_id: key.account_id.clone(), mode: key.mode },
            lacks: if key.scopes.contains(&scope) { None } else { Some(scope) },
            used_at: now,
        })
    }

    /// Creates the rejection with 500 for a failed look-up.
    #[must_use]
    pub fn internal_error(&self) -> Rejection {
        self.context.reject(RejectionReason::Internal)
    }
}
