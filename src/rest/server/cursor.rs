//! Cursors: positions where pages ended. They are signed, so that the service accepts only its own cursors.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::digest::zeroize::Zeroize as _;

use crate::Timestamp;
use crate::id::{AccountId, CallId};
use crate::rest::{CallFilter, Mode};
use crate::secret::mac::{self, MacKey};
use crate::text::FixedText;

const VERSION: u8 = 1;
const CREATED_AFTER: u8 = 0b01;
const CREATED_BEFORE: u8 = 0b10;
const INSTANT_LEN: usize = 9;
const MAX_FILTER_LEN: usize = 2 * INSTANT_LEN;
const NANOS_BITS: u32 = 30;
const NANOS_MASK: u128 = (1 << NANOS_BITS) - 1;
const TAG_LEN: usize = 16;
const MAX_BYTES: usize = CursorKeys::MAX_LEN / 4 * 3;

/// The label that makes the digests of cursors differ from the digests of any other use of the key.
const LABEL: &[u8] = b"calls cursor";

/// The contents of a cursor: the position where a page ended, and the filter of its list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cursor {
    /// The `started_at` of the last call of the page.
    pub started_at: Timestamp,
    /// The id of the last call of the page.
    pub id: CallId,
    /// The filter of the list. If the bounds are in the wrong order, [`CursorKeys::open`] returns an error.
    pub filter: CallFilter,
}

impl Cursor {
    /// Creates the cursor of a page that ended with this call, in a list without filters.
    #[must_use]
    pub const fn new(started_at: Timestamp, id: CallId) -> Self {
        Self { started_at, id, filter: CallFilter::new() }
    }

    /// Sets the filter of the list.
    #[must_use]
    pub fn with_filter(self, filter: CallFilter) -> Self {
        Self { filter, ..self }
    }
}

/// One key of a [`CursorKeys`] ring.
#[derive(Clone)]
pub(super) struct CursorKey {
    /// The number that identifies this key in cursors.
    id: u8,
    mac: MacKey,
}

impl CursorKey {
    /// Creates a key, and wipes the bytes.
    fn new(id: u8, bytes: &mut [u8; 32]) -> Self {
        let mac = MacKey::new(bytes);
        bytes.zeroize();
        Self { id, mac }
    }

    pub(super) fn seal(&self, account: &AccountId, mode: Mode, cursor: &Cursor) -> String {
        let Cursor { started_at, id, filter } = cursor;
        let (flags, values) = filter.seal();
        let mut sealed = FixedText::<MAX_BYTES>::new();
        sealed.push(&[VERSION << 4 | flags, self.id]);
        sealed.push(&write_instant(*started_at));
        sealed.push(values.as_bytes());
        sealed.push(id.as_str().as_bytes());
        let tag = self.tag(account, mode, sealed.as_bytes());
        sealed.push(&tag);
        URL_SAFE_NO_PAD.encode(sealed.as_bytes())
    }

    #[expect(clippy::expect_used, reason = "ids have at most 255 bytes, and a digest has 32")]
    fn tag(&self, account: &AccountId, mode: Mode, contents: &[u8]) -> [u8; TAG_LEN] {
        let account = account.as_str().as_bytes();
        let len = u8::try_from(account.len()).expect("an id has at most 255 bytes");
        // With the length in front, an id cannot be continued by what follows it.
        let bound_to = [u8::from(mode.is_live()), len];
        let digest = self.mac.digest(&[LABEL, &bound_to, account, contents]);
        *digest.first_chunk().expect("a digest has 32 bytes")
    }
}

