//! Driving a flow over HTTP: what it says is done, and told to whoever watches.

use call_assistant::rest::client::{Action, Flow, FlowError, FlowTask, Step};
use http_body_util::Full;
use tokio::time::{Instant, timeout};

use crate::progress::Report;
use host::clock::MovedClock;
use host::program::shutdown::Shutdown;
use host::random;
use tools::client::Client;

/// The longest answer, in bytes. A page of a hundred calls has a few hundred kilobytes.
const LONGEST: usize = 16 * 1024 * 1024;

/// What a flow needs of its host: HTTP, a clock, an end.
pub(crate) struct Host {
    pub(crate) http: Client,
    pub(crate) report: Report,
    pub(crate) shutdown: Shutdown,
    pub(crate) time_scale: f64,
    /// Ahead by what the scale has cut off of waits.
    pub(crate) clock: MovedClock,
}

/// The reason why a flow did not finish.
pub(crate) enum Failed {
    /// Somebody asked for the end.
    Stopped,
    Flow(FlowError),
    Store(String),
}

impl Host {
    /// Drives a flow to its end.
    ///
    /// # Errors
    /// The flow ends with an error, `store` does, or the program is to end.
    pub(crate) async fn run<T: FlowTask>(
        &mut self,
        flow: &mut Flow<T>,
        mut store: impl FnMut(&mut Report, &T::Batch) -> Result<(), String>,
    ) -> Result<T::Output, Failed> {
        loop {
            match flow.next(random::bytes(), self.clock.now()) {
                Step::Send { request, time_limit, ticket } => {
                    let what = format!("{} {}", request.method(), request.uri().path());
                    let (began, stop) = (Instant::now(), self.shutdown.clone());
                    let answer = self.http.send(request.map(|()| Full::default()), LONGEST);
                    let answered = tokio::select! {
                        answered = timeout(time_limit, answer) => answered,
                        () = stop.requested() => return Err(Failed::Stopped),
                    };
                    let answered = answered
                        .unwrap_or_else(|_| Err(format!("no response within {time_limit:?}")));
                    let took = began.elapsed().as_millis();
                    flow.report(ticket, answered, self.clock.now());
                    match flow.last_error() {
                        Some(error) => self.report.say(&format!("{what}: {error}")),
                        None => self.report.asked(&format!("{what} {took} ms")),
                    }
                }
                Step::Wait(until) => {
                    let span = until.since(self.clock.now()).mul_f64(self.time_scale);
                    crate::pause(span, &self.shutdown).await?;
                    self.clock.move_to(until);
                }
                Step::Store(batch) => {
                    store(&mut self.report, batch).map_err(Failed::Store)?;
                    flow.stored();
                    self.report.stored(&flow.progress());
                }
                Step::Done(result) => return result.map_err(Failed::Flow),
            }
        }
    }
}

/// Returns the message for the person who runs this.
pub(crate) fn who_must_act(action: Action) -> &'static str {
    match action {
        Action::Retry => "try again later",
        Action::ReplaceKey => "the key is wrong, expired or revoked; create another key",
        Action::GrantScope => "the key lacks the scope calls:read",
        Action::UpgradePlan => "the account's plan does not include the API",
        Action::ResumeSubscription => "the account's subscription is not active",
        Action::AccountClosed => "the account is scheduled for deletion",
        Action::CheckRoute => "the response is not the service's: check --api and any proxy",
        _ => "this program and the service disagree on the protocol: check their versions",
    }
}
