//! Each client receives answers as a service or a proxy sends them, and no answer (RATE-4, ERR-4).
//! All clients, blocking or async, send the same requests.

#![allow(clippy::disallowed_methods)] // real sockets take real time

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::testing::running::lines;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::client::{Action, CallSync, Client, Flow, FlowError, Retry, testing};
use call_assistant::rest::{ErrorCode, GetAccount, ListCalls};
use call_assistant_frameworks::asking::{
    self, hyper, reqwest_async, reqwest_blocking, run, run_async, ureq,
};
use http::Response;

/// Answers one request after another, each on its own connection, and returns the requests.
fn answering(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let answer = |answer: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") {
                assert!(reader.read_line(&mut head).unwrap() > 0);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            head
        };
        answers.into_iter().map(answer).collect()
    });
    (Client::new(&base, "service_live_the-key-of-a-test").unwrap(), asked)
}

fn http(response: Response<Vec<u8>>) -> String {
    let (mut head, body) = response.into_parts();
    head.headers.insert("content-length", body.len().into());
    let body = String::from_utf8(body).unwrap();
    let headers = lines(&head.headers);
    format!("HTTP/1.1 {}\r\nconnection: close\r\n{headers}\r\n{body}", head.status)
}

fn account() -> Account {
    Account::new(AccountId::parse("acct_1").unwrap(), "Europe/Oslo")
}

/// The checks of every client.
fn holds(ask: impl Fn(Flow<GetAccount>) -> Result<Account, FlowError>) {
    let (client, asked) = answering(vec![http(testing::answer(&account()))]);
    assert_eq!(ask(client.fetch(GetAccount)).unwrap().timezone, "Europe/Oslo");
    let asked = asked.join().unwrap().remove(0);
    assert!(asked.starts_with("GET /v1/account HTTP/1.1\r\n"), "{asked}");
    let asked = asked.to_lowercase();
    assert!(asked.contains("\r\nauthorization: bearer service_live_"), "{asked}");
    assert_eq!(asked.matches("\r\nuser-agent: call-assistant/").count(), 1, "{asked}");
    assert_eq!(asked.matches("\r\nuser-agent:").count(), 1, "{asked}");

    // It waits as long as the service says.
    let limited = http(testing::rate_limited(1));
    let (client, _) = answering(vec![limited, http(testing::answer(&account()))]);
    let began = Instant::now();
    assert!(ask(client.fetch(GetAccount)).is_ok());
    assert!(began.elapsed() >= Duration::from_secs(1));

    let (client, _) = answering(vec![http(testing::error(ErrorCode::PlanUpgradeRequired))]);
    let error = ask(client.fetch(GetAccount)).unwrap_err();
    assert_eq!(error.action(), Action::UpgradePlan);

    // A redirect is somebody else's answer: the key does not follow it.
    let mut redirect = testing::bad_gateway();
    *redirect.status_mut() = http::StatusCode::FOUND;
    redirect.headers_mut().insert("location", "http://127.0.0.1:9/".parse().unwrap());
    let (client, _) = answering(vec![http(redirect)]);
    assert_eq!(ask(client.fetch(GetAccount)).unwrap_err().action(), Action::CheckRoute);

    // Half an answer, and none.
    let half = http(testing::answer(&account()));
    for answer in [half[..half.len() - 9].to_owned(), String::new()] {
        let (client, _) = answering(vec![answer.clone()]);
        let once = client.fetch(GetAccount).with_retry(Retry::new().with_tries(1));
        let error = ask(once).unwrap_err();
        assert!(told_why(&error), "{answer}: {error}");
    }

    // No answer in time: the limit is the flow's, and not the thirty seconds it has by default.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", silent.local_addr().unwrap());
    let client = Client::new(&base, "service_live_the-key-of-a-test").unwrap();
    let once = client.fetch(GetAccount).with_retry(Retry::new().with_tries(1));
    let began = Instant::now();
    let error = ask(once.with_time_limit(Duration::from_millis(50))).unwrap_err();
    assert!(told_why(&error), "{error}");
    assert!(began.elapsed() < Duration::from_secs(25));
}

