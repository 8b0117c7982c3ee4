//! Each client, against a socket that says what a service, a proxy or nobody says (RATE-4, ERR-4).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use call_assistant::rest::GetAccount;
use call_assistant::rest::client::{Action, Client, ClientError, Retry, RetryDecision};
use call_assistant::rest::ErrorCode;
use call_assistant::model::Account;
use call_assistant_frameworks::NotAnswered;
use call_assistant_frameworks::asking::{reqwest_async, reqwest_blocking, ureq};
use call_assistant_frameworks::receiving::now;

const ACCOUNT: &str =
    r#"{"id":"acct_1","business_name":null,"timezone":"Europe/Oslo","livemode":true}"#;
const LIMITED: &str = r#"{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"m","request_id":"req_1"}}"#;

/// Answers one request so, and hands back what was asked.
fn answering(answer: String) -> (Client, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        head
    });
    (Client::new(&base, "service_live_the-key-of-a-test").unwrap(), asked)
}

fn http(status: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {len}\r\n\r\n{body}"
    )
}

/// Everything a client is asked, whatever it is made with.
fn holds<E: std::fmt::Debug>(ask: impl Fn(&Client) -> Result<Account, NotAnswered<E>>) {
    let (client, asked) = answering(http("200 OK", "", ACCOUNT));
    assert_eq!(ask(&client).unwrap().timezone, "Europe/Oslo");
    let asked = asked.join().unwrap();
    assert!(asked.starts_with("GET /v1/account HTTP/1.1\r\n"), "{asked}");
    assert!(asked.to_lowercase().contains("\r\nauthorization: bearer service_live_"), "{asked}");

    let (client, _) = answering(http("429 Too Many Requests", "retry-after: 7\r\n", LIMITED));
    let error = ask(&client).unwrap_err();
    let wait = Retry::new().decide(&error.error().unwrap(), 1, [0; 8], now());
    assert!(matches!(wait, RetryDecision::Wait(span) if span.as_secs() == 7));
    let NotAnswered::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!(error.code(), Some(&ErrorCode::RateLimitExceeded));
    assert_eq!(error.request_id.unwrap().as_str(), "req_1");

    // A redirect is somebody else's answer: the key does not follow it.
    let (client, _) = answering(http("302 Found", "location: http://127.0.0.1:9/\r\n", ""));
    let NotAnswered::Refused(error) = ask(&client).unwrap_err() else { panic!("followed") };
    assert_eq!(error.action(), Action::CheckRoute);

    // Half an answer, and none.
    let half = http("200 OK", "", ACCOUNT);
    for answer in [half[..half.len() - 9].to_owned(), String::new()] {
        let (client, _) = answering(answer);
        let error = ask(&client).unwrap_err();
        assert!(matches!(error, NotAnswered::Lost(_)), "{error:?}");
        assert_eq!(error.error(), Some(ClientError::no_response()));
    }
}

#[test]
fn reqwest_with_async() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let http = reqwest_async::http_client().unwrap();
    holds(|client| runtime.block_on(reqwest_async::ask(&http, client, &GetAccount)));
}

#[test]
fn reqwest_without_async() {
    let http = reqwest_blocking::http_client().unwrap();
    holds(|client| reqwest_blocking::ask(&http, client, &GetAccount));
}

#[test]
fn ureq_without_async() {
    let http = ureq::http_client();
    holds(|client| ureq::ask(&http, client, &GetAccount));
}
