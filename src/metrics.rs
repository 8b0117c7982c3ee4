//! Counters in fixed memory, written as OpenMetrics text.
//!
//! ```
//! use call_assistant::metrics::OpenMetrics;
//! # #[cfg(feature = "client")] {
//! use call_assistant::webhook::VerifyError;
//! use call_assistant::webhook::receiver::ReceiverMetrics;
//!
//! let mut metrics = ReceiverMetrics::default();
//! metrics.received(&Err(VerifyError::Missing.into()));
//!
//! let mut text = OpenMetrics::new(String::new());
//! metrics.write(&mut text)?;
//! text.gauge("host_connections", "Open connections.", [([], 3)])?; // the host's own
//! let text = text.end()?; // GET /metrics
//! assert!(text.contains("call_assistant_receiver_verifications_total{result=\"missing\"} 1\n"));
//! assert!(text.ends_with("host_connections 3\n# EOF\n"));
//! # }
//! # Ok::<(), std::fmt::Error>(())
//! ```
//!
//! Senders, receivers and the API have separate metrics:
//! [`SenderMetrics`](crate::webhook::sender::SenderMetrics),
//! [`ReceiverMetrics`](crate::webhook::receiver::ReceiverMetrics) and
//! [`ApiMetrics`](crate::rest::server::ApiMetrics). A host counts each change of state, such as a
//! failed delivery, when the host stores the change. Therefore the counters need no query of the
//! store. Each of the three types takes a few hundred bytes, and counting allocates nothing. Serve
//! the metrics as `application/openmetrics-text; version=1.0.0; charset=utf-8`.
//!
//! # Names
//! Add up the counters (`_total`, `_bucket`) of all processes. Each process reads the other metrics
//! (gauges) from the same store. Therefore do not add up gauges, but use the maximum over all
//! processes.
//!
//! At a service, alert on `oldest_due_seconds` above a minute, and on 5xx of the API. At a
//! receiver, alert on the results `mismatch`, `too_old` and `too_new`.
//!
//! | metric | meaning |
//! |---|---|
//! | `call_assistant_sender_accepted_total` | deliveries that were accepted, by `status`: `waiting`, or `skipped` if the endpoint was disabled |
//! | `call_assistant_sender_attempts_total` | attempts that ended, by `outcome`: `2xx`, `410`, `5xx`, `timeout`, `dns`, `tls`, `refused`, `unsent` and others |
//! | `call_assistant_sender_first_attempts_total` | first attempts of deliveries, by `result`: `success`, `failure` |
//! | `call_assistant_sender_ended_total` | deliveries that ended with an attempt, by `status`: `delivered`, `failed`, `gone`, `parked` |
//! | `call_assistant_sender_attempt_duration_seconds_bucket` | how fast endpoints answer, by `le` |
//! | `call_assistant_sender_accept_to_delivered_seconds_bucket` | how long customers wait for an event, by `le`; a bound above 10 s for each retry |
//! | `call_assistant_sender_endpoints_disabled_total` | endpoints that were disabled, by `reason`: `gone`, `failing`, `paused`, `deleted` |
//! | `call_assistant_sender_endpoints_enabled_total` | endpoints that were enabled again, by the `reason` for which they had been disabled |
//! | `call_assistant_sender_alerts_total` | alerts to owners, by `kind`: `suspect`, `recovered`, `failing`, `disabled`, `still_disabled`, `abandoned` |
//! | `call_assistant_sender_leases_expired_total` | attempts whose sender died, if the host stores `sending` |
//! | `call_assistant_sender_writes_lost_total` | writes that failed because another process was first; a few are normal |
//! | `call_assistant_sender_pending` | deliveries that have not ended, including those in flight |
//! | `call_assistant_sender_held` | pending deliveries that are due, but whose endpoint is suspect, disabled or paused by the host; they are not late |
//! | `call_assistant_sender_oldest_due_seconds` | how late the senders are: the time for which the oldest delivery that may start now has been due. Held deliveries do not count. Deliveries that wait for a limit of their endpoint or account do not count either |
//! | `call_assistant_sender_endpoints` | endpoints, by `state`: `active`, `suspect`, `gone`, `failing`, `paused` |
//! | `call_assistant_api_requests_total` | requests that were answered, by `operation`: `get_account`, `list_calls`, `get_call`, `none`, and by `status`: `2xx`, `4xx`, `5xx`, `other` |
//! | `call_assistant_api_rejections_total` | requests that were rejected, by the `code` of the error |
//! | `call_assistant_api_rate_limited_total` | requests beyond a limit, by `quota`: `account`, `reads` |
//! | `call_assistant_api_duration_seconds_bucket` | how fast the API answers, by `le` |
//! | `call_assistant_receiver_verifications_total` | signatures, by `result`: `ok`, `mismatch`, `too_old` and others |
//! | `call_assistant_receiver_secrets_total` | verified deliveries, by the `secret` that matched: `first`, `second`, `later`, in the order in which secrets were added to the verifier. After a rotation, remove the old secret when only `first` grows |
//! | `call_assistant_receiver_events_total` | events, by `result`: `stored`, `claimed` (a claim began), `duplicate` (a copy), `busy` (a copy during a claim) |
//!
//! # Labels
//! Every label has a closed set of values. No label holds an account, an endpoint or an event, for
//! two reasons:
//! - Each value of a label is a separate series, which the monitoring system keeps for weeks. If a
//!   label held an id, customers would determine the number of series, and the monitoring system
//!   could run out of memory.
//! - If a label held an id, readers of metrics would see the customers and their activity.
//!
//! An endpoint's log and [alerts](crate::guide::storing#alerts) show the history of the endpoint.

