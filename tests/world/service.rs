//! A service: accounts, keys and calls in memory, and events on their way.

use std::time::Duration;

use call_assistant::Product;
use call_assistant::id::{AccountId, AppointmentId, CallId, CredentialId, EventId, RequestId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::server::{
    AccountStatus, Authorized, CallRow, CursorKeys, RateWindows, Received, Rejection, RequestHead,
    StoredKey,
};
use call_assistant::rest::{ApiKey, Mode, Scope};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::{
    Attempt, BeginError, Delivery, EndpointHealth, EndpointUrl, Outcome, SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret};
use http::{Request, Response};

use crate::dice::{Dice, HOUR, MINUTE, SECOND};
use crate::{at, millis};

/// A call, and when its writing transaction commits.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) row: CallRow,
    pub(crate) visible: i64,
}

pub(crate) struct Service {
    account: Account,
    status: AccountStatus,
    /// The customer's two keys, side by side until the first one is revoked (KEY-6).
    pub(crate) keys: [ApiKey; 2],
    stored: [StoredKey; 2],
    rates: RateWindows,
    cursors: CursorKeys,
    /// Newest first.
    pub(crate) calls: Vec<Written>,
    /// Of the calls, by when they become visible, those that no event has been made of.
    unannounced: Vec<Call>,
    endpoint: EndpointHealth,
    deliveries: Vec<(Delivery, EventBody)>,
    sending: Option<usize>,
    pub(crate) secret: SigningSecret,
    requests: u64,
    /// When every call is visible.
    pub(crate) settled: i64,
}

