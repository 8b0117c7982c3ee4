//! `receiver-check`: it passes a right receiver, and finds what is wrong with each of thirteen others.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use testing::running::{Folder, Told, example, run};
use tools::client::connect;

use crate::{now, refused};

/// A secret whose rest is base64, as those of others are.
const SECRET: &str = "whsec_bm8tb3V0cHV0LW1heS1zaG93LXRoaXMtc2VjcmV0";

/// What is wrong with a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    ChecksNothing,
    ParsesFirst,
    EncodesAgain,
    DecodesTheSecret,
    IgnoresTheTime,
    ComparesPrefixes,
    TakesTheFirstDigest,
    TellsByTheHeader,
    AnswersBeforeStoring,
    ReadsNamesWithCase,
    AsksForForgedAgain,
    EndsForForged,
    BreaksOff,
    /// Which is right.
    SaysContinue,
}

use Wrong::{
    AnswersBeforeStoring, AsksForForgedAgain, BreaksOff, ChecksNothing, ComparesPrefixes,
    DecodesTheSecret, EncodesAgain, EndsForForged, IgnoresTheTime, Nothing, ParsesFirst,
    ReadsNamesWithCase, SaysContinue, TakesTheFirstDigest, TellsByTheHeader,
};

/// A receiver of one kind, as a customer would write it.
struct Receiver {
    wrong: Wrong,
    stored: Mutex<File>,
    seen: Mutex<HashSet<String>>,
}

impl Receiver {
    /// Starts it. Returns its URL.
    fn start(wrong: Wrong, stored: &Path) -> String {
        let stored = OpenOptions::new().create(true).append(true).open(stored).unwrap();
        let receiver = Self { wrong, stored: Mutex::new(stored), seen: Mutex::default() };
        let receiver = Arc::new(receiver);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hooks", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = Arc::clone(&receiver);
                std::thread::spawn(move || receiver.answer(stream));
            }
        });
        url
    }

    fn answer(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            Some(line.trim_end().to_owned())
        };
        line()?;
        let mut headers = Vec::new();
        while let Some((name, value)) = line()?.split_once(": ") {
            headers.push((name.to_owned(), value.to_owned()));
        }
        let value = |name: &str| {
            let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let mut body = Vec::new();
        match value("content-length") {
            Some(length) => {
                body.resize(length.parse().ok()?, 0);
                reader.read_exact(&mut body).ok()?;
            }
            None => loop {
                let mut size = String::new();
                reader.read_line(&mut size).ok()?;
                let mut chunk = vec![0; usize::from_str_radix(size.trim_end(), 16).ok()? + 2];
                reader.read_exact(&mut chunk).ok()?;
                match chunk.len() {
                    2 => break,
                    length => body.extend(&chunk[..length - 2]),
                }
            },
        }
        let is_signature = |name: &str| match self.wrong {
            ReadsNamesWithCase => name == "X-Service-Signature",
            _ => name.eq_ignore_ascii_case("X-Service-Signature"),
        };
        let signatures: Vec<_> = headers.iter().filter(|(name, _)| is_signature(name)).collect();
        let signature = match signatures.as_slice() {
            [(_, signature)] => signature.as_str(),
            _ => "",
        };
        let status = self.status(signature, &body, value("X-Service-Delivery"), &stream);
        let before = if self.wrong == SaysContinue { "HTTP/1.1 100 -\r\nA: b\r\n\r\n" } else { "" };
        let end = if self.wrong == BreaksOff { "" } else { "\r\n" };
        write!(&stream, "{before}HTTP/1.1 {status} -\r\nContent-Length: 0\r\n{end}").ok()
    }

    fn status(
        &self,
        signature: &str,
        body: &[u8],
        delivery: Option<String>,
        stream: &TcpStream,
    ) -> u16 {
        let parsed = serde_json::from_slice::<Value>(body);
        if self.wrong == ParsesFirst && parsed.is_err() {
            return 500;
        }
        if self.wrong != ChecksNothing && !self.is_genuine(signature, body) {
            return match self.wrong {
                AsksForForgedAgain => 429,
                EndsForForged => 410,
                _ => 400,
            };
        }
        let Ok(event) = parsed else { return 204 };
        let id = event["id"].as_str().unwrap_or_default().to_owned();
        let key = match self.wrong {
            TellsByTheHeader => delivery.unwrap_or_default(),
            _ => id.clone(),
        };
        if self.wrong == AnswersBeforeStoring {
            let _ = write!(&*stream, "HTTP/1.1 204 -\r\nContent-Length: 0\r\n\r\n");
            std::thread::sleep(Duration::from_millis(200));
        }
        let mut seen = self.seen.lock().unwrap();
        if seen.insert(key) {
            writeln!(self.stored.lock().unwrap(), "{id}").unwrap();
        }
        204
    }

    fn is_genuine(&self, signature: &str, body: &[u8]) -> bool {
        let parts: Vec<_> = signature.split(',').filter_map(|part| part.split_once('=')).collect();
        let times: Vec<_> = parts.iter().filter(|(name, _)| *name == "t").collect();
        let [(_, time)] = times.as_slice() else { return false };
        let Ok(at) = time.parse::<i64>() else { return false };
        if self.wrong != IgnoresTheTime && (now().unix_seconds() - at).abs() > 300 {
            return false;
        }
        let key = match self.wrong {
            DecodesTheSecret => {
                STANDARD_NO_PAD.decode(SECRET.trim_start_matches("whsec_")).unwrap()
            }
            _ => SECRET.as_bytes().to_vec(),
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{time}.").as_bytes());
        match (self.wrong, serde_json::from_slice::<Value>(body)) {
            (EncodesAgain, Ok(value)) => mac.update(value.to_string().as_bytes()),
            _ => mac.update(body),
        }
        let expected = hex::encode(mac.finalize().into_bytes());
        let mut digests = parts.iter().filter(|(name, _)| *name == "v1").map(|(_, value)| *value);
        match self.wrong {
            ComparesPrefixes => digests.any(|digest| expected.starts_with(digest)),
            TakesTheFirstDigest => digests.next() == Some(&expected),
            _ => digests.any(|digest| digest == expected),
        }
    }
}