use core::fmt;
#[cfg(feature = "service")]
use core::time::Duration;

/// The `Content-Type` of the text: `application/openmetrics-text`, in version 1.0.0 and UTF-8.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A writer of OpenMetrics text, over any [`fmt::Write`].
///
/// ```
/// use call_assistant::metrics::OpenMetrics;
///
/// let mut text = OpenMetrics::new(String::new());
/// text.counter("jobs", "Jobs that ended.", [([("result", "done")], 7), ([("result", "lost")], 0)])?;
/// assert_eq!(
///     text.end()?,
///     "# TYPE jobs counter\n# HELP jobs Jobs that ended.\n\
///      jobs_total{result=\"done\"} 7\njobs_total{result=\"lost\"} 0\n# EOF\n",
/// );
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// Write each metric only once. After the last metric, call [`end`](Self::end). If a metric's name
/// ends in `_seconds`, the unit is seconds.
#[derive(Debug)]
#[must_use = "a text without its end is not valid"]
pub struct OpenMetrics<W> {
    out: W,
}

impl<W: fmt::Write> OpenMetrics<W> {
    /// Begins a text.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes a counter: a value for each set of labels. `_total` is added to the counter's name.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn counter<'a, const L: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'a str, &'a str); L], impl fmt::Display)>,
    ) -> fmt::Result {
        self.head(name, "counter", help)?;
        values.into_iter().try_for_each(|(labels, value)| self.line(name, "_total", &labels, value))
    }

    /// Writes a gauge: a value for each set of labels.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn gauge<'a, const L: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'a str, &'a str); L], impl fmt::Display)>,
    ) -> fmt::Result {
        self.head(name, "gauge", help)?;
        values.into_iter().try_for_each(|(labels, value)| self.line(name, "", &labels, value))
    }

    /// Ends the text, and returns the writer.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn end(mut self) -> Result<W, fmt::Error> {
        self.out.write_str("# EOF\n")?;
        Ok(self.out)
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) -> fmt::Result {
        writeln!(self.out, "# TYPE {name} {kind}")?;
        if name.ends_with("_seconds") {
            writeln!(self.out, "# UNIT {name} seconds")?;
        }
        writeln!(self.out, "# HELP {name} {}", Escaped(help))
    }

    fn line(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[(&str, &str)],
        value: impl fmt::Display,
    ) -> fmt::Result {
        write!(self.out, "{name}{suffix}")?;
        let mut before = "{";
        for (label, text) in labels {
            write!(self.out, "{before}{label}=\"{}\"", Escaped(text))?;
            before = ",";
        }
        writeln!(self.out, "{} {value}", if labels.is_empty() { "" } else { "}" })
    }
}

/// A value of a label, or of several labels together. Each value has its own counter.
pub(crate) trait Label: Copy + fmt::Debug + Eq {
    /// The number of values.
    const N: usize;

    /// One counter for each value.
    type Counts: AsMut<[u64]> + AsRef<[u64]> + Copy + fmt::Debug + Default + Eq;

    /// Returns all values, in the order in which they are written.
    fn all() -> impl Iterator<Item = Self>;

    /// Returns the name and the text of each label.
    fn labels(self) -> impl AsRef<[(&'static str, &'static str)]>;
}

/// The only value of a counter without labels.
#[cfg(feature = "service")]
impl Label for () {
    const N: usize = 1;
    type Counts = [u64; Self::N];

    fn all() -> impl Iterator<Item = Self> {
        [()].into_iter()
    }

    fn labels(self) -> impl AsRef<[(&'static str, &'static str)]> {
        []
    }
}

