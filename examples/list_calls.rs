//! Lists all calls of an account, with any blocking HTTP client, such as ureq (see
//! `guide::reading`).
//!
//! `cargo run --example list_calls`

use std::error::Error;
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::Call;
use call_assistant::rest::ListCalls;
use call_assistant::rest::client::{Client, FlowError, Step, testing};
use http::{Request, Response};

pub(crate) fn list_calls<E: Into<Box<dyn Error + Send + Sync>>>(
    client: &Client,
    mut send: impl FnMut(Request<()>, Duration) -> Result<Response<Vec<u8>>, E>,
) -> Result<Vec<Call>, FlowError> {
    let (mut flow, mut calls) = (client.pages(ListCalls::new()), Vec::new());
    loop {
        match flow.next(random(), now()) {
            Step::Send { request, time_limit, ticket } => {
                flow.report(ticket, send(request, time_limit), now());
            }
            Step::Wait(until) => std::thread::sleep(until.since(now())),
            Step::Store(page) => {
                calls.extend(page.calls.iter().cloned());
                for item in &page.unreadable {
                    eprintln!("{} cannot be read: {}", item.json(), item.error());
                }
                flow.stored();
            }
            Step::Done(result) => return result.map(|()| calls),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::new("https://api.example.com", "service_test_kept-where-secrets-are")?;
    let call = |id| CallId::parse(id).map(|id| Call::new(id, now(), now()));
    let calls = [call("call_1")?, call("call_2")?, call("call_3")?];
    let mut answers = testing::pages(calls, 2).into_iter(); // in place of a service
    for call in list_calls(&client, |_, _| answers.next().ok_or("no connection"))? {
        println!("{}", call.id);
    }
    Ok(())
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
