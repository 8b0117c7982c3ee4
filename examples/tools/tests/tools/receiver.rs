//! `receiver`: what it answers, and that a crash loses no event and doubles none.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use call_assistant::id::CallId;
use call_assistant::model::Call;
use call_assistant::webhook::event::{EventBody, EventType};
use call_assistant::webhook::testing::signed_request;
use http::{HeaderValue, Request};

use testing::running::{Folder, PATIENCE, Running, example, request, run, spawn};

use crate::{SECRET, Stop, accepted, listening, new_event, now, ping, refused, send, signer};

fn receiver(journal: &Path) -> Command {
    let mut command = example("receiver");
    command.args(["--secret", SECRET, "--listen", "127.0.0.1:0", "--journal"]).arg(journal);
    command
}

/// Starts it, and learns where it listens.
fn start(command: &mut Command) -> (Running, String) {
    listening(Running::start(command))
}

fn signed(body: &[u8]) -> Request<Vec<u8>> {
    signed_request(&signer(), "ping", "evt_1", body, now()).unwrap()
}

/// Returns the ids of the events that were acted on, each with how often.
fn acted_on(journal: &Path) -> BTreeMap<String, u32> {
    ids(&fs::read_to_string(actions(journal)).unwrap())
}

fn actions(journal: &Path) -> std::path::PathBuf {
    journal.with_extension("journal.actions")
}

