//! How many attempts may be in flight at once.

/// The limits on the attempts that are in flight at once.
///
/// ```
/// use call_assistant::webhook::sender::SenderLimits;
///
/// let limits = SenderLimits { overall: 448, per_endpoint: 8 };
/// ```
///
/// An attempt takes up to ten seconds. Set the overall limit to more than four times the number of
/// endpoints of one account that may be late at once, and the limit of one endpoint well below it. If
/// either is 0, nothing is planned.
///
/// Closed: a host has to choose each limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SenderLimits {
    /// The limit of all endpoints together.
    pub overall: u32,
    /// The limit of each endpoint. More than 65,535 count as 65,535.
    pub per_endpoint: u32,
}

impl SenderLimits {
    /// Returns the part of all slow endpoints: an eighth, and one at least.
    pub(super) fn of_slow(self) -> u32 {
        (self.overall / 8).max(1)
    }

    /// Returns the part of accounts that have nothing in flight: an eighth.
    pub(super) fn of_idle(self) -> u32 {
        self.overall / 8
    }

    /// Returns the part of second and further attempts of one account's endpoints: a quarter.
    pub(super) fn of_further(self) -> u32 {
        self.overall.div_ceil(4)
    }
}
