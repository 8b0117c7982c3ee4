//! `receiver --forward`: a relay hands on exact bytes, says what is wrong, and replays.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use call_assistant::webhook::testing::signed_request;
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier};
use call_assistant::{Product, Timestamp};

use crate::http::{exchange, send};
use crate::program::{Folder, PATIENCE, Running, example, run, stderr, stdout};
use crate::{SECRET, now, ping, signer};

/// A customer's program under development: what it got, and the statuses it answers with in turn.
/// Without one, 204.
struct Program {
    address: SocketAddr,
    requests: Receiver<Got>,
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

#[derive(Debug)]
struct Got {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Got {
    #[track_caller]
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no {name} in {:?}", self.headers)).1
    }
}

impl Program {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (got, requests) = channel();
        let statuses: Arc<Mutex<VecDeque<u16>>> = Arc::default();
        let shared = Arc::clone(&statuses);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(stream);
                let mut lines = Vec::new();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    let line = line.trim_end().to_owned();
                    if line.is_empty() {
                        break;
                    }
                    lines.push(line);
                }
                let pairs = lines.iter().skip(1).map(|line| line.split_once(": ").unwrap());
                let headers: Vec<_> =
                    pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
                let len = headers.iter().find(|(name, _)| name == "content-length").unwrap();
                let mut body = vec![0; len.1.parse().unwrap()];
                stream.read_exact(&mut body).unwrap();
                let status = shared.lock().unwrap().pop_front().unwrap_or(204);
                let answer = match status {
                    204 => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
                    status => {
                        format!("HTTP/1.1 {status} X\r\ncontent-length: 6\r\n\r\n\u{1b}[2Jno")
                    }
                };
                let _ = stream.get_mut().write_all(answer.as_bytes());
                if got.send(Got { headers, body }).is_err() {
                    break;
                }
            }
        });
        Self { address, requests, statuses }
    }

    #[track_caller]
    fn got(&self) -> Got {
        self.requests.recv_timeout(PATIENCE).unwrap()
    }

    fn answers_with(&self, status: u16) {
        self.statuses.lock().unwrap().push_back(status);
    }
}

fn relay(to: SocketAddr, keep: &Path) -> Command {
    let mut command = example("receiver");
    command.args(["--listen", "127.0.0.1:0", "--forward", &format!("http://{to}/hooks?a=b")]);
    command.arg("--keep").arg(keep).env("WEBHOOK_SECRET", SECRET);
    command
}

fn listening(command: &mut Command) -> (Running, SocketAddr) {
    let mut running = Running::start(command);
    let line = running.logged("listening on http://");
    let (_, address) = line.rsplit_once("http://").unwrap();
    let address = address.parse().unwrap();
    (running, address)
}

/// EVT-8: exact bytes in both directions, whatever the verdict, and a duplicate by the inbox's word.
#[test]
fn a_request_goes_on_byte_for_byte_and_the_verdict_is_said() {
    let folder = Folder::new();
    let program = Program::start();
    let (mut running, address) = listening(&mut relay(program.address, &folder.path("kept")));

    let good = ping("evt_good").signed_request(&signer(), now());
    assert_eq!(send(address, &good).unwrap(), 204);
    let got = program.got();
    assert_eq!(got.body, *good.body());
    for (name, value) in good.headers() {
        assert_eq!(got.header(name.as_str()), value.to_str().unwrap(), "{name}");
    }
    assert_eq!(got.header("host"), program.address.to_string());
    running.said("  genuine: evt_good ping");
    running.said("  answered 204 in ");

    // A second copy is forwarded all the same: the program has to know it by itself.
    assert_eq!(send(address, &good).unwrap(), 204);
    program.got();
    running.said("  genuine, a duplicate: evt_good ping");

    // What the program refuses is no duplicate when it comes again.
    program.answers_with(503);
    let refused = ping("evt_refused").signed_request(&signer(), now());
    assert_eq!(send(address, &refused).unwrap(), 503);
    program.got();
    // With what would clear the terminal escaped.
    running.said(r#"ms: "\u{1b}[2Jno""#);
    assert_eq!(send(address, &refused).unwrap(), 204);
    program.got();

    // What does not verify is explained, and forwarded: the program has to refuse it by itself.
    program.answers_with(400);
    let mut mangled = ping("evt_mangled").signed_request(&signer(), now());
    mangled.body_mut().push(b'\n');
    assert_eq!(send(address, &mangled).unwrap(), 400);
    assert_eq!(program.got().body, *mangled.body());
    running.said("  to be refused: no v1 of the signature header matches the body");
    running.said("  proven: a line end was added to the end of the body");

    // Earlier requests are compared.
    let other = good.headers()["x-service-signature"].clone();
    let mut mixed = ping("evt_mixed").signed_request(&signer(), now());
    mixed.headers_mut().insert("x-service-signature", other);
    assert_eq!(send(address, &mixed).unwrap(), 204);
    program.got();
    running.said("  proven: header and body are not of one delivery: the header is that of known delivery number ");

    assert_eq!(exchange(address, b"GET / HTTP/1.1\r\nhost: h\r\n\r\n").unwrap(), 405);
    let told = running.interrupt();
    let duplicates = told.stdout.iter().filter(|line| line.contains("duplicate")).count();
    assert_eq!((told.code, duplicates), (Some(0), 1), "{:?}", told.stdout);
    for line in told.stdout.iter().chain(&told.stderr) {
        assert!(!line.contains(SECRET) && !line.contains("v1="), "{line}");
    }

    // Each request is kept in a form that `verify` reads.
    let mut names: Vec<_> =
        fs::read_dir(folder.path("kept")).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 6, "{names:?}");
    let mut verify = example("verify");
    verify.args(["explain", "--request"]).arg(&names[4]).env("WEBHOOK_SECRET", SECRET);
    let output = run(&mut verify, b"");
    assert!(
        stdout(&output).starts_with("proven: a line end was added to the end of the body"),
        "{} {}",
        stdout(&output),
        stderr(&output)
    );
}

