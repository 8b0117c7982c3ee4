//! The text of metrics: what each side counts, in the form of OpenMetrics. Prometheus' own parser
//! reads the same text in `tests/metrics/run`.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::RequestId;
use call_assistant::metrics::OpenMetrics;
use call_assistant::rest::Operation;
use call_assistant::rest::server::{self, Received, RequestHead};
use call_assistant::webhook::receiver::{self, ActiveClaim, ClaimOutcome, Inbox};
use call_assistant::webhook::sender::{
    self, Alert, Attempt, Delivery, DisabledReason, EndedAttempt, EndpointHealth, MAX_ATTEMPTS,
    Outcome, RETENTION, SenderGauges, settle,
};
use call_assistant::webhook::{
    DeliveryHeaders, MalformedReason, Signer, SigningSecret, Verifier, VerifyError, testing,
};
use http::{Response, StatusCode};

use crate::ping;
use support::{nanos, seconds, start};

/// An attempt of a delivery to the endpoint 0.
fn ended(
    delivery: u8,
    attempt: Attempt,
    outcome: Outcome,
    at: Timestamp,
) -> EndedAttempt<'static, u8, u8> {
    EndedAttempt { delivery, endpoint: 0, attempt, outcome, at, response: None }
}

fn sent() -> sender::SenderMetrics {
    let mut metrics = sender::SenderMetrics::default();
    let event = ping(start());
    let mut endpoint = EndpointHealth::new(1, start());
    let (mut rows, mut all) = (BTreeMap::new(), Vec::new());
    for (id, status, took) in
        [(1, 500, 125_000_000), (2, 200, 5_000_000_000), (3, 410, 5_000_000_000)]
    {
        let mut row = Delivery::accept(&event, &endpoint, start());
        metrics.accepted(&row);
        let attempt = row.begin(&endpoint, start()).unwrap();
        rows.insert(id, row);
        let outcome = Outcome::Answered(StatusCode::from_u16(status).unwrap());
        all.push(ended(id, attempt, outcome, nanos(took)));
    }
    let settled = settle(&all, &rows, &BTreeMap::from([(0, endpoint)]));
    metrics.settled(&settled);
    metrics.changed(&endpoint.pause(seconds(9)));
    metrics.accepted(&Delivery::accept(&event, &endpoint, seconds(9)));
    metrics.enabled(DisabledReason::Failing);
    let reminder = r#"{"kind":"still_disabled","reason":"gone","days":1}"#;
    metrics.alerted(&serde_json::from_str::<Alert>(reminder).unwrap());
    metrics.lease_expired();
    metrics.lost_write();
    metrics
}

fn answered() -> server::ApiMetrics {
    let mut metrics = server::ApiMetrics::default();
    let mut ask = |path, took| {
        let head = RequestHead::new("GET", path, None).with_host(b"api.example.com");
        let received = Received::new(&head, RequestId::from_random([1; 16]));
        let result = received.and_then(|received| received.identify(None, start()));
        let result = result.map(|_| Response::new(()));
        metrics.answered(Operation::from_path(path), &result, Duration::from_millis(took));
    };
    ask("/v1/account/", 2);
    ask("/v1/calls", 30);
    metrics.answered(Some(Operation::GetCall), &Ok(Response::new(())), Duration::from_secs(60));
    metrics
}

fn verified() -> receiver::ReceiverMetrics {
    let mut metrics = receiver::ReceiverMetrics::default();
    let secret = SigningSecret::parse("whsec_test").unwrap();
    let signer = Signer::new(secret.clone());
    let verifier = Verifier::new(secret);
    let off = Duration::from_secs(301);
    let (early, late) = (start().saturating_sub(off), start().saturating_add(off));
    let refused = |text: &str, now| {
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        verifier.verify_parts(headers, b"{}", now).unwrap_err()
    };
    let signed = signer.sign(b"{}", start()).as_str().to_owned();
    let (time, digest) = signed.split_once("v1=").unwrap();
    for error in [
        VerifyError::Missing,
        VerifyError::Repeated,
        VerifyError::Malformed(MalformedReason::NoDigest),
        refused(&format!("{time}v1={}", digest.to_uppercase()), start()),
        VerifyError::Mismatch,
        refused(&signed, late),
        refused(&signed, early),
    ] {
        metrics.received(&Err(error.into()));
    }
    let body = br#"{"id":"evt_2","type":"ping","created_at":"2026-01-01T00:00:00Z","api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"message":"m"}}"#;
    let other = testing::signed_request(&signer, "call.ended", "evt_2", body, start()).unwrap();
    metrics.received(&verifier.receive(other.headers(), body, start()));
    let request = testing::signed_request(&signer, "ping", "evt_1", b"{}", start()).unwrap();
    let mut inbox = Inbox::new(10);
    let mut claim = || {
        let receipt = verifier.receive(request.headers(), request.body(), start()).unwrap();
        inbox.claim(receipt, ActiveClaim::LEASE, start())
    };
    let (first, busy) = (claim(), claim());
    for claim in [&first, &busy] {
        metrics.claimed(claim);
    }
    let ClaimOutcome::Process(claimed) = first else { panic!("{first:?}") };
    let (entry, _) = claimed.done(start());
    let receipt = verifier.receive(request.headers(), request.body(), start()).unwrap();
    metrics.claimed(&receipt.claim(Some(&entry), ActiveClaim::LEASE, start()));
    metrics
}

