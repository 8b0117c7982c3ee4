//! The service, a receiver and a sync, as somebody new runs them: three processes, real sockets.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;

use crate::SECRET;
use crate::http::{Front, exchange};
use crate::program::{Folder, Running, example, run, stderr};

const ACCOUNT: &str = "acct_fjord_dental";

fn post(to: SocketAddr, path: &str, body: &str) {
    let head = format!("POST {path} HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\n");
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    assert_eq!(exchange(to, request.as_bytes()).unwrap(), 201, "{path}");
}

/// EVT-9, DEL-1, DEL-4, DEL-8, SYNC-3: a call reaches its customer by both ways, also while the
/// customer is away.
#[test]
fn a_call_reaches_the_receiver_and_the_file() {
    let folder = Folder::new();
    let mut service = example("service");
    service.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]);
    service.args(["--allow-loopback-endpoints", "--time-scale", "0.02"]);
    let mut service = Running::start(&mut service);
    let first: serde_json::Value = serde_json::from_str(&service.said("{")).unwrap();
    let dashboard = first["dashboard"].as_str().unwrap().strip_prefix("http://").unwrap();
    let dashboard: SocketAddr = dashboard.parse().unwrap();
    let accounts = first["accounts"].as_array().unwrap();
    let account = accounts.iter().find(|account| account["id"] == ACCOUNT).unwrap();
    let keys = account["keys"].as_array().unwrap();
    let key = keys.iter().find(|key| key["state"] == "full").unwrap();

    let front = Front::start();
    let receiver = || {
        let mut command = example("receiver");
        command.args(["--listen", "127.0.0.1:0"]).env("WEBHOOK_SECRET", SECRET);
        command.arg("--journal").arg(folder.path("a.journal"));
        let mut running = Running::start(&mut command);
        let line = running.logged("listening on http://");
        let (_, address) = line.split_once("http://").unwrap();
        *front.behind.lock().unwrap() = Some(address.parse().unwrap());
        running
    };
    let mut running = receiver();
    let endpoint = format!(r#"{{"url":"http://{}/hooks","secret":"{SECRET}"}}"#, front.address);
    post(dashboard, &format!("/accounts/{ACCOUNT}/endpoints"), &endpoint);

    let calls = format!("/accounts/{ACCOUNT}/calls");
    post(dashboard, &calls, r#"{"id":"call_while_there"}"#);
    running.said("call.ended call call_while_there");
    *front.behind.lock().unwrap() = None;
    running.kill();
    // Nobody answers: the service tries again, and does so until somebody does.
    post(dashboard, &calls, r#"{"id":"call_while_away"}"#);
    let mut running = receiver();
    running.said("call.ended call call_while_away");
    let told = running.interrupt();
    assert_eq!((told.code, told.stdout.len()), (Some(0), 1));

    let mut sync = example("sync");
    sync.args(["--api", first["api"].as_str().unwrap(), "--time-scale", "0.01"]);
    sync.env("SERVICE_API_KEY", key["secret"].as_str().unwrap());
    sync.arg("--state").arg(folder.path("state")).arg("--out").arg(folder.path("calls"));
    let output = run(&mut sync, b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut ids = BTreeSet::new();
    for line in fs::read_to_string(folder.path("calls")).unwrap().lines() {
        let call: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(ids.insert(call["id"].as_str().unwrap().to_owned()), "{line}");
    }
    assert!(ids.contains("call_while_there") && ids.contains("call_while_away"));
    assert!(ids.len() > 100, "{}", ids.len());
    assert_eq!(service.interrupt().code, Some(0));
}
