//! What the receiver has stored, as it shows that.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::super::case::{Seen, ensure};
use super::super::http::Place;

/// How long a second copy may need to be stored.
const SETTLES: Duration = Duration::from_millis(500);

/// How long the first may.
const PATIENCE: Duration = Duration::from_secs(5);

/// A text with the ids of the events that were stored. It is read only.
pub(super) enum Stored {
    File(PathBuf),
    Address(Place),
}

impl Stored {
    /// Reads a place.
    ///
    /// # Errors
    /// The text is an address that cannot be read, or the certificates cannot be.
    pub(super) fn new(place: &str, trust: Option<&Path>) -> Result<Self, String> {
        if !place.starts_with("http://") && !place.starts_with("https://") {
            return Ok(Self::File(place.into()));
        }
        let place = Place::new(place, trust).map_err(|error| format!("--stored: {error}"))?;
        Ok(Self::Address(Place { base: String::new(), ..place }))
    }

    /// Counts the lines with an id.
    pub(super) fn count(&self, id: &str) -> Seen<usize> {
        let read = match self {
            Self::File(path) => std::fs::read(path).map_err(|error| error.to_string()),
            Self::Address(place) => {
                let asked = place.exchange(&place.request("GET", &place.target, "", b""));
                asked.and_then(|answer| match answer.status {
                    200..300 => Ok(answer.body),
                    status => Err(format!("answered {status}")),
                })
            }
        };
        let text = read.map_err(|error| format!("--stored: {error}"))?;
        Ok(String::from_utf8_lossy(&text).lines().filter(|line| line.contains(id)).count())
    }

    /// Requires that an event is stored once, after a moment.
    pub(super) fn once(&self, id: &str, what: &str) -> Seen {
        let began = Instant::now();
        while self.count(id)? == 0 && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(50));
        }
        thread::sleep(SETTLES);
        let times = self.count(id)?;
        ensure(times == 1, || format!("{what}: stored {times} times"))
    }
}
