//! The sender of the guide, as processes over one file, and the outcomes of its HTTP clients
//! (DEL-3, DEL-8, D-58, D-59).

#![allow(clippy::disallowed_methods)] // real sockets take real time

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use ::testing::receiver::{Receiver, Reply};
use ::testing::running::{Folder, Running, eventually};
use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::Call;
use call_assistant::webhook::sender::{ATTEMPT_TIMEOUT, EndpointUrl, Outcome};
use call_assistant_frameworks::posting;
use http::{Request, StatusCode};

const SECRET: &str = "whsec_of-the-test";

/// A table of deliveries, and processes over it.
struct Outbox(Folder);

impl Outbox {
    fn new() -> Self {
        Self(Folder::new())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_send")));
        command.args(arguments).env("OUTBOX", self.0.path("outbox.db"));
        command.env("ALLOW_LOOPBACK", "1");
        command
    }

    fn start(&self) -> Running {
        Running::start(&mut self.command(&[]))
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) {
        ::testing::running::run(&mut self.command(arguments), b"").is(0, "");
    }

    fn db(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.0.path("outbox.db")).unwrap();
        db.busy_timeout(::testing::running::PATIENCE).unwrap();
        db
    }

    /// Puts ended calls into the outbox, as a program does with its own change.
    fn calls(&self, account: &str, ids: std::ops::Range<u32>) {
        let (mut db, at) = (self.db(), Timestamp::from_unix(1_767_225_600).unwrap());
        let tx = db.transaction().unwrap();
        for id in ids {
            let mut call = Call::new(CallId::parse(&format!("call_{id}")).unwrap(), at, at);
            (call.ended_at, call.summary) = (Some(at), Some("Asked for Friday.".to_owned()));
            let row = (account, String::from_utf8(call.to_json()).unwrap());
            tx.execute("INSERT INTO outbox (account, call) VALUES (?, ?)", row).unwrap();
        }
        tx.commit().unwrap();
    }

    /// Returns the number of deliveries in this state, and the sum of their attempts.
    fn count(&self, status: &str) -> (u32, u32) {
        let sql = "SELECT count(*), coalesce(sum(state ->> 'attempts'), 0) FROM deliveries
            WHERE state ->> 'status' = ?";
        self.db().query_row(sql, [status], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }

    #[track_caller]
    fn after(&self, status: &str, count: u32) -> u32 {
        let counted = || Some(self.count(status)).filter(|(found, _)| *found == count);
        eventually(&format!("{count} are {status}"), counted).1
    }
}

/// Endpoints that behave differently: each URL with its expected outcome.
fn endpoints(receiver: &Receiver) -> Vec<(String, Outcome)> {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = |path: &str, reply| receiver.url(path, &[reply]);
    let status = |status: u16| Outcome::Answered(StatusCode::from_u16(status).unwrap());
    vec![
        (url("/204", Reply::Status(204)), status(204)),
        (url("/endless", Reply::Endless), status(200)),
        (url("/redirect", Reply::Status(307)), status(307)),
        (url("/garbage", Reply::Garbage), Outcome::Reset),
        (url("/close", Reply::Close), Outcome::Reset),
        (url("/silent", Reply::Nothing), Outcome::TimedOut),
        (format!("http://{closed}/"), Outcome::Refused),
    ]
}

/// Two processes share the rows, and no event is sent twice while both processes live. One process
/// is killed with attempts in flight. When the leases of these attempts have expired, the other
/// process makes the same attempts again, and no event is lost.
#[test]
fn two_processes_send_each_event_and_one_is_killed() {
    let (outbox, receiver) = (Outbox::new(), Receiver::start());
    let url = receiver.url("/hooks", &[Reply::Held(204)]);
    outbox.run(&["register", "acct_1", &url, SECRET]);
    let (one, other) = (outbox.start(), outbox.start());

    // Eight threads each: the receiver holds sixteen, so that both processes have some.
    outbox.calls("acct_1", 0..16);
    let got = || receiver.got("/hooks");
    eventually("all are on their way", || (got().len() == 16).then_some(()));
    one.kill();
    receiver.release();
    assert_eq!(outbox.after("delivered", 8), 8);
    assert_eq!(got().len(), 16);
    assert_eq!(outbox.after("delivered", 16), 16, "an attempt that is made again counts once");
    let ids = || -> BTreeSet<_> {
        got().iter().map(|got| got.header("x-service-delivery").to_owned()).collect()
    };
    assert_eq!((got().len(), ids().len()), (24, 16));

    // Both live: each event once, also where the outbox has it twice.
    let third = outbox.start();
    outbox.calls("acct_1", 16..116);
    outbox.calls("acct_1", 16..116);
    assert_eq!(outbox.after("delivered", 116), 116);
    eventually("the outbox is empty", || {
        let left = "SELECT count(*) FROM outbox";
        (outbox.db().query_row(left, [], |row| row.get(0)) == Ok(0)).then_some(())
    });
    assert_eq!((got().len(), ids().len()), (124, 116));
    drop((other, third));
}

