//! Deliveries: whatever happens, in whatever order; and whatever is entered for a URL.

use std::net::IpAddr;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    ATTEMPT_LEASE, Attempt, AttemptReport, BeginError, Delivery, DeliveryStatus, DisabledReason,
    EndpointChange, EndpointHealth, EndpointUrl, EndpointUrlError, FAILURES_TO_WARN,
    FIRST_FAILURES_TO_SUSPECT, MAX_ATTEMPTS, Outcome, RETRY_WAITS, RedeliverError,
};
use http::StatusCode;
use url::Host;

/// Every operation on a delivery and its endpoint, beside a model that knows the rules and none of
/// the representation. Two bytes an operation: what, and how. D-53, D-54, D-56 to D-58, D-79, D-80, D-84.
pub fn delivery(bytes: &[u8]) {
    let mut now = Timestamp::from_unix(1_767_225_600).unwrap();
    let mut endpoint = EndpointHealth::new(1, now);
    let mut delivery = Delivery::accept(&event(now), &endpoint, now);
    let mut health = Health::default();
    let mut model = Model::accept(&health, now);
    let mut jobs: Vec<(Attempt, u32)> = Vec::new();

    for op in bytes.chunks_exact(2) {
        let how = usize::from(op[1]);
        match op[0] % 10 {
            0 | 1 => {
                let seen = delivery.begin(&endpoint, now);
                let expected = model.begin(&health, now, jobs.len());
                let begun = seen.map(|attempt| (attempt.number(), attempt.is_manual()));
                let begun = begun.map_err(|error| error.to_string());
                assert_eq!(begun, expected);
                if let Ok(attempt) = seen {
                    assert_eq!(attempt.deadline().since(now), Duration::from_secs(10));
                    jobs.push((attempt, health.life));
                }
            }
            2..=4 if !jobs.is_empty() => {
                // Mostly the last, sometimes an older one.
                let job = if how & 0x80 == 0 { jobs.len() - 1 } else { how % jobs.len() };
                let (attempt, life) = jobs[job];
                let (outcome, verdict) = OUTCOMES[how % OUTCOMES.len()];
                let report = delivery.finish(&attempt, outcome, now).unwrap();
                let step = model.finish(job, &attempt, life, verdict, now);
                assert_eq!(seen(&report, &delivery, outcome, now), step);
                let change = health.hear(step, &attempt, verdict, life, now);
                changed(endpoint.record(report, now).unwrap(), change, &health);
            }
            // A clock may be set back.
            5 if how < 240 => now = now.saturating_add(STEPS[how % STEPS.len()]),
            5 => now = now.saturating_sub(STEPS[how % STEPS.len()]),
            6 => {
                let seen = delivery.redeliver(&endpoint, now);
                assert_eq!(seen.map_err(|error| error.to_string()), model.redeliver(&health, now));
            }
            7 if how >= 200 => {
                let expected = match health.disabled {
                    None => health.disable(DisabledReason::Paused),
                    Some(_) => EndpointChange::Unchanged,
                };
                assert_eq!(endpoint.pause(now), expected);
            }
            7 => {
                assert_eq!(endpoint.enable(now).is_some(), health.disabled.is_some());
                if health.disabled.is_some() {
                    health = Health { life: health.life + 1, ..Health::default() };
                }
            }
            8 => now = another(&mut endpoint, &mut health, how, now),
            9 => {
                delivery = Delivery::accept(&event(now), &endpoint, now);
                model = Model::accept(&health, now);
                jobs.clear();
            }
            _ => {}
        }
        model.check(&delivery, now);
        assert_eq!((endpoint.disabled(), endpoint.failures()), (health.disabled, health.count));
        assert_eq!(endpoint.is_suspect(), health.suspect);
    }
    // What is stored is all there is. Bytes may end after any operation, so the end suffices.
    let stored = serde_json::to_string(&(delivery, endpoint)).unwrap();
    let (columns, health) = serde_json::from_str(&stored).unwrap();
    assert_eq!(Delivery::from_columns(delivery.id(), delivery.endpoint(), columns), Ok(delivery));
    assert_eq!(EndpointHealth::from_columns(endpoint.id(), health), Ok(endpoint));
}

