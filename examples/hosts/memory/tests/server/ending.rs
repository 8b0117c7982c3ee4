//! How the service ends: what has begun is finished, and nothing new begins.

use std::io::Write as _;

use serde_json::Value;

use testing::receiver::{Receiver, Reply};
use testing::running::{Answer, FJORD, Service, connect, eventually};

fn ask_to_end(service: &Service) {
    service.signal("TERM");
    service.logged(" stopping");
}

/// Sends a ping to an endpoint at this URL. Returns when the endpoint has it.
fn in_flight(service: &Service, receiver: &Receiver, path: &str, reply: Reply) {
    let url = receiver.url(path, &[reply]);
    service.ping(&service.hook(&url));
    eventually("it is being sent", || (receiver.got(path).len() == 1).then_some(()));
}

// D-57
#[test]
fn attempts_in_flight_have_their_time_to_end() {
    // With the longest timeout, no attempt ends by itself before the service does.
    let flags = ["--allow-loopback-endpoints", "--timeout-scale", "2.5"];
    let (service, receiver) = (Service::start(&flags), Receiver::start());
    in_flight(&service, &receiver, "/held", Reply::Held(204));
    in_flight(&service, &receiver, "/never", Reply::Nothing);
    ask_to_end(&service);
    receiver.release();
    assert_eq!(service.ended().code, Some(0));
    let log = service.log();
    let (_, after) = log.split_once(" stopping").unwrap();
    assert!(after.contains(" attempt=1 outcome=204 "), "the answer is still stored: {log}");
    let unsent = " attempt=1 outcome=unsent reason=stopping ";
    assert!(after.contains(unsent), "nobody is charged: {log}");
    assert_eq!((receiver.got("/held").len(), receiver.got("/never").len()), (1, 1));
}

#[test]
fn a_half_received_request_is_refused() {
    let service = Service::start(&["--allow-loopback-endpoints"]);
    // One that is answered keeps the service for a while, so that the others meet it ending.
    let receiver = Receiver::start();
    in_flight(&service, &receiver, "/held", Reply::Held(204));
    let (api, dashboard) = (service.api(), service.dashboard());
    let key = service.key("acct_fjord_dental", "full");
    let head = format!("POST {FJORD}/calls HTTP/1.1\r\nHost: {dashboard}\r\n");
    let mut body = connect(dashboard);
    body.write_all(format!("{head}Content-Length: 2\r\n\r\n{{").as_bytes()).unwrap();
    let mut half = connect(dashboard);
    half.write_all(head.as_bytes()).unwrap();
    let idle = connect(api);
    let mut get = connect(api);
    let request = format!("GET /v1/account HTTP/1.1\r\nHost: {api}\r\nAuthorization: Bearer {key}");
    get.write_all(request.as_bytes()).unwrap();
    service.show("/accounts");

    ask_to_end(&service);
    let rest: [&[u8]; 3] = [b"}", b"Content-Length: 2\r\n\r\n{}", b"\r\n\r\n"];
    for (stream, rest) in [&mut body, &mut half, &mut get].into_iter().zip(rest) {
        // It may be closed by now, which is a refusal as well.
        let _ = stream.write_all(rest);
    }
    for (what, status, mut stream) in [("body", 503, body), ("head", 503, half), ("GET", 500, get)]
    {
        let mut answer = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
        let Some(answer) = Answer::parse(&answer) else { continue };
        assert_eq!(answer.status, status, "{what}");
        let code: &Value = &answer.json()["error"]["code"];
        let expected = if status == 503 { "stopping" } else { "internal_error" };
        assert_eq!(code, expected, "{what}");
    }
    receiver.release();
    // An idle connection does not delay the end.
    assert_eq!(service.ended().code, Some(0));
    drop(idle);
    assert!(!service.log().contains("calls 201"), "{}", service.log());
}
