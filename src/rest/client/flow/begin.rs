//! The flows that a client begins.

use core::time::Duration;

use super::{Flow, FlowTask, Position, Progress, Wait};
use crate::model::Account;
use crate::rest::ApiRequest;
use crate::rest::client::{CallPages, CallSync, Client, FlowError, Pace, Retry};

impl Client {
    /// Creates the flow of a single operation, with retries.
    #[must_use]
    pub fn fetch<R: ApiRequest>(&self, operation: R) -> Flow<R> {
        Flow::new(self, operation)
    }

    /// Creates the flow through all pages of a list. `from` is a [`ListCalls`](crate::rest::ListCalls),
    /// or a new or stored [`CallPages`]. The state contains the mode (live or test) of the first key
    /// that read the list. The flow refuses a key of the other mode. A list that begins at its first
    /// page can always be restarted. A list that begins at a cursor can be restarted only after a call
    /// has been read. If the service refuses the cursor before a call has been read, the flow ends with
    /// the service's error.
    #[must_use]
    pub fn pages(&self, from: impl Into<CallPages>) -> Flow<CallPages> {
        let mut state = from.into();
        let bound = state.bind(self.key().mode());
        Flow::new(self, state).unless_refused(bound)
    }

    /// Creates the flow that updates your copy of all calls. Pass the state that was stored last. The
    /// flow is done when the copy is up to date. To update the copy again, create another flow. If an
    /// earlier flow has not read its list to the end, the new flow first reads the rest of this list,
    /// and then the calls that were written after the earlier flow began the list.
    ///
    /// The state contains the mode (live or test) of the first key of the sync. The flow refuses a key
    /// of the other mode.
    #[must_use]
    pub fn sync(&self, state: CallSync) -> Flow<CallSync> {
        self.bound_sync(state, None)
    }

    /// Creates the same flow as [`sync`](Self::sync), for a key whose account is known. The flow adds
    /// the account to the state, and refuses the key of another account.
    ///
    /// Only a key with the scope `account:read` can [fetch](Self::fetch) the key's account. Without this
    /// scope, a flow cannot detect that a new key belongs to another account.
    #[must_use]
    pub fn sync_of(&self, account: &Account, state: CallSync) -> Flow<CallSync> {
        self.bound_sync(state, Some(account))
    }

    fn bound_sync(&self, mut state: CallSync, account: Option<&Account>) -> Flow<CallSync> {
        let account = account.map(|account| &account.id);
        let bound = state.bind(Some(self.key().mode()), account);
        Flow::new(self, state).unless_refused(bound)
    }
}

impl<T: FlowTask> Flow<T> {
    fn new(client: &Client, task: T) -> Self {
        let mut flow = Self {
            client: client.clone(),
            ends_again: T::ENDS_TWICE,
            retry: Retry::new(),
            restarts: 3,
            time_limit: Duration::from_secs(30),
            pace: Pace::new(T::Request::OPERATION.quota()),
            position: Position::Waiting(Wait::OVER),
            failure: None,
            tried: 0,
            restarted: 0,
            deepest: None,
            tickets: 0,
            progress: Progress {
                wanted: task.list().and_then(|list| list.filter.created_after),
                ..Progress::default()
            },
            task,
        };
        flow.go_on();
        flow
    }

    fn unless_refused(self, bound: Result<(), FlowError>) -> Self {
        match bound {
            Ok(()) => self,
            Err(error) => Self { position: Position::Stopped(error), ..self },
        }
    }
}
