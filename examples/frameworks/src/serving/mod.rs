//! Serving the API.

use std::sync::{Mutex, PoisonError};

use call_assistant::Timestamp;
use call_assistant::id::RequestId;
use call_assistant::model::Account;
use call_assistant::rest::server::{
    AccountStatus, Authorized, CallRow, CursorKeys, RateWindows, Received, Rejection, RequestHead,
    StoredKey,
};
use http::Response;

pub mod axum;

/// A host with one account and one key, in memory. `guide::serving` has one over a database.
#[derive(Debug)]
pub struct Host {
    pub key: Mutex<StoredKey>,
    pub account: Account,
    pub status: AccountStatus,
    pub calls: Vec<CallRow>,
    pub rates: Mutex<RateWindows>,
    pub cursors: CursorKeys,
}

impl Host {
    /// Answers one request.
    ///
    /// # Errors
    /// A refusal, which is a complete response as well.
    #[allow(clippy::unused_async, reason = "a database is asked")]
    pub async fn serve(
        &self,
        head: &RequestHead<'_>,
        id: RequestId,
        now: Timestamp,
    ) -> Result<Response<Vec<u8>>, Rejection> {
        let received = Received::new(head, id)?;
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let found = Some(&*key).filter(|key| received.digest() == Some(&key.digest));
        let identified = received.identify(found, now)?;
        let _ = key.note_use(std::time::Duration::from_secs(60), identified.used_at());
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = identified.admit(&mut rates, now)?;
        match admitted.authorize(&self.status, &self.cursors)? {
            Authorized::Account(granted) => granted.answer(self.account.clone()),
            Authorized::Calls(granted) => {
                let query = granted.query();
                let rows = self.calls.iter().filter(|row| query.matches(row));
                let rows = rows.take(query.rows_to_read()).cloned().collect();
                granted.answer(rows)
            }
            Authorized::Call(granted) => {
                let row = self.calls.iter().find(|row| granted.query().matches(row));
                granted.answer(row.cloned())
            }
            new => Err(new.internal_error()),
        }
    }
}
