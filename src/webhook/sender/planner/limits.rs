//! How many attempts may be in flight at once.

/// Limits on the attempts that are in flight at once.
///
/// ```
/// use call_assistant::webhook::sender::Limits;
///
/// let limits = Limits { overall: 448, per_endpoint: 8 };
/// ```
///
/// An attempt takes up to ten seconds. Set the overall limit to more than four times the number of
/// endpoints of one account that may be late at once, and the limit of one endpoint well below it. If
/// either is 0, nothing is planned.
///
/// All fields are listed, so that limits can be written as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Of all endpoints together.
    pub overall: u32,
    /// Of each endpoint. More than 65,535 count as 65,535.
    pub per_endpoint: u32,
}

impl Limits {
    /// The part of all slow endpoints.
    pub(super) fn of_slow(self) -> u32 {
        (self.overall / 8).max(1)
    }

    /// The part of accounts that have nothing in flight.
    pub(super) fn of_idle(self) -> u32 {
        self.overall / 8
    }

    /// The part of one account's second and further attempts of its endpoints.
    pub(super) fn of_further(self) -> u32 {
        self.overall.div_ceil(4)
    }
}
