//! The operator's keys, which are never in the database. They seal the signing secrets, bound to the id
//! of each endpoint, and sign cursors.
//!
//! ```text
//! 2:9f0c...   64 hexadecimal digits: the first key seals and signs
//! 1:41d7...   the others open what they sealed in their time
//! ```

pub(crate) mod in_use;

use std::collections::BTreeMap;
use std::env::VarError;
use std::path::Path;

use call_assistant::Timestamp;
use call_assistant::rest::server::CursorKeys;
use call_assistant::webhook::{Signer, SigningSecret};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use host::random;

/// The environment variable that holds the ring, if no file is given.
pub const VARIABLE: &str = "SECRETS_KEY_RING";

/// Keys by number. New secrets are sealed with the newest; any of them opens.
#[derive(Clone)]
pub struct KeyRing {
    newest: u8,
    keys: BTreeMap<u8, XChaCha20Poly1305>,
    /// Newest first.
    cursors: Vec<(u8, [u8; 32])>,
    /// The digest of each key, which tells it from another one under the same number.
    checks: BTreeMap<u8, [u8; 32]>,
}

/// The reason why a sealed text cannot be opened. It never shows the content.
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
    #[error(
        "the sealed secrets cannot be opened with key {0}: changed, or sealed for another endpoint or with another key"
    )]
    Changed(u8),
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
    /// Makes a ring without a key, for a process that neither seals nor opens.
    #[must_use]
    pub fn none() -> Self {
        Self::of([])
    }

    /// Creates a line for a new ring, or for the top of an existing one.
    #[must_use]
    pub fn new_line(number: u8) -> String {
        let digits = random::bytes::<32>().into_iter().map(|byte| format!("{byte:02x}"));
        format!("{number}:{}", digits.collect::<String>())
    }

    /// Reads the ring from a file, or from the environment. `None` if neither is given.
    ///
    /// # Errors
    /// The file is missing, or the ring is malformed: the place, never the content.
    pub fn read(file: Option<&Path>) -> Result<Option<Self>, String> {
        let (text, place) = match file {
            Some(file) => {
                let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
                (text, file.display().to_string())
            }
            None => {
                let text = match std::env::var(VARIABLE) {
                    Err(VarError::NotPresent) => return Ok(None),
                    text => text.map_err(|_| "not UTF-8".to_owned()),
                };
                (text, format!("the environment variable {VARIABLE}"))
            }
        };
        let ring = text.and_then(|text| Self::parse(&text).map(Some));
        ring.map_err(|error| format!("no key ring: {place}: {error}"))
    }

    /// Reads a ring, newest key first. What follows a `#` is a comment.
    ///
    /// # Errors
    /// The number of the wrong line, never its content.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for (at, line) in (1_u32..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = || format!("line {at}: expected number:64 hexadecimal digits");
            let (number, digits) = line.split_once(':').ok_or_else(wrong)?;
            let number = number.parse().map_err(|_| wrong())?;
            let key = from_hex(digits).ok_or_else(wrong)?;
            if keys.iter().any(|(other, _)| *other == number) {
                return Err(format!("line {at}: repeated key number"));
            }
            keys.push((number, key));
        }
        if keys.is_empty() { Err("the ring has no key".to_owned()) } else { Ok(Self::of(keys)) }
    }

    fn of(keys: impl IntoIterator<Item = (u8, [u8; 32])>) -> Self {
        let keys: Vec<(u8, [u8; 32])> = keys.into_iter().collect();
        let newest = keys.first().map_or(0, |(number, _)| *number);
        // Nothing that is signed says anything about the key that seals.
        let derived = |what: &str| {
            let of = |key: &[u8; 32]| Sha256::new().chain_update(what).chain_update(key).finalize();
            keys.iter().map(|(number, key)| (*number, of(key).into())).collect::<Vec<_>>()
        };
        let (cursors, checks) = (derived("cursors:"), derived("check value:"));
        let checks = checks.into_iter().collect();
        let cipher = |(number, key): (u8, [u8; 32])| (number, XChaCha20Poly1305::new(&key.into()));
        Self { newest, keys: keys.into_iter().map(cipher).collect(), cursors, checks }
    }

    /// Returns the cursors' keys, the same in every process with this ring.
    #[must_use]
    #[allow(clippy::expect_used, reason = "a ring has a key, and no number twice")]
    pub fn cursors(&self) -> CursorKeys {
        let (newest, others) = self.cursors.split_first().expect("a ring has a key");
        others.iter().fold(CursorKeys::new(newest.0, newest.1), |ring, (number, key)| {
            ring.with_key(*number, *key).expect("numbers were compared when the ring was read")
        })
    }

    /// Seals an endpoint's secrets.
    #[must_use]
    pub fn seal(&self, endpoint: &str, signer: &Signer, now: Timestamp) -> Vec<u8> {
        let previous: Vec<Value> = signer
            .previous(now)
            .map(|(secret, end)| json!([secret.reveal(), end.unix_micros()]))
            .collect();
        let text = json!({ "newest": signer.newest().reveal(), "previous": previous }).to_string();
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
    pub fn open(&self, endpoint: &str, sealed: &[u8], now: Timestamp) -> Result<Signer, OpenError> {
        let ([FORMAT, number], rest) = sealed.split_first_chunk().ok_or(OpenError::Format)? else {
            return Err(OpenError::Format);
        };
        let (nonce, sealed) = rest.split_first_chunk::<NONCE>().ok_or(OpenError::Format)?;
        let key = self.keys.get(number).ok_or(OpenError::NoKey(*number))?;
        let payload = Payload { msg: sealed, aad: endpoint.as_bytes() };
        let text =
            key.decrypt(&XNonce::from(*nonce), payload).map_err(|_| OpenError::Changed(*number))?;
        read(&text, now).ok_or(OpenError::Format)
    }

    /// Returns the numbers of the keys, newest first: that one seals.
    #[must_use]
    pub fn numbers(&self) -> Vec<u8> {
        self.cursors.iter().map(|(number, _)| *number).collect()
    }

    /// Returns whether a sealed text should be sealed again, because its key is not the newest.
    #[must_use]
    pub fn is_outdated(&self, sealed: &[u8]) -> bool {
        sealed.get(1) != Some(&self.newest)
    }
}

