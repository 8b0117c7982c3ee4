//! The filter of a list of calls, in a query and for a store.

use core::fmt;
use core::time::Duration;

use super::ParameterError;
use super::list_calls::{Reader, decoded};
use crate::Timestamp;
use crate::model::Call;

/// The filter that selects the account's calls for a list.
///
/// ```
/// use call_assistant::rest::{CallFilter, ListCalls};
/// # use call_assistant::{id::CallId, model::Call, Timestamp};
/// # let call = |created_at| Call::new(CallId::parse("call_1").unwrap(), Timestamp::UNIX_EPOCH, created_at);
///
/// // The calls that were written on one day, whenever they started. Those that started on a day are
/// // `client::CallPages::from_period`.
/// let (since, until) = ("2026-07-24T12:00:00+02:00".parse()?, "2026-07-25T12:00:00+02:00".parse()?);
/// let day = CallFilter::new().with_created_after(since).with_created_before(until);
///
/// // A customer asks for them. The service reads the same filter, and selects.
/// let query = ListCalls::new().with_filter(day.clone()).query()?;
/// assert_eq!(ListCalls::from_query(&query)?.filter, day);
/// assert!(day.matches(&call(since)) && !day.matches(&call(until)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `created_after` is inclusive: the list contains a call whose `created_at` equals `created_after`.
/// `created_before` is exclusive. Instants may have any offset, and are compared at full precision. If both
/// bounds are equal, the filter selects no call. If `created_before` is earlier than `created_after`,
/// writing or reading the request fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CallFilter {
    /// The lower bound of a call's `created_at`, inclusive.
    pub created_after: Option<Timestamp>,
    /// The upper bound of a call's `created_at`, exclusive.
    pub created_before: Option<Timestamp>,
}

type Shown = fn(&CallFilter) -> Option<&dyn fmt::Display>;

/// The filters as parameters, in the protocol's order: the name, the reader of the value, and the value.
pub(super) const FILTERS: &[(&str, Reader, Shown)] = &[
    (
        "created_after",
        |list, name, value| instant(name, value).map(|at| list.filter.created_after = Some(at)),
        |filter| Some(filter.created_after.as_ref()?),
    ),
    (
        "created_before",
        |list, name, value| instant(name, value).map(|at| list.filter.created_before = Some(at)),
        |filter| Some(filter.created_before.as_ref()?),
    ),
];

impl CallFilter {
    /// Creates a filter that selects all calls.
    #[must_use]
    pub const fn new() -> Self {
        Self { created_after: None, created_before: None }
    }

    /// Excludes calls with `created_at` before this instant.
    #[must_use]
    pub fn with_created_after(self, instant: Timestamp) -> Self {
        Self { created_after: Some(instant), ..self }
    }

    /// Excludes calls with `created_at` at or after this instant.
    #[must_use]
    pub fn with_created_before(self, instant: Timestamp) -> Self {
        Self { created_before: Some(instant), ..self }
    }

    /// Returns whether the filter selects a call.
    #[must_use]
    pub fn matches(&self, call: &Call) -> bool {
        self.created_after.is_none_or(|after| after <= call.created_at)
            && self.created_before.is_none_or(|before| call.created_at < before)
    }

    /// Returns whether the bounds are equal, so that the filter selects no call and a host need not read
    /// the store.
    #[must_use]
    pub fn selects_nothing(&self) -> bool {
        self.created_after.is_some() && self.created_after == self.created_before
    }

    /// Rounds both bounds up to microseconds, for a store that keeps instants in microseconds, such as
    /// PostgreSQL's `timestamptz`.
    ///
    /// A store that keeps microseconds may round a bound down, and return calls outside the bounds. Bounds
    /// that are rounded up select the same rows of the store as the original bounds. A bound within the last
    /// microsecond of the year 9999 stays unchanged.
    #[must_use]
    pub fn ceil_to_micros(&self) -> Self {
        let mut coarse = self.clone();
        let bounds = [&mut coarse.created_after, &mut coarse.created_before];
        bounds.into_iter().flatten().for_each(|bound| *bound = up_to_microseconds(*bound));
        coarse
    }

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        match (self.created_after, self.created_before) {
            (Some(after), Some(before)) if after > before => Err(ParameterError::CreatedRange),
            _ => Ok(()),
        }
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'static str, &dyn fmt::Display)> {
        FILTERS.iter().filter_map(|(name, _, shown)| Some((*name, shown(self)?)))
    }
}

fn instant(parameter: &'static str, value: &str) -> Result<Timestamp, ParameterError> {
    let text = decoded(parameter, value)?;
    Timestamp::parse(&text).map_err(|error| ParameterError::Timestamp { parameter, error })
}

fn up_to_microseconds(instant: Timestamp) -> Timestamp {
    match instant.floor_to_micros() {
        floor if floor == instant => instant,
        floor => floor.checked_add(Duration::from_micros(1)).unwrap_or(instant),
    }
}
