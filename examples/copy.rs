//! Copies all calls of an account into a file, one line of JSON each. The next run adds the new
//! calls.
//!
//! `SERVICE_API_KEY=service_live_... cargo run --example copy -- http://127.0.0.1:8080 calls.jsonl`
//!
//! If the program is killed at any point and run again, it loses no call and writes no call twice:
//! the state counts the bytes of the calls, and the next run removes later bytes. For https, enable
//! the feature `rustls` of ureq.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;
use call_assistant::rest::client::{CallSync, Client, Step};
use http::{Request, Response};
use ureq::{Agent, Error};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: copy API_URL FILE";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--help"] {
        println!("{usage}");
        return Ok(());
    }
    let [api, path] = <[String; 2]>::try_from(arguments).map_err(|_| usage)?;
    let client = Client::new(&api, &std::env::var("SERVICE_API_KEY")?)?;
    let mut calls = OpenOptions::new().append(true).create(true).open(&path)?;
    calls.try_lock()?; // one copy at a time
    let [state, new_state] = ["state", "new"].map(|end| format!("{path}.{end}"));
    let (len, sync) = match fs::exists(&state)? {
        true => serde_json::from_slice(&fs::read(&state)?)?,
        false => (0, CallSync::new()),
    };
    if calls.metadata()?.len() < len {
        return Err("the file is shorter than the state says".into());
    }
    calls.set_len(len)?; // later bytes were written without their state
    let agent: Agent =
        Agent::config_builder().max_redirects(0).http_status_as_error(false).build().into();
    #[allow(clippy::disallowed_methods)] // a host has a clock
    let now = || Timestamp::from(SystemTime::now());
    let mut flow = client.sync(sync);
    loop {
        match flow.next(getrandom::u64()?.to_ne_bytes(), now()) {
            Step::Send { request, time_limit, ticket } => {
                flow.report(ticket, send(&agent, request, time_limit), now());
            }
            Step::Wait(until) => std::thread::sleep(until.since(now())),
            Step::Store(batch) => {
                let mut lines = String::new();
                for call in &batch.calls {
                    lines += &(serde_json::to_string(call)? + "\n");
                }
                for item in &batch.unreadable {
                    lines += &(item.json().get().replace(['\n', '\r'], " ") + "\n");
                }
                calls.write_all(lines.as_bytes())?;
                calls.sync_data()?; // the calls before the state that counts them
                let mut file = File::create(&new_state)?;
                serde_json::to_writer(&mut file, &(calls.metadata()?.len(), &batch.next))?;
                file.sync_all()?;
                fs::rename(&new_state, &state)?;
                flow.stored();
                println!("{} new calls", flow.progress().calls);
            }
            Step::Done(result) => return Ok(result?),
        }
    }
}

fn send(http: &Agent, request: Request<()>, limit: Duration) -> Result<Response<Vec<u8>>, Error> {
    let request = http.configure_request(request).timeout_global(Some(limit)).build();
    let (head, mut body) = http.run(request)?.into_parts();
    let body = body.with_config().limit(16 * 1024 * 1024).read_to_vec()?;
    Ok(Response::from_parts(head, body))
}
