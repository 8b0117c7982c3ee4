//! What a process counts, and what its store holds.

use std::fmt::{self, Display};
use std::time::Duration;

use call_assistant::metrics::OpenMetrics;
use call_assistant::webhook::sender::{SenderGauges, SenderMetrics};

/// What a process has counted since it began, and what its store holds now.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub sender: SenderMetrics,
    /// What this process's sender has to send; `None` where it has none.
    pub load: Option<LoadRow>,
    /// Whether the store has answered, a few seconds ago at most.
    pub is_up: bool,
    /// What the store holds; `None` where it has not answered.
    pub gauges: Option<SenderGauges>,
    /// What only this host has.
    pub others: Vec<Family>,
}

/// How a store that answers takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// They are acknowledged.
    Stored,
    /// They wait for a standby server.
    Waiting,
}

/// What a sender's planner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadRow {
    /// Attempts in flight.
    pub in_flight: u32,
    /// Deliveries that are not in flight.
    pub planned: usize,
    /// Deliveries among these that are due, and wait for a limit.
    pub limited: usize,
    /// For how long something that may start was never begun at once.
    pub behind: Duration,
}

impl LoadRow {
    /// Returns it as metrics of this process.
    pub fn families(self) -> Vec<Family> {
        let Self { in_flight, planned, limited, behind } = self;
        vec![
            Family::gauge(
                "call_assistant_sender_in_flight",
                "Attempts of this process that are in flight.",
                in_flight,
            ),
            Family::gauge(
                "call_assistant_sender_planned",
                "Deliveries in the plan of this process.",
                planned,
            ),
            Family::gauge(
                "call_assistant_sender_limited",
                "Deliveries of this process that are due, and wait for a limit.",
                limited,
            ),
            Family::gauge(
                "call_assistant_sender_behind_seconds",
                "The time for which there has always been an attempt that may start but has not begun.",
                behind.as_secs_f64(),
            ),
        ]
    }
}

/// A metric and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    pub name: &'static str,
    pub help: &'static str,
    /// Whether it only grows: then `_total` is added to its name.
    pub is_counter: bool,
    /// The name of the label of a gauge.
    pub label: Option<&'static str>,
    /// Each with the value of the label.
    pub values: Vec<(String, String)>,
}

impl Family {
    /// Creates a gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, value: impl Display) -> Self {
        let values = vec![(String::new(), value.to_string())];
        Self { name, help, is_counter: false, label: None, values }
    }

    /// Creates a counter without labels.
    pub fn counter(name: &'static str, help: &'static str, value: impl Display) -> Self {
        Self { is_counter: true, ..Self::gauge(name, help, value) }
    }

    /// Creates a gauge with a value for each value of a label.
    pub fn labelled<V: Display>(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = (impl Into<String>, V)>,
    ) -> Self {
        let values = values.into_iter().map(|(of, value)| (of.into(), value.to_string())).collect();
        Self { name, help, is_counter: false, label: Some(label), values }
    }

    /// Writes it.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write<W: fmt::Write>(&self, text: &mut OpenMetrics<W>) -> fmt::Result {
        let Self { name, help, is_counter, label, values } = self;
        let plain = values.iter().map(|(_, value)| ([], value));
        match label {
            Some(label) => {
                text.gauge(name, help, values.iter().map(|(of, value)| ([(*label, &**of)], value)))
            }
            None if *is_counter => text.counter(name, help, plain),
            None => text.gauge(name, help, plain),
        }
    }
}