/// Another event of the endpoint's, attempted exactly when the schedule says and not before. `how`
/// many attempts fail, and how long each takes. Returns when it has ended.
fn another(
    endpoint: &mut EndpointHealth,
    health: &mut Health,
    how: usize,
    at: Timestamp,
) -> Timestamp {
    let mut now = at;
    let mut delivery = Delivery::accept(&event(now), endpoint, now);
    if health.disabled.is_some() {
        assert_eq!((delivery.status(), delivery.due(now)), (DeliveryStatus::Skipped, None));
        assert_eq!(delivery.begin(endpoint, now), Err(BeginError::Ended));
        return now;
    }
    for number in 1..=usize::from(MAX_ATTEMPTS) {
        let attempt = delivery.begin(endpoint, now).unwrap();
        assert_eq!(usize::from(attempt.number()), number);
        now = now.saturating_add(Duration::from_secs((how as u64 >> 3) % 11));
        let (outcome, verdict) = match number <= how % 8 {
            true => (Outcome::TimedOut, Verdict::Failed),
            false => (Outcome::Answered(StatusCode::ACCEPTED), Verdict::Acknowledged),
        };
        let report = delivery.finish(&attempt, outcome, now).unwrap();
        let step = match (verdict, RETRY_WAITS.get(number - 1)) {
            (Verdict::Acknowledged, _) => Step::Delivered,
            (_, Some(wait)) => Step::Again { at: now.saturating_add(*wait) },
            (_, None) => Step::Failed,
        };
        assert_eq!(seen(&report, &delivery, outcome, now), step);
        let change = health.hear(step, &attempt, verdict, health.life, now);
        changed(endpoint.record(report, now).unwrap(), change, health);
        let Step::Again { at } = step else { break };
        let early = at.saturating_sub(Duration::from_nanos(1));
        let begun = delivery.begin(endpoint, early).unwrap_err();
        assert!(matches!(begun, BeginError::Early { at: told, .. } if told == at), "{begun:?}");
        now = at;
    }
    assert_eq!(delivery.begin(endpoint, now), Err(BeginError::Ended));
    now
}

/// The change is that of the model.
#[track_caller]
fn changed(seen: EndpointChange, expected: Option<EndpointChange>, health: &Health) {
    match (seen, expected) {
        (EndpointChange::Failing { failures, .. }, None) => assert_eq!(failures, health.count),
        (seen, expected) => assert_eq!(Some(seen), expected),
    }
}

fn event(created_at: Timestamp) -> EventBody {
    let text = format!(
        r#"{{"id":"evt_1","type":"ping","created_at":"{created_at}","api_version":"2026-01-15",
            "account_id":"acct_1","origin":null,"data":{{}}}}"#
    );
    EventBody::from_stored(text).unwrap()
}

/// What an outcome means, in the words of the model.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Acknowledged,
    Gone,
    Failed,
    Unsent,
}

/// What became of a delivery, in the words of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Delivered,
    Again { at: Timestamp },
    Failed,
    Gone,
    Unsent,
    Late,
}

fn seen(report: &AttemptReport, delivery: &Delivery, outcome: Outcome, now: Timestamp) -> Step {
    match delivery.status() {
        _ if report.is_late() => Step::Late,
        DeliveryStatus::Delivered => Step::Delivered,
        DeliveryStatus::Gone => Step::Gone,
        DeliveryStatus::Failed => Step::Failed,
        DeliveryStatus::Waiting
            if outcome == Outcome::Unsent && is_kept(delivery.event_created_at(), now) =>
        {
            Step::Unsent
        }
        DeliveryStatus::Waiting => Step::Again { at: delivery.due(now).unwrap() },
        status => panic!("{status:?} after an attempt"),
    }
}

/// Until the event is thirty days old.
fn is_kept(created: Timestamp, now: Timestamp) -> bool {
    now.since(created) < Duration::from_secs(30 * 86_400)
}

const OUTCOMES: [(Outcome, Verdict); 8] = [
    (Outcome::Reset, Verdict::Failed),
    (Outcome::Answered(StatusCode::OK), Verdict::Acknowledged),
    (Outcome::TimedOut, Verdict::Failed),
    (Outcome::Answered(StatusCode::GONE), Verdict::Gone),
    (Outcome::Answered(StatusCode::FOUND), Verdict::Failed),
    (Outcome::Unsent, Verdict::Unsent),
    (Outcome::Answered(StatusCode::INTERNAL_SERVER_ERROR), Verdict::Failed),
    (Outcome::Forbidden, Verdict::Failed),
];

const STEPS: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(600),
    Duration::from_secs(21_600),
    Duration::from_millis(1),
    Duration::from_secs(30 * 86_400),
];

#[derive(Clone, Copy, PartialEq)]
enum Stands {
    Waiting(Timestamp),
    /// Until when, and which of the begun attempts.
    Sending(Timestamp, usize),
    Ended(DeliveryStatus),
}

struct Model {
    created: Timestamp,
    stands: Stands,
    charged: u8,
    manual: bool,
    life: u32,
}

