//! The statements of the library's pages, each as it stands there, and a database to run them on.

use call_assistant::Timestamp;
use private_server::{PrivateServer, Settings};
use tokio_postgres::{Client, NoTls};

pub(crate) fn server() -> PrivateServer {
    PrivateServer::start(Settings::default()).unwrap()
}

pub(crate) async fn connect(server: &PrivateServer) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The statements of a file, without its comments.
pub(crate) fn statements(file: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    for line in file.lines() {
        let code = line.split("--").next().unwrap_or_default().trim_end();
        if !code.is_empty() {
            let statement = statements.last_mut().unwrap();
            statement.push_str(code);
            statement.push('\n');
            if code.ends_with(';') {
                statements.push(String::new());
            }
        }
    }
    let rest = statements.pop().unwrap();
    assert_eq!(rest, "", "a statement without an end");
    statements
}

/// The only statement of a file that begins like this.
#[track_caller]
pub(crate) fn statement(file: &str, beginning: &str) -> String {
    let mut found = statements(file);
    found.retain(|statement| statement.starts_with(beginning));
    let [one] = found.try_into().expect(beginning);
    one
}

/// Seconds after an instant of 2026, in whole microseconds.
pub(crate) fn second(seconds: i64) -> Timestamp {
    Timestamp::from_unix(1_767_225_600 + seconds).unwrap()
}

/// Numbers that look random and are the same at each run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