/// Defines a label with one name. The macro takes a text for each value of a type, or a list of
/// values with a function that returns the text of a value.
macro_rules! label {
    ($name:ident = $label:literal, $of:ty {
        $($value:pat $(if $guard:expr)? => $text:literal,)+
    }) => {
        $crate::metrics::label! {
            $name = $label, &'static str, [$($text),+], core::convert::identity
        }

        impl From<$of> for $name {
            fn from(of: $of) -> Self {
                Self(match of { $($value $(if $guard)? => $text,)+ })
            }
        }
    };
    ($name:ident = $label:literal, $of:ty, $all:expr, $text:expr) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        struct $name($of);

        impl $crate::metrics::Label for $name {
            const N: usize = $all.len();
            type Counts = [u64; Self::N];

            fn all() -> impl Iterator<Item = Self> {
                $all.iter().copied().map(Self)
            }

            fn labels(self) -> impl AsRef<[(&'static str, &'static str)]> {
                [($label, $text(self.0))]
            }
        }
    };
}
pub(crate) use label;

/// A counter for each value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters<L: Label>(L::Counts);

impl<L: Label> Default for Counters<L> {
    fn default() -> Self {
        Self(L::Counts::default())
    }
}

impl<L: Label> Counters<L> {
    /// Adds one to the counter of this value. A value that is not in `Label::all` has no counter.
    pub(crate) fn count(&mut self, value: impl Into<L>) {
        let value = value.into();
        let mut counts = L::all().zip(self.0.as_mut());
        if let Some((_, count)) = counts.find(|(one, _)| *one == value) {
            *count = count.saturating_add(1);
        }
    }

    pub(crate) fn write<W: fmt::Write>(
        &self,
        text: &mut OpenMetrics<W>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        text.head(name, "counter", help)?;
        L::all().zip(self.0.as_ref()).try_for_each(|(value, count)| {
            text.line(name, "_total", value.labels().as_ref(), count)
        })
    }
}

/// Defines the metrics of senders, receivers or the API: counters and histograms, each with its
/// name and its help.
macro_rules! side_metrics {
    ($(#[$meta:meta])* pub struct $side:ident {
        $($field:ident: $counts:ty = $name:literal, $help:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $side {
            $($field: $counts,)+
        }

        impl $side {
            /// Writes the counters.
            ///
            /// # Errors
            /// Returns the error of the writer.
            pub fn write<W: core::fmt::Write>(
                &self,
                text: &mut $crate::metrics::OpenMetrics<W>,
            ) -> core::fmt::Result {
                $(self.$field.write(text, $name, $help)?;)+
                Ok(())
            }
        }
    };
}
pub(crate) use side_metrics;

/// The upper bounds of histograms, in milliseconds. The first eleven bounds, up to ten seconds, are
/// for attempts and answers. The other bounds are for the delivery of events, with one bound for
/// each retry.
#[cfg(feature = "service")]
const BOUNDS: [u64; 16] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 120_000, 900_000, 5_400_000,
    28_800_000,
];

/// A histogram of durations over the first `N` of [`BOUNDS`].
#[cfg(feature = "service")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Histogram<const N: usize> {
    /// The number of durations in each bucket, not cumulative.
    counts: [u64; N],
    /// The number of durations above the last bound.
    longer: u64,
    sum: Duration,
}

#[cfg(feature = "service")]
impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self { counts: [0; N], longer: 0, sum: Duration::ZERO }
    }
}

#[cfg(feature = "service")]
impl<const N: usize> Histogram<N> {
    pub(crate) fn observe(&mut self, took: Duration) {
        let mut buckets = BOUNDS.map(Duration::from_millis).into_iter().zip(&mut self.counts);
        let bucket = buckets.find(|(bound, _)| took <= *bound);
        let count = bucket.map_or(&mut self.longer, |(_, count)| count);
        *count = count.saturating_add(1);
        self.sum = self.sum.saturating_add(took);
    }

    pub(crate) fn write<W: fmt::Write>(
        &self,
        text: &mut OpenMetrics<W>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        text.head(name, "histogram", help)?;
        let mut total = 0_u64;
        for (bound, count) in BOUNDS.map(Duration::from_millis).into_iter().zip(self.counts) {
            total = total.saturating_add(count);
            writeln!(text.out, "{name}_bucket{{le=\"{}\"}} {total}", Seconds(bound))?;
        }
        total = total.saturating_add(self.longer);
        text.line(name, "_bucket", &[("le", "+Inf")], total)?;
        text.line(name, "_count", &[], total)?;
        text.line(name, "_sum", &[], Seconds(self.sum))
    }
}

/// An exact duration in seconds, with at least one decimal.
#[cfg(feature = "service")]
pub(crate) struct Seconds(pub(crate) Duration);

#[cfg(feature = "service")]
impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut fraction, mut width) = (self.0.subsec_nanos(), 9_usize);
        while width > 1 && fraction.is_multiple_of(10) {
            fraction /= 10;
            width = width.saturating_sub(1);
        }
        write!(f, "{}.{fraction:0width$}", self.0.as_secs())
    }
}

/// A text with escaped quotes, backslashes and line ends.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| match char {
            '\n' => f.write_str("\\n"),
            '"' => f.write_str("\\\""),
            '\\' => f.write_str("\\\\"),
            char => fmt::Write::write_char(f, char),
        })
    }
}
