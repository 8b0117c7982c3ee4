//! Acting on events: each once, in the order of the journal.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::mpsc::Receiver;

use call_assistant::webhook::receiver::EventKey;
use serde::{Deserialize, Serialize};

use crate::journal::{Record, fault, whole_lines};
use crate::told;
use host::flags::say;
use host::log;

/// What was done, and the journal it is done from.
#[derive(Debug)]
pub(crate) struct Actions {
    file: File,
    journal: File,
    /// Up to where in the journal events were acted on.
    reached: u64,
}

/// One action: its effect, and the mark that it was done.
#[derive(Debug, Serialize, Deserialize)]
struct Action {
    /// Where in the journal its event begins, and where the next one does.
    from: u64,
    next: u64,
    #[serde(flatten)]
    key: EventKey,
    done: String,
}

impl Actions {
    /// Reads what was done so far, to go on from there.
    ///
    /// # Errors
    /// A file cannot be opened or read, a line is damaged, or the actions are not those of this
    /// journal.
    pub(crate) fn of(file: File, journal: &Path, journal_len: u64) -> Result<Self, String> {
        let mut reached = 0;
        whole_lines(&file, |line, _| {
            let action: Action = serde_json::from_slice(line).map_err(|error| fault(&error))?;
            if action.from != reached || action.next <= action.from {
                return Err("it does not continue from the previous line".to_owned());
            }
            reached = action.next;
            Ok(())
        })?;
        if reached > journal_len {
            return Err("the actions go beyond the end of the journal: the actions belong to another journal"
                .to_owned());
        }
        let mut journal = File::open(journal).map_err(|error| error.to_string())?;
        journal.seek(SeekFrom::Start(reached)).map_err(|error| error.to_string())?;
        Ok(Self { file, journal, reached })
    }

    pub(crate) fn reached(&self) -> u64 {
        self.reached
    }

    /// Acts on everything in the journal up to each length that it is told, until nobody tells it
    /// any more.
    ///
    /// # Errors
    /// What was done cannot be written, so nothing more may be done.
    pub(crate) fn run(mut self, stored: &Receiver<u64>) -> Result<(), String> {
        while let Ok(len) = stored.recv() {
            self.act_up_to(len).map_err(|error| format!("cannot continue acting: {error}"))?;
        }
        Ok(())
    }

    fn act_up_to(&mut self, len: u64) -> io::Result<()> {
        // Not a byte further: what stands there may not have been stored in the end.
        let fresh = self.journal.try_clone()?.take(len.saturating_sub(self.reached));
        let mut fresh = BufReader::new(fresh);
        while self.reached < len {
            self.act(&mut fresh)?;
        }
        self.file.sync_data()
    }

    fn act(&mut self, journal: &mut impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        let len = journal.read_until(b'\n', &mut line)?;
        let record: Record = serde_json::from_slice(&line)?;
        let from = self.reached;
        let next = from.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
        let done = told::what_happened(&record.bytes());
        let key = record.key().clone();
        let mut action = serde_json::to_vec(&Action { from, next, key, done: done.clone() })?;
        action.push(b'\n');
        if let Err(error) = self.file.write_all(&action) {
            // Half a line would be cut off at the next start. Whole lines stay.
            log::warn!(
                "an action could not be written; free some disk space, and start the program again"
            );
            return Err(error);
        }
        self.reached = next;
        say(&done);
        Ok(())
    }
}
