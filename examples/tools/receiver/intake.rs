//! From a request to its answer: read, verify, store, acknowledge.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use call_assistant::Product;
use call_assistant::Timestamp;
use call_assistant::webhook::receiver::ReceiptError;
use call_assistant::webhook::{DeliveryHeaders, Verifier, VerifyError, WebhookResponse};
use http::header::{ALLOW, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::sync::{mpsc as queue, oneshot};
use tokio::time::{Instant, timeout};

use crate::journal::{Journal, Record, StoreError, Stored};
use host::http::serve::{self, BodyError, read_body};
use host::program::shutdown::Trigger;
use host::{clock, log};
use tools::secrets;

/// The longest body. Events have a few kilobytes.
const LONGEST_BODY: usize = 1024 * 1024;

/// How long a body may take, and how long storing may. The sender waits for ten seconds in all.
const BODY_PATIENCE: Duration = Duration::from_secs(5);
const STORE_PATIENCE: Duration = Duration::from_secs(3);

/// The most events that wait to be stored. Further ones get 503, and the sender repeats them.
const QUEUE: usize = 256;

/// Takes requests, and hands what is genuine to the thread that stores it.
pub(crate) struct Intake {
    verifier: Verifier,
    product: Product,
    explain_with: Option<Vec<String>>,
    /// The second in which a mismatch was explained last.
    explained: AtomicI64,
    store: queue::Sender<Message>,
}

enum Message {
    Store { record: Record, answer: oneshot::Sender<Option<Stored>> },
    Stop,
}

/// The result of a delivery, for the log and for the sender.
struct Outcome {
    status: StatusCode,
    what: String,
}

impl Outcome {
    fn new(response: WebhookResponse, what: String) -> Self {
        Self { status: response.into_status(), what }
    }
}

impl Intake {
    /// Starts an intake, and the thread that owns the journal. It says in `stored` how long the journal
    /// is each time that it has grown, and stops the program when the disk fails.
    pub(crate) fn start(
        verifier: Verifier,
        product: Product,
        explain_with: Option<Vec<String>>,
        journal: Journal,
        stored: mpsc::Sender<u64>,
        stop: Trigger,
    ) -> (Self, JoinHandle<Result<(), String>>) {
        let (store, waiting) = queue::channel(QUEUE);
        let storing = std::thread::spawn(move || {
            let ended = store_all(journal, waiting, &stored);
            stop.pull();
            ended
        });
        let explained = AtomicI64::new(0);
        (Self { verifier, product, explain_with, explained, store }, storing)
    }

    /// Lets the thread store what is waiting, and end.
    pub(crate) async fn stop(&self) {
        let _ = self.store.send(Message::Stop).await;
    }

    /// Answers a request, whatever it is, and logs it.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let outcome = match head.method {
            Method::POST => {
                match read_body(&head.extensions, body, LONGEST_BODY, BODY_PATIENCE).await {
                    Ok(body) => self.take(&head.headers, &body).await,
                    Err(error) => unread(error),
                }
            }
            _ => {
                Outcome { status: StatusCode::METHOD_NOT_ALLOWED, what: "expected POST".to_owned() }
            }
        };
        let took = began.elapsed().as_millis();
        let method = serve::method(&head.method);
        log::info!("{method} {} {took} ms: {}", outcome.status, outcome.what);
        let mut response = Response::new(Full::default());
        *response.status_mut() = outcome.status;
        if outcome.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }

    /// Stores a genuine body, event or not, and says what to answer.
    async fn take(&self, headers: &HeaderMap, body: &Bytes) -> Outcome {
        let now = clock::now();
        let receipt = match self.verifier.receive(headers, body, now) {
            Ok(receipt) => receipt,
            Err(error) => {
                self.explain(&error, headers, body, now);
                return Outcome::new(error.response(), format!("refused: {error}"));
            }
        };
        let what = match receipt.event() {
            Ok(event) => format!("{} {}", event.id, event.event_type()),
            Err(error) => format!("not an event: {error}"),
        };
        match self.store(Record::new(receipt.key().clone(), body, now)).await {
            Some(Stored::Fresh) => Outcome::new(receipt.stored(), format!("stored: {what}")),
            Some(Stored::Known) => Outcome::new(receipt.stored(), format!("duplicate: {what}")),
            None => Outcome::new(WebhookResponse::Unavailable, format!("not stored: {what}")),
        }
    }

    /// Has a record stored. `None` if it could not be in time. It may be stored later all the same: then the
    /// next attempt is a duplicate.
    async fn store(&self, record: Record) -> Option<Stored> {
        let (answer, stored) = oneshot::channel();
        self.store.try_send(Message::Store { record, answer }).ok()?;
        timeout(STORE_PATIENCE, stored).await.ok()?.ok()?
    }

    /// Looks for the cause of a mismatch, away from the requests, and not for everybody who sends
    /// one: it takes thousands of times as long as to refuse it.
    fn explain(&self, error: &ReceiptError, headers: &HeaderMap, body: &Bytes, now: Timestamp) {
        let Some(secrets) = &self.explain_with else { return };
        let second = now.unix_seconds();
        if *error != ReceiptError::Verify(VerifyError::Mismatch)
            || self.explained.swap(second, Ordering::Relaxed) == second
        {
            return;
        }
        let (headers, body) = (headers.clone(), body.clone());
        let (secrets, product) = (secrets.clone(), self.product.clone());
        tokio::task::spawn_blocking(move || {
            let headers = DeliveryHeaders::from_map(&product, &headers);
            if let Some(evidence) = secrets::evidence(headers, &body, &secrets) {
                log::info!("that mismatch: {}", evidence.explain(now));
            }
        });
    }
}

fn unread(error: BodyError) -> Outcome {
    let (status, what) = match error {
        BodyError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
        BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body took too long"),
        BodyError::Broken => (StatusCode::BAD_REQUEST, "the body is incomplete"),
    };
    Outcome { status, what: what.to_owned() }
}

/// Stores what is waiting, as much as there is at once, until told to stop.
fn store_all(
    mut journal: Journal,
    mut waiting: queue::Receiver<Message>,
    stored: &mpsc::Sender<u64>,
) -> Result<(), String> {
    let mut stopping = false;
    while !stopping {
        let (mut records, mut answers) = (Vec::new(), Vec::new());
        let mut message = waiting.blocking_recv();
        loop {
            match message {
                Some(Message::Store { record, answer }) => {
                    records.push(record);
                    answers.push(answer);
                }
                Some(Message::Stop) | None => {
                    stopping = true;
                    break;
                }
            }
            match waiting.try_recv() {
                Ok(next) => message = Some(next),
                Err(_) => break,
            }
        }
        if records.is_empty() {
            continue;
        }
        match journal.store(&records) {
            Ok(outcomes) => {
                log::tried("journal", &Ok::<_, String>(()));
                // A sender that has gone away in the meantime comes again.
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    let _ = answer.send(Some(outcome));
                }
                let _ = stored.send(journal.len());
            }
            Err(StoreError::NotNow(error)) => {
                log::tried("journal", &Err::<(), _>(error));
            }
            Err(StoreError::Unknown(error)) => {
                return Err(format!(
                    "journal: {error}; start the program again to see the stored events"
                ));
            }
        }
    }
    Ok(())
}
