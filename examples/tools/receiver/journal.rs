//! The journal: every event that was accepted, once, on disk before it is acknowledged.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use call_assistant::Timestamp;
use call_assistant::webhook::receiver::EventKey;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tools::files;

/// An open journal, and which events are in it.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// How much of the file is whole lines.
    len: u64,
    known: HashSet<EventKey>,
}

/// One line of the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    received_at: Timestamp,
    #[serde(flatten)]
    key: EventKey,
    /// The body, byte for byte, as text where it is UTF-8 and in hex where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_hex: Option<String>,
}

/// The result of storing a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Fresh,
    Known,
}

/// The reason why nothing was stored.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// The disk is full, for instance. The journal is as it was, so later may be better.
    NotNow(io::Error),
    /// What is on the disk is unknown until the journal is read again.
    Unknown(io::Error),
}

impl Record {
    pub(crate) fn new(key: EventKey, body: &[u8], received_at: Timestamp) -> Self {
        let (body, body_hex) = match std::str::from_utf8(body) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(hex::encode(body))),
        };
        Self { received_at, key, body, body_hex }
    }

    pub(crate) fn key(&self) -> &EventKey {
        &self.key
    }

    /// Returns the body as it was received.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match (&self.body, &self.body_hex) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, digits) => hex::decode(digits.as_deref().unwrap_or("")).unwrap_or_default(),
        }
    }
}

impl Journal {
    /// Opens a journal, or begins one. A last line that was not finished is cut off: nobody was
    /// told that its event is stored.
    ///
    /// # Errors
    /// The file cannot be opened or read, or a line is damaged. Nothing is repaired by guessing:
    /// which events those were, only a copy of the file can tell.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let file = files::open_to_append(path).map_err(|error| error.to_string())?;
        let mut known = HashSet::new();
        let len = whole_lines(&file, |line, _| {
            let record: Record = serde_json::from_slice(line).map_err(|error| fault(&error))?;
            known.insert(record.key);
            Ok(())
        })?;
        Ok(Self { file, len, known })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn events(&self) -> usize {
        self.known.len()
    }

    /// Stores records with one write and one sync, those that are not there yet. When this
    /// returns, they survive anything the disk survives.
    ///
    /// # Errors
    /// None of them is stored, or it is not known whether they are.
    pub(crate) fn store(&mut self, records: &[Record]) -> Result<Vec<Stored>, StoreError> {
        let mut lines = Vec::new();
        let mut fresh = HashSet::new();
        let mut stored = Vec::new();
        for record in records {
            let key = record.key();
            if self.known.contains(key) || fresh.contains(key) {
                stored.push(Stored::Known);
                continue;
            }
            serde_json::to_writer(&mut lines, record)
                .map_err(|error| StoreError::NotNow(error.into()))?;
            lines.push(b'\n');
            fresh.insert(key.clone());
            stored.push(Stored::Fresh);
        }
        if let Err(error) = self.file.write_all(&lines) {
            // Some of it may be there. A line that nobody was promised must not stay.
            return Err(match self.file.set_len(self.len) {
                Ok(()) => StoreError::NotNow(error),
                Err(error) => StoreError::Unknown(error),
            });
        }
        // After a sync that failed, the system may have dropped what it could not write, and the
        // next sync would not say so.
        self.file.sync_data().map_err(StoreError::Unknown)?;
        self.len = self.len.saturating_add(u64::try_from(lines.len()).unwrap_or(u64::MAX));
        self.known.extend(fresh);
        Ok(stored)
    }
}

/// Returns what is wrong with a line, without a word of it.
pub(crate) fn fault(error: &serde_json::Error) -> String {
    format!("unexpected content at column {}", error.column())
}

/// Reads a file line by line, each with its place, cuts off a last one that was not finished, and
/// says how long the file is now.
///
/// # Errors
/// The file cannot be read or cut, or `take` refuses a line, or the last is no beginning of JSON:
/// then this is not a file that was written here.
pub(crate) fn whole_lines(
    file: &File,
    mut take: impl FnMut(&[u8], u64) -> Result<(), String>,
) -> Result<u64, String> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut whole = 0_u64;
    for number in 1_usize.. {
        line.clear();
        let len = reader.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if len == 0 {
            break;
        }
        let damaged = |error: String| format!("line {number} is damaged: {error}");
        let Some(line) = line.strip_suffix(b"\n") else {
            match serde_json::from_slice::<IgnoredAny>(&line) {
                Err(error) if !error.is_eof() => return Err(damaged(fault(&error))),
                _ => file.set_len(whole).and_then(|()| file.sync_all()),
            }
            .map_err(|error| error.to_string())?;
            break;
        };
        take(line, whole).map_err(damaged)?;
        whole = whole.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
    }
    Ok(whole)
}
