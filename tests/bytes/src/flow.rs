//! What holds of a flow, whatever is answered to what and in whatever order.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::client::{
    Batch, CallPages, CallSync, Client, Flow, FlowTask, Progress, Step, Ticket, testing,
};
use call_assistant::rest::{ErrorCode, ListCalls};
use http::{Response, Uri};

/// A script of answers, losses, mistakes and deaths, for a list or for a sync: the flow never
/// panics, says the same when it is asked twice, takes no answer but that to its own request, stores
/// no call twice, and ends; and a flow that is left alone afterwards misses no call.
///
/// The first byte is the task. Then one byte for each thing that happens, with those it needs.
pub fn flow(bytes: &[u8]) {
    let Some((&task, script)) = bytes.split_first() else { return };
    let client =
        Client::new("https://api.example.com", "service_test_kept-where-secrets-are").unwrap();
    let [hostile, syncing] = [task & 1 == 1, task & 2 == 2];
    if syncing {
        let read = |stored: Option<&str>| {
            stored.map_or_else(CallSync::new, |text| serde_json::from_str(text).unwrap())
        };
        let make = |stored: Option<&str>| client.sync(read(stored));
        let unpack = |batch: &Batch<CallSync>| {
            (batch.calls.clone(), serde_json::to_string(&batch.next).unwrap())
        };
        play(script, hostile, true, make, unpack, |flow, stored, call| {
            let next = read(stored).take_call(call)?;
            let text = serde_json::to_string(&next).unwrap();
            flow.continue_from(next);
            Some(text)
        });
    } else {
        let new = || CallPages::from(ListCalls::new());
        let make = |stored: Option<&str>| {
            client.pages(stored.map_or_else(new, |text| serde_json::from_str(text).unwrap()))
        };
        let unpack = |batch: &Batch<CallPages>| {
            (batch.calls.clone(), serde_json::to_string(&batch.next).unwrap())
        };
        play(script, hostile, false, make, unpack, |_, _, _| None);
    }
}

/// A service that says what is true of `calls`, newest first.
struct Service {
    calls: Vec<Call>,
    /// The host's clock, which may be wrong.
    now: Timestamp,
    /// The service's own.
    clock: Timestamp,
}

impl Service {
    fn add(&mut self) {
        self.clock = self.clock.max(self.now).saturating_add(Duration::from_secs(1));
        let id = CallId::parse(&format!("call_{}", self.calls.len())).unwrap();
        self.calls.insert(0, Call::new(id, self.clock, self.clock));
    }

    fn answer(&self, uri: &Uri) -> Response<Vec<u8>> {
        const PAGE: usize = 2;
        let list = ListCalls::from_query(uri.query().unwrap()).unwrap();
        let last = list.cursor.as_ref().map(|cursor| CallId::parse(cursor).unwrap());
        let from = last.map_or(0, |last| {
            self.calls.iter().position(|call| call.id == last).map_or(self.calls.len(), |at| at + 1)
        });
        let after = list.filter.created_after.unwrap_or(Timestamp::MIN);
        let rest: Vec<&Call> =
            self.calls[from..].iter().filter(|call| call.created_at >= after).collect();
        let page: Vec<Call> = rest.iter().take(PAGE).map(|call| (*call).clone()).collect();
        let more = rest.len() > page.len();
        let cursor = page.last().filter(|_| more).map(|call| call.id.to_string());
        testing::answer(&CallList::new(page, cursor))
    }
}

