//! Signing secrets as they are stored: sealed, with the endpoint's id bound to them.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::webhook::SigningSecret;
use call_assistant::webhook::sender::EndpointSecrets;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde_json::{Value, json};

use crate::support::random;

/// The environment variable that holds the ring: one key on each line, newest first, as
/// `number:64 hexadecimal digits`.
pub const VARIABLE: &str = "SECRETS_KEY_RING";

/// Keys by number. New secrets are sealed with the newest; any of them opens.
#[derive(Clone)]
pub struct KeyRing {
    newest: u8,
    keys: BTreeMap<u8, XChaCha20Poly1305>,
}

/// Why a sealed text does not open. It never shows what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is too short, or of a format that this version does not know.
    #[error("the sealed secrets are not of a known format")]
    Format,
    /// It is sealed with a key that is not in the ring.
    #[error("the sealed secrets need key {0}, which is not in the ring")]
    NoKey(u8),
    /// It was changed, or belongs to another endpoint.
    #[error("the sealed secrets do not open: another endpoint's, another key, or changed")]
    Changed,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRing").field("numbers", &self.keys.keys()).finish_non_exhaustive()
    }
}

/// Format, key number, and the bytes of a nonce.
const FORMAT: u8 = 1;
const NONCE: usize = 24;

impl KeyRing {
    /// Makes a ring of one random key, for a database that ends with the process.
    #[must_use]
    pub fn random() -> Self {
        Self::of([(1, random::bytes())])
    }

    /// Reads a ring, newest key first.
    ///
    /// # Errors
    /// Which line is wrong, and never what is in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let wrong = || format!("line {}: expected number:64 hexadecimal digits", at + 1);
            let (number, digits) = line.split_once(':').ok_or_else(wrong)?;
            let number = number.parse().map_err(|_| wrong())?;
            let key = from_hex(digits).ok_or_else(wrong)?;
            if keys.iter().any(|(other, _)| *other == number) {
                return Err(format!("line {}: another key has this number", at + 1));
            }
            keys.push((number, key));
        }
        if keys.is_empty() { Err("it is empty".to_owned()) } else { Ok(Self::of(keys)) }
    }

    fn of(keys: impl IntoIterator<Item = (u8, [u8; 32])>) -> Self {
        let keys: Vec<(u8, [u8; 32])> = keys.into_iter().collect();
        let newest = keys.first().map_or(0, |(number, _)| *number);
        let cipher = |(number, key): (u8, [u8; 32])| (number, XChaCha20Poly1305::new(&key.into()));
        Self { newest, keys: keys.into_iter().map(cipher).collect() }
    }

    /// Seals an endpoint's secrets.
    #[must_use]
    pub fn seal(&self, endpoint: &str, secrets: &EndpointSecrets, now: Timestamp) -> Vec<u8> {
        let previous: Vec<Value> = secrets
            .previous(now)
            .map(|(secret, end)| json!([secret.reveal(), end.unix_micros()]))
            .collect();
        let text = json!({ "newest": secrets.newest().reveal(), "previous": previous }).to_string();
        let nonce: [u8; NONCE] = random::bytes();
        let payload = Payload { msg: text.as_bytes(), aad: endpoint.as_bytes() };
        #[allow(
            clippy::expect_used,
            reason = "the newest key is in the ring, and the text is short"
        )]
        let sealed = self
            .keys
            .get(&self.newest)
            .and_then(|key| key.encrypt(&XNonce::from(nonce), payload).ok())
            .expect("a short text is sealed");
        [[FORMAT, self.newest].as_slice(), &nonce, &sealed].concat()
    }

    /// Opens an endpoint's secrets.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(
        &self,
        endpoint: &str,
        sealed: &[u8],
        now: Timestamp,
    ) -> Result<EndpointSecrets, OpenError> {
        let ([FORMAT, number], rest) = sealed.split_first_chunk().ok_or(OpenError::Format)? else {
            return Err(OpenError::Format);
        };
        let (nonce, sealed) = rest.split_first_chunk::<NONCE>().ok_or(OpenError::Format)?;
        let key = self.keys.get(number).ok_or(OpenError::NoKey(*number))?;
        let payload = Payload { msg: sealed, aad: endpoint.as_bytes() };
        let text = key.decrypt(&XNonce::from(*nonce), payload).map_err(|_| OpenError::Changed)?;
        read(&text, now).ok_or(OpenError::Format)
    }

    /// Whether a sealed text should be sealed again, for its key is not the newest.
    #[must_use]
    pub fn is_outdated(&self, sealed: &[u8]) -> bool {
        sealed.get(1) != Some(&self.newest)
    }
}

fn read(text: &[u8], now: Timestamp) -> Option<EndpointSecrets> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let newest = SigningSecret::parse(value.get("newest")?.as_str()?).ok()?;
    let mut secrets = EndpointSecrets::new(newest);
    for each in value.get("previous")?.as_array()? {
        let secret = SigningSecret::parse(each.get(0)?.as_str()?).ok()?;
        let end = Timestamp::from_unix_micros(each.get(1)?.as_i64()?)?;
        secrets = secrets.and_previous(secret, end, now).ok()?;
    }
    Some(secrets)
}

fn from_hex(digits: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}
