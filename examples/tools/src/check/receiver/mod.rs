//! The side that gets webhooks: a customer's endpoint. It is sent what the protocol allows and what it forbids.
//!
//! A receiver takes an event by answering 2xx, and refuses a request by answering 4xx. Anything else breaks a rule: 5xx
//! lets the service send it again. So do 408, 425 and 429, which refuse a request for its time alone; 410 disables the
//! endpoint. All events are pings of the account `acct_receiver_check`, or of a type that nobody knows, with ids that
//! begin with `evt_check_`.

mod cases;
mod sent;
mod stored;

use std::fmt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use call_assistant::Product;

pub use cases::CASES;
use sent::{Maker, Sent};
use stored::Stored;

use super::case::{Case, Not, Seen, ensure};
use super::http::{Answer, Place};

/// How long an answer may take: 10 seconds, as the service waits.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A language, the file that verifies in it, and a whole receiver around that file.
pub const LANGUAGES: [[&str; 3]; 8] = [
    ["python", "verify.py", "receiver.py"],
    ["node", "verify.mjs", "receiver.mjs"],
    ["edge", "verify_edge.mjs", "receiver.mjs"],
    ["go", "verify.go", "receiver.go"],
    ["php", "verify.php", "receiver.php"],
    ["ruby", "verify.rb", "receiver.rb"],
    ["java", "WebhookVerifier.java", "Receiver.java"],
    ["csharp", "WebhookVerifier.cs", "Receiver.cs"],
];

/// Returns how a finding is mended, with the file of a language that shows it: the one to copy for signatures, and
/// otherwise the receiver around it. Without a language, the page or the folder that has them all.
pub fn mending(id: &str, mend: &str, language: Option<[&str; 3]>) -> String {
    let is_verifier = id.starts_with("taken.") || id.starts_with("refused.");
    let [_, verifier, receiver] = language.unwrap_or(["", "", ""]);
    let file = match is_verifier {
        true if verifier.is_empty() => "src/guide/languages.md".to_owned(),
        true => format!("src/guide/languages/{verifier}"),
        false => format!("tests/languages/receivers/{receiver}"),
    };
    format!("{mend}; see {file}")
}

/// An endpoint, and what it was given to tell genuine events.
pub struct Receiver {
    place: Place,
    maker: Maker,
    stored: Option<Stored>,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Receiver {
    /// Reads the address of an endpoint, the texts of its secrets, newest first, and the place that shows what it has
    /// stored: a file, or an `http` address.
    ///
    /// # Errors
    /// An address, the certificates or a secret cannot be read.
    pub fn new(
        url: &str,
        trust: Option<&Path>,
        secrets: &[String],
        product: Product,
        stored: Option<&str>,
    ) -> Result<Self, String> {
        let place = Place::new(url, trust)?;
        let maker = Maker::new(product, secrets)?;
        let stored = stored.map(|place| Stored::new(place, trust)).transpose()?;
        Ok(Self { place: Place { base: String::new(), ..place }, maker, stored })
    }

    /// Returns the cases that can be seen: without a second secret, none is about a rotation.
    pub fn cases(&self) -> &'static [&'static [Case<Self>]] {
        match self.maker.rotates() {
            true => CASES,
            false => CASES.split_last().map_or(CASES, |(_, others)| others),
        }
    }

    fn stored(&self) -> Seen<&Stored> {
        let lacks = || Not::Unseen("--stored is not given".to_owned());
        self.stored.as_ref().ok_or_else(lacks)
    }

    /// Sends a request on a connection of its own. Returns the status of the answer, or why there is none.
    fn post(&self, sent: &Sent) -> Result<u16, String> {
        let began = Instant::now();
        let answer = self.place.exchange_by(&sent.bytes(&self.place), Answer::head);
        match began.elapsed() >= TIMEOUT {
            true => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
            false => answer.map(|answer| answer.status),
        }
    }

    /// Sends requests at the same time, and returns the answers.
    fn post_at_once(&self, requests: &[Sent]) -> Vec<Result<u16, String>> {
        thread::scope(|scope| {
            let running: Vec<_> =
                requests.iter().map(|sent| scope.spawn(move || self.post(sent))).collect();
            let lost = || Err("no answer".to_owned());
            running.into_iter().map(|one| one.join().unwrap_or_else(|_| lost())).collect()
        })
    }

    /// Requires that a request is taken.
    fn takes(&self, what: &str, sent: &Sent) -> Seen {
        let answer = self.post(sent);
        ensure(is_taken(&answer), || format!("{what}: {}", in_words(&answer)))
    }

    /// Requires that a request is refused for good.
    fn refuses(&self, what: &str, sent: &Sent) -> Seen {
        let answer = self.post(sent);
        let is_refused = matches!(answer, Ok(status @ 400..500) if hint(status).is_empty());
        ensure(is_refused, || format!("{what}: {}", in_words(&answer)))
    }
}

fn is_taken(answer: &Result<u16, String>) -> bool {
    matches!(answer, Ok(200..300))
}

fn in_words(answer: &Result<u16, String>) -> String {
    match answer {
        Ok(status) => format!("answered {status}{}", hint(*status)),
        Err(why) => why.clone(),
    }
}

/// Returns what a status of 4xx says beside a refusal of the request, which is nothing for most.
fn hint(status: u16) -> &'static str {
    match status {
        408 | 425 | 429 => ", which asks for the request again",
        410 => ", which disables the endpoint",
        _ => "",
    }
}