fn play<T: FlowTask>(
    script: &[u8],
    hostile: bool,
    syncing: bool,
    make: impl Fn(Option<&str>) -> Flow<T>,
    unpack: impl Fn(&T::Batch) -> (Vec<Call>, String),
    take: impl Fn(&mut Flow<T>, Option<&str>, &Call) -> Option<String>,
) {
    let now = Timestamp::from_unix(1_767_225_600).unwrap();
    let mut service = Service { calls: vec![], now, clock: now };
    let mut stored: BTreeMap<CallId, Call> = BTreeMap::new();
    let mut state: Option<String> = None;
    (0..5).for_each(|_| service.add());
    let there = service.calls.clone();
    let mut store = |calls: Vec<Call>| {
        for call in calls {
            let before = stored.insert(call.id.clone(), call);
            assert!(hostile || before.is_none(), "{before:?} twice");
        }
    };

    let mut flow = make(None);
    let mut tickets: Vec<Ticket> = Vec::new();
    let mut waited: Option<(Uri, Ticket)> = None;
    let mut life = 0_u8;
    let mut bytes = script.iter().copied();
    while let Some(what) = bytes.next() {
        // Two flows never draw the same: that tells their tickets apart.
        let random = [what, life, 0, 0, 0, 0, 0, 0];
        let (now, how) = (service.now, what >> 4);
        match what & 0x0f {
            // The time passes, or the clock is set back.
            0 => service.now = now.saturating_add(Duration::from_millis(200 << how)),
            1 => service.now = now.saturating_sub(Duration::from_secs(how.into())),
            2 => service.add(),
            3 => {
                life = life.wrapping_add(1);
                (flow, waited) = (make(state.as_deref()), None);
            }
            4 => store_batch(&mut flow, &mut state, &mut store, &unpack, random, now),
            what @ 5..=9 => {
                let Some((uri, ticket)) = waited.take() else { continue };
                match (what, how) {
                    (5, _) => flow.lost(ticket, "reset"),
                    (6, 0) => flow.report(ticket, Ok::<_, &str>(testing::rate_limited(3)), now),
                    (6, 1) => flow.report(ticket, Ok::<_, &str>(testing::bad_gateway()), now),
                    (6, 2) => {
                        let cut = testing::cut_short(service.answer(&uri));
                        flow.report(ticket, Ok::<_, &str>(cut), now);
                    }
                    (6, _) => {
                        let codes = [ErrorCode::InternalError, ErrorCode::InvalidCursor];
                        let error = testing::error(codes[usize::from(how & 1)].clone());
                        flow.report(ticket, Ok::<_, &str>(error), now);
                    }
                    (7, _) if hostile => {
                        let body: Vec<u8> = bytes.by_ref().take(usize::from(how) * 8).collect();
                        flow.report(ticket, Ok::<_, &str>(Response::new(body)), now);
                    }
                    (8, _) if hostile => {
                        // A page that is whole, but of another place in the list.
                        let at = usize::from(how) % service.calls.len();
                        let calls = service.calls[at..].iter().take(3).cloned().collect();
                        let cursor = (how & 1 == 1).then(|| format!("c{how}"));
                        let page = testing::answer(&CallList::new(calls, cursor));
                        flow.report(ticket, Ok::<_, &str>(page), now);
                    }
                    _ => flow.report(ticket, Ok::<_, &str>(service.answer(&uri)), now),
                }
            }
            // An answer that nobody waits for changes nothing.
            10 | 11 => {
                let old = tickets.get(usize::from(how)).copied();
                let Some(old) = old.filter(|old| waited.as_ref().is_none_or(|(_, it)| it != old))
                else {
                    continue;
                };
                let before = (said(&mut flow, random, now), flow.progress());
                flow.report(
                    old,
                    Ok::<_, &str>(service.answer(&Uri::from_static("/?limit=9"))),
                    now,
                );
                flow.lost(old, "reset");
                assert_eq!((said(&mut flow, random, now), flow.progress()), before);
                waited = sent(flow.next(random, now)).or(waited);
            }
            // An event brings a call.
            12 => {
                let call = service.calls[usize::from(how) % service.calls.len()].clone();
                if let Some(next) = take(&mut flow, state.as_deref(), &call) {
                    store(vec![call]);
                    state = Some(next);
                    waited = sent(flow.next(random, now)).or(waited);
                }
            }
            _ => {
                let first = said(&mut flow, random, now);
                let seen = said(&mut flow, [!what, life, 1, 0, 0, 0, 0, 0], now);
                assert_eq!(seen, first, "asked twice");
                if let Some((uri, ticket)) = sent(flow.next(random, now)) {
                    tickets.push(ticket);
                    waited = Some((uri, ticket));
                }
            }
        }
    }

    // It ends whatever it is, if nothing is answered any more.
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(steps < 100, "a flow without an end");
        match flow.next([0; 8], service.now) {
            Step::Send { ticket, .. } => flow.lost(ticket, "reset"),
            Step::Wait(until) => service.now = service.now.max(until),
            Step::Store(_) => {
                store_batch(&mut flow, &mut state, &mut store, &unpack, [0; 8], service.now)
            }
            Step::Done(_) => break,
        }
    }
    if hostile {
        return;
    }
    // A flow that is left alone from here on misses nothing.
    let mut flow = make(state.as_deref());
    loop {
        steps += 1;
        assert!(steps < 2_000, "a flow without an end");
        let now = service.now;
        match flow.next([0; 8], now) {
            Step::Send { request, ticket, .. } => {
                flow.report(ticket, Ok::<_, &str>(service.answer(request.uri())), now);
            }
            Step::Wait(until) => service.now = now.max(until),
            Step::Store(_) => store_batch(&mut flow, &mut state, &mut store, &unpack, [0; 8], now),
            Step::Done(result) => break result.map(drop).unwrap(),
        }
    }
    let expected = if syncing { &service.calls } else { &there };
    for call in expected {
        assert_eq!(stored.get(&call.id), Some(call), "lost");
    }
}

/// Stores the batch if there is one, and says that it is stored in any case.
fn store_batch<T: FlowTask>(
    flow: &mut Flow<T>,
    state: &mut Option<String>,
    mut store: impl FnMut(Vec<Call>),
    unpack: impl Fn(&T::Batch) -> (Vec<Call>, String),
    random: [u8; 8],
    now: Timestamp,
) {
    if let Step::Store(batch) = flow.next(random, now) {
        let (calls, next) = unpack(batch);
        store(calls);
        *state = Some(next);
    }
    flow.stored();
}

/// What a step says, but for what is in a batch.
fn said<T: FlowTask>(flow: &mut Flow<T>, random: [u8; 8], now: Timestamp) -> (String, Progress) {
    let step = format!("{:?}", flow.next(random, now));
    (step, flow.progress())
}

fn sent<T: FlowTask>(step: Step<'_, T>) -> Option<(Uri, Ticket)> {
    match step {
        Step::Send { request, ticket, .. } => Some((request.uri().clone(), ticket)),
        _ => None,
    }
}
