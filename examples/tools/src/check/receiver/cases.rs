//! What a receiver has to take, to refuse and to store.

use call_assistant::Timestamp;
use call_assistant::webhook::{Signer, SigningSecret};

use super::sent::{Event, Sent};
use super::{Receiver, in_words, is_taken};
use crate::check::case::{Case, Seen, case, ensure};

/// How many events come at once.
const BURST: usize = 100;

/// All cases of a receiver. The last one needs two secrets.
pub const CASES: &[&[Case<Receiver>]] = &[TAKEN, REFUSED, READ, STORED, ROTATION];

// SIG-2, SIG-3, SIG-5
const TAKEN: &[Case<Receiver>] = &[
    rule(
        "taken.genuine",
        "Signatures",
        "No event arrives.",
        |receiver| receiver.takes("a ping", &receiver.maker.genuine(&Event::ping())),
        "answer 2xx to each event that your secret has signed, from the first request on",
    ),
    rule(
        "taken.exact_bytes",
        "Signatures",
        "An event is refused because of its spaces.",
        |receiver| {
            let sent = receiver.maker.genuine(&Event::spaced());
            receiver.takes("JSON with other spaces and escapes", &sent)
        },
        "compute the digest over the received bytes, before any JSON code reads them",
    ),
    rule(
        "taken.non_ascii",
        "Signatures",
        "An event is refused because of the caller's name.",
        |receiver| {
            receiver
                .takes("names and signs in UTF-8", &receiver.maker.genuine(&Event::in_unicode()))
        },
        "read the body as bytes, and decode nothing before the check",
    ),
    rule(
        "taken.header_case",
        "Deliveries",
        "If a proxy changes the case of header names, all events are refused.",
        |receiver| {
            let sent = receiver.maker.genuine(&Event::ping());
            receiver.takes("names in lower case", &sent.clone().with_names(str::to_lowercase))?;
            let again = receiver.maker.genuine(&Event::ping());
            receiver.takes("names in upper case", &again.with_names(str::to_uppercase))
        },
        "compare the names of header fields without case",
    ),
    rule(
        "taken.any_digest",
        "Signatures",
        "A rotation of the secret loses events.",
        |receiver| {
            let (event, t, digests) = receiver.maker.parts();
            let wrong = Signer::new(foreign()).sign(b"", Timestamp::UNIX_EPOCH);
            let wrong = wrong.as_str().split_once(',').unwrap_or_default().1;
            let before = receiver.maker.signed(&event, &format!("{t},{wrong},{digests}"));
            receiver.takes("a foreign v1 before the good one", &before)?;
            let (event, t, digests) = receiver.maker.parts();
            let behind = receiver.maker.signed(&event, &format!("{t},{digests},{wrong}"));
            receiver.takes("a foreign v1 behind the good one", &behind)
        },
        "compare every v1 with the digest of every secret: one match is enough",
    ),
    rule(
        "taken.other_parts",
        "Signatures",
        "A later version of the signature stops all events.",
        |receiver| {
            let (event, t, digests) = receiver.maker.parts();
            let sent = receiver.maker.signed(&event, &format!("x=1,{t},v2=abc,{digests}"));
            receiver.takes("v2 and x", &sent)
        },
        "ignore parts of the signature header other than t and v1, at any position",
    ),
];

const ROTATION: &[Case<Receiver>] = &[rule(
    "taken.old_secret",
    "Signatures",
    "Events are lost while one secret replaces another.",
    |receiver| {
        let sent = receiver.maker.by_oldest(&Event::ping());
        receiver.takes("signed with the older secret", &sent)
    },
    "configure both secrets during a rotation, and try each",
)];

