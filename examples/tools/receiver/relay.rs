//! A relay to a program under development: verifies, explains, keeps, forwards, and shows.
//!
//! Whatever becomes of the verification, the exact bytes and headers go to the program, and its
//! answer goes to the sender: the program has to refuse what is not genuine, and to recognise a
//! duplicate, by itself. The terminal says what it should have said.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, Inbox, ReceiptError};
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier, VerifyError};
use call_assistant::{Product, Timestamp};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::time::{Instant, timeout};

use crate::SetUp;
use crate::kept::Kept;
use host::auth::access::is_local;
use host::flags::say;
use host::http::serve::{read_body, serve};
use host::program::shutdown;
use host::{clock, log};
use tools::client::Client;
use tools::secrets;

/// The longest body of a request, and of the program's answer.
const LONGEST_BODY: usize = 1024 * 1024;

/// How long a request's body may take, and how long the program may: the sender waits ten seconds.
const BODY_PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(9);

/// How many events are remembered as seen, and how many requests to compare with a mismatch.
const INBOX: usize = 10_000;
const COMPARED: usize = 8;

/// What is shown of the program's answer, in characters.
const SHOWN: usize = 200;

/// The flags of a relay.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Run as a relay: verify, explain and keep each request, and forward it to this program, http://HOST:PORT/PATH on this
    /// machine, or https on any.
    #[arg(long, value_name = "URL", value_parser = target)]
    forward: Option<Uri>,
    /// Certificates to trust next to the public ones, for https.
    #[arg(long, value_name = "FILE", requires = "forward")]
    trust_ca: Option<PathBuf>,
    /// Where a relay keeps requests.
    #[arg(long, value_name = "FOLDER", default_value = "requests", requires = "forward")]
    keep: PathBuf,
    /// Forward the kept requests of this event or file, and exit.
    #[arg(long, value_name = "ID", requires = "forward")]
    replay: Option<String>,
    /// Forward all requests kept since this time, RFC 3339 or seconds, and exit.
    #[arg(long, value_name = "TIME", requires = "forward", value_parser = tools::instant)]
    since: Option<Timestamp>,
    /// Sign forwarded requests again, with the secret in this variable.
    #[arg(long, value_name = "NAME", requires = "forward")]
    sign_with_env: Option<String>,
}

/// What the flags of a relay say.
pub(crate) struct Plan {
    to: Uri,
    /// A program under development comes and goes, and its connections with it.
    client: Client,
    kept: Kept,
    signer: Option<Signer>,
    /// Which kept requests to forward once more, instead of listening.
    id: Option<String>,
    since: Option<Timestamp>,
}

impl Plan {
    /// Reads where to relay to: `None` without `--forward`.
    ///
    /// # Errors
    /// A variable has no secret, or what is to be read cannot be.
    pub(crate) fn new(flags: Flags) -> Result<Option<Self>, String> {
        let Flags { forward, trust_ca, keep, replay, since, sign_with_env } = flags;
        let Some(to) = forward else { return Ok(None) };
        let signer = sign_with_env.map(|name| {
            let text = secrets::variable(&name);
            let text = text.map_err(|error| format!("--sign-with-env: {name} {error}"))?;
            let secret = SigningSecret::parse(&text);
            Ok::<_, String>(Signer::new(secret.map_err(|e| format!("--sign-with-env: {e}"))?))
        });
        Ok(Some(Self {
            to,
            client: Client::new(trust_ca.as_deref(), 0)?,
            kept: Kept::open(&keep)?,
            signer: signer.transpose()?,
            id: replay,
            since,
        }))
    }
}

fn target(text: &str) -> Result<Uri, String> {
    let to: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match (to.scheme_str(), to.host()) {
        (Some("https"), Some(_)) => Ok(to),
        (Some("http"), Some(host)) if is_local(host) => Ok(to),
        // The relay sends no caller's words over a network in clear.
        (Some("http"), Some(_)) => Err("expected https, or http to localhost".to_owned()),
        _ => Err("expected http://HOST:PORT/PATH, or https".to_owned()),
    }
}

