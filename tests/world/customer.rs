//! A customer: a sync that asks, an endpoint that receives, and one store for both.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::ApiKey;
use call_assistant::rest::Quota;
use call_assistant::rest::client::CallSync;
use call_assistant::rest::client::{Action, Client, ClientError, Pace, ResponseHead, Retry};
use call_assistant::rest::{BaseUrl, GetAccount, ListCalls};
use call_assistant::webhook::event::EventData;
use call_assistant::webhook::receiver::{CLAIM_LEASE, Claim, EventKey, InboxEntry};
use call_assistant::webhook::{SigningSecret, Verifier};
use http::{HeaderMap, Request, Response};

use crate::dice::at;
use crate::dice::{Dice, MINUTE, SECOND};

/// What came up in a world, or in many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    pages: u32,
    walks: u32,
    by_event: u32,
    duplicates: u32,
    busy: u32,
    forged: u32,
    crashes: u32,
    pub(crate) limited: u32,
    unanswered: u32,
    gateways: u32,
    broken_off: u32,
    cursors_refused: u32,
    keys_replaced: u32,
    unsubscribed: u32,
}

impl Met {
    pub(crate) fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.walks += other.walks;
        self.by_event += other.by_event;
        self.duplicates += other.duplicates;
        self.busy += other.busy;
        self.forged += other.forged;
        self.crashes += other.crashes;
        self.limited += other.limited;
        self.unanswered += other.unanswered;
        self.gateways += other.gateways;
        self.broken_off += other.broken_off;
        self.cursors_refused += other.cursors_refused;
        self.keys_replaced += other.keys_replaced;
        self.unsubscribed += other.unsubscribed;
    }

    /// A 429 aside, which a paced client has no part in.
    pub(crate) fn everything(&self) -> bool {
        [
            self.pages,
            self.walks,
            self.by_event,
            self.duplicates,
            self.busy,
            self.forged,
            self.crashes,
            self.unanswered,
            self.gateways,
            self.broken_off,
            self.cursors_refused,
            self.keys_replaced,
            self.unsubscribed,
        ]
        .into_iter()
        .all(|times| times > 0)
    }
}

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

pub(crate) struct Customer {
    store: Store,
    client: Client,
    spare_key: Option<ApiKey>,
    /// The next request asks about the key, not for calls.
    checking_key: bool,
    verifier: Verifier,
    retry: Retry,
    pace: Pace,
    tried: u32,
    limit: usize,
    /// How far this clock is ahead of the service's: signatures allow for five minutes.
    clock: i64,
    next_at: i64,
    awaited: Option<Option<Response<Vec<u8>>>>,
    calm_walks: u32,
    met: Met,
}

impl Customer {
    pub(crate) fn new(dice: &mut Dice, keys: [ApiKey; 2], secret: SigningSecret) -> Self {
        let [key, spare] = keys;
        let sync = serde_json::to_string(&CallSync::new()).unwrap();
        Self {
            store: Store { sync, processed: BTreeMap::new(), inbox: BTreeMap::new() },
            client: Client::from_parts(BaseUrl::parse("https://api.example.com").unwrap(), key),
            spare_key: Some(spare),
            checking_key: true,
            verifier: Verifier::new(secret),
            retry: Retry::new(),
            pace: Pace::of(Quota::READS),
            tried: 0,
            limit: 1 + dice.span(10).unsigned_abs() as usize,
            clock: dice.up_to(8 * MINUTE) - 4 * MINUTE,
            next_at: 0,
            awaited: None,
            calm_walks: 0,
            met: Met::default(),
        }
    }

    pub(crate) fn next_at(&self) -> i64 {
        self.next_at
    }

    pub(crate) fn walks_since_calm(&self) -> u32 {
        self.calm_walks
    }

    pub(crate) fn processed(&self, id: &CallId) -> u32 {
        self.store.processed.get(id).copied().unwrap_or(0)
    }

    pub(crate) fn processed_calls(&self) -> usize {
        self.store.processed.len()
    }

    pub(crate) fn met(&self) -> Met {
        self.met
    }

    pub(crate) fn ask(&mut self, now: i64) -> Request<()> {
        assert!(now >= self.next_at);
        if self.checking_key {
            self.client.request(&GetAccount).unwrap()
        } else {
            let query = self.store.sync().query().with_limit(self.limit);
            self.client.request(&query).unwrap()
        }
    }

    /// `None` is no answer, noticed at that time.
    pub(crate) fn await_answer(&mut self, arrives: i64, answer: Option<Response<Vec<u8>>>) {
        self.next_at = arrives;
        self.awaited = Some(answer);
    }

    pub(crate) fn awaited(&mut self) -> Option<Option<Response<Vec<u8>>>> {
        self.awaited.take()
    }

