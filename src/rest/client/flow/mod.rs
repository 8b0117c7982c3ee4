mod begin;
mod step;
mod task;

use core::fmt;
use core::time::Duration;

use http::{Request, Response};

pub use step::{Progress, Step, Ticket};
pub use task::FlowTask;

use self::task::{Applied, PageCount};
use super::error::Cause;
use super::{Action, CallSync, Client, ClientError, FlowError, Pace, ResponseHead, Retry};
use crate::Timestamp;

/// The state machine of a task. Until the task is done, the flow returns the next step for the host,
/// which is your program.
///
/// ```
/// # use call_assistant::Timestamp;
/// use call_assistant::rest::GetAccount;
/// use call_assistant::rest::client::{Client, Step};
/// # use core::time::Duration;
/// # fn send(_: http::Request<()>, _: Duration) -> std::io::Result<http::Response<Vec<u8>>> {
/// #     let body = br#"{"id":"acct_1","business_name":null,"timezone":"UTC","livemode":true}"#;
/// #     Ok(http::Response::new(body.to_vec()))
/// # }
/// # let (now, random, sleep_until) = (|| Timestamp::UNIX_EPOCH, || [7; 8], |_: Timestamp| ());
///
/// // `send` is on the page of this module, whole, for two HTTP clients.
/// let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
/// let mut flow = client.fetch(GetAccount);
/// let account = loop {
///     match flow.next(random(), now()) {
///         Step::Send { request, time_limit, ticket } => {
///             flow.report(ticket, send(request, time_limit), now()); // any status is an answer
///         }
///         Step::Wait(until) => sleep_until(until),
///         Step::Store(never) => match *never {}, // pages and syncs have something to store
///         Step::Done(result) => break result?, // the error says who must act
///     }
/// };
/// assert_eq!(account.timezone, "UTC");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A flow handles the retries, the pace, the paging, the restart of a list that cannot continue, and the
/// reading of answers. The host handles the socket, the clock, the randomness and the store. In blocking
/// and in async code, the same loop runs every [`FlowTask`].
///
/// # Misuse does no harm
///
/// - [`next`](Self::next) returns the same step until the step is complete.
/// - A flow accepts an answer only with the [`Ticket`] of the pending request. An answer to a previous
///   request, or a second answer to the same request, is ignored.
/// - If a request gets no answer, [report](Self::report) the error as a failed try.
/// - A flow can be dropped at any time. A new flow from the state stored last loses no call, and repeats
///   no stored call.
pub struct Flow<T: FlowTask> {
    client: Client,
    task: T,
    /// Whether the task begins another walk after the end of the current walk.
    ends_again: bool,
    retry: Retry,
    restarts: u32,
    time_limit: Duration,
    pace: Pace,
    position: Position<T>,
    failure: Option<FlowError>,
    /// The number of failed tries of the current request.
    tried: u32,
    /// The number of restarts of the list since the list reached its furthest position.
    restarted: u32,
    deepest: Option<Timestamp>,
    tickets: u64,
    progress: Progress,
}

enum Position<T: FlowTask> {
    /// A wait before a request.
    Waiting(Wait),
    /// A request that was made at this time and has no answer yet.
    Sent(Ticket, Request<()>, Timestamp),
    /// A try that failed. The next `random` determines the length of the wait.
    Failed(FlowError),
    Storing(T::Batch),
    Done(T::Output),
    Stopped(FlowError),
}

#[derive(Clone, Copy)]
struct Wait {
    until: Timestamp,
    /// The longest time to wait, even if the clock is set back meanwhile.
    length: Duration,
    /// Whether the pace has caused the wait.
    paced: bool,
}

impl Wait {
    const OVER: Self = Self { until: Timestamp::MIN, length: Duration::ZERO, paced: false };

    fn new(length: Duration, paced: bool, now: Timestamp) -> Self {
        Self { until: now.saturating_add(length), length, paced }
    }
}

impl<T: FlowTask> Flow<T> {
    fn go_on(&mut self) {
        let done = self.task.end().filter(|_| !core::mem::take(&mut self.ends_again));
        self.position = done.map_or(Position::Waiting(Wait::OVER), Position::Done);
    }

    /// Sets how often and when a failed request is repeated. A successful request resets the count of
    /// tries.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Sets the pace. If several programs use the same key, use a [shared](Pace::shared) pace.
    #[must_use]
    pub fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Sets how often the list may be restarted: 3 times by default. A list is restarted if the service
    /// refuses the cursor, or if a page does not follow the previous page. After a restart, no call is
    /// returned again. When the flow reads a page beyond all pages read so far, the
    /// count of restarts begins again at 0.
    #[must_use]
    pub fn with_restarts(self, restarts: u32) -> Self {
        Self { restarts, ..self }
    }

