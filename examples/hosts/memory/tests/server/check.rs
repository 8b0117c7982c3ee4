//! This host is held to the cases of the conformance kit, as any other implementation is.

use std::path::Path;

use serde_json::json;
use tools::check::case::{Verdict, run};
use tools::check::sender::{self, Sender};
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
    hold(&run(service::CASES, &api, &[], |_| {}));
    // KEY-7
    for key in fixture.split('"').filter(|text| text.starts_with("service_")) {
        assert!(!service.log().contains(key), "a secret is in the log");
    }
}

#[track_caller]
fn hold(verdicts: &[Verdict]) {
    let failed: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.holds()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The control plane of the kit over a host's dashboard. It is part of the tests: nothing of it ships.
mod control {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::Mutex;

    use serde_json::{Value, json};
    use testing::receiver::{read_head, serving};
    use testing::running::{FJORD, Service, request};

    /// Starts it, and returns its address. Each scale of time is a host of its own.
    pub(super) fn start() -> String {
        let host = Mutex::new(None);
        let address = serving(move |stream| answer(stream, &mut host.lock().unwrap()));
        format!("http://{address}")
    }

    fn answer(mut stream: TcpStream, host: &mut Option<Service>) {
        let Some((first, headers)) = read_head(&mut stream) else { return };
        let length = headers.get("content-length").map_or("0", |length| length.to_str().unwrap());
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        let target = first.split(' ').nth(1).unwrap();
        let (status, answer) = match target {
            "/clock" => {
                let scale = serde_json::from_slice::<Value>(&body).unwrap()["scale"].to_string();
                *host = None;
                *host =
                    Some(Service::start(&["--allow-loopback-endpoints", "--time-scale", &scale]));
                (200, json!({}))
            }
            "/stop" => {
                host.take().unwrap().terminate();
                (200, json!({}))
            }
            _ => asked(host.as_ref().unwrap(), &first, target, &body),
        };
        let text = answer.to_string();
        let head = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n\r\n", text.len());
        let _ = stream.write_all([head, text].concat().as_bytes());
    }

    /// Asks the dashboard, whose words for a delivery that is pending are two.
    fn asked(host: &Service, first: &str, target: &str, body: &[u8]) -> (u16, Value) {
        let target = match target {
            "/endpoints" | "/events" => format!("{FJORD}{target}"),
            _ if target.starts_with("/deliveries?") => format!("{FJORD}{target}&limit=1000"),
            _ => target.to_owned(),
        };
        let method = first.split(' ').next().unwrap();
        let answer = request(host.dashboard(), method, &target, "", body);
        let mut shown = answer.json();
        for delivery in shown["data"].as_array_mut().into_iter().flatten() {
            if delivery["pending"] == true {
                delivery["status"] = "pending".into();
            }
        }
        (answer.status, shown)
    }
}

// DEL-1, DEL-3 to DEL-7, DEL-10, DEL-11, DEL-13, EVT-1, SIG-1, SIG-2, D-50 to D-60, D-63
#[test]
fn the_sender_keeps_every_rule() {
    let sender = Sender::new(&control::start()).unwrap();
    hold(&run(sender::CASES, &sender, &[], |_| {}));
}