/// Relays until shutdown, or forwards once more what is kept.
///
/// # Errors
/// Nobody can listen there, nothing is kept, or something was not answered with a 2xx.
pub(crate) async fn run(plan: Plan, set_up: SetUp) -> Result<(), String> {
    let Plan { to, client, kept, signer, id, since } = plan;
    let SetUp { verifier, secrets, product, listen, .. } = set_up;
    let seen = Mutex::new(Seen { inbox: Inbox::new(INBOX), recent: VecDeque::new() });
    let replays = id.is_some() || since.is_some();
    let relay =
        Arc::new(Relay { client, to, verifier, secrets, product, signer, kept, replays, seen });
    if replays {
        return match relay.replay(id.as_deref(), since).await? {
            true => Ok(()),
            false => Err("not every request got a 2xx".to_owned()),
        };
    }
    let (listener, address) = crate::listen(listen).await?;
    let (_trigger, shutdown) = shutdown::on_ctrl_c(Duration::ZERO)
        .map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    log::info!("a relay to {}, listening on http://{address}", relay.to);
    let handler = move |request, _peer| {
        let relay = Arc::clone(&relay);
        async move { relay.answer(request).await }
    };
    serve(listener, crate::LIMITS, handler, shutdown).await;
    Ok(())
}

/// Where requests go, and what is known of them.
struct Relay {
    client: Client,
    to: Uri,
    verifier: Verifier,
    /// The secrets' texts, as explanations take them.
    secrets: Vec<String>,
    product: Product,
    /// Signs again, with the secret of the program under development.
    signer: Option<Signer>,
    kept: Kept,
    /// Whether kept requests are forwarded once more.
    replays: bool,
    seen: Mutex<Seen>,
}

/// What came before.
struct Seen {
    inbox: Inbox,
    recent: VecDeque<(HeaderMap, Bytes)>,
}

