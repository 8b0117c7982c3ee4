//! What monitoring asks for.

use serde_json::json;

use super::receiver::{Receiver, Reply};
use super::running::{Service, eventually, request};

#[test]
fn metrics_count_what_happened() {
    let flags = ["--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"];
    let (service, receiver) = (Service::start(&flags), Receiver::start());
    let fjord = "/accounts/acct_fjord_dental";
    let url = receiver.url("/gone", &[Reply::Status(410)]);
    service.ask("POST", &format!("{fjord}/endpoints"), &json!({ "url": url }), 201);
    service.ask("POST", &format!("{fjord}/calls"), &json!({}), 201);
    service.get("/v1/account", &service.key("acct_fjord_dental", "full"));
    service.get("/v1/account", "nobody");
    let alone = service.first["metrics"].as_str().unwrap().strip_prefix("http://").unwrap();
    let metrics = |address| request(address, "GET", "/metrics", "", b"");
    eventually("the attempt is counted", || {
        metrics(alone).text().contains("disabled_total{reason=\"gone\"} 1").then_some(())
    });
    for address in [alone, service.dashboard()] {
        let answer = metrics(address);
        assert_eq!(answer.status, 200);
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
        let text = answer.text();
        for line in [
            "call_assistant_sender_accepted_total{status=\"waiting\"} 1",
            "call_assistant_sender_attempts_total{outcome=\"410\"} 1",
            "call_assistant_sender_deliveries{status=\"waiting\"} 0",
            "call_assistant_sender_endpoints{state=\"gone\"} 1",
            "call_assistant_api_requests_total{operation=\"get_account\",status=\"2xx\"} 1",
            "call_assistant_api_rejections_total{code=\"invalid_credentials\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
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
