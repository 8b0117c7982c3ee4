use super::PagingError;
use crate::rest::ParameterError;
use crate::rest::client::{Action, ClientError};

/// The reason why a [`Flow`](super::super::Flow) stopped before its task was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// A request that failed for good, or too often.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A request that cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] ParameterError),
    /// A page that does not fit into its list, however often it was asked for and the list
    /// restarted.
    #[error(transparent)]
    Paging(#[from] PagingError),
    /// A cursor that the service refused again and again.
    #[error("the list was restarted {restarts} times, and its cursor was refused again")]
    #[non_exhaustive]
    Restarts {
        /// The restarts of the list that did not read further than before.
        restarts: u32,
    },
    /// A live key for a state that was begun with a test key, or the other way round.
    #[error("the state was begun with a key of the other mode, live or test")]
    OtherMode,
    /// A key for a sync that was begun for another account.
    #[error("the sync was begun for another account")]
    OtherAccount,
}

impl FlowError {
    /// Returns who must act, and how: for `Client` as the error says, for `Unsendable`
    /// [`Action::FixRequest`], for `Paging` and `Restarts` [`Action::ContactSupport`], and for
    /// `OtherMode` and `OtherAccount` [`Action::ReplaceKey`]: with the key under which the state began.
    #[must_use]
    pub fn action(&self) -> Action {
        match self {
            Self::Client(error) => error.action(),
            Self::Unsendable(_) => Action::FixRequest,
            Self::Paging(_) | Self::Restarts { .. } => Action::ContactSupport,
            Self::OtherMode | Self::OtherAccount => Action::ReplaceKey,
        }
    }
}
