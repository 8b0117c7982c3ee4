//! Cursors: where a page ended, sealed so that only this service's own come back.
//!
//! A cursor says after which call to go on and which filters the list has. It is authenticated
//! together with the account and the mode it was made for, which it does not carry: on another
//! account's lips it is worthless, and says nothing about its owner.
//!
//! ```
//! use call_assistant::rest::Mode;
//! use call_assistant::id::{AccountId, CallId};
//! use call_assistant::rest::CreatedRange;
//! use call_assistant::rest::server::{Cursor, CursorError, CursorKey, CursorKeys, Position};
//! use call_assistant::Timestamp;
//!
//! // Thirty-two random bytes from the service's secret store.
//! let keys = CursorKeys::new(CursorKey::new(1, [0x7c; 32]));
//!
//! let cursor = Cursor {
//!     after: Position { started_at: Timestamp::UNIX_EPOCH, id: CallId::parse("call_8fK2")? },
//!     window: CreatedRange::ALL,
//! };
//! let (ours, theirs) = (AccountId::parse("acct_1")?, AccountId::parse("acct_2")?);
//! let text = keys.seal(&ours, Mode::Live, &cursor);
//!
//! assert_eq!(keys.open(&ours, Mode::Live, &text), Ok(cursor));
//! assert_eq!(keys.open(&theirs, Mode::Live, &text), Err(CursorError::Digest));
//! assert_eq!(keys.open(&ours, Mode::Test, &text), Err(CursorError::Digest));
//! # Ok::<(), call_assistant::id::IdError>(())
//! ```
//!
//! # Keys
//!
//! Cursors do not expire; the life of a key bounds theirs. To change keys where several hosts
//! serve the same list:
//! 1. give every host the new key [beside](CursorKeys::beside) the old one: it verifies already;
//! 2. give every host the ring with the new key first: it signs now;
//! 3. take the old key away when the walks that began under it may fail.
//!
//! # Format
//!
//! | bytes | |
//! |---|---|
//! | 1 | version, 1, in the upper half; which filters follow, in the lower |
//! | 1 | id of the key |
//! | 9 | `started_at`: seconds since the year 0 in 42 bits, then nanoseconds in 30 |
//! | 0, 9 or 18 | `created_after`, `created_before`, where there are any |
//! | 1 to 255 | the call's id |
//! | 16 | the first half of an HMAC-SHA256 |
//!
//! The HMAC covers a label, the mode, the account's id with its length in front, and all the
//! bytes before it. The text is base64url without padding. There is one text for each cursor under
//! each key: whatever else decodes to the same bytes, or to the same meaning, is refused. With a
//! call id of 27 bytes it has 72 characters, or 96 with both filters.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::digest::zeroize::Zeroize as _;

use crate::Timestamp;
use crate::id::{self, AccountId, CallId};
use crate::mac::{self, MacKey};
use crate::rest::CreatedRange;
use crate::rest::Mode;

/// The longest text of a cursor, in characters. A longer one is refused unread.
pub const MAX_LEN: usize = 400;

const VERSION: u8 = 1;
const CREATED_AFTER: u8 = 0b01;
const CREATED_BEFORE: u8 = 0b10;
const FLAGS: u8 = 0b11;
const INSTANT_LEN: usize = 9;
const NANOS_BITS: u32 = 30;
const NANOS_MASK: u128 = (1 << NANOS_BITS) - 1;
const TAG_LEN: usize = 16;

/// Keeps these digests apart from any other use of the same key.
const LABEL: &[u8] = b"calls cursor";

/// Where a call stands in the list, which is newest first, by `started_at` and then `id`.
///
/// Positions compare as instants do, so of two positions the greater comes first in the list. Ids
/// compare bytewise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// When the call arrived.
    pub started_at: Timestamp,
    /// Its id, which decides between calls that arrived at the same instant.
    pub id: CallId,
}

/// What a cursor says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The last call of the page that ended here.
    pub after: Position,
    /// The filters of the list.
    pub window: CreatedRange,
}