// DEL-1, D-40 to D-43
const REFUSED: &[Case<Receiver>] = &[
    rule(
        "refused.unsigned",
        "Signatures",
        "Anybody can make events.",
        |receiver| {
            receiver.refuses("no signature header", &receiver.maker.unsigned(&Event::ping()))
        },
        "answer 400 if the signature header is missing",
    ),
    rule(
        "refused.wrong_signature",
        "Signatures",
        "Anybody can make events.",
        |receiver| {
            let sent = receiver.maker.forged(&Event::ping(), &Signer::new(foreign()));
            receiver.refuses("another secret", &sent)
        },
        "answer 400 if no v1 is the digest under one of your secrets",
    ),
    rule(
        "refused.altered_body",
        "Signatures",
        "Anybody can change an event.",
        |receiver| {
            let event = Event::ping();
            let mut altered = receiver.maker.genuine(&event);
            altered.body.push(b'\n');
            receiver.refuses("a line end more", &altered)?;
            altered.body = Event::ping().body;
            receiver.refuses("another event's body", &altered)
        },
        "compute the digest over all received bytes, and trim nothing",
    ),
    rule(
        "refused.altered_time",
        "Signatures",
        "A recorded event stays valid forever.",
        |receiver| {
            let (event, t, digests) = receiver.maker.parts();
            let seconds = t.trim_start_matches("t=").parse().unwrap_or(0_i64);
            let later = format!("t={},{digests}", seconds.saturating_add(1));
            receiver.refuses("one second more", &receiver.maker.signed(&event, &later))
        },
        "begin the signed text with the received t and a period",
    ),
    rule(
        "refused.old",
        "Signatures",
        "Anybody with a recorded event can send it again.",
        |receiver| {
            receiver
                .refuses("signed ten minutes ago", &receiver.maker.untimely(&Event::ping(), false))
        },
        "refuse a t that is more than 300 s ago",
    ),
    rule(
        "refused.ahead",
        "Signatures",
        "An event can be signed for a later time.",
        |receiver| {
            receiver
                .refuses("signed ten minutes ahead", &receiver.maker.untimely(&Event::ping(), true))
        },
        "refuse a t that is more than 300 s ahead, too",
    ),
    rule(
        "refused.prefix",
        "Signatures",
        "A signature can be guessed byte by byte.",
        |receiver| {
            let (event, t, digests) = receiver.maker.parts();
            let digest = digests.split(',').next().unwrap_or_default().trim_start_matches("v1=");
            let half = digest.get(..32).unwrap_or_default();
            [
                ("the first half of the digest", half),
                ("its first byte", digest.get(..2).unwrap_or_default()),
                ("no digit of it", ""),
                ("the digest and more", &format!("{digest}00")),
                ("half of the digest, then zeros", &format!("{half}{}", "0".repeat(32))),
            ]
            .into_iter()
            .try_for_each(|(what, digest)| {
                let sent = receiver.maker.signed(&event, &format!("{t},v1={digest}"));
                receiver.refuses(what, &sent)
            })
        },
        "compare all 64 digits, in constant time",
    ),
    rule(
        "refused.decoded_secret",
        "Signatures",
        "A weaker key than the secret is accepted.",
        |receiver| {
            let mistaken = receiver.maker.mistaken(&Event::ping());
            mistaken.iter().try_for_each(|(what, sent)| receiver.refuses(what, sent))
        },
        "use the whole text of the secret as the key, whsec_ included, and decode nothing",
    ),
    rule(
        "refused.two_headers",
        "Signatures",
        "A proxy checks one of two headers, and you check the other.",
        |receiver| {
            let mut repeated = receiver.maker.genuine(&Event::ping());
            repeated.headers.extend(repeated.headers.last().cloned());
            receiver.refuses("the same signature header twice", &repeated)
        },
        "read all values of the signature header, and refuse more than one",
    ),
    rule(
        "refused.two_times",
        "Signatures",
        "The signed time and the checked time differ.",
        |receiver| {
            let (event, t, digests) = receiver.maker.parts();
            receiver
                .refuses("t twice", &receiver.maker.signed(&event, &format!("{t},{t},{digests}")))
        },
        "refuse a signature header with a second t",
    ),
    rule(
        "refused.before_reading",
        "Signatures",
        "Anybody without the secret reaches your JSON code.",
        |receiver| {
            let mut sent = receiver.maker.forged(&Event::ping(), &Signer::new(foreign()));
            sent.body = b"{\"id\": \"evt_check_".to_vec();
            receiver.refuses("half a JSON object, wrongly signed", &sent)?;
            sent.body = b"[".repeat(100_000);
            receiver.refuses("a hundred thousand brackets, wrongly signed", &sent)
        },
        "check the signature before any code reads the body as JSON",
    ),
];