impl fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CursorKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A ring of keys that authenticate cursors. The first key signs new cursors, and all keys verify cursors.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::id::{AccountId, CallId};
/// use call_assistant::rest::server::{Cursor, CursorError, CursorKeys};
/// use call_assistant::rest::Mode;
///
/// // Thirty-two random bytes from the service's secret store.
/// let keys = CursorKeys::new(1, [0x7c; 32]);
///
/// let cursor = Cursor::new(Timestamp::UNIX_EPOCH, CallId::parse("call_8fK2")?);
/// let (ours, theirs) = (AccountId::parse("acct_1")?, AccountId::parse("acct_2")?);
/// let text = keys.seal(&ours, Mode::Live, &cursor);
///
/// assert_eq!(keys.open(&ours, Mode::Live, &text), Ok(cursor));
/// assert_eq!(keys.open(&theirs, Mode::Live, &text), Err(CursorError::Digest));
/// assert_eq!(keys.open(&ours, Mode::Test, &text), Err(CursorError::Digest));
///
/// // Rotation: the new key signs, the old one still verifies.
/// let keys = CursorKeys::new(2, [0x5a; 32]).with_key(1, [0x7c; 32])?;
/// assert!(keys.open(&ours, Mode::Live, &text).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A cursor contains the position of the last call of a page and the filter of the list. The cursor's HMAC
/// also covers the account and the mode, which the cursor does not contain. A cursor is therefore invalid for
/// any other account or mode, and reveals nothing about its own account.
///
/// # Rotation
///
/// Cursors do not expire. A cursor is valid as long as its key is in the ring. If several hosts serve the
/// same list, change keys in these steps:
/// 1. Add the new key to every host with [`with_key`](Self::with_key), so that every host verifies the new
///    key's cursors.
/// 2. Put the new key first on every host, so that the new key signs.
/// 3. Remove the old key a day after the old key signed its last cursor. Each page has a new cursor.
///    Therefore only a client that paused for a day between two pages still has a cursor of the old key.
///
/// Number the keys in sequence: the number after 255 is 0.
///
/// # Format
///
/// | bytes | contents |
/// |---|---|
/// | 1 | upper half: the version, 1; lower half: the filters that follow |
/// | 1 | id of the key |
/// | 9 | `started_at`: seconds since the year 0 in 42 bits, then nanoseconds in 30 |
/// | 0, 9 or 18 | `created_after`, `created_before`, if present |
/// | 1 to 255 | the call's id |
/// | 16 | the first half of an HMAC-SHA256 |
///
/// The HMAC covers a label, the mode, the length of the account's id, the account's id, and all bytes before
/// the HMAC. The text is base64url without padding. For each key, a cursor has exactly one text. Any other
/// text with the same bytes or the same meaning is rejected. If the call's id has 27 bytes, the cursor has 72
/// characters, or 96 characters with both bounds.
#[derive(Clone, Debug)]
pub struct CursorKeys {
    first: CursorKey,
    others: Vec<CursorKey>,
}

impl CursorKeys {
    /// The longest cursor: 400 characters. A longer text is rejected before it is decoded.
    pub const MAX_LEN: usize = 400;

    /// Creates a ring with one key, which signs new cursors. The key consists of 32 random bytes and a number
    /// that identifies the key in cursors.
    ///
    /// The number is not secret. Do not reuse the number of an old key while cursors of the old key are in
    /// use, because these cursors would be rejected as altered.
    #[must_use]
    pub fn new(id: u8, mut bytes: [u8; 32]) -> Self {
        Self { first: CursorKey::new(id, &mut bytes), others: Vec::new() }
    }

    /// Adds an old key or the next key, which verifies cursors and does not sign them.
    ///
    /// # Errors
    /// Returns an error if the ring already has a key with this number.
    pub fn with_key(mut self, id: u8, mut bytes: [u8; 32]) -> Result<Self, KeyIdTakenError> {
        let key = CursorKey::new(id, &mut bytes);
        if self.key(id).is_some() {
            return Err(KeyIdTakenError { id });
        }
        self.others.push(key);
        Ok(self)
    }

    /// Writes a cursor for this account and mode, signed with the first key.
    #[must_use]
    pub fn seal(&self, account: &AccountId, mode: Mode, cursor: &Cursor) -> String {
        self.first.seal(account, mode, cursor)
    }

    /// Reads a cursor that was made for this account and mode.
    ///
    /// # Errors
    /// Returns an error if the cursor was made for another account or mode, was not made by this ring, or was
    /// altered.
    pub fn open(&self, account: &AccountId, mode: Mode, text: &str) -> Result<Cursor, CursorError> {
        if text.is_empty() {
            return Err(CursorError::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(CursorError::TooLong { len: text.len() });
        }
        let mut bytes = [0; MAX_BYTES];
        // Rejects padding, other alphabets and trailing bits that are not zero.
        let decoded = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes);
        let (sealed, _) = bytes.split_at(decoded.map_err(|_| CursorError::Encoding)?);

        let short = CursorError::Short;
        let (signed, found) = sealed.split_last_chunk::<TAG_LEN>().ok_or(short)?;
        let (&[header, key], contents) = signed.split_first_chunk().ok_or(short)?;
        if header >> 4 != VERSION {
            return Err(CursorError::Version { version: header >> 4 });
        }
        let key = self.key(key).ok_or(CursorError::UnknownKey { id: key })?;
        if !bool::from(mac::same(&key.tag(account, mode, signed), found)) {
            return Err(CursorError::Digest);
        }
        read(header & 0x0f, contents).ok_or(CursorError::Contents)
    }

    pub(super) fn signing_key(&self) -> &CursorKey {
        &self.first
    }

    fn key(&self, id: u8) -> Option<&CursorKey> {
        core::iter::once(&self.first).chain(&self.others).find(|key| key.id == id)
    }
}

