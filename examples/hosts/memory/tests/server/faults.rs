//! The sandbox: faults on order, and a clock that is moved. A customer's reader and receiver do with
//! them what the library documents.

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::rest::ErrorCode;
use call_assistant::rest::client::{CallSync, Client, Step};
use call_assistant::webhook::event::EventData;
use call_assistant::webhook::sender::{LONGEST_DELIVERY, MAX_ATTEMPTS, RETRY_WAITS};
use call_assistant::webhook::{SigningSecret, Verifier, VerifyError};
use serde_json::{Value, json};

use host::clock;
use testing::receiver::{Got, Receiver, Reply};
use testing::running::{Answer, FJORD, Service, eventually, request};

#[track_caller]
fn order(service: &Service, fault: &Value) -> Value {
    service.ask("POST", "/faults", fault, 201)
}

fn orders(service: &Service) -> Value {
    service.show("/faults")["data"].clone()
}

/// An answer of the API as an HTTP client returns it: one that was cut short is an error.
fn send(service: &Service, sent: &http::Request<()>) -> io::Result<http::Response<Vec<u8>>> {
    let key = sent.headers()["authorization"].to_str().unwrap();
    let headers = format!("Authorization: {key}\r\n");
    let path = sent.uri().path_and_query().unwrap().as_str();
    let answer = request(service.api(), "GET", path, &headers, b"");
    if answer.header("content-length").map(str::parse) != Some(Ok(answer.body.len())) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut response = http::Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(answer.body).unwrap())
}

/// Copies the calls, and returns their number and how often a request failed.
fn copy(service: &Service) -> (usize, u64) {
    let key = service.key("acct_fjord_dental", "full");
    let client = Client::new(service.first["api"].as_str().unwrap(), &key).unwrap();
    let mut flow = client.sync(CallSync::new());
    let (mut copied, mut now) = (0, clock::now());
    loop {
        match flow.next([7; 8], now) {
            Step::Send { request, ticket, .. } => flow.report(ticket, send(service, &request), now),
            Step::Wait(until) => now = until, // the service is asked again at once
            Step::Store(batch) => {
                copied += batch.calls.len();
                flow.stored();
            }
            Step::Done(result) => {
                result.unwrap();
                return (copied, flow.progress().failures);
            }
        }
    }
}

#[test]
fn every_documented_error_on_order() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    // A cursor can only be refused where one was sent.
    for code in ErrorCode::KNOWN.iter().filter(|code| **code != ErrorCode::InvalidCursor) {
        order(&service, &json!({ "fault": code.as_str() }));
        let answer = service.get("/v1/calls", &key);
        assert_eq!(Some(answer.status), code.status().map(|status| status.as_u16()), "{code}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], code.as_str(), "{code}");
        let id = answer.header("x-request-id").unwrap();
        assert_eq!(error["request_id"], id, "{code}");
        assert!(!id.contains("7e7e7e7e"), "{code}: {id}");
        assert_eq!(service.get("/v1/calls", &key).status, 200, "{code}: once");
    }
    order(&service, &json!({ "fault": "invalid_cursor" }));
    let page = service.get("/v1/calls?limit=1", &key);
    assert_eq!(page.status, 200);
    let next = page.json()["next_cursor"].as_str().unwrap().to_owned();
    let refused = service.get(&format!("/v1/calls?limit=1&cursor={next}"), &key);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("invalid_cursor")));

    order(&service, &json!({ "fault": "rate_limit_exceeded", "retry_after": 77, "next": 2 }));
    for left in [1, 0] {
        let answer = service.get("/v1/account", &key);
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("77")), "{left} left");
    }
    order(&service, &json!({ "fault": "lookup_fails" }));
    assert_eq!(service.get("/v1/account", &key).status, 500);
    assert_eq!(orders(&service), json!([]));
}