/// The outcome of each behaviour of an endpoint, and the following wait. A URL that is not allowed
/// gets no request.
#[test]
fn what_endpoints_do_is_an_outcome() {
    let (outbox, receiver) = (Outbox::new(), Receiver::start());
    let mut cases = endpoints(&receiver);
    for forbidden in ["https://192.168.7.7/", "https://localhost.lan/"] {
        cases.push((forbidden.to_owned(), Outcome::Forbidden));
    }
    outbox.run(&["register", "acct_1", "https://hooks.example.com/", SECRET]);
    let db = outbox.db();
    for (position, (url, _)) in cases.iter().enumerate() {
        let account = format!("acct_{}", position + 2);
        let register = "INSERT INTO endpoints (account, url, secret, health, version)
            SELECT ?, ?, secret, health, 0 FROM endpoints WHERE id = 1";
        db.execute(register, (&account, url)).unwrap();
        outbox.calls(&account, 0..1);
    }
    let running = outbox.start();
    for (position, (url, outcome)) in cases.iter().enumerate() {
        let sql = "SELECT id FROM deliveries WHERE endpoint = ?";
        let id: u32 = eventually(url, || db.query_row(sql, [position + 2], |row| row.get(0)).ok());
        running.said(&format!("delivery {id}, attempt 1: {outcome}"));
    }
    assert_eq!(receiver.got("/elsewhere").len(), 0);
    assert_eq!(outbox.after("delivered", 2), 2);
}

/// The second secret signs at once, and the first secret also signs.
#[test]
fn a_rotated_secret_signs_next_to_the_new_one() {
    let (outbox, receiver) = (Outbox::new(), Receiver::start());
    let url = receiver.url("/hooks", &[Reply::Status(204)]);
    outbox.run(&["register", "acct_1", &url, SECRET]);
    let running = outbox.start();
    outbox.calls("acct_1", 0..1);
    outbox.after("delivered", 1);
    outbox.run(&["rotate", "1", "whsec_the-new-one"]);
    // Neither a command that is repeated nor a second rotation ends the first secret.
    for secret in ["whsec_the-new-one", "whsec_another"] {
        let again = outbox.command(&["rotate", "1", secret]).output().unwrap();
        assert!(!again.status.success());
    }
    outbox.calls("acct_1", 1..2);
    outbox.after("delivered", 2);
    drop(running);
    let got = receiver.got("/hooks");
    let signed = |secret: &str| [got[0].is_signed_with(secret), got[1].is_signed_with(secret)];
    assert_eq!([signed(SECRET), signed("whsec_the-new-one")], [[true, true], [false, true]]);
}

/// D-59: reqwest connects to an address that passed, and to no other.
#[test]
fn reqwest_makes_the_same_of_endpoints() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let target = EndpointUrl::parse("https://hooks.example.com/").unwrap();
    let addresses = |texts: &[&str]| -> Vec<_> {
        texts.iter().map(|text| text.parse::<std::net::SocketAddr>().unwrap()).collect()
    };
    let (private, public) = ("10.0.0.7:443", "93.184.215.14:443");
    let passed = posting::passing(&target, addresses(&[private, public]).into_iter());
    assert_eq!(passed, Ok(addresses(&[public])));
    assert!(posting::passing(&target, addresses(&[private, "[::1]:443"]).into_iter()).is_err());

    let receiver = Receiver::start();
    let public = posting::http_client(EndpointUrl::parse).unwrap();
    let loopback = posting::http_client(EndpointUrl::parse_allowing_loopback).unwrap();
    let forbidden = (receiver.url("/public", &[Reply::Status(204)]), Outcome::Forbidden);
    let cases = endpoints(&receiver).into_iter().map(|case| (&loopback, case));
    for (http, (url, outcome)) in cases.chain([(&public, forbidden)]) {
        let url = url.replace("127.0.0.1", "localhost");
        let request = Request::post(&url).body(b"{}".to_vec()).unwrap();
        let made = runtime.block_on(posting::post(http, request, ATTEMPT_TIMEOUT));
        assert_eq!(made, outcome, "{url}");
    }
    assert_eq!(receiver.got("/elsewhere").len() + receiver.got("/public").len(), 0);
}