impl Relay {
    /// Answers a request with the program's answer.
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        if head.method != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, Bytes::new());
        }
        let read = read_body(&head.extensions, body, LONGEST_BODY, BODY_PATIENCE).await;
        let Ok(body) = read else {
            say("not forwarded: a request whose body is too long, too slow or incomplete");
            return plain(StatusCode::BAD_REQUEST, Bytes::new());
        };
        let now = clock::now();
        let id = head.headers.get(self.product.delivery_header());
        let id = id.and_then(|id| id.to_str().ok()).unwrap_or("no-id");
        let name = match self.kept.keep(&head.uri, &head.headers, &body, id, now) {
            Ok(name) => name,
            Err(error) => {
                say(&format!("not kept: {error}"));
                id.to_owned()
            }
        };
        match self.pass(&name, &head.headers, body, now).await {
            Some(answered) => plain(answered.status(), answered.into_body()),
            // The sender comes again.
            None => plain(StatusCode::BAD_GATEWAY, Bytes::new()),
        }
    }

    /// Sends kept requests once more, one after another. Returns whether each got a 2xx.
    ///
    /// # Errors
    /// There is none, or one cannot be read.
    async fn replay(&self, id: Option<&str>, since: Option<Timestamp>) -> Result<bool, String> {
        let found = self.kept.find(id, since)?;
        if found.is_empty() {
            return Err("no kept request matches".to_owned());
        }
        let mut all = true;
        for request in found {
            let body = Bytes::from(request.body);
            let passed = self.pass(&request.name, &request.headers, body, clock::now()).await;
            all &= passed.is_some_and(|answered| answered.status().is_success());
        }
        Ok(all)
    }

    /// Verifies a request, forwards it whatever the verdict, and says what came of both.
    async fn pass(
        &self,
        name: &str,
        headers: &HeaderMap,
        body: Bytes,
        now: Timestamp,
    ) -> Option<Response<Bytes>> {
        let (is_genuine, verdict, claim) = match self.verifier.receive(headers, &body, now) {
            Ok(receipt) => {
                let what = match receipt.event() {
                    Ok(event) => format!("{} {}", event.id, event.event_type()),
                    Err(error) => format!("not an event: {error}"),
                };
                match self.seen(|seen| seen.inbox.claim(receipt, ActiveClaim::LEASE, now)) {
                    ClaimOutcome::Process(claimed) => {
                        (true, format!("genuine: {what}"), Some(claimed))
                    }
                    ClaimOutcome::Answer(_) => {
                        (true, format!("genuine, a duplicate: {what}"), None)
                    }
                }
            }
            Err(error) => {
                let why = self.explain(&error, headers, &body, now).await;
                // A signature expires, and a replay is later.
                let expired = matches!(error, ReceiptError::Verify(VerifyError::TooOld { .. }));
                let hint = match expired && self.replays && self.signer.is_none() {
                    true => "\n  --sign-with-env NAME signs it again",
                    false => "",
                };
                (false, format!("to be refused: {error}{why}{hint}"), None)
            }
        };
        say(&format!("{name}\n  {verdict}"));
        self.seen(|seen| {
            seen.recent.push_back((headers.clone(), body.clone()));
            if seen.recent.len() > COMPARED {
                seen.recent.pop_front();
            }
        });

        let began = Instant::now();
        let answered = self.forward(headers, body, now).await;
        let took = began.elapsed().as_millis();
        match &answered {
            Ok(answered) => {
                let status = answered.status();
                let text = String::from_utf8_lossy(answered.body());
                let shown: String = text.chars().take(SHOWN).collect();
                // Quoted, with what could move a terminal's cursor escaped.
                let shown = if shown.is_empty() { String::new() } else { format!(": {shown:?}") };
                say(&format!("  answered {} in {took} ms{shown}", status.as_u16()));
                // With a new signature it is genuine for the program.
                if status.is_success() && !is_genuine && self.signer.is_none() {
                    say(
                        "  *** WRONG: the program accepted a request that it must refuse. Anyone can send events to it. ***",
                    );
                }
            }
            Err(error) => say(&format!("  no response after {took} ms: {error}")),
        }
        // Only what the program has taken is a duplicate when it comes again.
        if let Some(claimed) = claim {
            let is_done = answered.as_ref().is_ok_and(|answered| answered.status().is_success());
            self.seen(|seen| match is_done {
                true => seen.inbox.done(claimed, clock::now()),
                false => seen.inbox.failed(claimed),
            });
        }
        answered.ok()
    }

    /// Explains why a request does not verify, with those before it to compare.
    async fn explain(
        &self,
        error: &ReceiptError,
        headers: &HeaderMap,
        body: &Bytes,
        now: Timestamp,
    ) -> String {
        let ReceiptError::Verify(_) = error else { return String::new() };
        let recent = self.seen(|seen| seen.recent.clone());
        let (headers, body) = (headers.clone(), body.clone());
        let (secrets, product) = (self.secrets.clone(), self.product.clone());
        // Its thousands of digests are not computed where requests are answered.
        let explained = tokio::task::spawn_blocking(move || {
            let headers = DeliveryHeaders::from_map(&product, &headers);
            let evidence = secrets::evidence(headers, &body, &secrets)?;
            let evidence = recent.iter().fold(evidence, |evidence, (headers, body)| {
                evidence.with_known_delivery(DeliveryHeaders::from_map(&product, headers), body)
            });
            Some(format!("\n  {}", evidence.explain(now)))
        });
        explained.await.ok().flatten().unwrap_or_default()
    }

    /// Sends on the exact bytes and headers, but for those of the connection and a new signature if asked.
    async fn forward(
        &self,
        headers: &HeaderMap,
        body: Bytes,
        now: Timestamp,
    ) -> Result<Response<Bytes>, String> {
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.to.clone();
        *request.headers_mut() = headers.clone();
        for name in [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING] {
            request.headers_mut().remove(name);
        }
        if let Some(signer) = &self.signer {
            let signature = signer.sign(&body, now);
            let value = HeaderValue::try_from(signature.as_str()).map_err(|e| e.to_string())?;
            request.headers_mut().insert(self.product.signature_header().clone(), value);
        }
        let answered = timeout(PATIENCE, self.client.send(request, LONGEST_BODY)).await;
        answered.unwrap_or_else(|_| Err(format!("timed out after {} s", PATIENCE.as_secs())))
    }

    fn seen<T>(&self, then: impl FnOnce(&mut Seen) -> T) -> T {
        then(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn plain(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
}
