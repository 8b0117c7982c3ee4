//! axum in front of the exchange, over sockets (HTTP-1, HTTP-3, HTTP-5, KEY-5).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use call_assistant::Product;
use call_assistant::id::{AccountId, CallId, CredentialId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::server::{AccountStatus, CallRow, CursorKeys, RateWindows, StoredKey};
use call_assistant::rest::{ApiKey, Mode, Scope};
use call_assistant_frameworks::receiving::now;
use call_assistant_frameworks::serving::{Host, axum};

/// Starts a server, and returns its address and a key.
fn start() -> (SocketAddr, ApiKey) {
    let account_id = AccountId::parse("acct_1").unwrap();
    let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    let id = CredentialId::parse("cred_1").unwrap();
    let stored = StoredKey::new(id, account_id.clone(), &key, now());
    let call = Call::new(CallId::parse("call_1").unwrap(), now(), now());
    let account = Account::new(account_id.clone(), "Europe/Oslo");
    let host = Host {
        key: Mutex::new(stored.with_scopes([Scope::AccountRead, Scope::CallsRead])),
        account,
        status: AccountStatus {
            account_id: account_id.clone(),
            closing: false,
            subscribed: true,
            api_in_plan: true,
        },
        calls: vec![CallRow { account_id, mode: Mode::Live, call }],
        rates: Mutex::new(RateWindows::new(10)),
        cursors: CursorKeys::new(1, [1; 32]),
    };
    let (sender, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            ::axum::serve(listener, axum::app(Arc::new(host))).await.unwrap();
        });
    });
    (address.recv().unwrap(), key)
}

/// Sends a request, and returns the status line, the head and the body.
fn ask(
    address: SocketAddr,
    line: &str,
    key: Option<&ApiKey>,
    body: &[u8],
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let credential = key.map(|key| format!("Authorization: Bearer {}\r\n", key.reveal()));
    let head = format!(
        "{line} HTTP/1.1\r\nHost: api\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n",
        credential.unwrap_or_default(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(body); // it may have answered already
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
}

#[test]
fn axum_serves_every_operation_and_every_refusal() {
    let (address, key) = start();
    for (line, with, status) in [
        ("GET /v1/account", Some(&key), 200),
        ("GET /v1/calls?limit=2", Some(&key), 200),
        ("GET /v1/calls/call_1", Some(&key), 200),
        ("GET /v1/calls/call%2F1", Some(&key), 404),
        ("GET /v1/calls/", Some(&key), 404),
        ("GET /", Some(&key), 404),
        ("OPTIONS /v1/calls", Some(&key), 405),
        ("GET /v1/calls?limit=0", Some(&key), 400),
        ("GET /v1/account", None, 401),
    ] {
        let (got, head, body) = ask(address, line, with, b"");
        assert_eq!(got, status, "{line}: {body}");
        assert!(head.contains("\r\nx-request-id: req_") && body.starts_with('{'), "{line}: {head}");
    }
    let (status, head, body) = ask(address, "HEAD /v1/account", Some(&key), b"");
    assert_eq!((status, body.as_str()), (200, ""));
    assert!(head.contains("content-length: "), "{head}");
    let (status, ..) = ask(address, "POST /v1/calls", Some(&key), &vec![b'a'; 100_000]);
    assert_eq!(status, 405);
}

#[test]
fn the_guide_shows_this_handler() {
    let file = include_str!("../src/serving/axum.rs");
    let shown = &file[file.find("/// No routes").unwrap()..file.find("/// Sixteen").unwrap()];
    assert!(include_str!("../../../src/guide/serving.md").contains(shown.trim_end()));
}
