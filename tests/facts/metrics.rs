//! The metrics of the library, the page that lists them, and the dashboard of Grafana.

use std::collections::BTreeSet;

use call_assistant::metrics::OpenMetrics;
use call_assistant::rest::server::ApiMetrics;
use call_assistant::webhook::receiver::ReceiverMetrics;
use call_assistant::webhook::sender::{SenderGauges, SenderMetrics};

use crate::text;

/// The names of all metrics, without the endings of their kinds.
fn written() -> BTreeSet<String> {
    let mut text = OpenMetrics::new(String::new());
    SenderMetrics::default().write(&mut text).unwrap();
    SenderGauges::default().write(&mut text).unwrap();
    ApiMetrics::default().write(&mut text).unwrap();
    ReceiverMetrics::default().write(&mut text).unwrap();
    let text = text.end().unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_page_lists_the_metrics() {
    let page = text("src/metrics.rs");
    let rows = page.lines().filter_map(|line| line.strip_prefix("//! | `call_assistant_"));
    let listed: BTreeSet<String> = rows
        .map(|row| {
            let name = row.split('`').next().unwrap();
            let name = name.trim_end_matches("_total").trim_end_matches("_bucket");
            format!("call_assistant_{name}")
        })
        .collect();
    assert_eq!(listed, written(), "the table of src/metrics.rs, and what is written");
}

/// A receiver is the customer's: the host's dashboard has no panel for it.
#[test]
fn the_dashboard_of_grafana_shows_the_metrics() {
    let dashboard = text("examples/hosts/postgres/deploy/grafana.json");
    let ours = written().into_iter().filter(|name| !name.starts_with("call_assistant_receiver_"));
    let missing: Vec<String> = ours.filter(|name| !dashboard.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "run examples/hosts/postgres/deploy/dashboard.py: {missing:?}");
}
