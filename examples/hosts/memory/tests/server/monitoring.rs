//! What monitoring asks for.

use call_assistant::metrics::OpenMetrics;
use call_assistant::webhook::receiver;

use testing::receiver::{Receiver, Reply};
use testing::running::{Service, eventually, request};

#[test]
fn metrics_count_what_happened() {
    let flags = ["--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"];
    let (service, receiver) = (Service::start(&flags), Receiver::start());
    service.endpoint(&receiver.url("/gone", &[Reply::Status(410)]));
    service.call();
    service.get("/v1/account", &service.key("acct_fjord_dental", "full"));
    service.get("/v1/account", "nobody");
    let alone = service.address("metrics");
    let metrics = |address| request(address, "GET", "/metrics", "", b"");
    eventually("the attempt is counted", || {
        metrics(alone).text().contains("disabled_total{reason=\"gone\"} 1").then_some(())
    });
    for address in [alone, service.dashboard()] {
        let answer = metrics(address);
        assert_eq!(answer.status, 200);
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
        for line in [
            "call_assistant_sender_accepted_total{status=\"waiting\"} 1",
            "call_assistant_sender_attempts_total{outcome=\"410\"} 1",
            "call_assistant_sender_pending 0",
            "call_assistant_sender_endpoints{state=\"gone\"} 1",
            "call_assistant_api_requests_total{operation=\"get_account\",status=\"2xx\"} 1",
            "call_assistant_api_rejections_total{code=\"invalid_credentials\"} 1",
        ] {
            // What a database holds may be shown for some seconds.
            eventually(line, || {
                metrics(address).text().lines().any(|found| found == line).then_some(())
            });
        }
        let text = answer.text();
        assert!(text.ends_with("# EOF\n"));
        assert!(!text.contains("acct_"), "no label names an account: {text}");
    }

    for path in ["/healthz", "/readyz"] {
        for address in [alone, service.dashboard()] {
            assert_eq!(request(address, "GET", path, "", b"").status, 200, "{path}");
        }
        assert_eq!(request(alone, "POST", path, "", b"x").status, 405, "{path}");
    }
    // These alone: nobody reads an account there.
    for path in ["/", "/accounts", "/v1/account"] {
        assert_eq!(request(alone, "GET", path, "", b"").status, 404, "{path}");
    }
}

#[test]
fn the_metrics_of_the_guide_are_there() {
    // The library's names, and those of hosts.
    let library = include_str!("../../../../../src/metrics.rs").lines();
    let mut guide: String = library
        .filter_map(|line| line.strip_prefix("//! | `"))
        .fold(String::new(), |all, row| all + "| `" + row + "\n");
    guide += include_str!("../../../postgres/docs/operating.md");
    let roles = include_str!("../../../postgres/deploy/roles.sql");
    let service = Service::start(&[]);
    // A host over a database shows its gauges once it has counted.
    let mut text = eventually("gauges", || {
        let text = request(service.dashboard(), "GET", "/metrics", "", b"").text();
        text.contains("\ncall_assistant_sender_pending ").then_some(text)
    });
    // Those of a receiver are no service's.
    let mut of_receiver = OpenMetrics::new(String::new());
    receiver::ReceiverMetrics::default().write(&mut of_receiver).unwrap();
    text.push_str(&of_receiver.end().unwrap());
    let has = |name: &str, label: Option<(&str, &str)>| {
        let label = label.map(|(label, value)| format!("{label}=\"{value}\""));
        text.lines().any(|line| {
            let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']));
            rest.is_some_and(|rest| label.as_ref().is_none_or(|label| rest.contains(label)))
        })
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // | `name` | words, by `label`: `value`, `value`, and by `label`: `value` |
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows: Vec<_> = rows.filter(|(name, _)| name.chars().all(word)).collect();
    // Their own tests read these.
    let of_a_database: Vec<&str> = rows
        .iter()
        .filter(|(_, told)| told.starts_with("database"))
        .map(|(name, _)| *name)
        .collect();

    for (at, _) in guide.match_indices("call_assistant_") {
        let (_, rest) = guide.split_at(at);
        let (name, rest) = rest.split_at(rest.find(|c| !word(c)).unwrap());
        // Roles of the database are called so, too.
        if of_a_database.contains(&name) || roles.contains(&format!("'{name}'")) {
            continue;
        }
        assert!(has(name, None), "{name}");
        let selected = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        if let Some((label, values)) = selected.and_then(|(selected, _)| selected.split_once('=')) {
            for value in values.trim_start_matches('~').trim_matches('"').split('|') {
                assert!(has(name, Some((label, value))), "{name}: {label} {value}");
            }
        }
    }
    for (name, told) in rows.iter().filter(|(name, _)| !of_a_database.contains(name)) {
        for labels in told.split(" by `").skip(1) {
            let (label, values) = labels.split_once('`').unwrap();
            for value in values.split('`').skip(1).step_by(2) {
                assert!(has(name, Some((label, value))), "{name}: {label} {value}");
            }
        }
    }
    assert!(rows.len() >= 20, "the table: {rows:?}");
}
