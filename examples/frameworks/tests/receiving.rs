//! Each receiver, with valid and with invalid deliveries (SIG-2, SIG-4, D-46).

use std::convert::Infallible;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ::testing::event::ping;
use ::testing::running::PATIENCE;
use axum::body::Body;
use call_assistant::Timestamp;
use call_assistant::webhook::event::Event;
use call_assistant::webhook::receiver::Inbox;
use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
use call_assistant_frameworks::Hooks;
use call_assistant_frameworks::receiving::{
    actix, axum_extractor, axum_handler, axum_inbox, hyper, lambda, now, poem, tower_layer,
};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tower::{Layer as _, ServiceExt as _};

const SIGNATURE: &str = "x-service-signature";

fn secret() -> SigningSecret {
    SigningSecret::parse("whsec_test").unwrap()
}

fn signed(at: Timestamp) -> Request<Vec<u8>> {
    let mut request = ping("evt_1", "acct_1", now()).signed_request(&Signer::new(secret()), at);
    *request.uri_mut() = "/hooks".parse().unwrap();
    request
}

/// The checks of every receiver.
fn holds(send: impl Fn(Hooks, Request<Vec<u8>>) -> StatusCode) {
    let (queue, queued) = channel();
    let hooks = Hooks { verifier: Verifier::new(secret()), queue };

    assert!(send(hooks.clone(), signed(now())).is_success());
    let (key, body) = queued.try_recv().unwrap();
    assert_eq!((key.account(), key.id()), ("acct_1", "evt_1"));
    assert_eq!(Event::from_bytes_verified_earlier(&body).unwrap().id.as_str(), "evt_1");

    // Genuine, and nothing that can be read: acknowledged, since it is stored all the same.
    let unread = br#"{"id":"evt_2","of":"the future"}"#;
    let mut request =
        testing::signed_request(&Signer::new(secret()), "call.ended", "evt_2", unread, now())
            .unwrap();
    *request.uri_mut() = "/hooks".parse().unwrap();
    assert!(send(hooks.clone(), request).is_success());
    let (key, body) = queued.try_recv().unwrap();
    assert!(key.id().starts_with("sha256:"), "{key:?}");
    assert_eq!(body, unread);

    let (mut tampered, mut missing) = (signed(now()), signed(now()));
    tampered.body_mut().push(b'\n');
    missing.headers_mut().remove(SIGNATURE);
    for (what, request) in [
        ("tampered", tampered),
        ("stale", signed(now().saturating_sub(Duration::from_secs(320)))),
        ("missing", missing),
    ] {
        assert_eq!(send(hooks.clone(), request), StatusCode::BAD_REQUEST, "{what}");
        assert!(queued.try_recv().is_err(), "{what}");
    }

    // Nobody takes it: not acknowledged, so that it comes again.
    drop(queued);
    assert_eq!(send(hooks, signed(now())), StatusCode::SERVICE_UNAVAILABLE);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn axum_in_a_handler() {
    holds(|hooks, request| {
        let app = axum_handler::app(hooks);
        block_on(app.oneshot(request.map(Body::from))).unwrap().status()
    });
}

/// EVT-8: an event is handled once, before the answer. After a failure, the event is handled again.
#[test]
fn axum_with_an_inbox() {
    static HANDLED: AtomicU32 = AtomicU32::new(0);
    let app = axum_inbox::App {
        verifier: Verifier::new(secret()),
        inbox: Mutex::new(Inbox::new(100)),
        handle: |receipt| match HANDLED.fetch_add(1, Ordering::Relaxed) {
            0 => Err("not today".to_owned()),
            _ => receipt.event().map(drop).map_err(ToString::to_string),
        },
    };
    let app = axum_inbox::app(Arc::new(app));
    let mut tampered = signed(now());
    tampered.body_mut().push(b'\n');
    for (what, request, status, handled) in [
        ("tampered", tampered, 400, 0),
        ("the handler fails", signed(now()), 503, 1),
        ("it succeeds", signed(now()), 204, 2),
        ("a copy", signed(now()), 204, 2),
    ] {
        let answer = block_on(app.clone().oneshot(request.map(Body::from))).unwrap();
        let met = (answer.status().as_u16(), HANDLED.load(Ordering::Relaxed));
        assert_eq!(met, (status, handled), "{what}");
    }
}

/// The class: a waiting handler delays requests that need no handler. On one thread, a forged
/// delivery is answered while the handler of a valid delivery still waits.
#[test]
fn a_handler_that_waits_holds_up_nobody() {
    static ANSWERED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
    let app = axum_inbox::App {
        verifier: Verifier::new(secret()),
        inbox: Mutex::new(Inbox::new(100)),
        handle: |_| {
            let answered = ANSWERED.0.lock().unwrap();
            let waited = ANSWERED.1.wait_timeout_while(answered, PATIENCE, |answered| !*answered);
            if waited.unwrap().1.timed_out() { Err("held up".to_owned()) } else { Ok(()) }
        },
    };
    let app = axum_inbox::app(Arc::new(app));
    let mut forged = signed(now());
    forged.body_mut().push(b' ');
    let [good, forged] =
        [signed(now()), forged].map(|request| app.clone().oneshot(request.map(Body::from)));
    let statuses = block_on(async {
        let good = tokio::spawn(good);
        tokio::task::yield_now().await; // the handler has begun
        let forged = forged.await.unwrap().status();
        *ANSWERED.0.lock().unwrap() = true;
        ANSWERED.1.notify_all();
        [good.await.unwrap().unwrap().status(), forged]
    });
    assert_eq!(statuses, [StatusCode::NO_CONTENT, StatusCode::BAD_REQUEST]);
}

#[test]
fn hyper_without_a_framework() {
    holds(|hooks, request| {
        let request = request.map(|body| Full::new(bytes::Bytes::from(body)));
        let Ok(answer) = block_on(hyper::receive(&hooks, request));
        answer.status()
    });
    let (queue, _queued) = channel();
    let hooks = Hooks { verifier: Verifier::new(secret()), queue };
    let long = Full::new(bytes::Bytes::from(vec![0; 2 * 1024 * 1024]));
    let Ok(answer) = block_on(hyper::receive(&hooks, signed(now()).map(|_| long)));
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}

#[test]
fn axum_as_an_extractor() {
    holds(|hooks, request| {
        let app = axum_extractor::app(hooks);
        block_on(app.oneshot(request.map(Body::from))).unwrap().status()
    });
}

#[test]
fn actix_on_another_http() {
    use actix_web::test::{TestRequest, call_service, init_service};
    holds(|hooks, request| {
        let mut sent = TestRequest::post().uri("/hooks").set_payload(request.body().clone());
        for (name, value) in request.headers() {
            sent = sent.append_header((name.as_str(), value.as_bytes()));
        }
        let status = actix_web::rt::System::new().block_on(async {
            let app = actix_web::App::new().configure(actix::configure(hooks));
            call_service(&init_service(app).await, sent.to_request()).await.status()
        });
        StatusCode::from_u16(status.as_u16()).unwrap()
    });
}

#[test]
fn poem_in_a_handler() {
    use ::poem::{Endpoint as _, IntoEndpoint as _, Request};
    holds(|hooks, request| {
        let (head, body) = request.into_parts();
        let mut sent =
            Request::builder().method(head.method).uri(head.uri).body(::poem::Body::from(body));
        *sent.headers_mut() = head.headers;
        block_on(poem::app(hooks).into_endpoint().get_response(sent)).status()
    });
}

#[test]
fn a_layer_on_tower() {
    holds(|hooks, request| {
        let verifier = hooks.verifier.clone();
        let inner = tower::service_fn(move |request: Request<tower_layer::Genuine>| {
            let genuine = request.into_body();
            let answer = hooks.keep(genuine.receipt, &genuine.bytes);
            let answer: Response<Full<bytes::Bytes>> = answer.into_response();
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        let app = tower_layer::VerifyLayer(verifier).layer(inner);
        let Ok(answer) =
            block_on(app.oneshot(request.map(|body| Full::new(bytes::Bytes::from(body)))));
        answer.status()
    });
}

/// The request of the gateway: JSON, with the body as text or in base64.
#[test]
fn lambda_behind_a_gateway() {
    for base64 in [false, true] {
        holds(|hooks, request| {
            let headers: serde_json::Map<_, _> = request
                .headers()
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()))
                .collect();
            let body = match base64 {
                true => to_base64(request.body()),
                false => String::from_utf8(request.body().clone()).unwrap(),
            };
            let gateway = serde_json::json!({
                "version": "2.0", "routeKey": "$default", "rawPath": "/hooks",
                "rawQueryString": "", "headers": headers, "body": body, "isBase64Encoded": base64,
                "requestContext": {"accountId": "1", "apiId": "a", "domainName": "h",
                    "domainPrefix": "h", "requestId": "r", "routeKey": "$default",
                    "stage": "$default", "time": "t", "timeEpoch": 0,
                    "http": {"method": "POST", "path": "/hooks", "protocol": "HTTP/1.1",
                        "sourceIp": "192.0.2.1", "userAgent": "u"}},
            });
            let request = lambda_http::request::from_str(&gateway.to_string()).unwrap();
            lambda::receive(&hooks, &request).unwrap().status()
        });
    }
}

fn to_base64(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for at in 0..4 {
            let symbol = SYMBOLS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { symbol.into() } else { '=' });
        }
    }
    text
}