    /// Sets the time limit of each request: 30 seconds by default.
    #[must_use]
    pub fn with_time_limit(self, time_limit: Duration) -> Self {
        Self { time_limit, ..self }
    }

    /// Returns the next step. `random` is eight random bytes. These bytes add jitter to the wait before
    /// a retry, and distinguish the requests of this flow from the requests of previous flows. The bytes
    /// need not be cryptographically random, but must not be constant.
    pub fn next(&mut self, random: [u8; 8], now: Timestamp) -> Step<'_, T> {
        if let Position::Failed(error) = &self.position {
            self.position = self.after(error.clone(), random, now);
        }
        if let Position::Waiting(wait) = self.position {
            self.position = self.waited(wait, random, now);
        }
        match &self.position {
            Position::Waiting(wait) => Step::Wait(wait.until),
            Position::Sent(ticket, request, _) => Step::Send {
                request: request.clone(),
                time_limit: self.time_limit,
                ticket: *ticket,
            },
            Position::Storing(batch) => Step::Store(batch),
            Position::Done(output) => Step::Done(Ok(output.clone())),
            Position::Failed(error) | Position::Stopped(error) => Step::Done(Err(error.clone())),
        }
    }

    /// Reports the outcome of a request, by calling [`answered`](Self::answered) or
    /// [`lost`](Self::lost).
    ///
    /// | report | meaning |
    /// |---|---|
    /// | `Ok` | an answer of any status, including 401, 429 and 500, with its headers and its whole body |
    /// | `Err` | no answer, or an incomplete answer |
    ///
    /// The flow reads the status, `Retry-After` and `Date`. No answer of this API is longer than
    /// [`MAX_JSON_LEN`](crate::json::MAX_JSON_LEN) bytes. Therefore read at most `MAX_JSON_LEN` + 1
    /// bytes: the last byte shows that a body is too long. If the HTTP client turned a status into an
    /// error, or if an answer has no headers or a body that is too long, the error's `Display`
    /// describes the remedy. [Two examples](crate::rest::client#http-clients) show the whole function
    /// `send`.
    pub fn report<B: AsRef<[u8]>>(
        &mut self,
        ticket: Ticket,
        result: Result<Response<B>, impl Into<Cause>>,
        now: Timestamp,
    ) {
        match result.map(Response::into_parts) {
            Ok((head, body)) => self.answered(ticket, &head, body.as_ref(), now),
            Err(cause) => self.lost(ticket, cause),
        }
    }

    /// Reports the answer to a request. The head is `&http::response::Parts` or a
    /// [`ResponseHead`].
    ///
    /// If the flow does not wait for this answer, the report has no effect.
    pub fn answered<'h>(
        &mut self,
        ticket: Ticket,
        head: impl Into<ResponseHead<'h>>,
        body: &[u8],
        now: Timestamp,
    ) {
        let Some(sent) = self.awaits(ticket) else { return };
        // A date that was reached while the answer was on its way says nothing of when it left.
        match self.read(head.into(), body, sent.min(now)) {
            Ok(applied) => {
                (self.tried, self.failure) = (0, None);
                self.position = match applied {
                    Applied::Done(output) => Position::Done(output),
                    Applied::Store(batch, page) => {
                        self.count(&page);
                        Position::Storing(batch)
                    }
                    Applied::Wait(length) => Position::Waiting(Wait::new(length, false, now)),
                };
            }
            Err(error) => self.failed(error),
        }
    }

    fn read(
        &self,
        head: ResponseHead<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Applied<T::Batch, T::Output>, FlowError> {
        let answer = self.client.read(&self.task.asked(), head, body)?;
        Ok(self.task.answered(answer, head.date(), now)?)
    }

    /// Reports that a request got no answer or an incomplete answer, because of a missing connection, a
    /// timeout or a broken connection. `cause` is the HTTP client's error, or a text.
    /// [`last_error`](Self::last_error) shows the cause.
    pub fn lost(&mut self, ticket: Ticket, cause: impl Into<Cause>) {
        if self.awaits(ticket).is_some() {
            self.failed(FlowError::Client(ClientError::no_response(cause)));
        }
    }

    /// Reports that the batch of [`Step::Store`] is stored. If the flow has no batch to store, the
    /// report has no effect.
    pub fn stored(&mut self) {
        if let Position::Storing(batch) = &self.position {
            self.task.store(batch);
            if !self.is_past_first_page() {
                self.deepest = None;
            }
            self.go_on();
        }
    }

    /// Returns the pace. Pass this pace to [`with_pace`](Self::with_pace) of the next flow with the same
    /// key. A new pace does not count the recent requests of earlier flows.
    #[must_use]
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns the progress of the flow.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns why the last try failed, for a log. Returns `None` if no try has failed since the last
    /// success.
    #[must_use]
    pub fn last_error(&self) -> Option<&FlowError> {
        self.failure.as_ref()
    }

    /// If the flow waits for this answer, returns when the request was made.
    fn awaits(&self, ticket: Ticket) -> Option<Timestamp> {
        match self.position {
            Position::Sent(expected, _, sent) if expected == ticket => Some(sent),
            _ => None,
        }
    }

    fn is_past_first_page(&self) -> bool {
        self.task.list().is_some_and(|list| list.cursor.is_some())
    }

    fn count(&mut self, page: &PageCount) {
        let progress = &mut self.progress;
        progress.pages = progress.pages.saturating_add(1);
        let add = |sum: u64, len: usize| sum.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
        progress.calls = add(progress.calls, page.calls);
        progress.unreadable = add(progress.unreadable, page.unreadable);
        progress.reached = page.reached.or(progress.reached);
        if page.reached.is_some_and(|at| self.deepest.is_none_or(|deepest| at < deepest)) {
            (self.deepest, self.restarted) = (page.reached, 0);
        }
    }

    fn failed(&mut self, error: FlowError) {
        self.tried = self.tried.saturating_add(1);
        self.progress.failures = self.progress.failures.saturating_add(1);
        self.failure = Some(error.clone());
        self.position = Position::Failed(error);
    }

    fn after(&mut self, error: FlowError, random: [u8; 8], now: Timestamp) -> Position<T> {
        let wait = match &error {
            FlowError::Client(error) => self.retry.wait(error, self.tried, random, now),
            // A page that does not follow the previous one may be another machine's, a little behind.
            _ => self.retry.wait_unasked(self.tried, random),
        };
        if let Some(length) = wait {
            return Position::Waiting(Wait::new(length, false, now));
        }
        // Nothing of a request for the first page would change.
        let refused = error.action() == Action::RestartList && self.is_past_first_page();
        let astray = matches!(error, FlowError::Paging(_)) && self.is_past_first_page();
        if (refused || astray) && self.restarted < self.restarts && self.task.restart() {
            self.progress.restarts = self.progress.restarts.saturating_add(1);
            self.restarted = self.restarted.saturating_add(1);
            self.tried = 0;
            return Position::Waiting(Wait::OVER);
        }
        Position::Stopped(match refused && self.restarted > 0 {
            true => FlowError::Restarts { restarts: self.restarts },
            false => error,
        })
    }

    fn waited(&mut self, mut wait: Wait, random: [u8; 8], now: Timestamp) -> Position<T> {
        // A clock that was set back makes no wait longer than it was.
        wait.until = wait.until.min(now.saturating_add(wait.length));
        if now < wait.until {
            return Position::Waiting(wait);
        }
        if !wait.paced {
            let pace = self.pace.turn(now);
            if !pace.is_zero() {
                return Position::Waiting(Wait::new(pace, true, now));
            }
        }
        match self.client.request(&self.task.asked()) {
            Ok(request) => {
                self.tickets = self.tickets.wrapping_add(1);
                Position::Sent(Ticket { number: self.tickets, random }, request, now)
            }
            Err(error) => Position::Stopped(FlowError::Unsendable(error)),
        }
    }
}