#[derive(Default)]
struct Health {
    count: u8,
    /// First attempts in a row that failed, and when the first of them did.
    firsts: u8,
    first_at: Option<Timestamp>,
    suspect: bool,
    disabled: Option<DisabledReason>,
    life: u32,
}

impl Model {
    fn accept(health: &Health, now: Timestamp) -> Self {
        let stands = match health.disabled {
            None => Stands::Waiting(now),
            Some(_) => Stands::Ended(DeliveryStatus::Skipped),
        };
        Self { created: now, stands, charged: 0, manual: false, life: health.life }
    }

    /// D-80: its time has come, or is too far ahead for any correct clock to have written it.
    fn is_reached(&self, now: Timestamp) -> bool {
        let (at, farthest) = match self.stands {
            Stands::Waiting(at) => (at, 2 * *RETRY_WAITS.last().unwrap()),
            Stands::Sending(until, _) => (until, 2 * ATTEMPT_LEASE),
            Stands::Ended(_) => return true,
        };
        at <= now || at.since(now) > farthest
    }

    /// Which attempt begins, or the words of the error.
    fn begin(&mut self, health: &Health, now: Timestamp, job: usize) -> Result<(u8, bool), String> {
        let outlived = health.disabled.is_some() || health.life != self.life;
        match self.stands {
            Stands::Ended(_) => return Err(BeginError::Ended.to_string()),
            // D-102
            Stands::Sending(until, _) if !self.is_reached(now) => {
                let why = match outlived {
                    true => "the endpoint was disabled, and a sender holds the lease",
                    false => "leased to a sender",
                };
                return Err(format!("{why} until {until}"));
            }
            _ if outlived => {
                self.stands = Stands::Ended(DeliveryStatus::Parked);
                return Err(BeginError::Parked.to_string());
            }
            Stands::Waiting(at) if !self.is_reached(now) => {
                return Err(format!("not due before {at}"));
            }
            _ => {}
        }
        self.stands = Stands::Sending(now.saturating_add(Duration::from_secs(30)), job);
        Ok((if self.manual { 1 } else { self.charged + 1 }, self.manual))
    }

    fn finish(
        &mut self,
        job: usize,
        attempt: &Attempt,
        life: u32,
        verdict: Verdict,
        now: Timestamp,
    ) -> Step {
        let (number, manual) = (attempt.number(), attempt.is_manual());
        let current = matches!(self.stands, Stands::Sending(_, at) if at == job);
        let pending = !matches!(self.stands, Stands::Ended(_));
        match verdict {
            Verdict::Acknowledged if self.stands == Stands::Ended(DeliveryStatus::Delivered) => {
                Step::Late
            }
            Verdict::Acknowledged => {
                if !manual {
                    self.charged = self.charged.max(number);
                }
                self.stands = Stands::Ended(DeliveryStatus::Delivered);
                Step::Delivered
            }
            Verdict::Gone if pending && life == self.life => {
                self.charged += u8::from(current && !manual);
                self.stands = Stands::Ended(DeliveryStatus::Gone);
                Step::Gone
            }
            Verdict::Unsent if current && is_kept(self.created, now) => {
                self.stands = Stands::Waiting(now);
                Step::Unsent
            }
            Verdict::Failed | Verdict::Unsent if current && manual => {
                self.stands = Stands::Ended(DeliveryStatus::Failed);
                Step::Failed
            }
            Verdict::Failed | Verdict::Unsent if current => {
                self.charged += 1;
                match RETRY_WAITS.get(usize::from(self.charged) - 1) {
                    Some(wait) => {
                        let at = now.saturating_add(*wait);
                        self.stands = Stands::Waiting(at);
                        Step::Again { at }
                    }
                    None => {
                        self.stands = Stands::Ended(DeliveryStatus::Failed);
                        Step::Failed
                    }
                }
            }
            _ => Step::Late,
        }
    }

    fn redeliver(&mut self, health: &Health, now: Timestamp) -> Result<(), String> {
        let outlived = health.disabled.is_some() || health.life != self.life;
        match self.stands {
            Stands::Waiting(_) | Stands::Sending(..) if !outlived => {
                Err(RedeliverError::Pending.to_string())
            }
            Stands::Sending(until, _) if !self.is_reached(now) => {
                Err(format!("leased to a sender until {until}"))
            }
            Stands::Ended(DeliveryStatus::Delivered) => Err(RedeliverError::Delivered.to_string()),
            _ if !is_kept(self.created, now) => Err(RedeliverError::Expired.to_string()),
            _ if health.disabled.is_some() => Err(RedeliverError::Disabled.to_string()),
            _ => {
                (self.stands, self.manual) = (Stands::Waiting(now), true);
                self.life = health.life;
                Ok(())
            }
        }
    }