/// The program of README, as a process: SIG-2, EVT-8.
#[test]
fn the_program_of_readme_keeps_each_event_once() {
    let program = include_str!("../src/bin/receive.rs");
    let code = &program[program.find("\nuse ").unwrap() + 1..];
    let (readme, guide) =
        (include_str!("../../../README.md"), include_str!("../../../src/guide/receiving.md"));
    assert!(readme.contains(code) && guide.contains(code), "both show this program");
    keeps_each_event_once(env!("CARGO_BIN_EXE_receive"));
}

/// SIG-2, EVT-8.
#[test]
fn the_program_with_actix_keeps_each_event_once() {
    keeps_each_event_once(env!("CARGO_BIN_EXE_receive_actix"));
}

#[allow(clippy::disallowed_methods, reason = "a program that runs is measured by a real clock")]
fn keeps_each_event_once(binary: &str) {
    use ::testing::running::{Folder, Running, eventually};
    use std::process::Command;

    let folder = Folder::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let mut command = Command::new(binary);
    command.env("WEBHOOK_SECRET", "whsec_test").env("LISTEN", &listen);
    command.current_dir(folder.path("."));
    let _running = Running::start(&mut command);
    let send_to = |address: &str, request: &Request<Vec<u8>>| {
        let headers = ::testing::running::lines(request.headers());
        ::testing::running::request(address, "POST", "/hooks", &headers, request.body()).status
    };
    let send = |request: &Request<Vec<u8>>| send_to(&listen, request);
    eventually("it listens", || std::net::TcpStream::connect(&listen).ok());
    let (good, mut bad) = (signed(now()), signed(now()));
    bad.body_mut().push(b' ');
    assert_eq!([send(&good), send(&good), send(&bad)], [204, 204, 400]);
    let db = rusqlite::Connection::open(folder.path("events.db")).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let mut select = db.prepare("SELECT * FROM events").unwrap();
    let rows: Vec<(String, String, Vec<u8>)> =
        select.query_map((), row).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows, [("acct_1".into(), "evt_1".into(), good.body().clone())]);

    // While another connection holds the database, by the page's own checklist: 503 within a second, and a
    // forged one at once. The second is one of a server beside it that answers after as long as the program
    // waits, to the same requests at the same time: whatever slows the machine slows both.
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let beside = ::testing::receiver::serving(|mut stream| {
        let _ = ::testing::receiver::read(&mut stream);
        std::thread::sleep(Duration::from_millis(800));
        let _ = stream.write_all(b"HTTP/1.0 503 Service Unavailable\r\n\r\n");
    });
    let beside = beside.to_string();
    let bad = &bad;
    let timed = |address: &str, request: &Request<Vec<u8>>, status| {
        let began = Instant::now();
        assert_eq!(send_to(address, request), status);
        began.elapsed()
    };
    let [held, clock, forged] = std::thread::scope(|scope| {
        let all = |address| {
            let one = move || timed(address, &signed(now()), 503);
            (0..16).map(|_| scope.spawn(one)).collect::<Vec<_>>()
        };
        let (held, clock) = (all(&listen), all(&beside));
        let forged = (0..5).map(|_| timed(&listen, bad, 400)).collect();
        let ended = |all: Vec<std::thread::ScopedJoinHandle<'_, _>>| {
            all.into_iter().map(|one| one.join().unwrap()).collect()
        };
        [ended(held), ended(clock), forged].map(|mut all: Vec<Duration>| {
            all.sort();
            all
        })
    });
    let second = clock[15] * 5 / 4;
    // The machine may hold up one of sixteen; a program that lets them wait for each other holds up all.
    assert!(held[7] <= second && held[15] <= 2 * second, "{held:?}, a second is {second:?}");
    assert!(forged[2] <= second / 4, "forged: {forged:?}, a second is {second:?}");
    db.execute_batch("ROLLBACK").unwrap();
    eventually("it stores again", || (send(&good) == 204).then_some(()));
}
