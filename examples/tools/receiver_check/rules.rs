//! The rules, and whether a receiver keeps them.

use std::time::Duration;

use call_assistant::webhook::Signer;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::endpoint::Endpoint;
use crate::foreign;
use crate::sent::{Event, Maker, Sent};
use crate::stored::Stored;

/// How many events come at once.
const BURST: usize = 100;

/// How long a second copy may need to be stored.
const SETTLES: Duration = Duration::from_millis(500);

/// How long the first may.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a rule stands.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) rule: &'static str,
    pub(crate) says: &'static str,
    pub(crate) outcome: Outcome,
}

/// Whether a rule holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    /// It does not: what was sent, and what came of it.
    Broken(String),
    /// Only what the receiver has stored would show it.
    Unseen,
}

impl Outcome {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken(_) => "BROKEN",
            Self::Unseen => "unseen",
        }
    }
}

/// A request, and what it is.
type Named = (String, Sent);

fn named(what: &str, sent: Sent) -> Vec<Named> {
    vec![(what.to_owned(), sent)]
}

/// Sends all that the rules are about, one rule after another.
pub(crate) async fn check(
    endpoint: &Endpoint,
    maker: &Maker,
    stored: Option<&Stored>,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (rule, says, requests) in taken(maker) {
        verdicts.push(Verdict { rule, says, outcome: all(endpoint, requests, true).await });
    }
    for (rule, says, requests) in refused(maker) {
        verdicts.push(Verdict { rule, says, outcome: all(endpoint, requests, false).await });
    }
    let burst = burst(endpoint, maker).await;
    verdicts.push(Verdict { rule: "burst", says: "a hundred at once are taken", outcome: burst });
    let rows = [
        ("stored_first", "a 2xx comes once the event is stored"),
        ("again", "an event that comes again is taken, and stored once"),
        ("twice_at_once", "an event that comes twice at the same time is stored once"),
        ("delivery_header", "what is the same event is told by the signed body, not by a header"),
    ];
    for (rule, says) in rows {
        let seen = match (stored, rule) {
            (None, _) => Ok(Outcome::Unseen),
            (Some(stored), "stored_first") => stored_first(endpoint, maker, stored).await,
            (Some(stored), "again") => again(endpoint, maker, stored).await,
            (Some(stored), "twice_at_once") => twice_at_once(endpoint, maker, stored).await,
            (Some(stored), _) => delivery_header(endpoint, maker, stored).await,
        };
        verdicts.push(Verdict { rule, says, outcome: seen.unwrap_or_else(Outcome::Broken) });
    }
    verdicts
}

type Rule = (&'static str, &'static str, Vec<Named>);

/// Returns what a receiver has to take.
fn taken(maker: &Maker) -> Vec<Rule> {
    let ping = |write: fn(&str) -> String| maker.genuine(&Event::ping()).with_names(write);
    let event = Event::ping();
    let signature = maker.signature(&event);
    let (t, digests) = signature.split_once(',').unwrap_or_default();
    let other = Signer::new(foreign()).sign(b"", call_assistant::Timestamp::UNIX_EPOCH);
    let wrong = other.as_str().split_once(',').unwrap_or_default().1;
    let mut chunked = maker.genuine(&Event::ping());
    chunked.chunked = true;
    let mut rules = vec![
        ("genuine", "a genuine event is taken", named("a ping", maker.genuine(&Event::ping()))),
        (
            "exact_bytes",
            "the signature is checked over the bytes as they came",
            named("JSON with other spaces and escapes", maker.genuine(&Event::spaced())),
        ),
        (
            "non_ascii",
            "text outside of ASCII changes nothing",
            named("names and signs in UTF-8", maker.genuine(&Event::in_unicode())),
        ),
        (
            "large",
            "a body of 1 MiB is taken",
            named("a body of 1 MiB", maker.genuine(&Event::large())),
        ),
        (
            "unknown_type",
            "an event of an unknown type is taken",
            named("the type receiver.check", maker.genuine(&Event::unknown())),
        ),
        (
            "header_case",
            "names of header fields are compared without case",
            vec![
                ("names in lower case".to_owned(), ping(str::to_lowercase)),
                ("names in upper case".to_owned(), ping(str::to_uppercase)),
            ],
        ),
        ("chunked", "a body in chunks is taken", named("a body in chunks", chunked)),
        (
            "any_digest",
            "one good v1 of several is enough, wherever it stands",
            vec![
                (
                    "a foreign v1 before the good one".to_owned(),
                    maker.signed(&event, &format!("{t},{wrong},{digests}")),
                ),
                (
                    "a foreign v1 behind the good one".to_owned(),
                    maker.signed(&event, &format!("{t},{digests},{wrong}")),
                ),
            ],
        ),
        (
            "other_parts",
            "parts of the signature header that are not known are ignored",
            named("v2 and x", maker.signed(&event, &format!("x=1,{t},v2=abc,{digests}"))),
        ),
    ];
    if maker.rotates() {
        rules.push((
            "old_secret",
            "the previous secret alone is good while both are",
            named("signed with the older secret", maker.by_oldest(&Event::ping())),
        ));
    }
    rules
}

