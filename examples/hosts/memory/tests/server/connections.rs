//! How connections end: no answer is lost to it, and no peer holds one for ever.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::sync::Notify;

use host::http::serve::{Limits, read_body, serve};
use host::program::shutdown;
use testing::running::{Answer, FJORD, PATIENCE, Service, connect, eventually, exchange};

const CONNECTIONS: usize = 8;

/// How long a peer may go on sending what nobody reads, once it is answered.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the examples' server on a port of its own: see [`serving_on`].
fn serving(patience: Duration, body: Bytes, ready: Arc<Notify>) -> (SocketAddr, impl Sized) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (listener.local_addr().unwrap(), serving_on(listener, patience, body, ready))
}

/// Runs the examples' server, which answers one request: with `body`, once `ready` is notified.
fn serving_on(
    listener: TcpListener,
    patience: Duration,
    body: Bytes,
    ready: Arc<Notify>,
) -> impl Sized {
    let body = Arc::new(Mutex::new(Some(body)));
    let answer = move |_, _| {
        let (ready, body) = (Arc::clone(&ready), Arc::clone(&body));
        async move {
            ready.notified().await;
            let body = body.lock().unwrap().take();
            Response::new(Full::new(body.unwrap()))
        }
    };
    answering(listener, patience, answer)
}

/// Runs the examples' server, which answers so.
fn answering<H, F>(listener: TcpListener, patience: Duration, answer: H) -> impl Sized
where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let runtime = tokio::runtime::Runtime::new().unwrap();
    listener.set_nonblocking(true).unwrap();
    let (trigger, stop) = shutdown::manual();
    let guard = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    drop(guard);
    runtime.spawn(serve(listener, Limits { connections: CONNECTIONS, patience }, answer, stop));
    (trigger, runtime)
}

// Nobody's time is ever up here, so only room that was made can be had.
#[test]
fn who_asks_for_nothing_makes_room() {
    let ready = Arc::new(Notify::new());
    let (address, _running) = serving(PATIENCE * 60, Bytes::new(), Arc::clone(&ready));
    let address = address.to_string();
    let mut idle: Vec<TcpStream> = (0..3 * CONNECTIONS).map(|_| connect(&address)).collect();
    let mut honest = connect(&address);
    honest.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    ready.notify_one();
    let mut start = [0; 12];
    honest.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    assert_eq!(idle[0].read(&mut start).unwrap_or(0), 0, "the oldest was shown out");
}