fn read(text: &[u8], now: Timestamp) -> Option<Signer> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let newest = SigningSecret::parse(value.get("newest")?.as_str()?).ok()?;
    let mut signer = Signer::new(newest);
    for each in value.get("previous")?.as_array()? {
        let secret = SigningSecret::parse(each.get(0)?.as_str()?).ok()?;
        let end = Timestamp::from_unix_micros(each.get(1)?.as_i64()?)?;
        signer = signer.with_previous(secret, end, now).ok()?;
    }
    Some(signer)
}

fn from_hex(digits: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

    use call_assistant::id::{AccountId, CallId};
    use call_assistant::rest::Mode;
    use call_assistant::rest::server::Cursor;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn secret(text: &str) -> SigningSecret {
        SigningSecret::parse(text).unwrap()
    }

    fn secrets(text: &str) -> Signer {
        Signer::new(secret(text))
    }

    fn ring(lines: &[&str]) -> KeyRing {
        KeyRing::parse(&lines.join("\n")).unwrap()
    }

    // DEL-11: nobody reads a secret out of the database.
    #[test]
    fn what_is_sealed_opens_in_its_row_alone() {
        let ring = ring(&[&KeyRing::new_line(1)]);
        let sealed = ring.seal("we_1", &secrets("whsec_first"), NOW);
        assert!(!sealed.windows(5).any(|window| window == b"first"));
        assert_eq!(ring.open("we_1", &sealed, NOW).unwrap().newest().reveal(), "whsec_first");
        assert_eq!(ring.open("we_2", &sealed, NOW).unwrap_err(), OpenError::Changed(1));
        assert_ne!(ring.seal("we_1", &secrets("whsec_first"), NOW), sealed, "a nonce comes twice");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(ring.open("we_1", &changed, NOW).is_err(), "byte {at}");
        }
        for len in 0..sealed.len() {
            assert!(ring.open("we_1", &sealed[..len], NOW).is_err(), "{len} bytes");
        }
    }

    // D-83: both secrets sign until the old one's end.
    #[test]
    fn replaced_secrets_are_sealed_with_their_end() {
        let ring = ring(&[&KeyRing::new_line(1)]);
        let mut both = secrets("whsec_first");
        both.rotate(secret("whsec_second"), Signer::OVERLAP, NOW).unwrap();
        let sealed = ring.seal("we_1", &both, NOW);
        let read = ring.open("we_1", &sealed, NOW).unwrap();
        assert_eq!(read.newest().reveal(), "whsec_second");
        let end = NOW.saturating_add(Signer::OVERLAP);
        assert_eq!(read.previous(NOW).map(|(_, end)| end).collect::<Vec<_>>(), [end]);
        assert_eq!(ring.open("we_1", &sealed, end).unwrap().previous(NOW).count(), 0);
    }

    #[test]
    fn a_ring_opens_what_its_older_keys_sealed() {
        let (one, two) = (KeyRing::new_line(1), KeyRing::new_line(2));
        let old = ring(&[&one]).seal("we_1", &secrets("whsec_first"), NOW);
        let both = ring(&["# both", &two, "", &format!("{one} # until rotated")]);
        let new = both.seal("we_1", &secrets("whsec_first"), NOW);
        assert_eq!((both.numbers().as_slice(), new[1]), (&[2, 1][..], 2), "the first seals");
        assert_eq!((both.is_outdated(&old), both.is_outdated(&new)), (true, false));
        assert_eq!(both.open("we_1", &old, NOW).unwrap().newest().reveal(), "whsec_first");
        assert_eq!(ring(&[&two]).open("we_1", &old, NOW).unwrap_err(), OpenError::NoKey(1));
        let other = ring(&[&KeyRing::new_line(1)]);
        assert_eq!(other.open("we_1", &old, NOW).unwrap_err(), OpenError::Changed(1));
    }

    // D-23: the first signs, all verify.
    #[test]
    fn cursors_outlive_their_key() {
        let account = AccountId::parse("acct_1").unwrap();
        let id = CallId::parse("call_1").unwrap();
        let cursor = Cursor::new(NOW, id);
        let (one, two) = (KeyRing::new_line(1), KeyRing::new_line(2));
        let old = ring(&[&one]).cursors().seal(&account, Mode::Live, &cursor);
        let both = ring(&[&two, &one]).cursors();
        assert_eq!(both.open(&account, Mode::Live, &old).unwrap(), cursor);
        let new = both.seal(&account, Mode::Live, &cursor);
        let alone = ring(&[&two]).cursors();
        assert_eq!(alone.open(&account, Mode::Live, &new).unwrap(), cursor);
        assert!(alone.open(&account, Mode::Live, &old).is_err());
    }

    #[test]
    fn what_is_no_ring() {
        let line = KeyRing::new_line(1);
        for (text, expected) in [
            ("", "the ring has no key"),
            ("# none\n", "the ring has no key"),
            ("hello", "line 1: expected number:64 hexadecimal digits"),
            ("256:00", "line 1: expected number:64 hexadecimal digits"),
            ("1:00", "line 1: expected number:64 hexadecimal digits"),
            (&format!("1:{}", "+1".repeat(32)), "line 1: expected number:64 hexadecimal digits"),
            (&format!("{line}\n{line}"), "line 2: repeated key number"),
        ] {
            assert_eq!(KeyRing::parse(text).unwrap_err(), expected, "{text}");
        }
        let shown = format!("{:?}", ring(&[&line]));
        assert!(shown.contains('1') && !shown.contains(&line[2..10]), "{shown}");
    }
}
