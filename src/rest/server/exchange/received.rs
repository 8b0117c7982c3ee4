//! A request that has arrived.

use http::Method;

use super::{Asked, Context, Identified, RequestHead};
use crate::Timestamp;
use crate::id::RequestId;
use crate::rest::server::Grant;
use crate::rest::server::{KeyDigest, KeyState, StoredKey};
use crate::rest::server::{Rejection, RejectionReason};
use crate::rest::{AnyRequest, Operation, ReadError};

/// A request for one of the operations. Who sends it is not known yet.
#[derive(Debug)]
pub struct Received {
    pub(super) context: Context,
    pub(super) asked: Asked,
    credential: Result<KeyDigest, RejectionReason>,
}

impl Received {
    /// Takes a request's head, and the id that the request is given: one of the host's own, made
    /// for it. Needs no look-up.
    ///
    /// # Errors
    /// The path or the method is none of the API's: 404, 405.
    pub fn new(head: &RequestHead<'_>, request_id: RequestId) -> Result<Self, Rejection> {
        let mut context = Context {
            request_id,
            operation: None,
            credential_id: None,
            head_only: head.method == Method::HEAD.as_str(),
        };
        let read = AnyRequest::read(head.method, head.path, head.query);
        context.operation = match &read {
            Ok(request) => Some(request.operation()),
            Err(error) => error.operation(),
        };
        let asked = match read {
            Ok(AnyRequest::GetAccount(_)) => Asked::Account,
            Ok(AnyRequest::ListCalls(list)) => Asked::Calls(list),
            Ok(AnyRequest::GetCall(get)) => Asked::Call(get.call_id),
            // What is wrong with the parameters is said to those who may ask at all.
            Err(ReadError::Parameter { operation, error }) => Asked::Wrongly(operation, error),
            Err(ReadError::NoSuchId { error }) => Asked::NoCall(error),
            Err(ReadError::Method { .. }) => return Err(context.refuse(RejectionReason::Method)),
            Err(ReadError::UnknownPath) => return Err(context.refuse(RejectionReason::UnknownPath)),
        };
        Ok(Self { context, asked, credential: head.credential() })
    }

    /// By which to look up the key; `None` if there is nothing to look up.
    #[must_use]
    pub fn digest(&self) -> Option<&KeyDigest> {
        self.credential.as_ref().ok()
    }

    /// What is asked for.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.asked.operation()
    }

    /// Checks the key that was found, if any. Its digest is compared again, in constant time.
    ///
    /// # Errors
    /// There is no key, or it is expired or revoked: 401, the same for all of these.
    pub fn identify(
        self,
        key: Option<&StoredKey>,
        now: Timestamp,
    ) -> Result<Identified, Rejection> {
        let found = match (&self.credential, key) {
            (Err(cause), _) => Err(cause.clone()),
            (Ok(digest), Some(key)) if key.digest == *digest => match key.state(now) {
                KeyState::Valid => Ok(Grant::of_key(key)),
                KeyState::Expired => Err(RejectionReason::ExpiredCredential),
                KeyState::Revoked => Err(RejectionReason::RevokedCredential),
            },
            _ => Err(RejectionReason::UnknownCredential),
        };
        self.identified(found, now)
    }

    /// Takes what another way of authenticating the request has found, or nothing. The credential's
    /// own limits in time are that way's to check.
    ///
    /// # Errors
    /// Nothing was found: 401.
    pub fn identify_as(
        self,
        grant: Option<Grant>,
        now: Timestamp,
    ) -> Result<Identified, Rejection> {
        let found = grant.ok_or_else(|| match &self.credential {
            Err(cause) => cause.clone(),
            Ok(_) => RejectionReason::UnknownCredential,
        });
        self.identified(found, now)
    }

    fn identified(
        mut self,
        found: Result<Grant, RejectionReason>,
        now: Timestamp,
    ) -> Result<Identified, Rejection> {
        match found {
            Ok(grant) => {
                self.context.credential_id = Some(grant.credential_id().clone());
                Ok(Identified { context: self.context, asked: self.asked, grant, used_at: now })
            }
            Err(cause) => Err(self.context.refuse(cause)),
        }
    }
}