impl Service {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let id = AccountId::parse("acct_1").unwrap();
        let keys =
            [7, 8].map(|byte| ApiKey::from_random(&Product::default(), Mode::Live, [byte; 32]));
        let stored = [0, 1].map(|index| {
            let credential = CredentialId::from_random([index as u8; 16]);
            StoredKey::new(credential, id.clone(), &keys[index], at(0))
                .with_scopes([Scope::AccountRead, Scope::CallsRead])
        });
        let until = [HOUR, 10 * MINUTE][dice.up_to(1) as usize];
        let mut calls: Vec<Written> =
            (0..dice.up_to(60)).map(|_| written(&id, until, dice)).collect();
        calls.sort_by(|one, other| {
            let key =
                |written: &Written| (written.row.call.started_at, written.row.call.id.clone());
            key(other).cmp(&key(one))
        });
        let mut order: Vec<&Written> = calls.iter().collect();
        order.sort_by_key(|written| -written.visible);
        let unannounced = order.iter().map(|written| written.row.call.clone()).collect();
        let settled = calls.iter().map(|written| written.visible).max().unwrap_or(0) + MINUTE;
        Self {
            account: Account::new(id.clone(), "Europe/Oslo"),
            status: AccountStatus {
                account_id: id,
                closing: false,
                subscribed: true,
                api_in_plan: true,
            },
            keys,
            stored,
            rates: RateWindows::new(100),
            cursors: CursorKeys::new(1, dice.bytes()),
            calls,
            unannounced,
            endpoint: EndpointHealth::new(1, at(0)),
            deliveries: Vec::new(),
            sending: None,
            secret: SigningSecret::parse("whsec_of-the-customers-endpoint").unwrap(),
            requests: 0,
            settled,
        }
    }

    /// Whatever may happen to a service while it is being asked.
    pub(crate) fn mishap(&mut self, now: i64, dice: &mut Dice) {
        match dice.up_to(120) {
            0 => self.cursors = CursorKeys::new(dice.bits() as u8, dice.bytes()),
            1 => self.stored[0].revoke(at(now)),
            2 => self.status.subscribed = false,
            3..20 => self.status.subscribed = true,
            _ => {}
        }
    }

    /// Nothing stands in the way any more.
    pub(crate) fn recover(&mut self) {
        self.status.subscribed = true;
    }

    /// Answers a request: the exchange, with look-ups in memory.
    pub(crate) fn serve(&mut self, request: &Request<()>, now: i64) -> Response<Vec<u8>> {
        let (mut head, ()) = request.clone().into_parts();
        // As every HTTP client does.
        head.headers.insert("host", head.uri.host().unwrap().parse().unwrap());
        self.requests += 1;
        let id = RequestId::parse(&format!("req_{}", self.requests)).unwrap();
        self.lead(&RequestHead::from_parts(&head), id, now).unwrap_or_else(Rejection::into_response)
    }

    fn lead(
        &mut self,
        head: &RequestHead<'_>,
        id: RequestId,
        now: i64,
    ) -> Result<Response<Vec<u8>>, Rejection> {
        let received = Received::new(head, id)?;
        let digest = received.digest().copied();
        let key = self.stored.iter().find(|key| Some(key.digest) == digest);
        let identified = received.identify(key, at(now))?;
        let admitted = identified.admit(&mut self.rates, at(now))?;
        match admitted.authorize(&self.status, &self.cursors)? {
            Authorized::Account(query) => query.answer(self.account.clone()),
            Authorized::Calls(query) => {
                let rows = self.calls.iter().filter(|written| written.visible <= now);
                let rows = rows.map(|written| &written.row).filter(|row| query.matches(row));
                let rows = rows.take(query.rows_to_read()).cloned().collect();
                query.answer(rows)
            }
            Authorized::Call(query) => {
                let mut rows = self.calls.iter().map(|written| &written.row);
                let row = rows.find(|row| query.matches(row));
                query.answer(row.cloned())
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn has_deliveries(&self) -> bool {
        !self.unannounced.is_empty() || self.deliveries.iter().any(|(one, _)| one.is_pending())
    }

    /// When there is an event to be made or an attempt to begin.
    pub(crate) fn next_delivery_at(&self, now: i64) -> Option<i64> {
        let due =
            self.deliveries.iter().filter_map(|(delivery, _)| delivery.due(at(now))).map(millis);
        let made = self.unannounced.last().map(|call| self.visible(call));
        due.chain(made).min()
    }

    fn visible(&self, call: &Call) -> i64 {
        let written = self.calls.iter().find(|written| written.row.call.id == call.id);
        written.unwrap().visible
    }

    /// Makes the events of calls that are visible by now, and begins the attempt that is due.
    pub(crate) fn begin_attempt(&mut self, now: i64) -> Option<(Attempt, Request<Vec<u8>>)> {
        while self.unannounced.last().is_some_and(|call| self.visible(call) <= now) {
            let call = self.unannounced.pop().unwrap();
            let id = EventId::parse(&format!("evt_of_{}", call.id)).unwrap();
            let version = ApiVersion::parse("2026-01-15").unwrap();
            let new = NewEvent::new(id, self.account.id.clone(), version, Origin::voice(), at(now));
            let body = new.call_ended(&call).unwrap();
            let delivery = Delivery::accept(&body, &self.endpoint, at(now));
            self.deliveries.push((delivery, body));
        }
        let due = |delivery: &Delivery| delivery.due(at(now)).is_some_and(|due| due <= at(now));
        let index = self.deliveries.iter().position(|(delivery, _)| due(delivery))?;
        let (delivery, body) = &mut self.deliveries[index];
        let attempt = match delivery.begin(&self.endpoint, at(now)) {
            Ok(attempt) => attempt,
            Err(BeginError::Parked) => return None,
            Err(error) => panic!("{error:?}"),
        };
        self.sending = Some(index);
        let target = EndpointUrl::parse("https://customer.example.com/hook").unwrap();
        let signer = Signer::new(self.secret.clone());
        let destination = SignedDestination::new(&self.endpoint, target, signer);
        let request = attempt.request(&destination, body, at(now)).unwrap();
        Some((attempt, request))
    }

    pub(crate) fn finish_attempt(&mut self, attempt: &Attempt, outcome: Outcome, now: i64) {
        let (delivery, _) = &mut self.deliveries[self.sending.take().unwrap()];
        let report = delivery.finish(attempt, outcome, at(now)).unwrap();
        let _ = self.endpoint.record(report, at(now)).unwrap();
    }
}

fn written(account: &AccountId, until: i64, dice: &mut Dice) -> Written {
    const LAG: i64 = MINUTE;
    let started = dice.up_to(until) - until / 2;
    let ended = started + SECOND + dice.span(until / 3);
    let created = ended + dice.span(10 * SECOND);
    let mut call = Call::new(CallId::from_random(dice.bytes()), at(started), at(created));
    call.answered_at = Some(at(started + SECOND));
    call.ended_at = Some(at(ended));
    let length = Duration::from_millis((ended - started - SECOND).unsigned_abs());
    call.duration_seconds = i64::try_from(length.as_secs()).ok();
    call.summary = Some("Asked for an appointment \u{2014} got one.".into());
    call.caller.phone_number = dice.chance(50).then(|| "+4712345678".into());
    call.appointment_ids = vec![AppointmentId::from_random(dice.bytes())];
    let row = CallRow { account_id: account.clone(), mode: Mode::Live, call };
    Written { row, visible: created + [LAG, 0, dice.up_to(LAG)][dice.up_to(2) as usize] }
}