/// The error of a key number that the ring already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring has a cursor key with id {id}")]
#[non_exhaustive]
pub struct KeyIdTakenError {
    /// The number of the key.
    pub id: u8,
}

/// The reason why a cursor is not valid.
///
/// The error is for the operator's log. The customer always gets the same `invalid_cursor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CursorError {
    /// A parameter `cursor` without a value.
    #[error("cursor is empty")]
    Empty,
    /// A text that is longer than [`CursorKeys::MAX_LEN`].
    #[error("cursor has {len} bytes, more than {}", CursorKeys::MAX_LEN)]
    #[non_exhaustive]
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// A text that is not canonical base64url.
    #[error("cursor is not canonical base64url")]
    Encoding,
    /// A text that is shorter than any cursor.
    #[error("cursor is too short")]
    Short,
    /// A cursor of another version.
    #[error("cursor has version {version}, not {VERSION}")]
    #[non_exhaustive]
    Version {
        /// The version in the cursor.
        version: u8,
    },
    /// A key that the ring does not have, because the key was removed or not yet added.
    #[error("cursor names key {id}, which the ring does not have")]
    #[non_exhaustive]
    UnknownKey {
        /// The number of the key.
        id: u8,
    },
    /// A cursor that was altered, made for another account or mode, or signed with another key of the same
    /// number.
    #[error("cursor was altered, or is another account's or mode's")]
    Digest,
    /// An authentic cursor with contents that this version would not have written.
    #[error("cursor is authentic and its contents are not valid")]
    Contents,
    /// A request with a bound that differs from the bound in its cursor.
    #[error("request has other filters than the list of its cursor")]
    Filters,
}

fn read(flags: u8, contents: &[u8]) -> Option<Cursor> {
    let (started_at, rest) = read_instant(contents)?;
    let (filter, rest) = CallFilter::open(flags, rest)?;
    let id = CallId::parse(core::str::from_utf8(rest).ok()?).ok()?;
    Some(Cursor { started_at, id, filter })
}

impl CallFilter {
    /// Returns a bit for each bound that is set, and the values of these bounds.
    fn seal(&self) -> (u8, FixedText<MAX_FILTER_LEN>) {
        let bounds = [(CREATED_AFTER, self.created_after), (CREATED_BEFORE, self.created_before)];
        let (mut flags, mut values) = (0, FixedText::new());
        for (flag, bound) in bounds {
            if let Some(instant) = bound {
                flags |= flag;
                values.push(&write_instant(instant));
            }
        }
        (flags, values)
    }

    /// Reads the output of [`seal`](Self::seal), and also returns the remaining bytes.
    fn open(flags: u8, mut rest: &[u8]) -> Option<(Self, &[u8])> {
        let mut bound = |flag| {
            if flags & flag == 0 {
                return Some(None);
            }
            let (instant, after) = read_instant(rest)?;
            rest = after;
            Some(Some(instant))
        };
        let filter =
            Self { created_after: bound(CREATED_AFTER)?, created_before: bound(CREATED_BEFORE)? };
        // A bit of a filter that this version does not know, or bounds in the wrong order.
        (filter.seal().0 == flags && filter.check().is_ok()).then_some((filter, rest))
    }

    /// Returns whether a request with this filter can be for another page of a list with the filter `list`.
    /// Each bound of the request must equal the bound in `list`, or be omitted.
    pub(super) fn continues(&self, list: &Self) -> bool {
        let is_own = |(name, value): (&str, &dyn fmt::Display)| {
            list.pairs().any(|own| own.0 == name && own.1.to_string() == value.to_string())
        };
        self.pairs().all(is_own)
    }
}

fn write_instant(instant: Timestamp) -> [u8; INSTANT_LEN] {
    let seconds = instant.unix_seconds().abs_diff(Timestamp::MIN.unix_seconds());
    let number = u128::from(seconds) << NANOS_BITS | u128::from(instant.subsec_nanos());
    // The years 0000 to 9999 have fewer than 2^39 seconds: nine bytes hold them all.
    let [_, _, _, _, _, _, _, bytes @ ..] = number.to_be_bytes();
    bytes
}

fn read_instant(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (instant, rest) = bytes.split_first_chunk::<INSTANT_LEN>()?;
    let mut wide = [0; size_of::<u128>()];
    *wide.last_chunk_mut()? = *instant;
    let number = u128::from_be_bytes(wide);
    let seconds = u64::try_from(number >> NANOS_BITS).ok()?;
    let nanos = u32::try_from(number & NANOS_MASK).ok()?;
    let seconds = Timestamp::MIN.unix_seconds().checked_add_unsigned(seconds)?;
    Some((Timestamp::from_parts(seconds, nanos)?, rest))
}
