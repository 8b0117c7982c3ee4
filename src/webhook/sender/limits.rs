//! How many attempts may be in flight at once.

/// Limits on the attempts that are in flight at once.
///
/// ```
/// use call_assistant::webhook::sender::Limits;
///
/// let limits = Limits { overall: 128, per_endpoint: 8 };
/// ```
///
/// An attempt takes up to ten seconds. Set the limit of one endpoint well below the overall one, so
/// that no endpoint can hold up the others. If either is 0, nothing is planned.
///
/// All fields are listed, so that limits can be written as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Of all endpoints together.
    pub overall: u32,
    /// Of each endpoint.
    pub per_endpoint: u32,
}