/// One key of a [`CursorKeys`] ring.
#[derive(Clone)]
pub struct CursorKey {
    id: u8,
    mac: MacKey,
}

impl CursorKey {
    /// Takes 32 random bytes and a number of the caller's own, by which cursors name their key.
    ///
    /// The number is not secret. It must not be given to another key while cursors of this one are
    /// about: they would be refused as altered.
    #[must_use]
    pub fn new(id: u8, mut bytes: [u8; 32]) -> Self {
        let mac = MacKey::new(&bytes);
        bytes.zeroize();
        Self { id, mac }
    }

    /// The number by which cursors name this key.
    #[must_use]
    pub const fn id(&self) -> u8 {
        self.id
    }
}

impl fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CursorKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The keys that authenticate cursors: the first signs, all verify.
#[derive(Clone, Debug)]
pub struct CursorKeys {
    first: CursorKey,
    others: Vec<CursorKey>,
}

impl CursorKeys {
    /// A ring of one key, which signs.
    #[must_use]
    pub const fn new(first: CursorKey) -> Self {
        Self { first, others: Vec::new() }
    }

    /// Adds a key that verifies and does not sign: an older one, or one that is to sign soon.
    ///
    /// # Errors
    /// The ring has a key of this number.
    pub fn beside(mut self, key: CursorKey) -> Result<Self, KeyIdTakenError> {
        if self.key(key.id).is_some() {
            return Err(KeyIdTakenError { id: key.id });
        }
        self.others.push(key);
        Ok(self)
    }

    /// Writes a cursor for this account and mode.
    #[must_use]
    pub fn seal(&self, account: &AccountId, mode: Mode, cursor: &Cursor) -> String {
        let Cursor { after, window } = cursor;
        let filters =
            [(window.created_after(), CREATED_AFTER), (window.created_before(), CREATED_BEFORE)];
        let mut header = VERSION << 4;
        for (instant, flag) in filters {
            header |= if instant.is_some() { flag } else { 0 };
        }

        let mut bytes = Bytes::bound_to(account, mode);
        let context = bytes.len;
        bytes.push(&[header, self.first.id]);
        bytes.push(&write_instant(after.started_at));
        for instant in filters.into_iter().filter_map(|(instant, _)| instant) {
            bytes.push(&write_instant(instant));
        }
        bytes.push(after.id.as_str().as_bytes());
        bytes.push(&tag(&self.first, bytes.all()));
        URL_SAFE_NO_PAD.encode(bytes.all().get(context..).unwrap_or_default())
    }