// Nor does who announces a body and sends none of it keep anybody out.
#[test]
fn a_body_that_does_not_come_makes_room() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = |request: Request<Incoming>, _| async move {
        let (head, body) = request.into_parts();
        let read = read_body(&head.extensions, body, 9, PATIENCE * 60).await;
        Response::new(Full::new(read.unwrap_or_default()))
    };
    let _running = answering(listener, PATIENCE * 60, answer);

    let head = format!("POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4\r\n\r\n");
    let slow = |_| {
        let mut stream = connect(&address);
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let mut slow: Vec<TcpStream> = (0..3 * CONNECTIONS).map(slow).collect();
    let mut honest = connect(&address);
    honest.write_all(format!("{head}here").as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"here") {
        let mut more = [0; 1024];
        let read = honest.read(&mut more).unwrap();
        assert_ne!(read, 0, "{answer:?}");
        answer.extend(&more[..read]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    assert_eq!(slow[0].read(&mut [0]).unwrap_or(0), 0, "the oldest was shown out");
}

// A client that repeats a refused request starves nobody either: the refusal comes later, and its connection is idle
// until then.
#[test]
fn refusals_are_held_back_and_make_room() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = |request: Request<Incoming>, _| async move {
        let mut answer = Response::new(Full::new(Bytes::new()));
        if request.uri().path() == "/often" {
            *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        }
        answer
    };
    let _running = answering(listener, PATIENCE, answer);
    let ask = |path: &str| {
        let mut stream = connect(&address);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        stream
    };
    let began = Instant::now();
    assert_eq!(Answer::read(&mut ask("/often")).status, 429);
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
    // Where the machine is slow, they are answered before the others come.
    let makes_room = |_| {
        let mut refused: Vec<TcpStream> = (0..CONNECTIONS).map(|_| ask("/often")).collect();
        assert_eq!(Answer::read(&mut ask("/")).status, 200);
        // Any of them may have become idle first.
        let answered = |stream: &mut TcpStream| stream.read(&mut [0]).unwrap_or(0) > 0;
        !refused.iter_mut().all(answered)
    };
    assert!((0..20).any(makes_room), "none was ever shown out");
}

#[test]
fn a_side_closed_before_the_answer_loses_nothing() {
    let ready = Arc::new(Notify::new());
    let (address, _running) = serving(PATIENCE, Bytes::from_static(b"here"), Arc::clone(&ready));
    let mut stream = connect(&address.to_string());
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // Long enough for the server to have met the end, if it looks for one.
    std::thread::sleep(Duration::from_millis(50));
    ready.notify_one();
    let answer = Answer::read(&mut stream);
    assert_eq!((answer.status, answer.text().as_str()), (200, "here"));
}

// There is nothing to wait for: a side closed within a request ends it.
#[test]
fn half_a_body_is_refused() {
    let service = Service::start(&[]);
    let host = service.dashboard();
    let head = format!("POST {FJORD}/calls HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n");
    let mut stream = connect(host);
    stream.write_all(format!("{head}\r\n{{}}").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(Answer::read(&mut stream).status, 400);
}

#[test]
fn an_answer_that_nobody_takes_is_given_up() {
    /// An answer's bytes, which tell when they are dropped.
    struct Watched(Vec<u8>, Arc<AtomicBool>);
    impl AsRef<[u8]> for Watched {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Watched {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }
    const LEN: usize = 64 * 1024 * 1024;
    // Also of a peer that has closed its side, from which nothing more is read.
    for closed in [false, true] {
        let (ready, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let body = Watched(vec![b'x'; LEN], Arc::clone(&dropped));
        // The request is there before the server is, so its head takes none of a time this short.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        if closed {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        let (patience, body) = (Duration::from_millis(300), Bytes::from_owner(body));
        let _running = serving_on(listener, patience, body, Arc::clone(&ready));
        ready.notify_one();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        eventually("the answer is given up", || dropped.load(Ordering::Relaxed).then_some(()));
        // What the kernels held of it is all there is.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < LEN, "side closed: {closed}");
    }
}

#[test]
fn a_body_that_nobody_reads_costs_no_answer() {
    let service = Service::start(&[]);
    let (api, dashboard) = (service.api(), service.dashboard());
    let key = service.key("acct_fjord_dental", "full");
    for (kib, address, target, status) in [
        (400, api, "/v1/calls", 405),
        (1024, api, "/v1/account", 405),
        (5 * 1024, api, "/nowhere", 404),
        (5 * 1024, dashboard, "/accounts/acct_fjord_dental/calls", 413),
        (400, dashboard, "/nowhere", 400),
    ] {
        for number in 0..10 {
            let what = format!("{kib} KiB to {target}, {number}");
            let began = Instant::now();
            let mut stream = connect(address);
            let head = format!(
                "POST {target} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
                 Content-Length: {}\r\n\r\n",
                kib * 1024
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = Vec::new();
            let answered = (0..kib)
                .try_for_each(|_| stream.write_all(&[b' '; 1024]))
                .and_then(|()| stream.shutdown(Shutdown::Write))
                .and_then(|()| stream.read_to_end(&mut answer));
            match answered {
                Ok(_) => assert_eq!(Answer::parse(&answer).unwrap().status, status, "{what}"),
                // Whoever takes longer to send it than a peer has to close its side.
                Err(error) => assert!(began.elapsed() >= GRACE, "{what}: {error}"),
            }
        }
    }
}

// D-72: the API answers whatever can be parsed, and what is beyond the limits is the library's.
#[test]
fn heads_up_to_the_limits_are_answered_in_the_envelope() {
    let service = Service::start(&[]);
    let fields = |count: usize| "X-Many: y\r\n".repeat(count);
    let long = |len: usize| format!("X-Long: {}\r\n", "y".repeat(len));
    for (target, fields, status, ours) in [
        ("/v1/account", fields(250), 401, true),
        ("/v1/account", long(60 * 1024), 401, true),
        (&*format!("/v1/calls/{}", "x".repeat(60_000)), String::new(), 401, true),
        ("/v1/account", fields(260), 431, false),
        ("/v1/account", long(66 * 1024), 431, false),
        ("/v1/calls/<", String::new(), 400, false),
        ("/v1/calls/>", String::new(), 400, false),
        ("/v1/calls/`", String::new(), 400, false),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n");
        let answer = exchange(service.api(), head.as_bytes()).unwrap();
        let what = format!("{:.20} with {} bytes of fields", target, fields.len());
        assert_eq!(answer.status, status, "{what}");
        assert_eq!(answer.header("x-request-id").is_some(), ours, "{what}");
        assert_eq!(answer.body.is_empty(), !ours, "{what}");
    }
}