#[test]
fn slow_and_cut_answers() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    order(&service, &json!({ "fault": "slow", "milliseconds": 300 }));
    let began = Instant::now();
    assert_eq!(service.get("/v1/account", &key).status, 200);
    assert!(began.elapsed() >= Duration::from_millis(300));

    let whole = service.get("/v1/account", &key);
    order(&service, &json!({ "fault": "cut" }));
    let cut = service.get("/v1/account", &key);
    assert_eq!(cut.header("content-length"), whole.header("content-length"));
    assert_eq!(cut.body, whole.body[..whole.body.len() / 2]);
}

// A reader loses and repeats nothing under all faults that pass.
#[test]
fn a_copy_through_faults_is_complete() {
    let service = Service::start(&[]);
    let (complete, failures) = copy(&service);
    assert!(complete > 0 && failures == 0, "{complete} calls, {failures} failures");
    for fault in ["internal_error", "cut", "lookup_fails", "invalid_cursor"] {
        order(&service, &json!({ "fault": fault }));
    }
    order(&service, &json!({ "fault": "rate_limit_exceeded", "retry_after": 3 }));
    let (copied, failures) = copy(&service);
    assert_eq!(copied, complete);
    assert!(failures >= 4, "{failures}");
}

#[test]
fn a_probability_strikes_the_same_way_for_the_same_seed() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    let strikes = |seed: u64| {
        let chance = json!({ "fault": "internal_error", "probability": 0.5, "seed": seed });
        let order = order(&service, &chance);
        let struck: Vec<_> =
            (0..20).map(|_| service.get("/v1/account", &key).status == 500).collect();
        let path = format!("/faults/{}", order["id"]);
        assert_eq!(orders(&service)[0]["done"], struck.iter().filter(|struck| **struck).count());
        service.ask("DELETE", &path, &json!({}), 200);
        struck
    };
    let (first, second, other) = (strikes(1), strikes(1), strikes(2));
    assert_eq!(first, second);
    assert_ne!(first, other);
    assert!(first.contains(&true) && first.contains(&false), "{first:?}");
}

#[test]
fn a_wrong_order_is_refused_by_its_field() {
    let service = Service::start(&[]);
    let after = |seconds: f64| json!({ "advance_seconds": seconds });
    let both = json!({ "advance_seconds": 1, "to": "2027-01-01T00:00:00Z" });
    for (path, body, field) in [
        ("/faults", json!({}), json!("fault")),
        ("/faults", json!({ "fault": "nothing" }), json!("fault")),
        ("/faults", json!({ "fault": "cut", "next": 0 }), json!("next")),
        ("/faults", json!({ "fault": "cut", "next": 1, "probability": 0.1 }), json!("next")),
        ("/faults", json!({ "fault": "cut", "probability": 1.5 }), json!("probability")),
        ("/faults", json!({ "fault": "cut", "seed": 1 }), json!("seed")),
        ("/faults", json!({ "fault": "cut", "milliseconds": 1 }), json!("milliseconds")),
        ("/faults", json!({ "fault": "slow" }), json!("milliseconds")),
        ("/faults", json!({ "fault": "slow", "milliseconds": 120_001 }), json!("milliseconds")),
        ("/faults", json!({ "fault": "cut", "retry_after": 1 }), json!("retry_after")),
        ("/faults", json!({ "fault": "cut", "often": 1 }), json!("often")),
        ("/faults", json!({ "fault": "cut", "account": 1 }), json!("account")),
        ("/clock", json!({}), json!(null)),
        ("/clock", after(-1.0), json!("advance_seconds")),
        ("/clock", after(1e12), json!("advance_seconds")),
        ("/clock", json!({ "to": "2020-01-01T00:00:00Z" }), json!("to")),
        ("/clock", json!({ "to": "9999-01-01T00:00:00Z" }), json!("to")),
        ("/clock", json!({ "to": "tomorrow" }), json!("to")),
        ("/clock", both, json!("to")),
    ] {
        let refused = service.ask("POST", path, &body, 400);
        assert_eq!(refused["error"]["field"], field, "{path} {body}");
    }
    let unknown = service.ask("POST", "/faults", &json!({ "fault": "nothing" }), 400);
    let said = unknown["error"]["message"].as_str().unwrap();
    assert!(said.contains("account_closed") && said.contains("two_digests"), "{said}");
    // What it says can be ordered, can.
    let known = &service.show("/faults")["known"];
    let [requests, deliveries] =
        ["requests", "deliveries"].map(|kind| known[kind].as_array().unwrap());
    for name in requests.iter().chain(deliveries) {
        let mut body = json!({ "fault": name });
        if name == "slow" {
            body["milliseconds"] = json!(1);
        }
        assert_eq!(order(&service, &body)["fault"], *name, "{known}");
    }
    assert_eq!((requests.len(), deliveries.len()), (14, 16));
    let (nobody, nowhere) = ("acct_nobody", "whep_nobody");
    for (method, path, body, status) in [
        ("DELETE", "/faults", json!({}), 200),
        ("POST", "/faults", json!({ "fault": "twice", "account": nobody }), 404),
        ("POST", "/faults", json!({ "fault": "twice", "endpoint": nowhere }), 404),
        ("PUT", "/faults", json!({}), 405),
        ("GET", "/faults/1", json!({}), 405),
        ("DELETE", "/faults/1", json!({}), 404),
        ("DELETE", "/clock", json!({}), 405),
    ] {
        service.ask(method, path, &body, status);
    }
}

