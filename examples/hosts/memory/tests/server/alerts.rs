//! What an owner is told, and when: each fact once.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use testing::receiver::{Receiver, Reply};
use testing::running::{
    Answer, FJORD, File, Folder, Running, Service, connect, endpoint_path, eventually,
};

fn alerts(service: &Service) -> Vec<Value> {
    let shown = service.show(&format!("{FJORD}/alerts"));
    let mut alerts = shown["data"].as_array().unwrap().clone();
    alerts.reverse();
    alerts
}

fn kinds(service: &Service) -> Vec<String> {
    alerts(service).iter().map(|alert| alert["kind"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn told(service: &Service, expected: &[&str]) {
    eventually(&format!("{expected:?}"), || (kinds(service) == expected).then_some(()));
}

/// Asks for the next alert, and does not read the answer.
fn waiting(service: &Service) -> TcpStream {
    let mut stream = connect(service.dashboard());
    let host = service.dashboard();
    write!(stream, "GET /alerts HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    stream
}

/// Moves the service's clock, with all attempts that are due until then.
fn pass(service: &Service, seconds: u64) {
    service.ask("POST", "/clock", &json!({ "advance_seconds": seconds }), 200);
}

// Suspect long before a delivery has failed for good; one 2xx ends it.
#[test]
fn an_early_sign_and_its_end() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let bad = [Reply::Status(503); 10];
    let replies = [bad.as_slice(), &[Reply::Status(204)]].concat();
    let endpoint = service.hook(&receiver.url("/hook", &replies));
    let shown = || service.show(&endpoint);
    let sent = |count: usize| {
        service.ping(&endpoint);
        eventually("it is sent", || (receiver.got("/hook").len() >= count).then_some(()));
    };
    // Five first attempts that fail, over a minute: what was tried again in it failed as well.
    sent(1);
    assert_eq!(shown()["suspect_since"], Value::Null);
    (2..=4).for_each(sent);
    assert!(kinds(&service).is_empty());
    pass(&service, 61);
    assert_eq!(receiver.got("/hook").len(), 8, "four were tried again");
    sent(9);
    told(&service, &["suspect"]);
    assert!(shown()["suspect_since"].is_string());
    sent(10);
    sent(11);
    told(&service, &["suspect", "recovered"]);
    assert_eq!(shown()["suspect_since"], Value::Null);
    assert_eq!(shown()["consecutive_failures"], 0);
    service.logged_times("the first attempts of several deliveries", 1);
}

// Disabled with what is missed, and again after one day and three.
#[test]
fn an_endpoint_that_stays_disabled() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let url = receiver.url("/gone", &[Reply::Status(410)]);
    service.endpoint(&url);
    service.call();
    // Counted once it is stored.
    eventually("the count", || {
        let [alert] = alerts(&service).try_into().ok()?;
        (alert["message"] == "disabled: the endpoint answered 410; deliveries missed so far: 1")
            .then_some(())
    });
    service.call();
    pass(&service, 86_401);
    told(&service, &["disabled", "still_disabled"]);
    pass(&service, 86_400);
    told(&service, &["disabled", "still_disabled"]);
    pass(&service, 86_400);
    told(&service, &["disabled", "still_disabled", "still_disabled"]);
    let last = alerts(&service).pop().unwrap();
    assert_eq!(
        last["message"],
        "disabled for 3 days: the endpoint answered 410; deliveries missed so far: 2"
    );
    assert_eq!(last["url"], url);
    service.logged_times(" reason=gone", 1);
    service.logged_times(" alert=still_disabled", 2);
}

/// The feed of all accounts: in order, behind a cursor, with a wait for the next.
#[test]
fn one_feed_of_all_accounts() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let feed = |query: &str| service.show(&format!("/alerts?{query}"));
    assert_eq!(feed("wait=0"), json!({ "data": [], "next": "0" }));
    let began = Instant::now();
    assert_eq!(feed("wait=1")["data"], json!([]));
    assert!(began.elapsed() >= Duration::from_secs(1), "it waits");

    let harbour = "/accounts/acct_harbour_hair";
    service.ask("PATCH", harbour, &json!({ "plan": "business" }), 200);
    let gone = |account: &str, path: &str| {
        let asked = json!({ "url": receiver.url(path, &[Reply::Status(410)]) });
        let made = service.ask("POST", &format!("{account}/endpoints"), &asked, 201);
        service.ping(&endpoint_path(&made));
        made["id"].as_str().unwrap().to_owned()
    };
    let first = gone(FJORD, "/one");
    // Whoever waits is answered long before the wait is over.
    let began = Instant::now();
    let page = feed("");
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    let alert = &page["data"][0];
    assert_eq!(alert["endpoint_id"], first.as_str());
    assert_eq!(alert["account_id"], "acct_fjord_dental");
    assert_eq!((&alert["kind"], &alert["severity"]), (&json!("disabled"), &json!("critical")));
    assert_eq!(alert["link"], format!("/#acct_fjord_dental?endpoint={first}"));
    assert_eq!(alert["acknowledged"], Value::Null);
    let next = page["next"].as_str().unwrap();
    let second = gone(harbour, "/two");
    let page = feed(&format!("after={next}"));
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    assert_eq!(page["data"][0]["endpoint_id"], second.as_str());
    // In pages, and again from the beginning.
    let one = feed("limit=1");
    assert_eq!((&one["data"][0]["endpoint_id"], &one["next"]), (&json!(first), &json!(next)));
    assert_eq!(feed("")["data"].as_array().unwrap().len(), 2);

    let id = alert["id"].as_str().unwrap();
    let path = format!("/alerts/{id}/acknowledge");
    let noted = service.ask("POST", &path, &json!({ "by": "Ada" }), 200);
    assert_eq!(noted["acknowledged"]["by"], "Ada");
    assert_eq!(service.ask("POST", &path, &json!({ "by": "Bo" }), 200), noted, "the first stays");
    assert_eq!(alerts(&service)[0], noted);
    assert_eq!(feed("")["data"][0], noted);
    for (method, path, body, status) in [
        ("GET", "/alerts?after=x", json!({}), 400),
        ("GET", "/alerts?after=-1", json!({}), 400),
        ("GET", "/alerts?wait=31", json!({}), 400),
        ("GET", "/alerts?limit=0", json!({}), 400),
        ("GET", "/alerts?since=1", json!({}), 400),
        ("GET", "/alerts?after=18446744073709551615", json!({}), 409),
        ("POST", "/alerts/alrt_x/acknowledge", json!({ "by": "Ada" }), 404),
        ("POST", &*path, json!({ "by": "" }), 400),
        // That is what the journal calls an owner.
        ("POST", &path, json!({ "by": "owner" }), 400),
        ("POST", &path, json!({ "by": " Owner" }), 400),
        ("POST", &path, json!({ "by": "a".repeat(101) }), 400),
        ("POST", &path, json!({}), 400),
    ] {
        service.ask(method, path, &body, status);
    }
}

// Those whose clients have given up take no place for as long as they would have waited.
#[test]
fn requests_that_wait_make_room() {
    let service = Service::start(&[]);
    let began = Instant::now();
    // They are numbered as they are heard, which is not the order in which they were sent.
    let read = |mut stream: TcpStream| {
        std::thread::spawn(move || {
            let answer = Answer::read(&mut stream);
            assert_eq!((answer.status, answer.json()), (200, json!({ "data": [], "next": "0" })));
            began.elapsed() < Duration::from_secs(25)
        })
    };
    let reading: Vec<_> = (0..40).map(|_| waiting(&service)).map(read).collect();
    let early = reading.into_iter().filter_map(|one| one.join().unwrap().then_some(()));
    assert_eq!(early.count(), 24);
}

// Those that look and go take no place either: whoever waits is answered by the next alert.
#[test]
fn requests_that_do_not_wait_end_no_wait() {
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let url = receiver.url("/gone", &[Reply::Status(410)]);
    let endpoint = service.hook(&url);
    let began = Instant::now();
    let mut stream = waiting(&service);
    for _ in 0..200 {
        assert_eq!(service.show("/alerts?wait=0")["data"], json!([]));
    }
    service.ping(&endpoint);
    let told = Answer::read(&mut stream).json();
    // On a machine that has no time the wait may have been over.
    let is_late = began.elapsed() > Duration::from_secs(25);
    assert!(is_late || told["data"][0]["url"] == url, "{told}");
}

// An id is any visible ASCII, and what it is made of ends no part of an address.
#[test]
fn the_link_of_an_alert_leads_to_its_account() {
    let receiver = Receiver::start();
    let url = receiver.url("/gone", &[Reply::Status(410)]);
    let account = json!({
        "id": "acct/1?a#b%2Fc", "timezone": "UTC",
        "endpoints": [{ "id": "whep+1&x=y", "url": url }],
    });
    let file = File::new("ids.json", &json!({ "accounts": [account] }).to_string());
    let flags = ["--allow-loopback-endpoints", "--data", file.path()];
    let service = Service::start(&flags);
    service.ping("/endpoints/whep+1&x=y");
    let page = service.show("/alerts");
    assert_eq!(page["data"][0]["account_id"], "acct/1?a#b%2Fc");
    assert_eq!(page["data"][0]["link"], "/#acct%2F1%3Fa%23b%252Fc?endpoint=whep%2B1%26x%3Dy");
}

/// The program of the durable host's `docs/operating.md` sends each alert on, of this host too.
#[test]
fn the_guides_program_tells_a_chat() {
    let guide = include_str!("../../../postgres/docs/operating.md");
    let (_, program) = guide.split_once("```python\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let (service, receiver) = (Service::start(&["--allow-loopback-endpoints"]), Receiver::start());
    let folder = Folder::new();
    let chat = receiver.url("/chat", &[Reply::Status(500), Reply::Status(204)]);
    let mut python = Command::new("python3");
    python.arg(folder.file("alerts.py", program)).current_dir(folder.path(""));
    python.env("DASHBOARD_URL", format!("http://{}", service.dashboard()));
    python.env("CHAT_URL", chat).env("OPERATOR_TOKEN", "none is required");
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let _program = Running::start(&mut python);
    let url = receiver.url("/gone", &[Reply::Status(410)]);
    service.ping(&service.hook(&url));
    // What the chat refused is told again.
    let told = eventually("the chat is told", || receiver.got("/chat").get(1).cloned());
    let told: Value = serde_json::from_slice(&told.body).unwrap();
    let text = told["text"].as_str().unwrap();
    assert!(
        text.starts_with(&format!("critical: {url}: disabled: the endpoint answered 410")),
        "{text}"
    );
    let cursor = folder.path("alerts.cursor");
    eventually("the cursor is kept", || {
        std::fs::read_to_string(&cursor).ok()?.parse::<u64>().ok().filter(|number| *number > 0)
    });
}