fn text() -> String {
    let mut text = OpenMetrics::new(String::new());
    sent().write(&mut text).unwrap();
    let mut gauges = SenderGauges::default();
    (gauges.pending, gauges.held, gauges.active) = (12, 3, 7);
    gauges.oldest_due = Duration::from_millis(1_500);
    gauges.write(&mut text).unwrap();
    answered().write(&mut text).unwrap();
    verified().write(&mut text).unwrap();
    let odd = "a \"quoted\"\nname \\";
    text.gauge("host_threads", "Threads,\nby name.", [([("name", odd)], 4)]).unwrap();
    text.end().unwrap()
}

#[test]
fn each_tally_counts_what_happened() {
    let text = text();
    let lines = [
        r#"sender_accepted_total{status="waiting"} 3"#,
        r#"sender_accepted_total{status="skipped"} 1"#,
        r#"sender_attempts_total{outcome="2xx"} 1"#,
        r#"sender_attempts_total{outcome="4xx"} 0"#,
        r#"sender_attempts_total{outcome="410"} 1"#,
        r#"sender_attempts_total{outcome="5xx"} 1"#,
        r#"sender_attempts_total{outcome="timeout"} 0"#,
        r#"sender_first_attempts_total{result="success"} 1"#,
        r#"sender_first_attempts_total{result="failure"} 2"#,
        r#"sender_ended_total{status="delivered"} 1"#,
        r#"sender_ended_total{status="gone"} 1"#,
        r#"sender_ended_total{status="parked"} 1"#,
        r#"sender_attempt_duration_seconds_bucket{le="0.1"} 0"#,
        r#"sender_attempt_duration_seconds_bucket{le="0.25"} 1"#,
        // A bound belongs to its bucket.
        r#"sender_attempt_duration_seconds_bucket{le="5.0"} 3"#,
        r#"sender_attempt_duration_seconds_bucket{le="+Inf"} 3"#,
        "sender_attempt_duration_seconds_count 3",
        "sender_attempt_duration_seconds_sum 10.125",
        r#"sender_accept_to_delivered_seconds_bucket{le="5.0"} 1"#,
        r#"sender_endpoints_disabled_total{reason="gone"} 1"#,
        r#"sender_endpoints_disabled_total{reason="paused"} 1"#,
        r#"sender_endpoints_enabled_total{reason="failing"} 1"#,
        // A pause is its owner's, and no alert.
        r#"sender_alerts_total{kind="disabled"} 1"#,
        r#"sender_alerts_total{kind="still_disabled"} 1"#,
        "sender_leases_expired_total 1",
        "sender_writes_lost_total 1",
        "sender_pending 12",
        "sender_held 3",
        "sender_oldest_due_seconds 1.5",
        r#"sender_endpoints{state="active"} 7"#,
        r#"api_requests_total{operation="none",status="4xx"} 1"#,
        r#"api_requests_total{operation="list_calls",status="4xx"} 1"#,
        r#"api_requests_total{operation="get_call",status="2xx"} 1"#,
        r#"api_rejections_total{code="resource_not_found"} 1"#,
        r#"api_rejections_total{code="invalid_credentials"} 1"#,
        r#"api_rate_limited_total{quota="account"} 0"#,
        r#"api_duration_seconds_bucket{le="10.0"} 2"#,
        r#"api_duration_seconds_bucket{le="+Inf"} 3"#,
        "api_duration_seconds_sum 60.032",
        r#"receiver_verifications_total{result="ok"} 0"#,
        r#"receiver_verifications_total{result="too_new"} 1"#,
        r#"receiver_verifications_total{result="too_old"} 1"#,
        r#"receiver_verifications_total{result="missing"} 1"#,
        r#"receiver_verifications_total{result="repeated"} 1"#,
        r#"receiver_verifications_total{result="malformed"} 1"#,
        r#"receiver_verifications_total{result="uppercase_digest"} 1"#,
        r#"receiver_verifications_total{result="mismatch"} 1"#,
        r#"receiver_verifications_total{result="contradiction"} 1"#,
        r#"receiver_events_total{result="claimed"} 1"#,
        r#"receiver_events_total{result="duplicate"} 1"#,
        r#"receiver_events_total{result="busy"} 1"#,
    ];
    has(&text, "", &lines);
}

/// Checks that each of these lines is in a text of metrics.
#[track_caller]
fn has(text: &str, side: &str, lines: &[&str]) {
    for line in lines {
        let line = format!("\ncall_assistant_{side}{line}\n");
        assert!(text.contains(&line), "no {line} in\n{text}");
    }
}

