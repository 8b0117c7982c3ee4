//! What is sent: events and their headers, right or wrong on purpose.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
use call_assistant::{Product, Timestamp};
use hmac::{Hmac, KeyInit as _, Mac as _};
use host::{clock, random};
use serde_json::Value;
use sha2::Sha256;

use super::super::http::Place;
use crate::secrets;

/// The longest body that every receiver should take: 1 MiB.
const LARGE: usize = 1024 * 1024;

/// Twice the tolerance.
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) chunked: bool,
}

/// An event that is not sent yet.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) event_type: &'static str,
    pub(super) body: Vec<u8>,
}

/// What makes requests with the secrets of the endpoint.
pub(super) struct Maker {
    product: Product,
    signer: Signer,
    /// Each secret's own signer, newest first.
    signers: Vec<Signer>,
    /// What some take for the key: the newest secret without its prefix, and that decoded.
    mistaken: Vec<(&'static str, Vec<u8>)>,
}

impl Sent {
    /// Returns it as it is written.
    pub(super) fn bytes(&self, place: &Place) -> Vec<u8> {
        let fields: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        if !self.chunked {
            return place.request("POST", &place.target, &fields, &self.body);
        }
        let fields = format!("{fields}Transfer-Encoding: chunked\r\n");
        let mut bytes = place.request("POST", &place.target, &fields, b"");
        for chunk in self.body.chunks(50) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }

    /// Returns it with another way to write the names of its fields.
    pub(super) fn with_names(mut self, write: impl Fn(&str) -> String) -> Self {
        self.headers.iter_mut().for_each(|(name, _)| *name = write(name));
        self
    }
}

impl Event {
    fn new(event_type: &'static str, body: impl FnOnce(String) -> Vec<u8>) -> Self {
        let id = format!("evt_check_{}", hex::encode(random::bytes::<8>()));
        let text = ping(&id).replace("\"ping\"", &format!("\"{event_type}\""));
        Self { id, event_type, body: body(text) }
    }

    /// Makes a ping, as the service writes it.
    pub(super) fn ping() -> Self {
        Self::new("ping", String::into_bytes)
    }

    /// Makes a ping that another encoder of JSON would write otherwise.
    pub(super) fn spaced() -> Self {
        Self::new("ping", |text| {
            let text = text.replace("\":", "\" :  ").replace("receiver", "re\\u0063eiver");
            format!(" {text}\n").into_bytes()
        })
    }

    /// Makes a ping with text outside of ASCII, escaped and not.
    pub(super) fn in_unicode() -> Self {
        let words = "Åse Ødegård \u{4e88}\u{7d04} \u{1f9b7} \\u00e5\\ud83e\\uddb7 receiver";
        Self::new("ping", |text| text.replace("receiver", words).into_bytes())
    }

    /// Makes a ping of 1 MiB.
    pub(super) fn large() -> Self {
        Self::new("ping", |text| {
            let more = LARGE.saturating_sub(text.len()).saturating_add("receiver".len());
            text.replacen("receiver", &"x".repeat(more), 1).into_bytes()
        })
    }

    /// Makes an event of a type that nobody knows.
    pub(super) fn unknown() -> Self {
        Self::new("receiver.check", String::into_bytes)
    }
}

impl Maker {
    /// Prepares to make requests.
    ///
    /// # Errors
    /// A text is no secret, or there are more than one signature can have.
    pub(super) fn new(product: Product, texts: &[String]) -> Result<Self, String> {
        let secrets = secrets::parse(texts)?;
        let signers: Vec<_> = secrets.iter().cloned().map(Signer::new).collect();
        let mut all = secrets.into_iter();
        let newest = all.next().ok_or("no signing secret")?;
        // Longer than a check takes, and ten minutes ahead.
        let (now, a_day) = (clock::now(), Duration::from_secs(86_400));
        let signer = all.try_fold(Signer::new(newest), |signer, older| {
            signer.with_previous(older, now.saturating_add(a_day), now)
        });
        let signer = signer.map_err(|error| error.to_string())?.with_product(product.clone());
        let bare = texts.first().and_then(|text| text.strip_prefix("whsec_")).unwrap_or_default();
        let mut mistaken = vec![("without its prefix", bare.as_bytes().to_vec())];
        let decoded = STANDARD_NO_PAD.decode(bare.trim_end_matches('='));
        mistaken.extend(decoded.ok().map(|key| ("decoded as base64", key)));
        mistaken.extend(hex::decode(bare).ok().map(|key| ("decoded as hexadecimal", key)));
        Ok(Self { product, signer, signers, mistaken })
    }

