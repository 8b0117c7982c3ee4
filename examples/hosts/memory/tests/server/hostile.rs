//! Clients that mean no good: they are shown out, and nobody else waits for it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use testing::running::{Answer, File, Service, connect, eventually, request};

/// A request of an honest client, which is answered whatever else goes on.
#[track_caller]
fn honest(service: &Service, key: &str) {
    assert_eq!(service.get("/v1/calls?limit=1", key).status, 200);
}

#[test]
fn idle_connections_stop_nobody() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    // More than are open at once: the oldest make room.
    let mut idle: Vec<TcpStream> = Vec::new();
    for number in 0..700 {
        let mut stream = connect(service.api());
        if number % 3 == 0 {
            // Some begin a request and never end it.
            let _ = stream.write_all(b"GET /v1/account HTTP/1.1\r\nHost: x\r\nA");
        }
        idle.push(stream);
        if number % 100 == 0 {
            honest(&service, &key);
        }
    }
    honest(&service, &key);
    let first = idle.first_mut().unwrap();
    assert!(matches!(first.read(&mut [0; 16]), Ok(0) | Err(_)), "the oldest was shown out");
    if let Some(peak) = service.peak_memory() {
        assert!(peak < 100 * 1024, "{peak} KiB");
    }
    // Nor do they keep it from ending.
    #[cfg(unix)]
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn bodies_without_end() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    for (address, target) in
        [(service.api(), "/v1/calls"), (service.dashboard(), "/accounts/acct_fjord_dental/calls")]
    {
        let mut stream = connect(address);
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
        // As much as it takes, and far less than an endless body has.
        let refused = (0..1000).any(|_| stream.write_all(&chunk).is_err());
        assert!(refused, "{target}");
        honest(&service, &key);
    }
    if let Some(peak) = service.peak_memory() {
        assert!(peak < 100 * 1024, "{peak} KiB");
    }
}

// D-72
#[test]
fn bytes_that_are_not_http() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(10_000));
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(),
        b"\xff\xfe\x00GET / HTTP/1.1\r\n\r\n",
        b"GET /v1/calls/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/account HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ] {
        let mut stream = connect(service.api());
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
        honest(&service, &key);
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    let mut stream = connect(service.api());
    let targets = ["/v1/account", "/v1/calls/call_fjord_0001", "/nowhere"];
    let mut requests = String::new();
    for number in 0..90 {
        let target = targets[number % targets.len()];
        let last = if number == 89 { "Connection: close\r\n" } else { "" };
        requests += &format!(
            "GET {target} HTTP/1.1\r\nHost: x\r\n{last}Authorization: Bearer {key}\r\n\r\n"
        );
    }
    stream.write_all(requests.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let statuses: Vec<&str> = answers
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| answers.get(at + 9..at + 12).unwrap())
        .collect();
    assert_eq!(statuses, ["200", "200", "404"].repeat(30));
}

// One byte at a time defeats a limit on each read, but not one on the whole head.
#[test]
fn a_head_one_byte_at_a_time() {
    let service = Service::start(&[]);
    let key = service.key("acct_fjord_dental", "full");
    let began = Instant::now();
    let mut stream = connect(service.api());
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut head =
        b"GET /v1/account HTTP/1.1\r\nX: ".iter().copied().chain(std::iter::repeat(b'y'));
    let ended = loop {
        let _ = stream.write_all(&[head.next().unwrap()]);
        match stream.read(&mut [0; 64]) {
            // The answer, if there is one, is a 408 of the HTTP library's.
            Ok(_) => break began.elapsed(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break began.elapsed(),
        }
        assert!(began.elapsed() < testing::running::PATIENCE, "never shown out");
    };
    assert!(ended >= Duration::from_secs(5), "{ended:?}: an honest head is given its time");
    honest(&service, &key);
    let answer: Answer = request(service.api(), "GET", "/v1/account", "", b"");
    assert_eq!(answer.status, 401);
}

// Whoever fills a disk with lines has a key or a login, which can be revoked.
#[test]
fn requests_without_a_key_or_a_login_have_a_bound_in_the_log() {
    let file = File::new("bounded", "ada:operator:the-token-of-ada\n");
    let service = Service::start(&["--operator-token-file", file.path()]);
    let began = Instant::now();
    let ada = "Authorization: Bearer the-token-of-ada\r\n";
    for n in 0..150 {
        let refused = request(service.api(), "GET", "/v1/account", "", b"").status;
        assert_eq!(refused, 401, "{n}");
        let refused = request(service.dashboard(), "GET", "/accounts", "", b"").status;
        assert_eq!(refused, 401, "{n}");
        if n % 10 == 0 {
            let shown = request(service.dashboard(), "GET", "/accounts", ada, b"");
            assert_eq!(shown.status, 200, "{n}");
        }
    }
    let login = br#"{"token":"the-token-of-ada"}"#;
    assert_eq!(request(service.dashboard(), "POST", "/login", "", login).status, 200);
    let spans = began.elapsed().as_secs() / 10 + 1;
    let times = |log: &str, text: &str| log.matches(text).count() as u64;
    eventually("what has no line is told", || {
        let log = service.log();
        let told = log.lines().filter(|line| line.contains("have more lines than are written"));
        let told = told.map(|line| line.split_once("lines=").unwrap().1.parse::<u64>().unwrap());
        let written = times(&log, "status=401");
        assert!(written <= 100 * spans, "{written}");
        (written + told.sum::<u64>() == 300).then_some(())
    });
    let log = service.log();
    assert_eq!(times(&log, "route=/accounts status=200"), 15, "who has a login has a line");
    assert_eq!(times(&log, "route=/login status=200"), 1, "{log}");
}