impl Flow<CallSync> {
    /// Continues from a state that was stored while the flow was running. For example, your program
    /// has [taken](CallSync::take_call) the call of an event, or another worker has stored a state. If
    /// the flow has a batch that is not stored, the flow drops this batch. If the new state requests
    /// another page than the pending request, the flow also ignores the answer to the pending request.
    ///
    /// Use this function after each change of the stored state outside the flow. If another process may
    /// change the stored state, compare it, before you store a batch, with the state that you last
    /// stored or read. If the two states differ, do not store the batch, but pass the stored state to
    /// this function.
    pub fn continue_from(&mut self, mut state: CallSync) {
        if matches!(self.position, Position::Done(_) | Position::Stopped(_)) {
            return;
        }
        // An answer to another page would be read as the page that the state asks for. An error
        // that asks for a wait does so for any request.
        let moved = state.query() != self.task.query();
        let is_outdated = match &self.position {
            Position::Storing(_) => true,
            Position::Sent(..) => moved,
            Position::Failed(error) => moved && error.action() != Action::Retry,
            _ => false,
        };
        if is_outdated {
            self.position = Position::Waiting(Wait::OVER);
        }
        match state.bind_like(&self.task) {
            Ok(()) => self.task = state,
            Err(error) => self.position = Position::Stopped(error),
        }
    }
}

/// Omits the task's data, which may be about people.
impl<T: FlowTask> fmt::Debug for Flow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("progress", &self.progress()).finish_non_exhaustive()
    }
}
