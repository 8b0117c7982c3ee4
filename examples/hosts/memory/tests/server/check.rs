//! This host is held to the cases of the conformance kit, as any other implementation is.

use std::path::Path;

use serde_json::json;
use tools::check::case::{Verdict, run};
use tools::check::service::{self, Api};

use testing::running::{Service, request};

/// The accounts that the kit asks for.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/check/fixture.json");

// HTTP-1 to HTTP-3, HTTP-5, HTTP-7, RES-2, RES-3, LIST-1 to LIST-6, AUTH-1 to AUTH-5, KEY-4 to KEY-7, ERR-1 to ERR-3,
// RATE-1 to RATE-3, D-1 to D-10, D-12, D-13, D-20 to D-22, D-30, D-31, D-63, D-72, D-81, D-82, D-87
#[test]
fn the_api_keeps_every_rule_of_a_service() {
    let fixture = std::fs::read_to_string(Path::new(FIXTURE)).unwrap();
    let service = Service::start(&["--data", FIXTURE]);
    let dashboard = service.dashboard().to_owned();
    let add_call = move || {
        let target = "/accounts/acct_check_main/calls";
        let body = json!({}).to_string();
        match request(&dashboard, "POST", target, "", body.as_bytes()).status {
            201 => Ok(()),
            status => Err(format!("{target}: {status}")),
        }
    };
    let api = Api::new(&format!("http://{}", service.api()), None, &fixture).unwrap();
    let api = api.with_add_call(Box::new(add_call));
    let verdicts = run(service::CASES, &api, &[], |_| {});
    let failed: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.holds()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    // KEY-7
    for key in fixture.split('"').filter(|text| text.starts_with("service_")) {
        assert!(!service.log().contains(key), "a secret is in the log");
    }
}