struct Hook {
    service: Service,
    receiver: Receiver,
    verifier: Verifier,
    endpoint: String,
}

const HOOK: &str = "/hook";

impl Hook {
    fn start(replies: &[Reply]) -> Self {
        let service = Service::start(&["--allow-loopback-endpoints"]);
        let receiver = Receiver::start();
        let endpoint = service.endpoint(&receiver.url(HOOK, replies));
        let secret = SigningSecret::parse(endpoint["secret"].as_str().unwrap()).unwrap();
        let endpoint = endpoint["id"].as_str().unwrap().to_owned();
        Self { service, receiver, verifier: Verifier::new(secret), endpoint }
    }

    /// Records a call, and returns the id of its delivery.
    fn call(&self) -> String {
        let call = self.service.call();
        let to_it = call["deliveries"].as_array().unwrap().last().unwrap();
        to_it.as_str().unwrap().to_owned()
    }

    fn delivery(&self, id: &str) -> Value {
        self.service.show(&format!("/deliveries/{id}"))
    }

    /// The first requests that came, when there are so many.
    fn got(&self, count: usize) -> Vec<Got> {
        eventually("it comes", || Some(self.receiver.got(HOOK)).filter(|got| got.len() >= count))
    }
}

/// What a receiver has to refuse, and what it has to take all the same.
#[test]
fn faults_of_deliveries_reach_the_receiver() {
    let hook = Hook::start(&[Reply::Status(204)]);
    let rotate = format!("/endpoints/{}/rotate", hook.endpoint);
    let newest = hook.service.ask("POST", &rotate, &json!({}), 200);
    let newest = newest["secret"].as_str().unwrap();
    let rows = [
        "wrong_signature",
        "no_signature",
        "old_timestamp",
        "future_timestamp",
        "old_secret",
        "two_digests",
        "unknown_type",
        "changed_object",
        "large_body",
        "non_ascii",
        "twice",
        "twice_at_once",
        "burst",
    ];
    let mut before = 0;
    for fault in rows {
        let copies = match fault {
            "twice" | "twice_at_once" => 2,
            "burst" => 100,
            _ => 1,
        };
        order(&hook.service, &json!({ "fault": fault, "endpoint": hook.endpoint }));
        hook.call();
        let all = hook.got(before + copies).split_off(before);
        before += copies;
        assert_eq!(all.len(), copies, "{fault}");
        assert!(all.iter().all(|one| one.body == all[0].body), "{fault}");
        let got = &all[0];
        let signature = got.headers.get("x-service-signature").map(|value| value.to_str().unwrap());
        let digests = signature.unwrap_or_default().matches("v1=").count();
        // The verifier has the older secret only.
        let verified = hook.verifier.verify(&got.headers, &got.body, clock::now());
        match (fault, verified.map(|verified| verified.event().unwrap().data)) {
            ("wrong_signature", Err(VerifyError::Mismatch))
            | ("old_timestamp", Err(VerifyError::TooOld { .. }))
            | ("future_timestamp", Err(VerifyError::TooNew { .. }))
            | ("unknown_type", Ok(EventData::Unknown(_)))
            | ("changed_object", Ok(EventData::Unreadable { .. }))
            | ("twice" | "twice_at_once" | "burst", Ok(EventData::CallEnded(_))) => {}
            ("no_signature", Err(_)) => assert_eq!(signature, None),
            ("old_secret", Ok(_)) => {
                assert_eq!((digests, got.is_signed_with(newest)), (1, false), "{signature:?}");
            }
            ("two_digests", Ok(_)) => {
                assert_eq!((digests, got.is_signed_with(newest)), (3, true), "{signature:?}");
            }
            ("large_body", Ok(EventData::CallEnded(_))) => assert_eq!(got.body.len(), 1024 * 1024),
            ("non_ascii", Ok(EventData::CallEnded(_))) => {
                assert!(String::from_utf8_lossy(&got.body).contains("Åse"));
            }
            (_, verdict) => panic!("{fault}: {verdict:?}"),
        }
    }
    assert_eq!(hook.receiver.got(HOOK).len(), before);
}