/// Returns what a receiver has to refuse.
fn refused(maker: &Maker) -> Vec<Rule> {
    let event = Event::ping();
    let signature = maker.signature(&event);
    let (t, digests) = signature.split_once(',').unwrap_or_default();
    let digest = digests.split(',').next().unwrap_or_default().trim_start_matches("v1=");
    let half = digest.get(..32).unwrap_or_default();
    let with = |digest: &str| maker.signed(&event, &format!("{t},v1={digest}"));
    let alone = |what: &str, sent| (what.to_owned(), sent);
    let mut altered = maker.genuine(&event);
    altered.body.push(b'\n');
    let mut other_body = maker.genuine(&event);
    other_body.body = Event::ping().body;
    let seconds = t.trim_start_matches("t=").parse().unwrap_or(0_i64);
    let later = format!("t={},{digests}", seconds.saturating_add(1));
    let mut repeated = maker.genuine(&event);
    if let Some(last) = repeated.headers.last().cloned() {
        repeated.headers.push(last);
    }
    let mut nonsense = maker.forged(&event, &Signer::new(foreign()));
    let mut nested = nonsense.clone();
    nonsense.body = b"{\"id\": \"evt_check_".to_vec();
    nested.body = b"[".repeat(100_000);
    vec![
        (
            "unsigned",
            "what is not signed is refused",
            named("no signature header", maker.unsigned(&event)),
        ),
        (
            "wrong_signature",
            "what another secret has signed is refused",
            named("another secret", maker.forged(&event, &Signer::new(foreign()))),
        ),
        (
            "altered_body",
            "a body that was changed is refused",
            vec![alone("a line end more", altered), alone("another event's body", other_body)],
        ),
        (
            "altered_time",
            "a time that was changed is refused",
            named("one second more", maker.signed(&event, &later)),
        ),
        (
            "old",
            "what was signed ten minutes ago is refused",
            named("signed ten minutes ago", maker.untimely(&event, false)),
        ),
        (
            "ahead",
            "what is signed ten minutes ahead is refused",
            named("signed ten minutes ahead", maker.untimely(&event, true)),
        ),
        (
            "prefix",
            "a digest is compared as a whole",
            vec![
                alone("the first half of the digest", with(half)),
                alone("its first byte", with(digest.get(..2).unwrap_or_default())),
                alone("no digit of it", with("")),
                alone("the digest and more", with(&format!("{digest}00"))),
                alone("half of the digest, then zeros", with(&format!("{half}{}", "0".repeat(32)))),
            ],
        ),
        (
            "decoded_secret",
            "the key is the whole text of the secret, whsec_ included",
            maker.mistaken(&event),
        ),
        (
            "two_headers",
            "a signature header that comes twice is refused",
            named("the same signature header twice", repeated),
        ),
        (
            "two_times",
            "a signature header with two times is refused",
            named("t twice", maker.signed(&event, &format!("{t},{t},{digests}"))),
        ),
        (
            "verified_first",
            "nothing is read as JSON before its signature is good",
            vec![
                alone("half a JSON object, wrongly signed", nonsense),
                alone("a hundred thousand brackets, wrongly signed", nested),
            ],
        ),
    ]
}

/// Sends requests one after another, until one is not answered as it has to be.
async fn all(endpoint: &Endpoint, requests: Vec<Named>, takes: bool) -> Outcome {
    for (what, sent) in requests {
        let answer = endpoint.post(&sent).await;
        let right = match &answer {
            Ok(status) if takes => (200..300).contains(status),
            Ok(status) => (400..500).contains(status) && hint(*status).is_empty(),
            Err(_) => false,
        };
        if !right {
            return Outcome::Broken(format!("{what}: {}", in_words(&answer)));
        }
    }
    Outcome::Holds
}