/// Returns whether the error reports a missing answer, in the HTTP client's words and without the
/// key.
fn told_why(error: &FlowError) -> bool {
    let said = error.to_string();
    let words = said.strip_prefix("no response: ");
    words.is_some_and(|words| !words.is_empty() && !words.contains("the-key-of"))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn reqwest_with_async() {
    let (runtime, http) = (runtime(), reqwest_async::http_client().unwrap());
    holds(|flow| {
        let send = async |request, limit| reqwest_async::send(&http, request, limit).await;
        runtime.block_on(run_async(flow, send, async |never| match *never {}))
    });
}

#[test]
fn reqwest_without_async() {
    let http = reqwest_blocking::http_client().unwrap();
    holds(|flow| {
        let send = |request, limit| reqwest_blocking::send(&http, request, limit);
        run(flow, send, |never| match *never {})
    });
}

#[test]
fn ureq_without_async() {
    let http = ureq::http_client();
    holds(|flow| {
        run(flow, |request, limit| ureq::send(&http, request, limit), |never| match *never {})
    });
}

#[test]
fn hyper_with_async() {
    let (runtime, http) = (runtime(), hyper::http_client());
    holds(|flow| {
        let send = async |request, limit| hyper::send(&http, request, limit).await;
        runtime.block_on(run_async(flow, send, async |never| match *never {}))
    });
}

/// The request lines of an account, a list and a sync, and the ids stored.
type Course = (Vec<String>, Vec<String>);

/// One service, with a fault of each kind on the way.
fn service() -> (Client, JoinHandle<Vec<String>>) {
    let at = |second: i64| Timestamp::from_unix(1_767_225_600 + second).unwrap();
    let call = |number: i64| {
        Call::new(CallId::parse(&format!("call_{number}")).unwrap(), at(number), at(number + 9))
    };
    let pages = || testing::pages((0..7).map(call), 3);
    let mut answers = vec![testing::answer(&account())];
    answers.extend(pages());
    answers.extend(pages());
    answers.insert(2, testing::bad_gateway());
    // The sync's second page is refused, so its walk begins again.
    answers.insert(6, testing::error(ErrorCode::InvalidCursor));
    answers.insert(7, testing::cut_short(pages().remove(0)));
    answers.insert(8, pages().remove(0));
    answering(answers.into_iter().map(http).collect())
}

fn course(asked: JoinHandle<Vec<String>>, stored: Vec<String>) -> Course {
    let lines = asked.join().unwrap().into_iter();
    (lines.map(|head| head.lines().next().unwrap().to_owned()).collect(), stored)
}

#[test]
fn blocking_and_async_clients_ask_the_same() {
    let ids = |calls: &[Call]| calls.iter().map(|call| call.id.to_string()).collect::<Vec<_>>();
    let quick = Retry::new().with_backoff(Duration::from_millis(1), Duration::from_millis(1));

    macro_rules! course {
        ($run:ident, $send:expr, [$($async:tt)?], [$($await:tt)*]) => {{
            let (client, asked) = service();
            let mut stored = Vec::new();
            let account = client.fetch(GetAccount);
            let account = $run(account, $send, $($async)? |never| match *never {})$($await)*;
            let account: Result<Account, FlowError> = account;
            let list = client.pages(ListCalls::new()).with_retry(quick);
            let listed: Result<(), FlowError> = $run(list, $send, $($async)? |batch| {
                stored.extend(ids(&batch.calls));
                Ok(())
            })$($await)*;
            let sync = client.sync_of(&account.unwrap(), CallSync::new()).with_retry(quick);
            let synced: Result<(), FlowError> = $run(sync, $send, $($async)? |batch| {
                stored.extend(ids(&batch.calls));
                Ok(())
            })$($await)*;
            assert_eq!((listed, synced), (Ok(()), Ok(())));
            course(asked, stored)
        }};
    }

    let agent = ureq::http_client();
    let with_ureq = course!(run, |request, limit| ureq::send(&agent, request, limit), [], []);
    let client = reqwest_blocking::http_client().unwrap();
    let with_reqwest =
        course!(run, |request, limit| reqwest_blocking::send(&client, request, limit), [], []);
    let client = reqwest_async::http_client().unwrap();
    let with_async = runtime().block_on(async {
        course!(
            run_async,
            async |request, limit| reqwest_async::send(&client, request, limit).await,
            [async],
            [.await]
        )
    });
    let client = hyper::http_client();
    let with_hyper = runtime().block_on(async {
        course!(
            run_async,
            async |request, limit| hyper::send(&client, request, limit).await,
            [async],
            [.await]
        )
    });

    let (requests, stored) = &with_ureq;
    assert_eq!(requests[0], "GET /v1/account HTTP/1.1");
    assert_eq!(stored.len(), 14, "each call once by the list, and once by the sync: {stored:?}");
    for (name, other) in
        [("reqwest, blocking", with_reqwest), ("reqwest, async", with_async), ("hyper", with_hyper)]
    {
        assert_eq!(other, with_ureq, "{name}");
    }
}

/// The guide shows these functions, without their documentation.
#[test]
fn what_is_compiled_here_is_what_the_guide_shows() {
    let page = include_str!("../../../src/guide/send.md");
    for (name, source) in [
        ("ureq", include_str!("../src/asking/ureq.rs")),
        ("reqwest, async", include_str!("../src/asking/reqwest_async.rs")),
    ] {
        let is_code = |line: &&str| !line.starts_with("//") && *line != "#[must_use]";
        let code: Vec<&str> = source.lines().filter(is_code).collect();
        assert!(page.contains(code.join("\n").trim()), "{name}");
    }
}

/// Programs that failed at the same time do not retry at the same time.
#[test]
fn random_bytes_differ() {
    assert_ne!(asking::random(), asking::random());
}