/// What a library of HTTP hides: the bytes as they were sent.
#[test]
fn faults_of_the_form_of_a_request() {
    let service = Service::start(&["--allow-loopback-endpoints"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = service.hook(&format!("http://{}/", listener.local_addr().unwrap()));
    let next = || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        let ends = |bytes: &[u8]| bytes.ends_with(b"0\r\n\r\n") || bytes.ends_with(b"}");
        while !ends(&bytes) {
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk).unwrap();
            assert_ne!(read, 0, "{}", String::from_utf8_lossy(&bytes));
            bytes.extend(&chunk[..read]);
        }
        stream.write_all(b"HTTP/1.0 204 No Content\r\n\r\n").unwrap();
        String::from_utf8(bytes).unwrap()
    };
    for (fault, header, other) in [
        ("chunked", "\r\ntransfer-encoding: chunked\r\n", "content-length"),
        ("header_case", "\r\nX-Service-Signature: t=", "x-service-signature"),
    ] {
        order(&service, &json!({ "fault": fault }));
        service.ping(&hook);
        let sent = next();
        assert!(sent.contains(header) && !sent.contains(other), "{fault}: {sent}");
    }
    service.ping(&hook);
    assert!(next().contains("\r\nx-service-signature: t="), "and then none");
}

/// Tests that run at the same time do not disturb each other.
#[test]
fn a_fault_strikes_one_account_or_one_endpoint() {
    let hook = Hook::start(&[Reply::Status(204)]);
    let other = hook.service.hook(&hook.receiver.url("/other", &[Reply::Status(204)]));
    let is_signed = |got: &Got| got.headers.contains_key("x-service-signature");
    order(&hook.service, &json!({ "fault": "no_signature", "endpoint": hook.endpoint }));
    hook.service.ping(&other);
    let to_other = eventually("it comes", || hook.receiver.got("/other").pop());
    assert!(is_signed(&to_other), "another endpoint");
    hook.service.ping(&format!("/endpoints/{}", hook.endpoint));
    assert!(!is_signed(&hook.got(1)[0]));

    let (fjord, harbour) = ("acct_fjord_dental", "acct_harbour_hair");
    order(&hook.service, &json!({ "fault": "twice", "account": harbour, "next": 5 }));
    order(&hook.service, &json!({ "fault": "lookup_fails", "account": harbour }));
    assert_eq!(hook.service.get("/v1/account", &hook.service.key(fjord, "full")).status, 200);
    hook.service.ping(&other);
    eventually("it comes", || (hook.receiver.got("/other").len() == 2).then_some(()));
    let left: Vec<_> = orders(&hook.service).as_array().unwrap().clone();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!((&left[0]["account"], &left[0]["done"]), (&json!(harbour), &json!(0)));
    assert_eq!(hook.service.get("/v1/account", &hook.service.key(harbour, "full")).status, 500);
}

