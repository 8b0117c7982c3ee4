//! `receiver --forward`: a relay hands on exact bytes, says what is wrong, and replays.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use call_assistant::Timestamp;
use call_assistant::webhook::testing::signed_request;
use call_assistant::webhook::{SigningSecret, Verifier};
use rcgen::generate_simple_self_signed;
use testing::receiver::{Got, Receiver, Reply};
use testing::running::{File, Folder, Running, example, lines, request, run};

use crate::{SECRET, listening, now, ping, refused, send, signer};

/// Where the program under development listens.
const PATH: &str = "/hooks?a=b";

/// Sets how it answers at first, and from then on.
fn answering(program: &Receiver, first: &[Reply]) -> String {
    program.url(PATH, &[first, &[Reply::Status(204)]].concat())
}

/// Returns the latest that came.
#[track_caller]
fn last(program: &Receiver) -> Got {
    program.got(PATH).pop().unwrap()
}

fn relay(to: &str, keep: &Path) -> Command {
    let mut command = example("receiver");
    command.args(["--listen", "127.0.0.1:0", "--forward", to]);
    command.arg("--keep").arg(keep).env("WEBHOOK_SECRET", SECRET);
    command
}

fn start(command: &mut Command) -> (Running, String) {
    listening(Running::start(command))
}

/// EVT-8: exact bytes in both directions, whatever the verdict, and a duplicate by the inbox's word.
#[test]
fn a_request_goes_on_byte_for_byte_and_the_verdict_is_said() {
    let (folder, program) = (Folder::new(), Receiver::start());
    let url = answering(&program, &[]);
    let (running, address) = start(&mut relay(&url, &folder.path("kept")));

    let good = ping("evt_good").signed_request(&signer(), now());
    assert_eq!(send(&address, &good), Some(204));
    let got = last(&program);
    assert_eq!(got.body, *good.body());
    for (name, value) in good.headers() {
        assert_eq!(&got.headers[name], value, "{name}");
    }
    assert!(url.contains(&format!("//{}/", got.header("host"))), "{url}");
    running.said("  genuine: evt_good ping");
    running.said("  answered 204 in ");

    // A second copy is forwarded all the same: the program has to know it by itself.
    assert_eq!(send(&address, &good), Some(204));
    running.said("  genuine, a duplicate: evt_good ping");

    // What the program refuses is no duplicate when it comes again.
    answering(&program, &[Reply::Body(503, "\u{1b}[2Jno")]);
    let refused = ping("evt_refused").signed_request(&signer(), now());
    assert_eq!(send(&address, &refused), Some(503));
    // With what would clear the terminal escaped.
    running.said(r#"ms: "\u{1b}[2Jno""#);
    assert_eq!(send(&address, &refused), Some(204));

    // What does not verify is explained, and forwarded: the program has to refuse it by itself.
    answering(&program, &[Reply::Status(400)]);
    let mut mangled = ping("evt_mangled").signed_request(&signer(), now());
    mangled.body_mut().push(b'\n');
    assert_eq!(send(&address, &mangled), Some(400));
    assert_eq!(last(&program).body, *mangled.body());
    running.said("  to be refused: no v1 of the signature header matches the body");
    running.said("  proven: a line end was added to the end of the body");

    // Earlier requests are compared.
    let other = good.headers()["x-service-signature"].clone();
    let mut mixed = ping("evt_mixed").signed_request(&signer(), now());
    mixed.headers_mut().insert("x-service-signature", other);
    assert_eq!(send(&address, &mixed), Some(204));
    running.said("  proven: header and body are not of one delivery: the header is that of known delivery number ");
    // The program took it, which is the one bug that must not be missed.
    running.said("  *** WRONG: the program accepted a request that it must refuse.");

    assert_eq!(request(&address, "GET", "/", "", b"").status, 405);
    assert_eq!(program.got(PATH).len(), 6);
    let told = running.interrupt();
    let duplicates = told.stdout.matches("duplicate").count();
    assert_eq!((told.code, duplicates), (Some(0), 1), "{}", told.stdout);
    assert_eq!(told.stdout.matches("WRONG").count(), 1, "{}", told.stdout);
    let all = told.stdout + &told.stderr;
    assert!(!all.contains(SECRET) && !all.contains("v1="), "{all}");

    // Each request is kept in a form that `verify` reads.
    let mut names: Vec<_> =
        fs::read_dir(folder.path("kept")).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 6, "{names:?}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path("kept")), 0o700);
    assert!(names.iter().all(|name| mode(name) == 0o600), "only their owner may read them");
    // Each says where it was sent to.
    let is_there = |name| fs::read(name).unwrap().starts_with(b"POST /hooks HTTP/1.1\r\n");
    assert!(names.iter().all(is_there), "{names:?}");
    let mut verify = example("verify");
    verify.args(["explain", "--request"]).arg(&names[4]).env("WEBHOOK_SECRET", SECRET);
    let told = run(&mut verify, b"").is(0, "");
    assert!(told.stdout.starts_with("proven: a line end was added to the end of the body"));
}

/// Without a program, the sender gets an answer that lets it come again.
#[test]
fn a_program_that_is_away_is_a_502_and_no_duplicate_later() {
    let folder = Folder::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let (running, relayed) = start(&mut relay(&url, &folder.path("kept")));
    let request = ping("evt_1").signed_request(&signer(), now());
    assert_eq!(send(&relayed, &request), Some(502));
    running.said("  no response after ");
    assert_eq!(send(&relayed, &request), Some(502));
    let told = running.interrupt();
    assert!(!told.stdout.contains("duplicate"), "{}", told.stdout);
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
        let text = format!("POST / HTTP/1.1\r\n{}\r\n", lines(request.headers()));
        let name = format!("{}.000000000-{id}.http", first + number as i64);
        fs::write(kept.join(name), [text.as_bytes(), event.as_bytes()].concat()).unwrap();
    }
    let program = Receiver::start();
    let url = answering(&program, &[]);
    let replay = |arguments: &[&str]| {
        let mut command = relay(&url, &kept);
        run(command.args(arguments).env("LOCAL_SECRET", "whsec_local"), b"")
    };

    // As it was: its signature is old, which the terminal says.
    let said = replay(&["--replay", "evt_b"]).is(0, "").stdout;
    assert!(said.contains("1767225601.000000000-evt_b.http\n  to be refused: "), "{said}");
    assert!(said.contains(" days) old, more than the tolerance of 300s"), "{said}");
    assert!(said.contains("\n  --sign-with-env NAME signs it again\n"), "{said}");
    assert!(said.contains("*** WRONG"), "{said}");
    let got = last(&program);
    assert!(fs::read(kept.join("1767225601.000000000-evt_b.http")).unwrap().ends_with(&got.body));
    assert!(got.header("x-service-signature").starts_with("t=1767225601,v1="));

    // Signed again, with the program's own secret: what it gets is genuine and new.
    for since in ["1767225601", "2026-01-01T00:00:01Z"] {
        let before = program.got(PATH).len();
        let told = replay(&["--since", since, "--sign-with-env", "LOCAL_SECRET"]).is(0, "");
        assert!(!told.stdout.contains("WRONG"), "{}", told.stdout);
        let verifier = Verifier::new(SigningSecret::parse("whsec_local").unwrap());
        let ids = program.got(PATH).split_off(before).into_iter().map(|got| {
            let verified = verifier.verify(&got.headers, &got.body, now()).unwrap();
            verified.event().unwrap().id.to_string()
        });
        assert_eq!(ids.collect::<Vec<_>>(), ["evt_b", "evt_c"]);
    }

    answering(&program, &[Reply::Status(500)]);
    replay(&["--replay", "evt_a"]).is(1, "not every request got a 2xx");
    replay(&["--replay", "evt_nobody"]).is(1, "no kept request matches");
}

