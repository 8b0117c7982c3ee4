//! Why a request cannot be sent.

use super::ListCalls;

/// The reason why a request cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsendableError {
    /// An id that is `.` or `..`. URL parsers resolve such a segment, however it is encoded, and the
    /// request would ask for another resource.
    #[error("call_id consists of dots, which no URL can carry")]
    DotId,
    /// A cursor that is too long for a URL.
    #[error("cursor has {len} bytes, more than {max}", max = ListCalls::MAX_CURSOR_LEN)]
    LongCursor {
        /// The length, in bytes.
        len: usize,
    },
    /// A limit of 0 or more than 100.
    #[error("limit is {limit}, not from 1 to {max}", max = ListCalls::MAX_LIMIT)]
    Limit {
        /// The limit.
        limit: usize,
    },
    /// A `created_before` that is earlier than `created_after`.
    #[error("created_before is earlier than created_after")]
    CreatedRange,
}