#[test]
fn the_log_names_what_was_sent_and_where() {
    let hook = Hook::start(&[Reply::Status(204)]);
    order(&hook.service, &json!({ "fault": "wrong_signature" }));
    order(&hook.service, &json!({ "fault": "slow", "milliseconds": 1 }));
    let delivery = hook.call();
    let event = hook.delivery(&delivery)["event_id"].as_str().unwrap().to_owned();
    let url = hook.receiver.url(HOOK, &[Reply::Status(204)]);
    let host = url.trim_start_matches("http://").trim_end_matches(HOOK);
    let what = format!("call.ended {event} {delivery} to {} at {host}", hook.endpoint);
    hook.service.get("/v1/account", &hook.service.key("acct_fjord_dental", "full"));
    // What stands where an id belongs may be anything.
    order(&hook.service, &json!({ "fault": "lookup_fails", "next": 2 }));
    let long = format!("/v1/calls/{}", "x".repeat(5_000));
    request(hook.service.api(), "GET", &long, "", b"");
    request(hook.service.api(), &"M".repeat(100), "/v1/a%1bb", "", b"");
    for line in [
        format!(" sandbox fault wrong_signature {what}\n"),
        format!(" event={event} delivery={delivery} type=call.ended host={host}\n"),
        " sandbox fault slow GET /v1/account\n".to_owned(),
        " sandbox fault lookup_fails GET /v1/calls/{call_id}\n".to_owned(),
        " sandbox fault lookup_fails (other) (unknown path)\n".to_owned(),
    ] {
        eventually(&line, || hook.service.log().contains(&line).then_some(()));
    }
    assert!(!hook.service.log().contains(HOOK), "a path may be secret: {}", hook.service.log());
}

#[test]
fn a_delivery_is_overtaken() {
    let hook = Hook::start(&[Reply::Status(204)]);
    let id = |got: &Got| got.header("x-service-delivery").to_owned();
    let event = |delivery: &str| hook.delivery(delivery)["event_id"].as_str().unwrap().to_owned();
    let mut came = 0;
    eventually("one is overtaken", || {
        let ordered_at = clock::now();
        order(&hook.service, &json!({ "fault": "out_of_order" }));
        let first = event(&hook.call());
        hook.service.logged_times(&format!("fault out_of_order call.ended {first} "), 1);
        let second = event(&hook.call());
        came += 2;
        let got = hook.got(came).split_off(came - 2);
        let ids: Vec<_> = got.iter().map(id).collect();
        if ids == [second.clone(), first.clone()] {
            return Some(());
        }
        // It is held for two seconds, which the next one took to come: then it is another one's turn.
        assert_eq!(ids, [first, second]);
        let waited = got[0].at.since(ordered_at);
        assert!(waited >= Duration::from_secs(2), "{waited:?}");
        None
    });
}