fn check(url: &str, stored: Option<&PathBuf>) -> Told {
    let mut command = example("receiver-check");
    command.args([url, "--json"]).env("WEBHOOK_SECRET", SECRET);
    if let Some(stored) = stored {
        command.arg("--stored").arg(stored);
    }
    run(&mut command, b"")
}

/// Returns the names of the rules with this verdict.
fn rules(told: &Told, verdict: &str) -> Vec<String> {
    let said: Value = serde_json::from_str(&told.stdout).unwrap();
    let rules = said["rules"].as_array().unwrap().iter();
    let rules = rules.filter(|rule| rule["verdict"] == verdict);
    rules.map(|rule| rule["rule"].as_str().unwrap().to_owned()).collect()
}

/// The rules about what has to be refused.
const REFUSED: &[&str] = &[
    "unsigned",
    "wrong_signature",
    "altered_body",
    "altered_time",
    "old",
    "ahead",
    "prefix",
    "decoded_secret",
    "two_headers",
    "two_times",
    "verified_first",
];

/// What a customer gets wrong, and the rule that tells them.
#[test]
fn each_wrong_receiver_is_found_by_its_rule() {
    let folder = Folder::new();
    let rows: &[(Wrong, &[&str])] = &[
        (Nothing, &[]),
        (ChecksNothing, &["unsigned", "wrong_signature", "altered_body", "old", "ahead"]),
        (ParsesFirst, &["verified_first"]),
        (EncodesAgain, &["exact_bytes"]),
        (DecodesTheSecret, &["genuine", "decoded_secret"]),
        (IgnoresTheTime, &["old", "ahead"]),
        (ComparesPrefixes, &["prefix"]),
        (TakesTheFirstDigest, &["any_digest"]),
        (TellsByTheHeader, &["delivery_header"]),
        (AnswersBeforeStoring, &["stored_first"]),
        (ReadsNamesWithCase, &["header_case"]),
        (AsksForForgedAgain, REFUSED),
        (EndsForForged, REFUSED),
        (BreaksOff, &["genuine", "unsigned", "burst", "again"]),
        (SaysContinue, &[]),
    ];
    std::thread::scope(|scope| {
        for (wrong, expected) in rows {
            let stored = folder.path(&format!("{wrong:?}"));
            scope.spawn(move || {
                let told = check(&Receiver::start(*wrong, &stored), Some(&stored));
                let broken = rules(&told, "broken");
                for rule in *expected {
                    assert!(broken.iter().any(|one| one == rule), "{wrong:?}: {broken:?}");
                }
                let right = expected.is_empty();
                assert_eq!(told.code, Some(i32::from(!right)), "{wrong:?}: {}", told.stdout);
                assert_eq!(broken.is_empty(), right, "{wrong:?}: {broken:?}");
                // One mistake is not taken for ten others.
                if !matches!(wrong, ChecksNothing | DecodesTheSecret | EncodesAgain | BreaksOff) {
                    assert_eq!(broken, *expected, "{wrong:?}");
                }
                let all = told.stdout + &told.stderr;
                assert!(
                    !all.contains(SECRET.trim_start_matches("whsec_")) && !all.contains("v1="),
                    "{all}"
                );
            });
        }
    });
}

