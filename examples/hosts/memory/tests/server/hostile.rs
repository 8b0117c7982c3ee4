//! Clients that mean no good: they are shown out, and nobody else waits for it.

use std::io::Write as _;
use std::time::Instant;

use call_assistant::Timestamp;
use serde_json::{Value, json};
use testing::running::{FJORD, File, Service, connect, eventually, request};

#[test]
fn a_body_without_end() {
    let service = Service::start(&[]);
    let host = service.dashboard();
    let mut stream = connect(host);
    let head = format!(
        "POST {FJORD}/calls HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    // As much as it takes, and far less than an endless body has.
    assert!((0..1000).any(|_| stream.write_all(&chunk).is_err()), "all of it is taken");
    service.show("/accounts");
    if let Some(peak) = service.peak_memory() {
        assert!(peak < 100 * 1024, "{peak} KiB");
    }
}

// Whoever fills a disk with lines has a key or a login, which can be revoked.
#[test]
fn requests_without_a_key_or_a_login_have_a_bound_in_the_log() {
    let file = File::new("bounded", "ada:operator:the-token-of-ada\n");
    let service = Service::start(&["--operator-token-file", file.path()]);
    let began = Instant::now();
    let ada = "Authorization: Bearer the-token-of-ada\r\n";
    for n in 0..150 {
        let refused = request(service.api(), "GET", "/v1/account", "", b"").status;
        assert_eq!(refused, 401, "{n}");
        let refused = request(service.dashboard(), "GET", "/accounts", "", b"").status;
        assert_eq!(refused, 401, "{n}");
        if n % 10 == 0 {
            let shown = request(service.dashboard(), "GET", "/accounts", ada, b"");
            assert_eq!(shown.status, 200, "{n}");
        }
    }
    let login = br#"{"token":"the-token-of-ada"}"#;
    assert_eq!(request(service.dashboard(), "POST", "/login", "", login).status, 200);
    let spans = began.elapsed().as_secs() / 10 + 1;
    let times = |log: &str, text: &str| log.matches(text).count() as u64;
    eventually("what has no line is told", || {
        let log = service.log();
        let told = log.lines().filter(|line| line.contains("not every line was written"));
        let told = told.map(|line| line.split_once("lines=").unwrap().1.parse::<u64>().unwrap());
        let written = times(&log, "status=401");
        assert!(written <= 100 * spans, "{written}");
        (written + told.sum::<u64>() == 300).then_some(())
    });
    let log = service.log();
    assert_eq!(times(&log, "route=/accounts status=200"), 15, "who has a login has a line");
    assert_eq!(times(&log, "route=/login status=200"), 1, "{log}");
}

// LIST-6, D-24: whatever was imported, a page reads a bounded number of calls. A walk whose bounds leave out nearly all
// has empty pages, and meets what is left.
#[test]
fn a_walk_past_an_import_has_short_pages_and_an_end() {
    let call = |number: i64, written: i64| {
        let at = |seconds| Timestamp::from_unix(seconds).unwrap().to_string();
        let started = 1_767_225_600 + number;
        json!({
            "id": format!("call_{number}"),
            "caller": { "contact_id": null, "phone_number": null, "display_name": null },
            "started_at": at(started), "answered_at": at(started), "ended_at": at(started + 40),
            "duration_seconds": 40, "summary": "Hello.", "appointment_ids": [],
            "created_at": at(written),
        })
    };
    let imported = 1_767_225_600 + 86_400 * 30;
    // 2,000 that are written a day earlier than all others, and are the oldest.
    let calls: Vec<Value> = (0..14_000)
        .map(|number| call(number, if number < 2_000 { imported - 86_400 } else { imported }))
        .collect();
    let key = format!("service_live_{}", "0123456789abcdef".repeat(2));
    let data = json!({ "accounts": [{
        "id": "acct_1", "timezone": "UTC",
        "keys": [{ "id": "cred_1", "name": "one", "secret": key }],
        "calls": calls,
    }]});
    let file = File::new("imported.json", &data.to_string());
    let service = Service::start(&["--data", file.path()]);
    let before = Timestamp::from_unix(imported).unwrap().to_string();
    let bounds = format!("/v1/calls?limit=100&created_before={before}");
    let (mut seen, mut empty, mut target) = (Vec::new(), 0, bounds.clone());
    loop {
        let page = service.get(&target, &key).json();
        let calls = page["data"].as_array().unwrap();
        empty += usize::from(calls.is_empty());
        seen.extend(calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()));
        assert_eq!(page["has_more"], page["next_cursor"].is_string());
        let Some(next) = page["next_cursor"].as_str() else { break };
        target = format!("{bounds}&cursor={next}");
    }
    let expected: Vec<String> = (0..2_000).rev().map(|number| format!("call_{number}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(empty, 2, "12,000 are left out, 5,000 a page");
}