    /// Reads a cursor that was made for this account and mode.
    ///
    /// # Errors
    /// It was not, or not by this ring, or it was altered. Whichever it was: the answer is the
    /// same `invalid_cursor`, the fault is for the operator's log.
    pub fn open(&self, account: &AccountId, mode: Mode, text: &str) -> Result<Cursor, CursorError> {
        if text.is_empty() {
            return Err(CursorError::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(CursorError::TooLong { len: text.len() });
        }
        let mut bytes = Bytes::bound_to(account, mode);
        let context = bytes.len;
        // Refuses padding, other alphabets and trailing bits that are not zero.
        let decoded =
            URL_SAFE_NO_PAD.decode_slice(text, bytes.free()).map_err(|_| CursorError::Encoding)?;
        bytes.len = bytes.len.saturating_add(decoded);

        let (signed, found) =
            bytes.all().split_last_chunk::<TAG_LEN>().ok_or(CursorError::Short)?;
        let (&[header, key], contents) =
            signed.get(context..).and_then(<[u8]>::split_first_chunk).ok_or(CursorError::Short)?;
        if header >> 4 != VERSION {
            return Err(CursorError::Version { version: header >> 4 });
        }
        let key = self.key(key).ok_or(CursorError::UnknownKey { id: key })?;
        if !bool::from(mac::same(&tag(key, signed), found)) {
            return Err(CursorError::Digest);
        }
        read(header & 0x0f, contents).ok_or(CursorError::Contents)
    }

    fn key(&self, id: u8) -> Option<&CursorKey> {
        if self.first.id == id {
            return Some(&self.first);
        }
        self.others.iter().find(|key| key.id == id)
    }
}

/// A ring already has a key of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring has a cursor key with id {id}")]
#[non_exhaustive]
pub struct KeyIdTakenError {
    /// The number.
    pub id: u8,
}

/// Why a cursor is refused: for the operator's log, never for the caller, whom every one of them
/// gives the same `invalid_cursor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CursorError {
    /// The parameter is there and has no value.
    #[error("cursor is empty")]
    Empty,
    /// The text is longer than [`MAX_LEN`].
    #[error("cursor has {len} bytes, more than {MAX_LEN}")]
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// The text is not the one base64url encoding of any bytes.
    #[error("cursor is not canonical base64url")]
    Encoding,
    /// Fewer bytes than any cursor has: truncated, or something else entirely.
    #[error("cursor is too short")]
    Short,
    /// Another version's, or none of ours.
    #[error("cursor has version {version}, not {VERSION}")]
    Version {
        /// The version it states.
        version: u8,
    },
    /// The ring has no such key: it was taken away, or is not here yet.
    #[error("cursor names key {id}, which the ring does not have")]
    UnknownKey {
        /// The key it names.
        id: u8,
    },
    /// Altered, or made for another account or mode, or under another key of the same number.
    #[error("cursor was altered, or is another account's or mode's")]
    Digest,
    /// Authentic, and yet it says nothing that this version could have written.
    #[error("cursor is authentic and its contents are not valid")]
    Contents,
    /// The request repeats the filters, and they are not those of the list the cursor is from.
    #[error("request has other filters than the list its cursor is from")]
    Filters,
}

fn read(flags: u8, contents: &[u8]) -> Option<Cursor> {
    if flags & !FLAGS != 0 {
        return None;
    }
    let (started_at, mut rest) = read_instant(contents)?;
    let mut filter = |flag| {
        if flags & flag == 0 {
            return Some(None);
        }
        let (instant, after) = read_instant(rest)?;
        rest = after;
        Some(Some(instant))
    };
    let window = CreatedRange::new(filter(CREATED_AFTER)?, filter(CREATED_BEFORE)?).ok()?;
    let id = CallId::parse(core::str::from_utf8(rest).ok()?).ok()?;
    Some(Cursor { after: Position { started_at, id }, window })
}

fn write_instant(instant: Timestamp) -> [u8; INSTANT_LEN] {
    let seconds = instant.unix_seconds().abs_diff(Timestamp::MIN.unix_seconds());
    let number =
        (u128::from(seconds) << NANOS_BITS).wrapping_add(u128::from(instant.subsec_nanos()));
    // The years 0000 to 9999 have fewer than 2^39 seconds: nine bytes hold them all.
    number.to_be_bytes().last_chunk().copied().unwrap_or_default()
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

fn tag(key: &CursorKey, signed: &[u8]) -> [u8; TAG_LEN] {
    key.mac.digest(&[signed]).first_chunk().copied().unwrap_or_default()
}

/// What is authenticated, in one piece: what the cursor is bound to, then the cursor itself.
struct Bytes {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

impl Bytes {
    const CAPACITY: usize = LABEL.len() + 2 + id::MAX_ID_LEN + MAX_LEN / 4 * 3;

    fn bound_to(account: &AccountId, mode: Mode) -> Self {
        let account = account.as_str().as_bytes();
        let mut bytes = Self { bytes: [0; Self::CAPACITY], len: 0 };
        bytes.push(LABEL);
        // The length keeps an account's id and what follows it from trading bytes.
        bytes.push(&[u8::from(mode.is_live()), u8::try_from(account.len()).unwrap_or(u8::MAX)]);
        bytes.push(account);
        bytes
    }

    /// Ids have at most 255 bytes, so everything pushed here fits.
    fn push(&mut self, more: &[u8]) {
        if let Some(free) = self.free().get_mut(..more.len()) {
            free.copy_from_slice(more);
            self.len = self.len.saturating_add(more.len());
        }
    }

    fn free(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    fn all(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
