//! A customer that keeps a copy of all calls of its account.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use call_assistant::rest::client::{CallSync, Client, Step};
use call_assistant_postgres::clock;
use http::{Request, Response};

use crate::beside;

/// Each call of the copy, with how often it was returned.
pub(crate) type Copy = BTreeMap<String, u32>;

/// Copies until it is told to end, and once more then.
pub(crate) fn run(address: &str, over: &Arc<AtomicBool>) -> Copy {
    let client = Client::new(&format!("http://{address}"), &beside::sync_key()).unwrap();
    let (mut copy, mut state) = (Copy::new(), CallSync::default());
    loop {
        let is_last = over.load(Ordering::Relaxed);
        let mut flow = client.sync(state.clone());
        let done = loop {
            match flow.next(host::random::bytes(), clock::now()) {
                Step::Send { request, ticket, .. } => {
                    flow.report(ticket, send(address, &request), clock::now());
                }
                Step::Wait(until) => thread::sleep(until.since(clock::now())),
                Step::Store(step) => {
                    for call in &step.calls {
                        *copy.entry(call.id.to_string()).or_default() += 1;
                    }
                    state = step.next.clone();
                    flow.stored();
                }
                Step::Done(done) => break done.is_ok(),
            }
        };
        if is_last && done {
            return copy;
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn send(address: &str, request: &Request<()>) -> Result<Response<Vec<u8>>, &'static str> {
    let target = request.uri().path_and_query().unwrap().as_str();
    let headers: String = request
        .headers()
        .iter()
        .filter(|(name, _)| *name != "host")
        .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()))
        .collect();
    let answer = beside::ask(address, "GET", target, &headers, "").ok_or("no answer")?;
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(answer.body).unwrap())
}
