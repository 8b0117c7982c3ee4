use super::PagingError;
use crate::rest::ParameterError;
use crate::rest::client::{Action, ClientError};

/// The reason why a [`Flow`](super::super::Flow) stopped before its task was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// A request that failed permanently, or too often.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A request that cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] ParameterError),
    /// A page that still does not fit into its list after all retries and restarts.
    #[error(transparent)]
    Paging(#[from] PagingError),
    /// A cursor that the service refused repeatedly.
    #[error("the list was restarted {restarts} times, and its cursor was refused again")]
    #[non_exhaustive]
    Restarts {
        /// The number of restarts in a row that reached no new page.
        restarts: u32,
    },
    /// A key whose mode, live or test, differs from the mode of the state.
    #[error("the state was begun with a key of the other mode, live or test")]
    OtherMode,
    /// A key of another account than the account of the sync.
    #[error("the sync was begun for another account")]
    OtherAccount,
}

impl FlowError {
    /// Returns who must act, and how:
    ///
    /// - `Client`: the action of the [`ClientError`]
    /// - `Unsendable`: [`Action::FixRequest`]
    /// - `Paging` and `Restarts`: [`Action::ContactSupport`]
    /// - `OtherMode` and `OtherAccount`: [`Action::ReplaceKey`]. Use a key of the state's mode and
    ///   account
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
