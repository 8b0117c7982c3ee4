//! A customer: a sync that asks, an endpoint that receives, and one store for both.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::Call;
use call_assistant::rest::client::{
    Action, Batch, CallSync, Client, Flow, FlowError, Pace, Step, Ticket,
};
use call_assistant::rest::{ApiKey, BaseUrl, GetAccount, Quota};
use call_assistant::webhook::event::EventData;
use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, EventKey, InboxEntry};
use call_assistant::webhook::{SigningSecret, Verifier};
use http::{HeaderMap, Request, Response, StatusCode};

use crate::dice::{Dice, MINUTE, SECOND, at};
use support::simulation::Tally;

/// What comes up in some world. A 429 aside, which a paced client has no part in.
pub(crate) const EVERYTHING: &str = "pages walks by_event duplicates busy forged crashes unanswered \
    gateways broken_off cursors_refused keys_replaced unsubscribed states_changed";

/// What survives a crash. Each method that changes it is one transaction.
struct Store {
    sync: String,
    processed: BTreeMap<CallId, u32>,
    inbox: BTreeMap<EventKey, InboxEntry>,
}

impl Store {
    fn sync(&self) -> CallSync {
        serde_json::from_str(&self.sync).unwrap()
    }

    fn save(&mut self, fresh: &[Call], next: &CallSync) {
        for call in fresh {
            *self.processed.entry(call.id.clone()).or_default() += 1;
        }
        self.sync = serde_json::to_string(next).unwrap();
    }
}

/// What is under way.
#[allow(clippy::large_enum_variant)] // there is one of it
enum Work {
    /// The key is checked before it is used for calls (KEY-6).
    Key(Flow<GetAccount>),
    Calls(Flow<CallSync>),
}

/// What comes next, whatever is under way.
#[allow(clippy::large_enum_variant)]
enum Next {
    Send(Request<()>, Ticket),
    Wait(Timestamp),
    Store(Batch<CallSync>),
    Done(Result<(), FlowError>),
}

impl Work {
    fn next(&mut self, random: [u8; 8], now: Timestamp) -> Next {
        match self {
            Self::Key(flow) => match flow.next(random, now) {
                Step::Send { request, ticket, .. } => Next::Send(request, ticket),
                Step::Wait(until) => Next::Wait(until),
                Step::Store(never) => match *never {},
                Step::Done(result) => Next::Done(result.map(|it| assert!(it.livemode))),
            },
            Self::Calls(flow) => match flow.next(random, now) {
                Step::Send { request, ticket, .. } => Next::Send(request, ticket),
                Step::Wait(until) => Next::Wait(until),
                Step::Store(batch) => Next::Store(batch.clone()),
                Step::Done(result) => Next::Done(result),
            },
        }
    }
}

pub(crate) struct Customer {
    store: Store,
    client: Client,
    spare_key: Option<ApiKey>,
    is_checked: bool,
    verifier: Verifier,
    work: Option<Work>,
    /// The state that the flow under way continues from, as it was stored.
    read: String,
    pace: Pace,
    limit: usize,
    /// How far this clock is ahead of the service's: signatures allow for five minutes.
    clock: i64,
    pub(crate) next_at: i64,
    pub(crate) awaited: Option<(Ticket, Option<Response<Vec<u8>>>)>,
    pub(crate) calm_walks: u32,
    pub(crate) met: Tally,
}

impl Customer {
    pub(crate) fn new(dice: &mut Dice, keys: [ApiKey; 2], secret: SigningSecret) -> Self {
        let [key, spare] = keys;
        let sync = serde_json::to_string(&CallSync::new()).unwrap();
        Self {
            store: Store { sync, processed: BTreeMap::new(), inbox: BTreeMap::new() },
            client: Client::from_parts(BaseUrl::parse("https://api.example.com").unwrap(), key),
            spare_key: Some(spare),
            is_checked: false,
            verifier: Verifier::new(secret),
            work: None,
            read: String::new(),
            pace: Pace::new(Quota::READS),
            limit: 1 + dice.span(10).unsigned_abs() as usize,
            clock: dice.up_to(8 * MINUTE) - 4 * MINUTE,
            next_at: 0,
            awaited: None,
            calm_walks: 0,
            met: Tally::default(),
        }
    }

    pub(crate) fn processed(&self) -> &BTreeMap<CallId, u32> {
        &self.store.processed
    }

    fn work(&mut self) -> Work {
        match self.is_checked {
            false => Work::Key(self.client.fetch(GetAccount).with_pace(self.pace.clone())),
            true => {
                self.read = self.store.sync.clone();
                let flow = self.client.sync(self.store.sync());
                Work::Calls(flow.with_pace(self.pace.clone()))
            }
        }
    }

    /// Goes on until a request leaves, or there is something to wait for.
    pub(crate) fn ask(
        &mut self,
        now: i64,
        calm: bool,
        dice: &mut Dice,
    ) -> Option<(Request<()>, Ticket)> {
        assert!(now >= self.next_at);
        let here = at(now + self.clock);
        loop {
            let mut work = self.work.take().unwrap_or_else(|| self.work());
            match work.next(dice.bytes(), here) {
                Next::Send(mut request, ticket) => {
                    self.work = Some(work);
                    // Pages as small as this world's.
                    let uri = request.uri().to_string();
                    let uri = uri.replace("limit=100", &format!("limit={}", self.limit));
                    *request.uri_mut() = uri.parse().unwrap();
                    return Some((request, ticket));
                }
                Next::Wait(until) => {
                    self.work = Some(work);
                    let wait = until.since(here).as_nanos().div_ceil(1_000_000);
                    self.next_at = now + i64::try_from(wait).unwrap();
                    return None;
                }
                Next::Store(batch) => {
                    let Work::Calls(mut flow) = work else { panic!("a key is not stored") };
                    if self.read != self.store.sync {
                        // An event was taken in another process.
                        self.met.count("states_changed", 1);
                        self.read.clone_from(&self.store.sync);
                        flow.continue_from(self.store.sync());
                    } else if !calm && dice.chance(10) {
                        // A crash, before or after saving.
                        self.met.count("crashes", 1);
                        if dice.chance(50) {
                            self.store.save(&batch.calls, &batch.next);
                        }
                        self.end_work(Work::Calls(flow));
                        self.next_at = now + dice.span(5 * MINUTE);
                        return None;
                    } else {
                        self.store.save(&batch.calls, &batch.next);
                        self.read.clone_from(&self.store.sync);
                        self.met.count("pages", 1);
                        flow.stored();
                    }
                    self.work = Some(Work::Calls(flow));
                }
                Next::Done(result) => {
                    self.end_work(work);
                    let pause = self.ended(result, calm, dice);
                    self.next_at = now + pause;
                    return None;
                }
            }
        }
    }