/// The class: what most programs do is not counted. In the order that the receiver's page recommends, each
/// event is counted as stored or as a copy, by the secret that matched, and nothing is left at zero.
#[test]
fn a_receiver_that_stores_counts_events_copies_and_secrets() {
    let secrets = ["whsec_a", "whsec_b", "whsec_c", "whsec_d"]
        .map(|text| SigningSecret::parse(text).unwrap());
    let [first, second, third, fourth] = secrets.clone();
    let verifier = Verifier::new(first).with_secret(second).with_secret(third).with_secret(fourth);
    let (mut metrics, mut rows) = (receiver::ReceiverMetrics::default(), BTreeMap::new());
    let signed_by =
        [(0, "evt_1"), (0, "evt_1"), (1, "evt_2"), (1, "evt_1"), (2, "evt_3"), (3, "evt_4")];
    for (secret, id) in signed_by {
        let signer = Signer::new(secrets[secret].clone());
        let request = testing::signed_request(&signer, "ping", id, id.as_bytes(), start()).unwrap();
        let result = verifier.receive(request.headers(), request.body(), start());
        metrics.received(&result);
        let receipt = result.unwrap();
        let before = rows.insert(receipt.key().clone(), request.into_body());
        metrics.stored(before.is_none());
        assert_eq!(receipt.stored().into_status(), StatusCode::NO_CONTENT, "{secret} {id}");
    }
    let mut text = OpenMetrics::new(String::new());
    metrics.write(&mut text).unwrap();
    let lines = [
        r#"verifications_total{result="ok"} 6"#,
        r#"secrets_total{secret="first"} 2"#,
        r#"secrets_total{secret="second"} 2"#,
        r#"secrets_total{secret="later"} 2"#,
        r#"events_total{result="stored"} 4"#,
        r#"events_total{result="duplicate"} 2"#,
        r#"events_total{result="claimed"} 0"#,
    ];
    has(&text.end().unwrap(), "receiver_", &lines);
}

/// Type, unit and help before the values of each, everything once, and one end.
#[test]
fn the_text_is_in_the_order_of_openmetrics() {
    let text = text();
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    let (mut seen, mut family) = (Vec::new(), "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap();
            assert!(!seen.contains(&family), "{family} is written twice");
            seen.push(family);
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            assert_eq!(rest, format!("{family} seconds"));
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(&format!("{family} ")), "{line}");
        } else {
            assert!(line.starts_with(family) || line == "# EOF", "{line} is not of {family}");
        }
    }
    assert!(text.contains("# HELP host_threads Threads,\\nby name.\n"));
    assert!(text.contains("host_threads{name=\"a \\\"quoted\\\"\\nname \\\\\"} 4\n"));
}

/// What is not an attempt, and what comes late, is counted as such and as nothing else.
#[test]
fn only_scheduled_first_attempts_count_as_first() {
    let endpoint = EndpointHealth::new(1, Timestamp::UNIX_EPOCH);
    let mut delivery = Delivery::accept(&ping(start()), &endpoint, start());
    let mut metrics = sender::SenderMetrics::default();
    let mut attempt = |delivery: &mut Delivery, outcome, now| {
        let attempt = delivery.begin(&endpoint, now).unwrap();
        for is_late in [false, true] {
            let rows = BTreeMap::from([(1, *delivery)]);
            let settled =
                settle(&[ended(1, attempt, outcome, now)], &rows, &BTreeMap::from([(0, endpoint)]));
            assert_eq!(settled.log[0].1.late, is_late, "{outcome}");
            metrics.settled(&settled);
            *delivery = settled.deliveries[0].1;
        }
    };
    attempt(&mut delivery, Outcome::Unsent, start());
    let mut now = start();
    for _ in 0..MAX_ATTEMPTS {
        attempt(&mut delivery, Outcome::Dns, now);
        now = delivery.due(now).unwrap_or(now);
    }
    delivery.redeliver(&endpoint, now).unwrap();
    // D-57: after thirty days this ends a delivery, and is still no attempt.
    attempt(&mut { delivery }, Outcome::Unsent, start().saturating_add(RETENTION));
    attempt(&mut delivery, Outcome::Answered(StatusCode::OK), now);
    let mut text = OpenMetrics::new(String::new());
    metrics.write(&mut text).unwrap();
    let lines = [
        r#"attempts_total{outcome="unsent"} 4"#,
        &format!(r#"attempts_total{{outcome="dns"}} {}"#, 2 * MAX_ATTEMPTS),
        r#"attempts_total{outcome="2xx"} 2"#,
        r#"first_attempts_total{result="success"} 0"#,
        r#"first_attempts_total{result="failure"} 1"#,
        r#"ended_total{status="failed"} 2"#,
        r#"ended_total{status="delivered"} 1"#,
        &format!("attempt_duration_seconds_count {}", 2 * MAX_ATTEMPTS + 2),
        // A manual redelivery, hours later, says nothing of how long events take.
        "accept_to_delivered_seconds_count 0",
    ];
    has(&text.end().unwrap(), "sender_", &lines);
}

/// For `tests/metrics/run`.
#[test]
#[ignore = "writes a file for another reader"]
fn writes_the_text_for_other_readers() {
    std::fs::write(std::env::var("METRICS_TEXT").unwrap(), text()).unwrap();
}