    fn check(&self, delivery: &Delivery, now: Timestamp) {
        let judged = |at| if self.is_reached(now) { now.min(at) } else { at };
        let (status, due) = match self.stands {
            Stands::Waiting(at) => (DeliveryStatus::Waiting, Some(judged(at))),
            Stands::Sending(until, _) => (DeliveryStatus::Sending, Some(judged(until))),
            Stands::Ended(status) => (status, None),
        };
        assert_eq!((delivery.status(), delivery.due(now)), (status, due));
        assert_eq!(delivery.attempts(), self.charged);
        assert!(self.charged <= MAX_ATTEMPTS);
    }
}

impl Health {
    /// `None`: a warning with the count.
    fn hear(
        &mut self,
        step: Step,
        attempt: &Attempt,
        verdict: Verdict,
        life: u32,
        now: Timestamp,
    ) -> Option<EndpointChange> {
        // An attempt that was not sent is never charged to the endpoint.
        let charges = !attempt.is_manual() && verdict != Verdict::Unsent;
        let (failed, first) = (step == Step::Failed && charges, attempt.number() == 1 && charges);
        if self.disabled.is_some() || life != self.life {
            return Some(EndpointChange::Unchanged);
        }
        if verdict == Verdict::Gone {
            return Some(self.disable(DisabledReason::Gone));
        }
        if step == Step::Delivered && (self.count > 0 || self.firsts > 0) {
            let warned = self.suspect || self.count >= FAILURES_TO_WARN[0];
            *self = Self { life, ..Self::default() };
            return Some(match warned {
                true => EndpointChange::Recovered,
                false => EndpointChange::Updated,
            });
        }
        if matches!(step, Step::Again { .. }) && first && !self.suspect {
            let began = *self.first_at.get_or_insert(now);
            self.firsts = self.firsts.saturating_add(1);
            if self.firsts < FIRST_FAILURES_TO_SUSPECT {
                return Some(EndpointChange::Updated);
            }
            // A minute, or more than two that only a wrong clock can have stored.
            let end = began.saturating_add(Duration::from_secs(60));
            self.suspect = end <= now || end.since(now) > Duration::from_secs(120);
            return Some(match self.suspect {
                true => EndpointChange::Suspect,
                false => EndpointChange::Unchanged,
            });
        }
        if !failed {
            return Some(EndpointChange::Unchanged);
        }
        self.count += 1;
        if self.count == 20 {
            return Some(self.disable(DisabledReason::Failing));
        }
        (!FAILURES_TO_WARN.contains(&self.count)).then_some(EndpointChange::Updated)
    }

    fn disable(&mut self, reason: DisabledReason) -> EndpointChange {
        (self.disabled, self.firsts, self.first_at) = (Some(reason), 0, None);
        self.suspect = false;
        EndpointChange::Disabled(reason)
    }
}

/// No URL panics; one that is taken is public HTTPS, and what is kept of it is taken as it is.
pub fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = EndpointUrl::parse_allowing_loopback(text).inspect(|target| {
        assert_eq!(EndpointUrl::parse_allowing_loopback(target.as_str()).as_ref(), Ok(target));
    });
    let target = match EndpointUrl::parse(text) {
        Ok(target) => target,
        Err(EndpointUrlError::TooLong { len, .. }) => return assert!(len > EndpointUrl::MAX_LEN),
        Err(_) => return,
    };
    assert_eq!(EndpointUrl::parse(target.as_str()).as_ref(), Ok(&target));
    let url = target.url();
    assert_eq!((url.scheme(), url.username(), url.password()), ("https", "", None));
    assert_eq!((url.fragment(), url.port() == Some(0)), (None, false));
    assert_eq!(target.uri().to_string(), url.as_str());
    let address: IpAddr = match url.host().unwrap() {
        Host::Domain(name) => {
            assert!(name.contains('.') && !name.ends_with('.') && !name.ends_with(".localhost"));
            assert!(name.parse::<IpAddr>().is_err());
            return;
        }
        Host::Ipv4(address) => address.into(),
        Host::Ipv6(address) => address.into(),
    };
    assert_eq!(target.check(address), Ok(()));
    assert!(!address.is_loopback() && !address.is_unspecified() && !address.is_multicast());
    if let IpAddr::V4(v4) = address {
        assert!(!v4.is_private() && !v4.is_link_local() && !v4.is_documentation());
    }
}