    /// Returns whether one secret replaces another.
    pub(super) fn rotates(&self) -> bool {
        self.signers.len() > 1
    }

    /// Makes a genuine request.
    pub(super) fn genuine(&self, event: &Event) -> Sent {
        self.signed(event, &self.signature(event))
    }

    /// Returns the signature that all secrets make now.
    fn signature(&self, event: &Event) -> String {
        self.signer.sign(&event.body, clock::now()).as_str().to_owned()
    }

    /// Makes an event, and returns the two parts of its signature: the time, and the digests.
    pub(super) fn parts(&self) -> (Event, String, String) {
        let event = Event::ping();
        let signature = self.signature(&event);
        let (t, digests) = signature.split_once(',').unwrap_or_default();
        (event, t.to_owned(), digests.to_owned())
    }

    /// Makes a request that is signed ten minutes ago, or ahead.
    pub(super) fn untimely(&self, event: &Event, ahead: bool) -> Sent {
        let now = clock::now();
        let at = match ahead {
            true => now.saturating_add(TEN_MINUTES),
            false => now.saturating_sub(TEN_MINUTES),
        };
        self.signed(event, self.signer.sign(&event.body, at).as_str())
    }

    /// Makes a request that is signed by somebody else.
    pub(super) fn forged(&self, event: &Event, by: &Signer) -> Sent {
        self.signed(event, by.sign(&event.body, clock::now()).as_str())
    }

    /// Makes a request that only the oldest secret signs.
    pub(super) fn by_oldest(&self, event: &Event) -> Sent {
        let oldest = self.signers.last().unwrap_or(&self.signer);
        self.forged(event, oldest)
    }

    /// Makes requests whose keys are what some take for the key.
    pub(super) fn mistaken(&self, event: &Event) -> Vec<(String, Sent)> {
        let now = clock::now().unix_seconds();
        let sign = |(what, key): &(&str, Vec<u8>)| {
            let mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
            let mac = mac.chain_update(format!("{now}.")).chain_update(&event.body);
            let digest = hex::encode(mac.finalize().into_bytes());
            let sent = self.signed(event, &format!("t={now},v1={digest}"));
            Some((format!("signed with the secret {what}"), sent))
        };
        self.mistaken.iter().filter_map(sign).collect()
    }

    /// Makes a request with this signature header.
    pub(super) fn signed(&self, event: &Event, signature: &str) -> Sent {
        let mut sent = self.unsigned(event);
        let name = titled(self.product.signature_header().as_str());
        sent.headers.push((name, signature.to_owned()));
        sent
    }

    /// Makes a request without a signature.
    pub(super) fn unsigned(&self, event: &Event) -> Sent {
        let headers = [
            ("Content-Type", "application/json"),
            ("User-Agent", self.product.user_agent().to_str().unwrap_or_default()),
            (&titled(self.product.event_header().as_str()), event.event_type),
            (&titled(self.product.delivery_header().as_str()), &event.id),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Sent { headers, body: event.body.clone(), chunked: false }
    }

    /// Returns the same request with another delivery header.
    pub(super) fn delivered_as(&self, mut sent: Sent, id: &str) -> Sent {
        let name = self.product.delivery_header().as_str();
        for (_, value) in sent.headers.iter_mut().filter(|(n, _)| n.eq_ignore_ascii_case(name)) {
            *value = id.to_owned();
        }
        sent
    }
}

/// Returns the name of a field as most write it: `X-Service-Signature`.
fn titled(name: &str) -> String {
    let title = |part: &str| {
        let (first, rest) = part.split_at_checked(1).unwrap_or((part, ""));
        first.to_uppercase() + rest
    };
    name.split('-').map(title).collect::<Vec<_>>().join("-")
}

/// Returns the body of a ping, as JSON.
fn ping(id: &str) -> String {
    let now: Timestamp = clock::now();
    let made = || {
        let account = AccountId::parse("acct_receiver_check").ok()?;
        let version = ApiVersion::parse("2026-01-15").ok()?;
        let event = NewEvent::new(EventId::parse(id).ok()?, account, version, Origin::voice(), now);
        let body = event.ping("from receiver-check").ok()?;
        String::from_utf8(body.as_bytes().to_vec()).ok()
    };
    made().unwrap_or_else(|| Value::Null.to_string())
}
