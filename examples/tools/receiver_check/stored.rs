//! What the receiver has stored, as it shows that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Request, Uri};
use http_body_util::Full;
use tools::client::Client;

/// The longest text of stored events, in bytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// How long a receiver may take to show what it has stored.
const PATIENCE: Duration = Duration::from_secs(10);

/// A text with the ids of the events that were stored.
pub(crate) enum Stored {
    File(PathBuf),
    Address(Uri, Box<Client>),
}

impl Stored {
    /// Reads a place.
    ///
    /// # Errors
    /// The text is an address that cannot be read, or the certificates cannot be.
    pub(crate) fn new(place: &str, trust: Option<&Path>) -> Result<Self, String> {
        if !place.starts_with("http://") && !place.starts_with("https://") {
            return Ok(Self::File(place.into()));
        }
        let uri = place.parse().map_err(|error| format!("--stored: {error}"))?;
        Ok(Self::Address(uri, Box::new(Client::new(trust, 0)?)))
    }

    /// Counts the lines with an id.
    pub(crate) async fn count(&self, id: &str) -> Result<usize, String> {
        let text = match self {
            Self::File(path) => {
                std::fs::read(path).map_err(|error| format!("--stored: {error}"))?
            }
            Self::Address(uri, client) => {
                let mut request = Request::new(Full::default());
                *request.uri_mut() = uri.clone();
                let answer = tokio::time::timeout(PATIENCE, client.send(request, LONGEST)).await;
                let answer = answer.map_err(|_| "--stored: no answer".to_owned())?;
                let answer = answer.map_err(|error| format!("--stored: {error}"))?;
                if !answer.status().is_success() {
                    return Err(format!("--stored: answered {}", answer.status().as_u16()));
                }
                answer.into_body().to_vec()
            }
        };
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().filter(|line| line.contains(id)).count())
    }
}