/// What cannot be seen does not hold.
#[test]
fn without_what_is_stored_four_rules_are_unseen() {
    let folder = Folder::new();
    let url = Receiver::start(Nothing, &folder.path("stored"));
    let told = check(&url, None).is(1, "not every rule holds");
    assert_eq!(
        rules(&told, "unseen"),
        ["stored_first", "again", "twice_at_once", "delivery_header"]
    );
    assert_eq!(rules(&told, "broken"), [""; 0]);
    let said: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(said["holds"], json!(false));

    // For people: a line for each rule, and how many hold.
    let mut command = example("receiver-check");
    let told = run(command.arg(&url).env("WEBHOOK_SECRET", SECRET), b"").is(1, "");
    assert!(told.stdout.starts_with("holds   genuine "), "{}", told.stdout);
    let last = "21 of 25 rules hold; 4 cannot be seen without --stored\n";
    assert!(told.stdout.ends_with(last), "{}", told.stdout);
}

/// What shows nothing is not taken for a receiver that has stored nothing.
#[test]
fn a_place_that_shows_nothing_is_named() {
    let folder = Folder::new();
    let url = Receiver::start(Nothing, &folder.path("stored"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = BufReader::new(&stream).read_line(&mut String::new());
            let _ = write!(&stream, "HTTP/1.1 500 -\r\nContent-Length: 0\r\n\r\n");
        }
    });
    for (place, words) in
        [(place.into(), "--stored: answered 500"), (folder.path("none"), "--stored: No such file")]
    {
        let told = check(&url, Some(&place)).is(1, "not every rule holds");
        assert_eq!(
            rules(&told, "broken"),
            ["stored_first", "again", "twice_at_once", "delivery_header"]
        );
        assert_eq!(told.stdout.matches(words).count(), 4, "{}", told.stdout);
    }
}

/// A name may have an address at which nobody listens.
#[tokio::test]
async fn each_address_of_a_name_is_tried() {
    let [nobody, somebody] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [at_nobody, at_somebody] = [&nobody, &somebody].map(|one| one.local_addr().unwrap());
    drop(nobody);
    let stream = connect(&[at_nobody, at_somebody], Duration::from_secs(10)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), at_somebody);
    assert!(connect(&[at_nobody], Duration::from_secs(10)).await.is_err());
    assert!(connect(&[], Duration::from_secs(10)).await.is_err());
}

/// An endpoint that is not there breaks what it has to take, and takes nothing that it must not.
#[test]
fn an_endpoint_that_is_away_breaks_every_rule() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let told = check(&url, None).is(1, "not every rule holds");
    assert_eq!(rules(&told, "holds"), [""; 0]);
    assert!(told.stdout.contains("a ping: no answer: "), "{}", told.stdout);
}

#[test]
fn a_wrong_command_line_of_a_check_is_named() {
    let program = || -> Command {
        let mut command = example("receiver-check");
        command.env("WEBHOOK_SECRET", "whsec_no-output-may-show-this");
        command
    };
    refused(
        program,
        &[
            (&[], "missing URL"),
            (&["ftp://h/"], "URL: expected http://HOST:PORT/PATH or https://"),
            (&["/hooks"], "URL: expected http://HOST:PORT/PATH or https://"),
            (&["http://a:b@h/"], "URL: no user and no password may be in it"),
            (&["http://h/", "--secret-env", "NOT_SET"], "NOT_SET is not set"),
            (&["http://h/", "--stored", "http:// /"], "--stored: "),
            (&["http://h/", "http://h/"], "too many arguments"),
        ],
    );
}
