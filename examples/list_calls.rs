//! Lists all calls of an account, with any blocking HTTP client.

#[path = "support/clock.rs"]
mod clock;
#[path = "support/random.rs"]
mod random;

use std::error::Error;

use call_assistant::id::CallId;
use call_assistant::model::Call;
use call_assistant::rest::ListCalls;
use call_assistant::rest::client::{Client, FlowError, Step, testing};
use http::{Request, Response};

pub(crate) fn list_calls<E: Into<Box<dyn Error + Send + Sync>>>(
    client: &Client,
    mut send: impl FnMut(Request<()>) -> Result<Response<Vec<u8>>, E>,
) -> Result<Vec<Call>, FlowError> {
    let (mut flow, mut calls) = (client.pages(ListCalls::new()), Vec::new());
    loop {
        match flow.next(random::bytes(), clock::now()) {
            Step::Send { request, ticket, .. } => flow.report(ticket, send(request), clock::now()),
            Step::Wait(until) => std::thread::sleep(until.since(clock::now())),
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
    let call = |id| CallId::parse(id).map(|id| Call::new(id, clock::now(), clock::now()));
    let calls = [call("call_1")?, call("call_2")?, call("call_3")?];
    let mut answers = testing::pages(calls, 2).into_iter(); // in place of a service
    for call in list_calls(&client, |_| answers.next().ok_or("no connection"))? {
        println!("{}", call.id);
    }
    Ok(())
}
