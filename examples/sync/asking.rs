//! Asking until there is an answer: pacing, retries, and who must act if there is none.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::rest::ApiRequest;
use call_assistant::rest::Quota;
use call_assistant::rest::client::{Action, Client, ClientError, Pace, ResponseHead, Retry};
use tokio::time::Instant;

use crate::progress::Progress;
use crate::support::shutdown::Shutdown;
use crate::support::{clock, random};
use crate::wire::Wire;

/// Asks the service, patiently.
pub(crate) struct Asker {
    client: Client,
    wire: Wire,
    retry: Retry,
    pace: Pace,
    time_scale: f64,
    shutdown: Shutdown,
    pub(crate) progress: Progress,
}

/// Why there is no answer, or none to go on with.
pub(crate) enum Failed {
    /// Somebody asked for the end.
    Stopped,
    /// Later may be better.
    ForNow(String),
    /// Somebody has to do something about it.
    ForGood(String),
}

impl Asker {
    pub(crate) fn new(
        client: Client,
        wire: Wire,
        time_scale: f64,
        shutdown: Shutdown,
        progress: Progress,
    ) -> Self {
        // Nine waits: four minutes or so, in which a service may be restarted.
        let retry = Retry::new().with_tries(10);
        let pace = Pace::of(Quota::READS);
        Self { client, wire, retry, pace, time_scale, shutdown, progress }
    }

    /// The service's answer, with the time it was there, or its refusal, whatever it took to get
    /// one.
    ///
    /// # Errors
    /// There is none, after as many tries as are worth it.
    pub(crate) async fn ask<E: ApiRequest>(
        &mut self,
        operation: &E,
    ) -> Result<Result<(E::Response, Option<Timestamp>), ClientError>, Failed> {
        let mut tried = 0_u32;
        loop {
            let turn = self.pace.turn(clock::now());
            self.wait(turn).await?;
            let request = self.client.request(operation);
            let request = request.map_err(|error| Failed::ForGood(error.to_string()))?;
            let what = format!("{} {}", request.method(), request.uri().path());
            let began = Instant::now();
            let stop = self.shutdown.clone();
            let answered = tokio::select! {
                answered = self.wire.send(request) => answered,
                () = stop.requested() => return Err(Failed::Stopped),
            };
            let took = began.elapsed().as_millis();
            let (error, message) = match answered {
                Ok((head, body)) => match self.client.read(operation, &head, &body) {
                    Ok(answer) => {
                        self.progress.asked(&format!("{what} {} {took} ms", head.status));
                        return Ok(Ok((answer, ResponseHead::from(&head).date())));
                    }
                    Err(error) => (error.clone(), error.to_string()),
                },
                Err(lost) => (ClientError::no_response(), lost),
            };
            tried = tried.saturating_add(1);
            match self.retry.wait(&error, tried, random::bytes(), clock::now()) {
                Some(span) => {
                    let span = span.mul_f64(self.time_scale);
                    self.progress.say(&format!("{what}: {message}; again in {span:.1?}"));
                    self.pause(span).await?;
                }
                None => {
                    self.progress.say(&format!("{what}: {message}"));
                    return match error.is_transient() {
                        false => Ok(Err(error)),
                        true => Err(Failed::ForNow(format!("{message}, after {tried} tries"))),
                    };
                }
            }
        }
    }

    async fn wait(&self, span: Duration) -> Result<(), Failed> {
        self.pause(span.mul_f64(self.time_scale)).await
    }

    async fn pause(&self, span: Duration) -> Result<(), Failed> {
        crate::pause(span, &self.shutdown).await
    }
}

/// What to tell whoever runs this.
pub(crate) fn who_must_act(action: Action) -> &'static str {
    match action {
        Action::Retry => "try again later",
        Action::ReplaceKey => "the key is wrong, expired or revoked; make another one",
        Action::GrantScope => "the key lacks the scope calls:read",
        Action::UpgradePlan => "the key is fine, but the account's plan has no access to the API",
        Action::ResumeSubscription => {
            "the key is fine, but the account's subscription is not active"
        }
        Action::AccountClosed => "the account is going to be deleted",
        Action::CheckRoute => "this was not the service; is --api right, is there a proxy?",
        _ => "this program and the service do not understand each other",
    }
}
