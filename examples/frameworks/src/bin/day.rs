//! Writes all calls that started on a calendar day of the business's time zone, one line of JSON each.
//!
//! `SERVICE_API_KEY=service_live_... cargo run -p call-assistant-frameworks --bin day -- http://127.0.0.1:8080 2026-07-24 4h calls.jsonl`
//!
//! No call lasts longer than `4h`. The program waits for this time after the end of the day, by the
//! service's clock. The file exists only when it is complete.
#![allow(clippy::disallowed_methods, reason = "a host has a clock")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;

use call_assistant::Timestamp;
use call_assistant::rest::GetAccount;
use call_assistant::rest::client::{CallPages, Client, FlowError, Retry, Step};
use call_assistant_frameworks::asking::{random, run, ureq};
use call_assistant_frameworks::receiving::now;
use jiff::SignedDuration;
use jiff::civil::Date;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: day API_URL YYYY-MM-DD LAG FILE";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [api, day, lag, path] = <[String; 4]>::try_from(arguments).map_err(|_| usage)?;
    let (day, lag): (Date, SignedDuration) = (day.parse()?, lag.parse()?);
    let client = Client::new(&api, &std::env::var("SERVICE_API_KEY")?)?;
    let http = ureq::http_client();

    let account = client.fetch(GetAccount);
    let send = |request, limit| ureq::send(&http, request, limit);
    let account = run::<_, FlowError>(account, send, |never| match *never {})?;
    let midnight = |day: Date| -> Result<Timestamp, Box<dyn Error>> {
        let micros = day.in_tz(&account.timezone)?.timestamp().as_microsecond();
        Ok(Timestamp::from_unix_micros(micros).ok_or("the day is before year 0")?)
    };
    // A day has 23, 24 or 25 hours.
    let period =
        CallPages::from_period(midnight(day)?, midnight(day.tomorrow()?)?, lag.try_into()?)?;

    let part = format!("{path}.part");
    let mut calls = File::create(&part)?;
    // Twenty tries: some minutes in which nobody watches.
    let mut flow = client.pages(period).with_retry(Retry::new().with_tries(20));
    loop {
        match flow.next(random(), now()) {
            Step::Send { request, time_limit, ticket } => {
                flow.report(ticket, send(request, time_limit), now());
            }
            Step::Wait(until) => {
                eprintln!("waiting until {until}");
                std::thread::sleep(until.since(now()));
            }
            Step::Store(batch) => {
                for call in &batch.calls {
                    writeln!(calls, "{}", serde_json::to_string(call)?)?;
                }
                batch.unreadable.iter().for_each(|item| eprintln!("not written: {item:?}"));
                flow.stored();
            }
            Step::Done(result) => break result?,
        }
    }
    calls.sync_all()?;
    fs::rename(part, path)?;
    match flow.progress().unreadable {
        0 => Ok(()),
        count => Err(format!("{count} calls cannot be read, and may be of that day").into()),
    }
}
