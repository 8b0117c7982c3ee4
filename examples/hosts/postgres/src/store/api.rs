//! What the public API looks up: two or three round trips a request, each shared by the requests that wait at the
//! same time.

use std::sync::Arc;
use std::time::Duration;

use call_assistant::id::AccountId;
use call_assistant::model;
use call_assistant::rest::server::{
    AccountStatus, Admitted, CallQuery, CallRow, CallsQuery, Identified, Received,
};

use super::calls;
use super::windows::{self, Refusals, Window};
use super::{Postgres, keys};
use crate::sql::store::{Id, Page, PagedCall, StoredCall};
use host::store::together::{Question, Together};
use host::store::{ApiStore, CallPage, Done, Refused, Rejected};

/// What the requests of a process share.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    keys: Together<[u8; 32], Option<keys::Found>>,
    windows: Together<Window, Option<Duration>>,
    pages: Together<Page, Vec<PagedCall>>,
    calls: Together<Id, Vec<StoredCall>>,
    refusals: Arc<Refusals>,
}

/// What a page with bounds is counted as in a batch, in rows: what the bounds leave out is read, too.
const BOUNDED_PAGE: usize = 64;

impl Question for Page {
    fn account(&self) -> Option<&str> {
        Some(&self.account_id)
    }
}

impl Question for Id {
    fn account(&self) -> Option<&str> {
        Some(&self.account_id)
    }
}

impl Question for Window {}

impl ApiStore for Postgres {
    type Found = Option<(model::Account, AccountStatus)>;

    async fn identify(&self, received: Received) -> Result<(Identified, Self::Found), Rejected> {
        let found = match received.digest().map(|digest| *digest.as_bytes()) {
            Some(digest) => {
                let database = self.api.clone();
                let look_up = move |digests| keys::look_up(database.clone(), digests);
                self.shared.keys.ask(digest, 1, look_up).await
            }
            None => Ok(None),
        };
        // When a key expires, all processes agree on.
        let now = self.api.now();
        match found {
            Ok(Some((key, standing))) => Ok((received.identify(Some(&key), now)?, Some(standing))),
            Ok(None) => Ok((received.identify(None, now)?, None)),
            Err(refused) => Err(refused.rejecting(received.internal_error())),
        }
    }

    async fn admit(&self, identified: Identified) -> Result<Admitted, Rejected> {
        let (window, refusals) = (Window::of(&identified), &self.shared.refusals);
        if let Some(wait) = refusals.wait(&window) {
            return Ok(identified.admit_decided(Err(wait))?);
        }
        let database = self.api.clone();
        let admit = move |windows| windows::admit(database.clone(), windows);
        match self.shared.windows.ask(window.clone(), 1, admit).await {
            Ok(None) => Ok(identified.admit_decided(Ok(()))?),
            Ok(Some(wait)) => {
                refusals.note(window, wait);
                Ok(identified.admit_decided(Err(wait))?)
            }
            Err(refused) => Err(refused.rejecting(identified.internal_error())),
        }
    }

    async fn status(
        &self,
        _id: &AccountId,
        found: Self::Found,
    ) -> Done<(model::Account, AccountStatus)> {
        found.ok_or(Refused::NotFound("account"))
    }

    async fn page(&self, asked: &CallsQuery) -> Done<CallPage> {
        let database = self.api.clone();
        let read = move |pages| calls::pages(database.clone(), pages);
        let most = asked.rows_to_read();
        let weight = if asked.is_filtered() { most.max(BOUNDED_PAGE) } else { most };
        calls::page_of(self.shared.pages.ask(Page::of(asked), weight, read).await?, most)
    }

    async fn call(&self, asked: &CallQuery) -> Done<Option<CallRow>> {
        let database = self.api.clone();
        let read = move |ids| calls::by_id(database.clone(), ids);
        let rows = self.shared.calls.ask(Id::of(asked), 1, read).await?;
        rows.first().map(calls::call_of).transpose()
    }
}