/// Without a program, the sender gets an answer that lets it come again.
#[test]
fn a_program_that_is_away_is_a_502_and_no_duplicate_later() {
    let folder = Folder::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let (mut running, relayed) = listening(&mut relay(address, &folder.path("kept")));
    let request = ping("evt_1").signed_request(&signer(), now());
    assert_eq!(send(relayed, &request).unwrap(), 502);
    running.said("  no answer after ");
    assert_eq!(send(relayed, &request).unwrap(), 502);
    let told = running.interrupt();
    assert!(!told.stdout.concat().contains("duplicate"), "{:?}", told.stdout);
}

#[test]
fn kept_requests_are_replayed_and_signed_again_if_asked() {
    let folder = Folder::new();
    let kept = folder.path("kept");
    fs::create_dir(&kept).unwrap();
    let first = 1_767_225_600;
    for (number, id) in ["evt_a", "evt_b", "evt_c"].into_iter().enumerate() {
        let at = Timestamp::from_unix(first + number as i64).unwrap();
        let event = ping(id);
        let request = signed_request(&signer(), "ping", id, event.as_bytes(), at).unwrap();
        let mut text = "POST / HTTP/1.1\r\n".to_owned();
        for (name, value) in request.headers() {
            text += &format!("{name}: {}\r\n", value.to_str().unwrap());
        }
        let name = format!("{}.000000000-{id}.http", first + number as i64);
        fs::write(kept.join(name), [text.as_bytes(), b"\r\n", event.as_bytes()].concat()).unwrap();
    }
    let program = Program::start();
    let replay = |arguments: &[&str]| {
        let mut command = relay(program.address, &kept);
        let output = run(command.args(arguments).env("LOCAL_SECRET", "whsec_local"), b"");
        (output.status.code(), stdout(&output).to_owned() + stderr(&output))
    };

    // As it was: its signature is old, which the terminal says.
    let (code, said) = replay(&["--replay", "evt_b"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1767225601.000000000-evt_b.http\n  to be refused: "), "{said}");
    assert!(said.contains(" days) old, more than the tolerance of 300s"), "{said}");
    let got = program.got();
    assert_eq!(got.body, ping_body(&kept, "1767225601.000000000-evt_b.http"));
    assert!(got.header("x-service-signature").starts_with("t=1767225601,v1="));

    // Signed again, with the program's own secret: what it gets is genuine and new.
    for since in ["1767225601", "2026-01-01T00:00:01Z"] {
        let (code, said) = replay(&["--since", since, "--sign-with-env", "LOCAL_SECRET"]);
        assert_eq!(code, Some(0), "{said}");
        let verifier = Verifier::new(SigningSecret::parse("whsec_local").unwrap());
        for id in ["evt_b", "evt_c"] {
            let got = program.got();
            let pairs = got.headers.iter().map(|(name, value)| (name.as_str(), value));
            let headers = DeliveryHeaders::from_pairs(&Product::default(), pairs);
            let event = verifier.verify_parts(headers, &got.body, now()).unwrap().event().unwrap();
            assert_eq!(event.id.as_str(), id);
        }
    }

    program.answers_with(500);
    let (code, said) = replay(&["--replay", "evt_a"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not all of them were answered with a 2xx"), "{said}");
    let (code, said) = replay(&["--replay", "evt_nobody"]);
    assert_eq!((code, said.contains("no such request is kept")), (Some(1), true), "{said}");
}

fn ping_body(folder: &Path, name: &str) -> Vec<u8> {
    let bytes = fs::read(folder.join(name)).unwrap();
    let at = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
    bytes[at + 4..].to_vec()
}

/// Real requests of the local service, through the relay to the program.
#[test]
fn the_local_service_is_a_sender_to_develop_against() {
    let folder = Folder::new();
    let program = Program::start();
    let (mut running, relayed) = listening(&mut relay(program.address, &folder.path("kept")));
    let mut service = example("service");
    service.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]);
    service.args(["--allow-loopback-endpoints", "--time-scale", "0.001"]);
    let mut service = Running::start(&mut service);
    let first: serde_json::Value = serde_json::from_str(&service.said("{")).unwrap();
    let dashboard = first["dashboard"].as_str().unwrap().strip_prefix("http://").unwrap();
    let dashboard: SocketAddr = dashboard.parse().unwrap();
    let post = |path: &str, body: String| {
        let path = format!("/accounts/acct_fjord_dental/{path}");
        let head = format!("POST {path} HTTP/1.1\r\nhost: {dashboard}\r\n");
        let head = format!("{head}content-type: application/json\r\ncontent-length: ");
        let request = format!("{head}{}\r\n\r\n{body}", body.len());
        assert_eq!(exchange(dashboard, request.as_bytes()).unwrap(), 201, "{path}");
    };
    post("endpoints", format!(r#"{{"url":"http://{relayed}/","secret":"{SECRET}"}}"#));

    // The program fails twice, and the service sends the event three times.
    program.answers_with(500);
    program.answers_with(503);
    post("calls", r#"{"id":"call_of_a_day"}"#.to_owned());
    let signer = Signer::new(SigningSecret::parse(SECRET).unwrap());
    let got: Vec<Got> = (0..3).map(|_| program.got()).collect();
    for (number, got) in (1..).zip(&got) {
        let event: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
        assert_eq!(event["id"], got.header("x-service-delivery"), "attempt {number}");
        let signature = got.header("x-service-signature");
        let (t, _) = signature.strip_prefix("t=").unwrap().split_once(',').unwrap();
        let at = Timestamp::from_unix(t.parse().unwrap()).unwrap();
        assert_eq!(signer.sign(&got.body, at).as_str(), signature, "attempt {number}");
    }
    assert!(got.iter().all(|one| one.body == got[0].body));
    running.said("  genuine: ");
    running.said("  answered 500 in ");
    running.said("  answered 503 in ");
    running.said("  answered 204 in ");
    assert_eq!(service.interrupt().code, Some(0));
    let told = running.interrupt();
    assert!(!told.stdout.concat().contains("to be refused"), "{:?}", told.stdout);
    assert_eq!(fs::read_dir(folder.path("kept")).unwrap().count(), 3);
}

#[test]
fn a_wrong_command_line_of_a_relay_is_named() {
    let cases: [(&[&str], &str); 7] = [
        (&["--replay", "evt_1"], "--replay needs --forward"),
        (&["--keep", "x"], "--keep needs --forward"),
        (&["--forward", "https://h/"], "--forward: not http://HOST:PORT/PATH"),
        (&["--forward", "/hooks"], "--forward: not http://HOST:PORT/PATH"),
        (&["--forward", "http://h/", "--journal", "x"], "--journal or --forward"),
        (&["--forward", "http://h/", "--since", "noon"], "--since: "),
        (&["--forward", "http://h/", "--sign-with-env", "NOT_SET"], "NOT_SET is not set"),
    ];
    let folder = Folder::new();
    for (arguments, message) in cases {
        let mut command = example("receiver");
        let command = command.args(arguments).env("WEBHOOK_SECRET", SECRET);
        let output = run(command.current_dir(folder.path("")), b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
    }
}
