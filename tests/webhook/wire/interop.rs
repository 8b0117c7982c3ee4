//! Against the official `stripe` packages, which use the same header and the same digest (their
//! header's name aside). `tests/interop/run` installs them and names the peer; by itself the test
//! is ignored.
//!
//! Where they depart from the specification that this crate follows, the test says so:
//! - they refuse an old timestamp, but take any future one (SIG-4);
//! - they read the body as text: one that is not UTF-8 cannot be verified, and in Node one with a
//!   byte order mark neither, for decoding drops it (SIG-2: the exact bytes).

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, Signer, Verifier, VerifyError};
use serde::Deserialize;
use serde_json::json;

use super::secret;

const SECRET: &str = "whsec_bm90IGEgYmFzZTY0IHNlY3JldA==";

const BODIES: [(&str, &[u8]); 9] = [
    ("event", br#"{"id":"evt_1","type":"ping","data":{"message":"hello"}}"#),
    ("empty", b""),
    ("accents", "{\"name\":\"Zo\u{eb} \u{1f4de} \u{2028}\"}".as_bytes()),
    ("spaces", b" \r\n{\t\"a\" : 1 }\r\n\n"),
    ("nul", b"{\"a\":\"\0\"}"),
    ("percent", b"%s %d %% $1 \\u00e9"),
    ("period", b".1767225600.{}"),
    ("mark", b"\xef\xbb\xbf{}"),
    ("not text", b"{\"name\":\"M\xfcller\"}"),
];

#[derive(Deserialize)]
struct Answer {
    peer: String,
    verified: BTreeMap<String, String>,
    signed: BTreeMap<String, String>,
}

#[test]
#[ignore = "needs a peer: run tests/interop/run"]
#[allow(clippy::disallowed_methods)] // The peers know no other time.
fn verifies_and_is_verified() {
    let now = Timestamp::from(SystemTime::now());
    let at = |offset: i64| Timestamp::from_unix(now.unix_seconds() + offset).unwrap();
    let signer = Signer::new(secret(SECRET));

    let mut verify: Vec<_> = BODIES
        .iter()
        .map(|(name, body)| (*name, *body, signer.sign(body, now).as_str().to_owned()))
        .collect();
    let (_, body) = BODIES[0];
    let right = signer.sign(body, now);
    let rotating = Signer::new(secret("whsec_new"))
        .with_previous(secret(SECRET), Timestamp::MAX, now)
        .unwrap();
    verify.extend([
        ("rotating", body, rotating.sign(body, now).as_str().to_owned()),
        ("another body", &b"{}"[..], right.as_str().to_owned()),
        ("290 s old", body, signer.sign(body, at(-290)).as_str().to_owned()),
        ("an hour old", body, signer.sign(body, at(-3600)).as_str().to_owned()),
        ("an hour ahead", body, signer.sign(body, at(3600)).as_str().to_owned()),
    ]);
    let asked = json!({
        "verify": verify.iter().map(|(name, body, header)| json!({
            "name": name, "body": hex::encode(body), "header": header, "secret": SECRET, "tolerance": 300,
        })).collect::<Vec<_>>(),
        "sign": BODIES.iter().map(|(name, body)| json!({
            "name": name, "body": hex::encode(body), "secret": SECRET, "time": now.unix_seconds(),
        })).collect::<Vec<_>>(),
    });
    let answer = ask(&asked);
    println!("{}", answer.peer);
    let node = answer.peer.contains("npm");

    // They verify what we sign.
    for (name, _, _) in &verify {
        let expected = match *name {
            "mark" | "not text" if node => "No signatures found",
            "not text" => "not text",
            "another body" => "No signatures found",
            "an hour old" => "Timestamp outside the tolerance zone",
            _ => "accepted",
        };
        let verdict = &answer.verified[*name];
        assert!(verdict.starts_with(expected), "{name}: {verdict}");
    }

    // We verify what they sign.
    let verifier = Verifier::new(secret("whsec_new")).with_secret(secret(SECRET));
    for (name, body) in BODIES {
        let Some(header) = answer.signed.get(name) else {
            assert!(name == "not text" && !node, "{name} was not signed");
            continue;
        };
        let headers = DeliveryHeaders::new().signature(header.as_bytes());
        let verdict =
            verifier.verify_parts(headers, body, now).map(|verified| verified.secret_index());
        match name {
            // It signed what decoding had left of it.
            "not text" => assert_eq!(verdict, Err(VerifyError::Mismatch), "{name}"),
            _ => assert_eq!(verdict, Ok(1), "{name}"),
        }
    }

    // What they take from the future, we refuse.
    let ahead = signer.sign(body, at(3600));
    let headers = DeliveryHeaders::new().signature(ahead.as_str().as_bytes());
    let refused = verifier.verify_parts(headers, body, now).map(drop);
    assert!(matches!(refused, Err(VerifyError::TooNew { .. })), "{refused:?}");
}

fn ask(asked: &serde_json::Value) -> Answer {
    let peer = std::env::var("INTEROP_PEER").unwrap();
    let mut words = peer.split(' ');
    let mut child = Command::new(words.next().unwrap())
        .args(words)
        .current_dir(std::env::var("INTEROP_FOLDER").unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{peer}: {}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}