    /// How long to pause before what is next.
    fn ended(&mut self, result: Result<(), FlowError>, calm: bool, dice: &mut Dice) -> i64 {
        match result.map_err(|error| (error.action(), error)) {
            Ok(()) if !self.is_checked => {
                self.is_checked = true;
                0
            }
            Ok(()) => {
                self.met.count("walks", 1);
                self.calm_walks += u32::from(calm);
                dice.span(10 * MINUTE)
            }
            Err((Action::ReplaceKey, _)) => {
                self.met.count("keys_replaced", 1);
                let key = self.spare_key.take().unwrap();
                self.client = self.client.clone().with_key(key);
                self.is_checked = false;
                0
            }
            Err((Action::ResumeSubscription, _)) => {
                self.met.count("unsubscribed", 1);
                10 * MINUTE
            }
            // The head came, the body of an error did not.
            Err((Action::CheckRoute, _)) => SECOND,
            Err((Action::Retry, _)) => 5 * MINUTE,
            Err((other, error)) => panic!("{other:?}: {error}"),
        }
    }

    /// Nothing but the pace outlives a flow: the requests count, whoever made them.
    fn end_work(&mut self, work: Work) {
        self.pace = match work {
            Work::Key(flow) => flow.pace().clone(),
            Work::Calls(flow) => flow.pace().clone(),
        };
    }

    /// `None` is no answer, noticed at that time.
    pub(crate) fn await_answer(
        &mut self,
        ticket: Ticket,
        arrives: i64,
        answer: Option<Response<Vec<u8>>>,
    ) {
        self.next_at = arrives;
        self.awaited = Some((ticket, answer));
    }

    pub(crate) fn receive_answer(
        &mut self,
        (ticket, answer): (Ticket, Option<Response<Vec<u8>>>),
        now: i64,
    ) {
        let (answer, here) = (answer.ok_or("no answer"), at(now + self.clock));
        let failure = match self.work.as_mut() {
            Some(Work::Key(flow)) => {
                flow.report(ticket, answer, here);
                flow.last_error()
            }
            Some(Work::Calls(flow)) => {
                flow.report(ticket, answer, here);
                flow.last_error()
            }
            None => None, // the process that asked has died
        };
        let met = &mut self.met;
        match failure {
            Some(FlowError::Client(error)) => match (error.action(), error.status) {
                (Action::Retry, None) => met.count("unanswered", 1),
                (Action::Retry, _) if error.code().is_some() => met.count("limited", 1),
                (Action::Retry, Some(StatusCode::OK)) => met.count("broken_off", 1),
                (Action::Retry, _) => met.count("gateways", 1),
                (Action::RestartList, _) => met.count("cursors_refused", 1),
                _ => {}
            },
            Some(other) => panic!("{other}"),
            None => {}
        }
    }

    /// `None` is a crash: the connection breaks.
    pub(crate) fn receive_event(
        &mut self,
        headers: &HeaderMap,
        body: &[u8],
        now: i64,
        dice: &mut Dice,
    ) -> Option<Response<()>> {
        let now = at(now + self.clock);
        let receipt = match self.verifier.receive(headers, body, now) {
            Ok(receipt) => receipt,
            Err(refused) => {
                self.met.count("forged", 1);
                return Some(refused.into_response());
            }
        };
        let key = receipt.key().clone();
        let claimed = match receipt.claim(self.store.inbox.get(&key), ActiveClaim::LEASE, now) {
            ClaimOutcome::Process(claimed) => claimed,
            ClaimOutcome::Answer(response) => {
                let answer = response.into_response();
                self.met.count("duplicates", usize::from(answer.status().is_success()));
                self.met.count("busy", usize::from(!answer.status().is_success()));
                return Some(answer);
            }
        };
        self.store.inbox.insert(key.clone(), claimed.entry());
        if dice.chance(10) {
            self.met.count("crashes", 1);
            return None;
        }
        let event = claimed.receipt().event().unwrap();
        let EventData::CallEnded(call) = &event.data else { panic!("{event:?}") };
        // One transaction: the call, the sync's state, the inbox.
        if let Some(next) = self.store.sync().take_call(call) {
            self.met.count("by_event", 1);
            let in_step = self.read == self.store.sync;
            self.store.save(std::slice::from_ref(call), &next);
            // The process of the flow, or another one.
            if let Some(Work::Calls(flow)) = &mut self.work
                && in_step
                && dice.chance(50)
            {
                self.read.clone_from(&self.store.sync);
                flow.continue_from(next);
            }
        }
        let (entry, response) = claimed.done(now);
        self.store.inbox.insert(key, entry);
        if dice.chance(10) {
            self.met.count("crashes", 1);
            return None;
        }
        Some(response.into_response())
    }
}