fn ids(lines: &str) -> BTreeMap<String, u32> {
    let mut ids = BTreeMap::new();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        *ids.entry(line["id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    ids
}

/// Two would read each other's half-written lines.
#[test]
fn one_at_a_time_has_a_journal() {
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let (running, address) = start(&mut receiver(&journal));
    run(&mut receiver(&journal), b"").is(1, "another process is using it");
    let request = ping("evt_1").signed_request(&signer(), now());
    accepted(&address, &request);
    assert_eq!(running.interrupt().code, Some(0));
}

/// EVT-8, D-46: accepted once, acknowledged as often as it comes, also after a restart.
#[test]
fn an_event_is_told_once_however_often_it_comes() {
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let (running, address) = start(&mut receiver(&journal));
    let mut call = Call::new(CallId::parse("call_1").unwrap(), now(), now());
    call.ended_at = Some(now());
    call.duration_seconds = Some(95);
    call.caller.phone_number = Some("+4712345678".to_owned());
    call.summary = Some("Asked\u{1b}[2J for Friday".to_owned());
    let ended = new_event("evt_call").call_ended(&call).unwrap();
    let request = ended.signed_request(&signer(), now());
    for _ in 0..3 {
        accepted(&address, &request);
    }
    // Typed, and without the escape that would have cleared the terminal.
    let line = running.said("evt_call");
    assert!(line.starts_with("evt_call call.ended call call_1 from \"+4712345678\""), "{line}");
    assert!(line.ends_with(r#"for 95 s: "Asked\u{1b}[2J for Friday""#), "{line}");
    running.logged("duplicate: evt_call");
    let told = running.interrupt();
    assert_eq!((told.code, told.stdout.lines().count()), (Some(0), 1));

    let (running, address) = start(&mut receiver(&journal));
    accepted(&address, &request);
    accepted(&address, &ping("evt_2").signed_request(&signer(), now()));
    let told = running.interrupt();
    assert_eq!(told.stdout, "evt_2 ping \"this is evt_2\"\n");
    assert_eq!(acted_on(&journal), BTreeMap::from([("evt_call".into(), 1), ("evt_2".into(), 1)]));
    assert!(!told.stderr.contains(SECRET) && !told.stderr.contains("v1="), "{}", told.stderr);
}

/// SIG-2, D-46: refused with 400, and nothing is kept of it. (`kit.rs` has each way to be refused.)
#[test]
fn what_is_not_genuine_is_refused_and_not_kept() {
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let (running, address) = start(&mut receiver(&journal));
    let body = ping("evt_1");
    let good = signed(body.as_bytes());
    let (mut tampered, mut of_another_type) = (good.clone(), good.clone());
    tampered.body_mut().push(b'\n');
    let another = HeaderValue::from_static("x");
    of_another_type.headers_mut().insert("x-service-event", another);
    for (what, request) in [("tampered", tampered), ("another type", of_another_type)] {
        assert_eq!(send(&address, &request), Some(400), "{what}");
    }
    assert_eq!(request(&address, "GET", "/", "", b"").status, 405);
    assert_eq!(request(&address, "POST", "/", "", &[b' '; 1_048_577]).status, 413);
    assert_eq!(fs::read(&journal).unwrap(), b"");
    // None of them has cost the genuine one its place.
    accepted(&address, &good);
    running.interrupt();
    assert_eq!(acted_on(&journal), BTreeMap::from([("evt_1".into(), 1)]));
}

/// D-46, D-47: what cannot be read is acknowledged and kept to the byte.
#[test]
fn what_is_genuine_and_strange_is_kept_whole() {
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let (running, address) = start(&mut receiver(&journal));
    let head = r#""created_at":"2026-01-01T00:00:00+00:00","api_version":"2026-01-15","account_id":"a","origin":null"#;
    let unknown = format!(r#"{{"id":"evt_u","type":"call.imagined",{head},"data":{{"a":1}}}}"#);
    let drifted =
        format!(r#"{{"id":"evt_d","type":"call.ended",{head},"data":{{"object":{{}}}}}}"#);
    let (strange, ended) = ("call.imagined", "call.ended");
    for (id, event_type, body, line) in [
        ("evt_u", strange, unknown.as_bytes(), "evt_u call.imagined kept, of an unknown type"),
        ("evt_d", ended, drifted.as_bytes(), "evt_d call.ended kept, of an unknown form"),
        ("evt_n", "ping", b"\xffnot an event", "a genuine body of 13 bytes that cannot be read"),
    ] {
        let request = signed_request(&signer(), event_type, id, body, now()).unwrap();
        accepted(&address, &request);
        accepted(&address, &request);
        running.said(line);
    }
    let told = running.interrupt();
    assert_eq!(told.stdout.lines().count(), 3);
    let kept = fs::read_to_string(&journal).unwrap();
    let kept: Vec<serde_json::Value> =
        kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kept[0]["body"], unknown.as_str());
    assert_eq!(kept[1]["body"], drifted.as_str());
    assert_eq!(kept[2]["body_hex"], "ff6e6f7420616e206576656e74");
}

/// No type that the library knows is told as one that the program does not know.
#[test]
fn each_type_is_told() {
    let folder = Folder::new();
    let (running, address) = start(&mut receiver(&folder.path("a.journal")));
    for known in EventType::KNOWN {
        let body = format!(
            r#"{{"id":"evt_{known}","type":"{known}","created_at":"2026-01-01T00:00:00Z","api_version":"2026-01-15","account_id":"a","origin":null,"data":{}}}"#,
            known.sample().unwrap()
        );
        let id = format!("evt_{known}");
        let request =
            signed_request(&signer(), known.as_str(), &id, body.as_bytes(), now()).unwrap();
        accepted(&address, &request);
    }
    let told = running.interrupt().stdout;
    for known in EventType::KNOWN {
        let line = told.lines().find(|line| line.starts_with(&format!("evt_{known} ")));
        let line = line.unwrap_or_else(|| panic!("no line of {known} in {told}"));
        assert!(!line.contains(" kept, of "), "examples/tools/receiver/told.rs: {line}");
    }
}

/// D-46: a slow action keeps no sender waiting. Here nobody reads what is printed, and the pipe is
/// full long before the last event has come.
#[test]
fn whoever_does_not_listen_keeps_no_sender_waiting() {
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let mut child = spawn(receiver(&journal).stdin(Stdio::null()));
    let _unread = child.stdout.take();
    let (unread, address) = listening(Running::of(child));
    for number in 0..40 {
        let event = new_event(&format!("evt_{number}")).ping("x".repeat(4096)).unwrap();
        accepted(&address, &event.signed_request(&signer(), now()));
    }
    // Nor whoever wants it to end.
    unread.interrupt().is(1, "stopped during an action");
    assert!(acted_on(&journal).len() < 40);

    let (running, _) = start(&mut receiver(&journal));
    running.said("evt_39 ping");
    running.interrupt();
    let ids = acted_on(&journal);
    assert_eq!((ids.len(), ids.values().max()), (40, Some(&1)));
}

/// EVT-8: `kill -9` anywhere, and every event that a sender kept sending until it was acknowledged
/// is acted on, none twice.
#[test]
fn killed_again_and_again_it_loses_nothing_and_doubles_nothing() {
    const SENDERS: u32 = 4;
    const ROUNDS: u32 = 12;
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let address = Mutex::new(None::<String>);
    let (done, acknowledged) = (AtomicBool::new(false), AtomicU32::new(0));
    let over = AtomicBool::new(false);
    // At least once, as a service sends: until there is a 2xx.
    let deliver = |event: EventBody| {
        while !over.load(Ordering::Relaxed) {
            let to = address.lock().unwrap().clone();
            let request = event.signed_request(&signer(), now());
            if to.is_some_and(|to| send(&to, &request) == Some(204)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
    };
    let sends = |sender: u32| {
        let numbers = (1..).take_while(|_| !done.load(Ordering::Relaxed));
        numbers.map(|number| deliver(ping(&format!("evt_{sender}_{number}")))).count()
    };
    let sent: Vec<usize> = std::thread::scope(|scope| {
        let sends = &sends;
        let senders: Vec<_> =
            (0..SENDERS).map(|sender| scope.spawn(move || sends(sender))).collect();
        let _stop = [Stop(&done), Stop(&over)];
        for round in 0..ROUNDS {
            let (running, at) = start(&mut receiver(&journal));
            *address.lock().unwrap() = Some(at);
            // Wherever it stands once a few more are acknowledged, at another place each time.
            let enough = acknowledged.load(Ordering::Relaxed) + 5 + round;
            let began = Instant::now();
            while acknowledged.load(Ordering::Relaxed) < enough {
                assert!(began.elapsed() < PATIENCE, "it acknowledges no more");
                std::thread::sleep(Duration::from_micros(u64::from(100 + 37 * round)));
            }
            running.kill();
            // Its port may be another test's next.
            *address.lock().unwrap() = None;
        }
        let (running, at) = start(&mut receiver(&journal));
        *address.lock().unwrap() = Some(at);
        done.store(true, Ordering::Relaxed);
        let sent = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
        assert_eq!(running.interrupt().code, Some(0));
        sent
    });
    let mut expected = BTreeMap::new();
    for (sender, count) in sent.into_iter().enumerate() {
        expected.extend((1..=count).map(|number| (format!("evt_{sender}_{number}"), 1)));
    }
    assert_eq!(acted_on(&journal), expected);
    assert_eq!(ids(&fs::read_to_string(&journal).unwrap()), expected);
}

/// Every place within the last line of either file at which a crash may have cut it.
#[test]
fn a_line_that_was_not_finished_is_cut_off_and_done_again() {
    let folder = Folder::new();
    let journal = folder.path("a.journal");
    let (running, address) = start(&mut receiver(&journal));
    for id in ["evt_1", "evt_2"] {
        let request = ping(id).signed_request(&signer(), now());
        accepted(&address, &request);
    }
    running.interrupt();
    let [whole_journal, whole_actions] =
        [&journal, &actions(&journal)].map(|it| fs::read(it).unwrap());
    let last =
        |text: &[u8]| text[..text.len() - 1].iter().rposition(|it| *it == b'\n').unwrap() + 1;
    for cut in [1, 2, whole_actions.len() - last(&whole_actions) - 1] {
        fs::write(actions(&journal), &whole_actions[..whole_actions.len() - cut]).unwrap();
        let (running, _) = start(&mut receiver(&journal));
        running.said("evt_2 ping");
        // It has only just begun, and ends in good order all the same.
        assert_eq!(running.interrupt().code, Some(0));
        assert_eq!(fs::read(actions(&journal)).unwrap(), whole_actions);
    }
    // A journal cut short within its last line: the event was never acknowledged. (Its action
    // cannot be there yet.)
    fs::write(&journal, &whole_journal[..whole_journal.len() - 7]).unwrap();
    fs::write(actions(&journal), &whole_actions[..last(&whole_actions)]).unwrap();
    let (running, address) = start(&mut receiver(&journal));
    send(&address, &ping("evt_2").signed_request(&signer(), now())).unwrap();
    assert_eq!(running.interrupt().stdout, "evt_2 ping \"this is evt_2\"\n");
    assert_eq!(acted_on(&journal), BTreeMap::from([("evt_1".into(), 1), ("evt_2".into(), 1)]));

    // Damage is not a crash's doing, and is not repaired by guessing; nor is another file emptied.
    let flipped = |at: usize| {
        let mut damaged = whole_journal.clone();
        damaged[at] = b'#';
        damaged
    };
    for (content, line) in [
        (flipped(3), 1),
        (flipped(last(&whole_journal) + 3), 2),
        (SECRET.into(), 1),
        ([SECRET, "\n"].concat().into(), 1),
        (format!("{SECRET:?}\n").into(), 1),
    ] {
        fs::write(&journal, &content).unwrap();
        let told = run(&mut receiver(&journal), b"").is(1, &format!("line {line} is damaged"));
        assert!(!told.stderr.contains("no-output-may-show"), "{:?}", told.stderr);
        assert_eq!(fs::read(&journal).unwrap(), content);
    }

    // Actions of another journal.
    fs::write(&journal, b"").unwrap();
    run(&mut receiver(&journal), b"").is(1, "beyond the end of the journal");
}

#[test]
fn a_mismatch_is_explained_where_that_is_asked_for() {
    let folder = Folder::new();
    let (running, address) = start(receiver(&folder.path("a.journal")).arg("--explain"));
    let mut request = signed(ping("evt_1").as_bytes());
    request.body_mut().push(b'\n');
    assert_eq!(send(&address, &request), Some(400));
    let line = running.logged("that mismatch: ");
    assert!(line.ends_with("proven: a line end was added to the end of the body"), "{line}");
}

#[test]
fn a_wrong_command_line_is_named_and_never_shows_a_secret() {
    let cases = [
        ("", "WEBHOOK_SECRET"),
        ("--secret the-one-that-no-output-may-show", "does not begin with whsec_"),
        ("--secret SECRET --secret-env X", "not allowed with --secret"),
        ("--secret SECRET --listen here", "--listen"),
        ("--secret SECRET --jornal x", "did you mean --journal?"),
        ("--secret SECRET --product Ä", "--product"),
    ];
    refused(|| example("receiver"), &cases);
    let with_spoilt = || {
        let mut command = example("receiver");
        command.env("WEBHOOK_SECRET", OsStr::from_bytes(&[SECRET.as_bytes(), b"\xff"].concat()));
        command
    };
    refused(with_spoilt, &[("", "is not UTF-8")]);
    let help = run(example("receiver").arg("--help"), b"").is(0, "");
    assert!(help.stdout.contains("--journal <FILE>"));
}