fn in_words(answer: &Result<u16, String>) -> String {
    match answer {
        Ok(status) => format!("answered {status}{}", hint(*status)),
        Err(why) => why.clone(),
    }
}

/// Returns what a status of 4xx says beside a refusal of the request, which is nothing for most.
fn hint(status: u16) -> &'static str {
    match status {
        408 | 425 | 429 => ", which asks for the request again",
        410 => ", which disables the endpoint",
        _ => "",
    }
}

fn is_taken(answer: &Result<u16, String>) -> bool {
    matches!(answer, Ok(200..300))
}

/// Sends requests at the same time, and returns the answers.
async fn at_once(endpoint: &Endpoint, requests: Vec<Sent>) -> Vec<Result<u16, String>> {
    let mut running = JoinSet::new();
    for sent in requests {
        let endpoint = endpoint.clone();
        running.spawn(async move { endpoint.post(&sent).await });
    }
    running.join_all().await
}

async fn burst(endpoint: &Endpoint, maker: &Maker) -> Outcome {
    let requests = (0..BURST).map(|_| maker.genuine(&Event::ping())).collect();
    let answers = at_once(endpoint, requests).await;
    let wrong: Vec<_> = answers.iter().filter(|answer| !is_taken(answer)).collect();
    match wrong.first() {
        None => Outcome::Holds,
        Some(first) => Outcome::Broken(format!("{} of {BURST}: {}", wrong.len(), in_words(first))),
    }
}

/// Requires that an event is stored once, after a moment.
async fn once(stored: &Stored, event: &Event, what: &str) -> Result<Outcome, String> {
    let began = Instant::now();
    while stored.count(&event.id).await? == 0 && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(SETTLES).await;
    match stored.count(&event.id).await? {
        1 => Ok(Outcome::Holds),
        times => Err(format!("{what}: stored {times} times")),
    }
}

async fn stored_first(
    endpoint: &Endpoint,
    maker: &Maker,
    stored: &Stored,
) -> Result<Outcome, String> {
    for _ in 0..5 {
        let event = Event::ping();
        let answer = endpoint.post(&maker.genuine(&event)).await;
        if is_taken(&answer) && stored.count(&event.id).await? == 0 {
            return Err("a ping: answered before it was stored".to_owned());
        }
        if !is_taken(&answer) {
            return Err(format!("a ping: {}", in_words(&answer)));
        }
    }
    Ok(Outcome::Holds)
}

async fn again(endpoint: &Endpoint, maker: &Maker, stored: &Stored) -> Result<Outcome, String> {
    let event = Event::ping();
    for time in ["first", "second"] {
        let answer = endpoint.post(&maker.genuine(&event)).await;
        if !is_taken(&answer) {
            return Err(format!("the {time} time: {}", in_words(&answer)));
        }
    }
    once(stored, &event, "an event twice").await
}

async fn twice_at_once(
    endpoint: &Endpoint,
    maker: &Maker,
    stored: &Stored,
) -> Result<Outcome, String> {
    for _ in 0..5 {
        let event = Event::ping();
        let sent = maker.genuine(&event);
        let answers = at_once(endpoint, vec![sent.clone(), sent]).await;
        // One of them may be told to come again.
        if !answers.iter().any(is_taken) {
            let answers: Vec<_> = answers.iter().map(in_words).collect();
            return Err(format!("an event twice at once: {}", answers.join(", ")));
        }
        once(stored, &event, "an event twice at once").await?;
    }
    Ok(Outcome::Holds)
}

/// Sends events under delivery headers of others. That header is not signed: who replays an event can write there
/// what they like.
async fn delivery_header(
    endpoint: &Endpoint,
    maker: &Maker,
    stored: &Stored,
) -> Result<Outcome, String> {
    let (first, second) = (Event::ping(), Event::ping());
    let answer = endpoint.post(&maker.genuine(&first)).await;
    if !is_taken(&answer) {
        return Err(format!("a ping: {}", in_words(&answer)));
    }
    // A receiver may refuse both. What it takes, it has to tell apart.
    let posed = maker.delivered_as(maker.genuine(&second), &first.id);
    let posed = endpoint.post(&posed).await;
    let renamed = maker.delivered_as(maker.genuine(&first), "evt_check_renamed");
    let _ = endpoint.post(&renamed).await;
    once(stored, &first, "the same event under another delivery header").await?;
    if !is_taken(&posed) {
        return Ok(Outcome::Holds);
    }
    once(stored, &second, "another event under the same delivery header").await
}
