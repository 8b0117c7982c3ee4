//! Counts what happened in fixed memory, and writes it as OpenMetrics text.
//!
//! ```
//! use call_assistant::metrics::OpenMetrics;
//! # #[cfg(feature = "client")] {
//! use call_assistant::webhook::VerifyError;
//! use call_assistant::webhook::receiver::ReceiverTally;
//!
//! let mut tally = ReceiverTally::default();
//! tally.received(&Err::<(), _>(VerifyError::Missing.into()));
//!
//! let mut text = OpenMetrics::new(String::new());
//! tally.write(&mut text)?;
//! text.gauge("host_connections", "Open connections.", [([], 3)])?; // the host's own
//! let text = text.end()?; // GET /metrics
//! assert!(text.contains("call_assistant_receiver_verifications_total{result=\"missing\"} 1\n"));
//! assert!(text.ends_with("host_connections 3\n# EOF\n"));
//! # }
//! # Ok::<(), std::fmt::Error>(())
//! ```
//!
//! Each side that counts has a tally: [`SenderTally`](crate::webhook::sender::SenderTally),
//! [`ReceiverTally`](crate::webhook::receiver::ReceiverTally) and
//! [`ServerTally`](crate::rest::server::ServerTally). A host counts each transition when it is stored, so that no store is searched for a number. A tally is
//! a few hundred bytes, counting allocates nothing, and tallies of several threads are merged by
//! their `merge`. Serve the text as `application/openmetrics-text; version=1.0.0; charset=utf-8`.
//!
//! # Labels
//! Every label has a closed set of values. No label holds an account, an endpoint or an event:
//! - Each value of a label is a series of its own, which the monitoring system keeps for weeks. With
//!   an id in a label, customers decide how many series there are, and the memory of the monitoring
//!   system fails on the day of the outage.
//! - Whoever may read metrics would learn which customers there are and what they do.
//!
//! What happened to one endpoint is in its log and in its
//! [alerts](crate::webhook::sender#alerts). The [guide](crate::guide::operating) has alert rules.

use core::fmt;
#[cfg(feature = "service")]
use core::time::Duration;

/// Names the content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Writes OpenMetrics text, over any [`fmt::Write`].
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
/// Write each name once, and [`end`](Self::end) the text. A name that ends in `_seconds` has seconds
/// as its unit.
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

    /// Writes a counter: a value for each set of labels. `_total` is added to its name.
    ///
    /// # Errors
    /// The writer fails.
    pub fn counter<'a, const L: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'a str, &'a str); L], u64)>,
    ) -> fmt::Result {
        self.head(name, "counter", help)?;
        values.into_iter().try_for_each(|(labels, value)| self.line(name, "_total", &labels, value))
    }

    /// Writes a gauge: a value for each set of labels.
    ///
    /// # Errors
    /// The writer fails.
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
    /// The writer fails.
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

/// How often each of `N` things happened. What they are is for its tally to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters<const N: usize>([u64; N]);

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Counters<N> {
    pub(crate) fn count(&mut self, which: usize) {
        if let Some(count) = self.0.get_mut(which) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts one of a list with a counter for each.
    #[cfg(feature = "service")]
    pub(crate) fn count_of<T: PartialEq>(&mut self, all: &[T], which: &T) {
        if let Some(at) = all.iter().position(|one| one == which) {
            self.count(at);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }

    /// The counts with the values of a label.
    pub(crate) fn by<'a>(
        &self,
        label: &'a str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> impl Iterator<Item = ([(&'a str, &'a str); 1], u64)> {
        values.into_iter().zip(self.0).map(move |(value, count)| ([(label, value)], count))
    }

    #[cfg(feature = "service")]
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.into_iter()
    }
}

/// Bounds for what ends within ten seconds.
#[cfg(feature = "service")]
pub(crate) static SHORT: [Duration; 11] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// How many durations were at most as long as each bound.
#[cfg(feature = "service")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Histogram<const N: usize> {
    bounds: &'static [Duration; N],
    /// Of each bucket alone.
    counts: [u64; N],
    longer: u64,
    sum: Duration,
}

#[cfg(feature = "service")]
impl<const N: usize> Histogram<N> {
    pub(crate) const fn new(bounds: &'static [Duration; N]) -> Self {
        Self { bounds, counts: [0; N], longer: 0, sum: Duration::ZERO }
    }

    pub(crate) fn observe(&mut self, took: Duration) {
        let mut buckets = self.bounds.iter().zip(&mut self.counts);
        let count = buckets.find(|(bound, _)| took <= **bound).map(|(_, count)| count);
        let count = count.unwrap_or(&mut self.longer);
        *count = count.saturating_add(1);
        self.sum = self.sum.saturating_add(took);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.longer = self.longer.saturating_add(other.longer);
        self.sum = self.sum.saturating_add(other.sum);
    }

    pub(crate) fn write<W: fmt::Write>(
        &self,
        text: &mut OpenMetrics<W>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        text.head(name, "histogram", help)?;
        let mut total = 0_u64;
        for (bound, count) in self.bounds.iter().zip(self.counts) {
            total = total.saturating_add(count);
            writeln!(text.out, "{name}_bucket{{le=\"{}\"}} {total}", Seconds(*bound))?;
        }
        total = total.saturating_add(self.longer);
        text.line(name, "_bucket", &[("le", "+Inf")], total)?;
        text.line(name, "_count", &[], total)?;
        text.line(name, "_sum", &[], Seconds(self.sum))
    }
}

/// A duration in seconds, exactly, with one decimal at least.
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

/// A text between quotes, or in one line.
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