/// To a program over TLS, whose certificate is checked.
#[test]
fn https_goes_to_whom_the_certificate_names() {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let trusted = File::new("trusted.pem", &made.cert.pem());
    let key = made.signing_key.serialize_der();
    let (folder, program) = (Folder::new(), Receiver::over_tls(made.cert.der().clone(), key));
    let url = answering(&program, &[]);
    let request = ping("evt_tls").signed_request(&signer(), now());

    let mut command = relay(&url, &folder.path("kept"));
    let (running, address) = start(command.args(["--trust-ca", trusted.path()]));
    assert_eq!(send(&address, &request), Some(204));
    assert_eq!(last(&program).body, *request.body());
    running.said("  answered 204 in ");

    // Who is not trusted gets nothing.
    let (running, address) = start(&mut relay(&url, &folder.path("kept")));
    assert_eq!(send(&address, &request), Some(502));
    running.said("  no response after ");
    assert_eq!(program.got(PATH).len(), 1);
}

#[test]
fn a_wrong_command_line_of_a_relay_is_named() {
    let folder = Folder::new();
    let relay = || {
        let mut command = example("receiver");
        command.env("WEBHOOK_SECRET", SECRET).current_dir(folder.path(""));
        command
    };
    let cases = [
        ("--replay evt_1", "missing --forward"),
        ("--keep x", "missing --forward"),
        ("--forward ftp://h/", "--forward: expected http://HOST:PORT/PATH"),
        // The relay sends no caller's words over a network in clear.
        ("--forward http://app.example/", "--forward: expected https, or http to localhost"),
        ("--forward http://127.0.0.1.example:80/", "--forward: expected https"),
        ("--forward https://h/ --trust-ca none.pem", "--trust-ca: "),
        ("--forward /hooks", "--forward: expected http://HOST:PORT/PATH"),
        ("--forward http://localhost/ --journal x", "not allowed with --journal"),
        ("--forward http://localhost/ --since noon", "--since: "),
        ("--forward http://localhost/ --sign-with-env NOT_SET", "NOT_SET is not set"),
    ];
    refused(relay, &cases);
}