// EVT-3, DEL-5
const READ: &[Case<Receiver>] = &[
    rule(
        "read.large",
        "Receiving",
        "A long event is sent again and again.",
        |receiver| receiver.takes("a body of 1 MiB", &receiver.maker.genuine(&Event::large())),
        "set the limit of bodies to 1 MiB or more, also in proxies in front",
    ),
    rule(
        "read.unknown_type",
        "Events",
        "A new type of event disables your endpoint.",
        |receiver| {
            receiver.takes("the type receiver.check", &receiver.maker.genuine(&Event::unknown()))
        },
        "answer 2xx to an unknown type, after the bytes are stored",
    ),
    rule(
        "read.chunked",
        "Deliveries",
        "A proxy that sends in chunks stops events.",
        |receiver| {
            let sent = Sent { chunked: true, ..receiver.maker.genuine(&Event::ping()) };
            receiver.takes("a body in chunks", &sent)
        },
        "let the HTTP library read the body, and do not ask for Content-Length",
    ),
    rule(
        "read.burst",
        "Deliveries",
        "In a busy hour, deliveries fail.",
        |receiver| {
            let requests: Vec<_> =
                (0..BURST).map(|_| receiver.maker.genuine(&Event::ping())).collect();
            let answers = receiver.post_at_once(&requests);
            let wrong: Vec<_> = answers.iter().filter(|answer| !is_taken(answer)).collect();
            let why = wrong.first().map(|answer| in_words(answer)).unwrap_or_default();
            ensure(wrong.is_empty(), || format!("{} of {BURST}: {why}", wrong.len()))
        },
        "store, answer, and work later; let the listener queue 128 connections or more",
    ),
];

// EVT-2, DEL-2
const STORED: &[Case<Receiver>] = &[
    rule(
        "stored.first",
        "Receiving",
        "A crash loses an event you acknowledged.",
        |receiver| {
            let stored = receiver.stored()?;
            (0..5).try_for_each(|_| {
                let event = Event::ping();
                receiver.takes("a ping", &receiver.maker.genuine(&event))?;
                let is_stored = stored.count(&event.id)? > 0;
                ensure(is_stored, || "a ping: answered before it was stored".to_owned())
            })
        },
        "commit the event's bytes, then answer",
    ),
    rule(
        "stored.again",
        "Receiving",
        "A repeated event is acted on twice.",
        |receiver| {
            let (stored, event) = (receiver.stored()?, Event::ping());
            receiver.takes("the first time", &receiver.maker.genuine(&event))?;
            receiver.takes("the second time", &receiver.maker.genuine(&event))?;
            stored.once(&event.id, "an event twice")
        },
        "put a unique key on the account's id and the event's id, and answer 2xx to a copy",
    ),
    rule(
        "stored.twice_at_once",
        "Receiving",
        "Two copies at the same time are both acted on.",
        |receiver| {
            let stored = receiver.stored()?;
            (0..5).try_for_each(|_| {
                let event = Event::ping();
                let sent = receiver.maker.genuine(&event);
                let answers = receiver.post_at_once(&[sent.clone(), sent]);
                // One of them may be told to come again.
                ensure(answers.iter().any(is_taken), || {
                    let answers: Vec<_> = answers.iter().map(in_words).collect();
                    format!("an event twice at once: {}", answers.join(", "))
                })?;
                stored.once(&event.id, "an event twice at once")
            })
        },
        "let the insert refuse the copy: after a separate look-up, two copies can pass",
    ),
    // That header is not signed: who replays an event can write there what they like.
    rule(
        "stored.delivery_header",
        "Receiving",
        "A replayed event is acted on again.",
        |receiver| {
            let (stored, first, second) = (receiver.stored()?, Event::ping(), Event::ping());
            receiver.takes("a ping", &receiver.maker.genuine(&first))?;
            // A receiver may refuse both. What it takes, it has to tell apart.
            let genuine = receiver.maker.genuine(&second);
            let posed = receiver.post(&receiver.maker.delivered_as(genuine, &first.id));
            let genuine = receiver.maker.genuine(&first);
            let _ = receiver.post(&receiver.maker.delivered_as(genuine, "evt_check_renamed"));
            stored.once(&first.id, "the same event under another delivery header")?;
            if !is_taken(&posed) {
                return Ok(());
            }
            stored.once(&second.id, "another event under the same delivery header")
        },
        "take the id from the signed body, not from X-Service-Delivery",
    ),
];

/// Makes a case that says how to mend what it finds.
const fn rule(
    id: &'static str,
    clause: &'static str,
    loses: &'static str,
    run: fn(&Receiver) -> Seen,
    mend: &'static str,
) -> Case<Receiver> {
    Case { mend, ..case(id, clause, loses, run) }
}

/// Makes a secret of nobody.
fn foreign() -> SigningSecret {
    SigningSecret::from_random(host::random::bytes())
}
