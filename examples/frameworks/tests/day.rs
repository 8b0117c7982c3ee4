//! The calls of a calendar day, which the program reads from the service in memory.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use ::testing::running::{File, Folder, Running, Service, run, service};
use call_assistant::Timestamp;
use serde_json::{Value, json};

const KEY: &str = "service_live_0123456789abcdef0123456789abcdef";

/// A call that is written after this time from its start.
fn call(id: String, started_at: Timestamp, took: Duration) -> Value {
    let ended_at = started_at.saturating_add(took);
    json!({
        "id": id,
        "caller": { "contact_id": null, "phone_number": null, "display_name": null },
        "started_at": started_at, "answered_at": started_at, "ended_at": ended_at,
        "duration_seconds": took.as_secs(), "summary": null, "appointment_ids": [],
        "created_at": ended_at,
    })
}

/// Days of Oslo on which the clocks change, with their bounds and their number of hours.
const DAYS: [(&str, &str, u32); 2] =
    [("2025-03-30", "2025-03-29T23:00:00Z", 23), ("2025-10-26", "2025-10-25T22:00:00Z", 25)];

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const MICRO: Duration = Duration::from_micros(1);

fn data() -> Value {
    let mut calls = Vec::new();
    for (day, from, hours) in DAYS {
        let from = Timestamp::parse(from).unwrap();
        let until = from.saturating_add(HOUR * hours);
        let last = until.saturating_sub(MICRO);
        for (id, started_at, took) in [
            ("no_before", from.saturating_sub(MICRO), HOUR),
            ("yes_first", from, SECOND),
            // Two that are written when the day is over, one of them days later.
            ("yes_long", last, 3 * HOUR),
            ("yes_late", from.saturating_add(HOUR), 100 * HOUR),
            ("no_after", until, SECOND),
        ] {
            calls.push(call(format!("call_{day}_{id}"), started_at, took));
        }
        // More than two pages that began at one instant.
        let noon = from.saturating_add(12 * HOUR);
        calls.extend((0..250).map(|n| call(format!("call_{day}_yes_{n}"), noon, SECOND)));
    }
    json!({ "accounts": [{
        "id": "acct_1",
        "timezone": "Europe/Oslo",
        "keys": [{ "id": "cred_1", "name": "one", "secret": KEY }],
        "calls": calls,
    }]})
}

fn day(service: &Service, day: &str, lag: &str, folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_day"));
    let api = format!("http://{}", service.api());
    command.args([&api, day, lag]).arg(folder.path("calls.jsonl")).env("SERVICE_API_KEY", KEY);
    command
}

#[test]
fn days_of_23_and_of_25_hours_are_written_whole() {
    let (file, folder) = (File::new("data.json", &data().to_string()), Folder::new());
    let service = Service::of(&mut service(&["--data", file.path()]));
    for (name, ..) in DAYS {
        run(&mut day(&service, name, "4h", &folder), b"").is(0, "");
        let text = std::fs::read_to_string(folder.path("calls.jsonl")).unwrap();
        let ids: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().into())
            .collect();
        let prefix = format!("call_{name}_yes_");
        assert!(ids.iter().all(|id| id.starts_with(&prefix)), "{ids:?}");
        assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (253, 253));
    }
}

/// If a day is not complete, the program waits and writes no file.
#[test]
fn a_day_that_is_not_over_is_waited_for() {
    let (file, folder) = (File::new("data.json", &data().to_string()), Folder::new());
    let service = Service::of(&mut service(&["--data", file.path()]));
    // Until the year 2125.
    let waiting = Running::start(&mut day(&service, DAYS[1].0, "876000h", &folder));
    let told = waiting.logged("waiting until 21");
    assert!(told.contains("waiting until 2125-10-"), "{told}");
    waiting.kill();
    assert!(!folder.path("calls.jsonl").exists());
}
