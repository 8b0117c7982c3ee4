//! Keeps a copy of all calls up to date, with its state in a file of JSON.
//!
//! `cargo run --example sync_calls`

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use std::{error::Error, fs, path::Path};

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::Call;
use call_assistant::rest::client::{CallSync, Client, Step, testing};
use http::{Request, Response};

/// The calls and the state, which are always written together.
pub(crate) type Copy = (BTreeMap<CallId, Call>, CallSync);

pub(crate) fn sync_calls<E: Into<Box<dyn Error + Send + Sync>>>(
    client: &Client,
    file: &Path,
    mut send: impl FnMut(Request<()>, Duration) -> Result<Response<Vec<u8>>, E>,
) -> Result<Copy, Box<dyn Error>> {
    let mut copy = match fs::exists(file)? {
        true => serde_json::from_slice(&fs::read(file)?)?,
        false => Copy::default(),
    };
    let mut flow = client.sync(copy.1.clone());
    loop {
        match flow.next(random(), now()) {
            Step::Send { request, time_limit, ticket } => {
                flow.report(ticket, send(request, time_limit), now());
            }
            Step::Wait(until) => std::thread::sleep(until.since(now())),
            Step::Store(step) => {
                copy.0.extend(step.calls.iter().map(|call| (call.id.clone(), call.clone())));
                copy.1 = step.next.clone(); // `step.unreadable`: store it, or tell somebody
                fs::write(file.with_extension("new"), serde_json::to_vec(&copy)?)?;
                fs::rename(file.with_extension("new"), file)?;
                flow.stored();
            }
            Step::Done(result) => return result.map(|()| copy).map_err(Into::into),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::new("https://api.example.com", "service_test_kept-where-secrets-are")?;
    let file = std::env::temp_dir().join(format!("calls-{}.json", std::process::id()));
    let call = |id| CallId::parse(id).map(|id| Call::new(id, now(), now()));
    let mut calls = Vec::new();
    for id in ["call_1", "call_2"] {
        calls.push(call(id)?); // a call more, and another run
        let mut answers = testing::pages(calls.clone(), 50).into_iter(); // in place of a service
        let (copied, state) = sync_calls(&client, &file, |_, _| answers.next().ok_or("offline"))?;
        println!("{} calls, {} ids in the state", copied.len(), state.ids());
    }
    Ok(fs::remove_file(file)?)
}

#[expect(clippy::disallowed_methods, reason = "a host has a clock")]
fn now() -> Timestamp {
    SystemTime::now().into()
}

#[expect(clippy::expect_used, reason = "nothing can be kept secret without them")]
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