// DEL-5, DEL-6: the waits of the schedule, in virtual time.
#[test]
fn a_whole_schedule_in_a_moment() {
    let began_at = Instant::now();
    let hook = Hook::start(&[Reply::Status(500)]);
    let delivery = hook.call();
    hook.got(1);
    let hours = LONGEST_DELIVERY.as_secs() + 3_600;
    let moved = hook.service.ask("POST", "/clock", &json!({ "advance_seconds": hours }), 200);
    assert_eq!(moved["stops"], RETRY_WAITS.len());
    // The time that passed by itself is not moved.
    let took = began_at.elapsed();
    assert!(moved["ahead_seconds"].as_f64().unwrap() > hours as f64 - took.as_secs_f64());
    let failed = hook.delivery(&delivery);
    assert_eq!((&failed["status"], &failed["pending"]), (&json!("failed"), &json!(false)));
    let began = |at: usize| {
        let text = failed["attempts"][at]["began_at"].as_str().unwrap();
        Timestamp::parse(text).unwrap()
    };
    assert_eq!(failed["attempts"].as_array().unwrap().len(), usize::from(MAX_ATTEMPTS));
    // From the end of the previous attempt: with what the attempts took, which is less than the test.
    for (at, wait) in RETRY_WAITS.iter().copied().enumerate() {
        let between = began(at + 1).since(began(at));
        assert!((wait..=wait + took).contains(&between), "wait {at}: {between:?}");
    }
    // Receivers have the machine's clock, whatever the service's says.
    for (at, got) in hook.got(MAX_ATTEMPTS.into()).iter().enumerate() {
        let verified = hook.verifier.verify(&got.headers, &got.body, clock::now());
        assert!(verified.is_ok(), "attempt {at}: {verified:?}");
    }
    let endpoint = hook.service.show(&format!("/endpoints/{}", hook.endpoint));
    assert_eq!(endpoint["consecutive_failures"], 1);

    // Thirty days later the log is gone.
    hook.service.ask("POST", "/clock", &json!({ "advance_seconds": 31 * 86_400 }), 200);
    hook.service.ask("GET", &format!("/deliveries/{delivery}"), &json!({}), 404);
}

#[test]
fn a_key_expires_and_a_window_empties_when_the_clock_is_moved() {
    let service = Service::start(&[]);
    let expires = clock::now().saturating_add(Duration::from_secs(3600)).to_string();
    let key = json!({ "name": "short", "mode": "live", "scopes": ["account:read"], "expires_at": expires });
    let key = service.ask("POST", &format!("{FJORD}/keys"), &key, 201);
    let key = key["secret"].as_str().unwrap();
    let statuses = |count| (0..count).map(|_| service.get("/v1/account", key).status);
    assert_eq!(statuses(61).filter(|status| *status == 200).count(), 60);
    service.ask("POST", "/clock", &json!({ "advance_seconds": 61 }), 200);
    let hour = || {
        let shown = service.show("/clock");
        format!(" {}:", shown["now"].as_str().unwrap().get(11..13).unwrap())
    };
    let before = hour();
    let answer: Answer = service.get("/v1/account", key);
    let hours = [before, hour()];
    assert_eq!(answer.status, 200);
    let date = answer.header("date").unwrap();
    assert_eq!(date.len(), "Sun, 06 Nov 1994 08:49:37 GMT".len(), "{date}");
    let in_time = hours.iter().any(|hour| date.contains(hour));
    assert!(in_time && date.ends_with(" GMT"), "{date} and {hours:?}");
    service.ask("POST", "/clock", &json!({ "to": expires }), 200);
    assert_eq!(service.get("/v1/account", key).status, 401);
}

// Two moves at a time: one is refused, and the other is done as it was asked for.
#[test]
fn of_two_moves_of_the_clock_one_is_done_whole() {
    let hook = Hook::start(&[Reply::Held(204)]);
    hook.call();
    hook.got(1);
    let (told, moved) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        // What is held keeps a move waiting.
        for seconds in [3_600, 60] {
            let (told, address) = (told.clone(), hook.service.dashboard());
            scope.spawn(move || {
                let body = json!({ "advance_seconds": seconds }).to_string();
                let answer = request(address, "POST", "/clock", "", body.as_bytes());
                told.send((f64::from(seconds), answer)).unwrap();
            });
        }
        let (_, refused) = moved.recv().unwrap();
        let message = refused.json()["error"]["message"].clone();
        let words = "another request has moved the clock; get the time with GET /clock";
        assert_eq!((refused.status, message), (409, json!(words)));
        hook.receiver.release();
        let (seconds, done) = moved.recv().unwrap();
        let ahead = done.json()["ahead_seconds"].as_f64().unwrap();
        assert_eq!(done.status, 200);
        assert!((seconds - 30.0..=seconds).contains(&ahead), "{seconds}: {}", done.text());
    });
}