    pub(crate) fn receive_answer(
        &mut self,
        answer: Option<Response<Vec<u8>>>,
        now: i64,
        calm: bool,
        dice: &mut Dice,
    ) {
        let error = match answer.map(Response::into_parts) {
            None => {
                self.met.unanswered += 1;
                ClientError::no_response()
            }
            Some((head, body)) if self.checking_key => {
                match self.client.read(&GetAccount, &head, &body) {
                    Ok(account) => {
                        assert!(account.livemode);
                        self.checking_key = false;
                        return self.go_on(now, 0);
                    }
                    Err(error) => match error.action() {
                        Action::ReplaceKey => return self.replace_key(now),
                        Action::ResumeSubscription => {
                            self.met.unsubscribed += 1;
                            return self.go_on(now, 10 * MINUTE);
                        }
                        _ => error,
                    },
                }
            }
            Some((head, body)) => match self.client.read(&ListCalls::new(), &head, &body) {
                Ok(page) => {
                    let date = ResponseHead::from(&head).date();
                    return self.apply(&page, date, now, calm, dice);
                }
                Err(error) => {
                    match error.action() {
                        Action::Retry if error.code().is_some() => self.met.limited += 1,
                        Action::Retry if head.status == 200 => self.met.broken_off += 1,
                        Action::Retry => self.met.gateways += 1,
                        Action::RestartList => {
                            self.met.cursors_refused += 1;
                            let restarted = self.store.sync().restarted();
                            self.store.save(&[], &restarted);
                            return self.go_on(now, 0);
                        }
                        Action::ReplaceKey => return self.replace_key(now),
                        Action::ResumeSubscription => {
                            self.met.unsubscribed += 1;
                            return self.go_on(now, 10 * MINUTE);
                        }
                        // The head came, the body of an error did not.
                        Action::CheckRoute => return self.go_on(now, SECOND),
                        other => panic!("{other:?}: {error}"),
                    }
                    error
                }
            },
        };
        self.tried += 1;
        let now_here = at(now + self.clock);
        match self.retry.wait(&error, self.tried, dice.bytes(), now_here) {
            Some(span) => self.next_at = now + span.as_millis() as i64 + 1,
            None => self.go_on(now, 5 * MINUTE),
        }
        self.paced();
    }

    fn apply(
        &mut self,
        page: &CallList,
        date: Option<Timestamp>,
        now: i64,
        calm: bool,
        dice: &mut Dice,
    ) {
        // Events may have changed the state since the page was asked for: its walk is the same.
        let step = self.store.sync().apply(page, date, at(now + self.clock)).unwrap();
        if !calm && dice.chance(10) {
            // A crash, before or after saving.
            self.met.crashes += 1;
            if dice.chance(50) {
                self.store.save(&step.calls, &step.next);
            }
            return self.go_on(now, dice.span(5 * MINUTE));
        }
        self.store.save(&step.calls, &step.next);
        self.met.pages += 1;
        if step.next.is_walking() {
            return self.go_on(now, 0);
        }
        self.met.walks += 1;
        self.calm_walks += u32::from(calm);
        self.go_on(now, dice.span(10 * MINUTE));
    }

    /// KEY-6: the next key is checked before it is used for calls.
    fn replace_key(&mut self, now: i64) {
        self.met.keys_replaced += 1;
        let key = self.spare_key.take().unwrap();
        self.client = self.client.clone().with_key(key);
        self.checking_key = true;
        self.go_on(now, 0);
    }

    fn go_on(&mut self, now: i64, pause: i64) {
        self.tried = 0;
        self.next_at = now + pause;
        self.paced();
    }

    fn paced(&mut self) {
        let wait = self.pace.turn(at(self.next_at));
        self.next_at += i64::try_from(wait.as_micros().div_ceil(1_000)).unwrap();
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
                self.met.forged += 1;
                return Some(refused.into_response());
            }
        };
        let key = receipt.key().clone();
        let claimed = match receipt.claim(self.store.inbox.get(&key), CLAIM_LEASE, now) {
            Claim::Process(claimed) => claimed,
            Claim::Answer(response) => {
                self.met.duplicates += u32::from(response.status().is_success());
                self.met.busy += u32::from(!response.status().is_success());
                return Some(response.into_response());
            }
        };
        self.store.inbox.insert(key.clone(), claimed.entry());
        if dice.chance(10) {
            self.met.crashes += 1;
            return None;
        }
        let event = claimed.receipt().event().unwrap();
        let EventData::CallEnded(call) = &event.data else { panic!("{event:?}") };
        // One transaction: the call, the sync's state, the inbox.
        if let Some(next) = self.store.sync().take_call(call) {
            self.met.by_event += 1;
            self.store.save(std::slice::from_ref(call), &next);
        }
        let (entry, response) = claimed.done(now);
        self.store.inbox.insert(key, entry);
        if dice.chance(10) {
            self.met.crashes += 1;
            return None;
        }
        Some(response.into_response())
    }
}
