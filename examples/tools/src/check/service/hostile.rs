//! Requests as no HTTP library writes them, and clients that mean no good: they are refused, and nobody else waits.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::{Api, bearer, path_of, refused};
use crate::check::case::{Case, Seen, case, ensure};
use crate::check::http::Answer;

/// How long a head may take before whoever sends it is shown out.
const SHOWN_OUT: Duration = Duration::from_secs(40);

pub(super) const CASES: &[Case<Api>] = &[
    // D-82
    case(
        "hosts.one",
        "Operations",
        "Two proxies read one request as requests to two services.",
        |api| {
            let key = bearer(api.key("main", "full")?);
            let authority = &api.place.authority;
            let twice = format!("Host: {authority}\r\nHost: {authority}\r\n");
            for host in
                ["", &twice, "Host: \r\n", "Host: a@b\r\n", "Host: a/v1\r\n", "Host: a:http\r\n"]
            {
                for (method, path) in [
                    ("GET", "/v1/account"),
                    ("GET", "/v1/calls?limit=0"),
                    ("POST", "/v1/calls"),
                    ("GET", "/x"),
                ] {
                    let base = &api.place.base;
                    let head = format!(
                        "{method} {base}{path} HTTP/1.1\r\n{host}Connection: close\r\n{key}\r\n"
                    );
                    let what = format!("{method} {path} with {host:?}");
                    refused(&what, &api.bytes(head.as_bytes())?, "invalid_parameter", "Host")?;
                }
            }
            Ok(())
        },
    ),
    // D-87
    case("hosts.http_1_0", "Operations", "A load balancer removes a healthy service.", |api| {
        for (host, code) in [("", "invalid_credentials"), ("Host: @\r\n", "invalid_parameter")] {
            let head = format!("GET {}/v1/account HTTP/1.0\r\n{host}\r\n", api.place.base);
            refused(&format!("HTTP/1.0 with {host:?}"), &api.bytes(head.as_bytes())?, code, "")?;
        }
        Ok(())
    }),
    // D-72
    case(
        "wire.long_head",
        "Headers of every answer",
        "A client behind several proxies gets an answer it cannot read.",
        |api| {
            let fields = format!("X-Long: {}\r\n{}", "y".repeat(8000), "X-Many: y\r\n".repeat(60));
            refused(
                "a head of 9 KB",
                &api.send("GET", "/v1/account", &fields)?,
                "invalid_credentials",
                "",
            )
        },
    ),
    case("wire.not_http", "Headers of every answer", "A port scanner stops the service.", |api| {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(10_000));
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(200_000));
        for bytes in [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(),
            b"\xff\xfe\x00GET / HTTP/1.1\r\n\r\n",
            b"GET /v1/calls/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /v1/account HTTP/9.9\r\n\r\n",
            b"\r\n\r\n\r\n\r\n",
            many.as_bytes(),
            long.as_bytes(),
        ] {
            let mut stream = api.place.connect()?;
            let _ = stream.write_all(bytes);
            let _ = stream.socket().shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let start = String::from_utf8_lossy(answer.get(..12).unwrap_or(&answer)).into_owned();
            ensure(
                start.is_empty()
                    || start.starts_with("HTTP/1.1 4")
                    || start.starts_with("HTTP/1.0 4"),
                || start,
            )?;
            honest(api)?;
        }
        Ok(())
    }),
    case(
        "wire.pipelined",
        "Headers of every answer",
        "A client reads the answer to another request.",
        |api| {
            let (call, _) = api.one_call()?;
            let (key, one) = (api.key("main", "spare 6")?, path_of(&call));
            let two = "/v1/calls/call_of_nobody".to_owned();
            let mut stream = api.place.connect()?;
            let mut requests = String::new();
            for target in [&one, &two].into_iter().cycle().take(29) {
                let (base, host) = (&api.place.base, &api.place.authority);
                requests +=
                    &format!("GET {base}{target} HTTP/1.1\r\nHost: {host}\r\n{}\r\n", bearer(key));
            }
            requests +=
                &String::from_utf8_lossy(&api.place.request("GET", &two, &bearer(key), b""));
            stream.write_all(requests.as_bytes()).map_err(|error| error.to_string())?;
            let mut answers = Vec::new();
            let _ = stream.read_to_end(&mut answers);
            let answers = String::from_utf8_lossy(&answers).into_owned();
            let statuses: Vec<_> = answers
                .match_indices("HTTP/1.1 ")
                .filter_map(|(at, _)| answers.get(at..at.checked_add(12)?))
                .collect();
            ensure(statuses == ["HTTP/1.1 200", "HTTP/1.1 404"].repeat(15), || {
                format!("{statuses:?}")
            })
        },
    ),
    case(
        "wire.half_closed",
        "Headers of every answer",
        "A client that closes its side loses the answer.",
        |api| {
            let mut stream = api.place.connect()?;
            let request = api.place.request("GET", "/v1/account", "", b"");
            stream.write_all(&request).map_err(|error| error.to_string())?;
            let _ = stream.socket().shutdown(Shutdown::Write);
            let answer = Answer::read(&mut stream, false)?;
            ensure(answer.status == 401, || answer.in_words())
        },
    ),
    case(
        "wire.cut_head",
        "Headers of every answer",
        "An incomplete request is answered as a complete request.",
        |api| {
            for part in ["GET /v1/acc", "GET /v1/account HTTP/1.1\r\nHost: x\r\n"] {
                let mut stream = api.place.connect()?;
                let _ = stream.write_all(part.as_bytes());
                let _ = stream.socket().shutdown(Shutdown::Write);
                let mut answer = String::new();
                let _ = stream.read_to_string(&mut answer);
                ensure(answer.is_empty() || answer.contains(" 400 "), || {
                    format!("{part:?}: {answer}")
                })?;
            }
            honest(api)
        },
    ),
    case(
        "wire.unread_body",
        "Headers of every answer",
        "A client that sends a body learns nothing about its mistake.",
        |api| {
            let key = bearer(api.key("main", "full")?);
            for target in ["/v1/calls", "/v1/account"] {
                let request = api.place.request("POST", target, &key, &[b' '; 300 * 1024]);
                refused("POST with 300 KiB", &api.bytes(&request)?, "method_not_allowed", "")?;
            }
            honest(api)
        },
    ),
    case(
        "wire.endless_body",
        "Headers of every answer",
        "One client fills the memory of the service.",
        |api| {
            let mut stream = api.place.connect()?;
            let (base, host) = (&api.place.base, &api.place.authority);
            let head = format!(
                "POST {base}/v1/calls HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes());
            let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
            let taken = (0..1000_u16).take_while(|_| stream.write_all(&chunk).is_ok()).count();
            ensure(taken < 1000, || "64 MiB of a body were taken".to_owned())?;
            honest(api)
        },
    ),
    case(
        "wire.idle",
        "Headers of every answer",
        "A client with many idle connections blocks all other clients.",
        |api| {
            let mut idle = Vec::new();
            for _ in 0..300_u16 {
                let mut stream = api.place.connect()?;
                let _ = stream.write_all(b"GET /v1/account HTTP/1.1\r\nHost: x\r\nA");
                idle.push(stream);
            }
            honest(api)
        },
    ),
    // One byte at a time defeats a limit on each read, but not one on the whole head.
    case(
        "wire.slow_head",
        "Headers of every answer",
        "A slow client keeps connections forever.",
        |api| {
            let mut stream = api.place.connect()?;
            let _ = stream.socket().set_read_timeout(Some(Duration::from_millis(100)));
            let began = Instant::now();
            for byte in b"GET /v1/account HTTP/1.1\r\nX: ".iter().chain(std::iter::repeat(&b'y')) {
                let written = stream.write_all(&[*byte]);
                match stream.read(&mut [0; 64]) {
                    Err(error)
                        if written.is_ok()
                            && matches!(
                                error.kind(),
                                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                            ) => {}
                    _ => break,
                }
                ensure(began.elapsed() < SHOWN_OUT, || {
                    format!("still reading after {SHOWN_OUT:?}")
                })?;
            }
            ensure(began.elapsed() >= Duration::from_secs(3), || {
                "an honest head is given less than 3 s".to_owned()
            })?;
            honest(api)
        },
    ),
];

/// Asks as an honest client, which is answered whatever else goes on.
fn honest(api: &Api) -> Seen {
    api.good_with("/v1/calls?limit=1", api.key("main", "second")?).map(drop)
}
