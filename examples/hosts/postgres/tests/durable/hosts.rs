//! An address of several hosts, and connections whose server is gone or leads no longer.

use std::fmt::Debug;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use call_assistant_postgres::db::{Database, DbError, Session};
use private_server::{PrivateServer, Settings};
use tokio::net::UnixStream;

use crate::support::running::{File, PATIENCE};

/// The name of a host in a URL.
fn host(server: &PrivateServer) -> String {
    server.folder().to_string_lossy().replace('/', "%2F")
}

async fn run(database: &Database, sql: &str) {
    let session = database.session().await.unwrap();
    session.batch_execute(sql).await.unwrap();
    session.keep();
}

/// A server on which nothing can be written.
async fn read_only() -> PrivateServer {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 1).unwrap();
    run(&database, "ALTER SYSTEM SET default_transaction_read_only = on").await;
    run(&database, "SELECT pg_reload_conf()").await;
    server
}

/// A port that nobody listens at.
fn refusing() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

// A machine that is stopped still accepts connections.
#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_found_behind_hosts_that_are_not() {
    let (leader, follower) =
        (PrivateServer::start(Settings::default()).unwrap(), read_only().await);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("127.0.0.1:{}", silent.local_addr().unwrap().port());
    let refusing = format!("127.0.0.1:{}", refusing());
    let (leader, follower) = (host(&leader), host(&follower));
    for hosts in [
        [&silent, &refusing, &follower, &leader],
        [&follower, &silent, &leader, &refusing],
        [&leader, &silent, &silent, &silent],
    ] {
        let list = hosts.map(String::as_str).join(",");
        // Who waits for a silent host before asking the next one waits for this long.
        let url = format!("postgresql://postgres@{list}/postgres?connect_timeout=30");
        let database = Database::new(&url, 2).unwrap();
        let began = Instant::now();
        run(&database, "CREATE TEMPORARY TABLE written ()").await;
        let took = began.elapsed();
        println!("{list}: {took:?}");
        assert!(took < Duration::from_secs(15), "{list}: {took:?}");
    }

    // Where nobody leads, each host says why, after the time that the address allows.
    let nobody = format!("postgresql://postgres@{silent},{refusing},{follower}/postgres");
    for (query, least) in [("", 2.0), ("?connect_timeout=1", 1.0)] {
        let began = Instant::now();
        let error =
            Database::new(&format!("{nobody}{query}"), 2).unwrap().session().await.unwrap_err();
        let (took, said) = (began.elapsed().as_secs_f64(), error.to_string());
        println!("{took} s: {said}");
        assert!((least..15.0).contains(&took), "{query}: {took} s");
        for (place, cause) in [
            (silent.clone(), format!("no response within {least} s")),
            (refusing.clone(), "Connection refused".to_owned()),
            (follower.replace("%2F", "/"), "database does not allow writes".to_owned()),
        ] {
            let expected =
                said.split("; ").any(|part| part.contains(&place) && part.contains(&cause));
            assert!(expected, "{place}, {cause}: {said}");
        }
    }
}

#[test]
fn an_address_that_cannot_be_meant_is_refused() {
    for (url, expected) in [
        (
            "postgresql://a,b/db?target_session_attrs=read-only",
            "target_session_attrs=read-only: this program",
        ),
        ("postgresql://a,b/db?target_session_attrs=primary", "this program writes"),
        ("host=a,b,c port=1,2 user=x", "2 ports for 3 hosts: expected one for each"),
        ("host=a,b hostaddr=10.0.0.1 user=x", "1 addresses for 2 servers"),
        ("user=x", "no host: expected"),
    ] {
        let error = Database::new(url, 1).unwrap_err();
        assert!(error.starts_with("--database: ") && error.contains(expected), "{url}: {error}");
    }
}

/// The server's process of a connection.
async fn process(database: &Database) -> Result<i32, DbError> {
    let asked = database.read(async |client| {
        Ok::<_, DbError>(client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0))
    });
    asked.await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_read_only_is_never_used_again() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 2).unwrap().answering();
    // Two connections, both of a server that leads no longer, as it seems.
    let two = async || [database.session().await.unwrap(), database.session().await.unwrap()];
    let mut before: Vec<i32> = Vec::new();
    let sessions = two().await;
    for session in &sessions {
        session.batch_execute("SET default_transaction_read_only = on").await.unwrap();
        before.push(session.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0));
    }
    sessions.into_iter().for_each(Session::keep);

    let create = async |client: &deadpool_postgres::Object| {
        Ok::<_, DbError>(client.batch_execute("CREATE TABLE written ()").await?)
    };
    let refused = database.write(create).await.unwrap_err().to_string();
    assert!(refused.starts_with("25006: "), "{refused}");
    database.write(create).await.unwrap();
    for session in two().await {
        let now = session.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        assert!(!before.contains(&now), "{now} of {before:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_reads_is_repeated_once_where_its_connection_is_lost() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 2).unwrap().answering();
    let (tries, lost) = (AtomicUsize::new(0), AtomicUsize::new(1));
    let step = async |client: &deadpool_postgres::Object| {
        let lose = tries.fetch_add(1, Ordering::Relaxed) < lost.load(Ordering::Relaxed);
        let sql =
            if lose { "SELECT pg_terminate_backend(pg_backend_pid())" } else { "SELECT true" };
        Ok::<bool, DbError>(client.query_one(sql, &[]).await?.get(0))
    };
    assert!(database.read(step).await.unwrap());
    assert_eq!(tries.swap(0, Ordering::Relaxed), 2);

    // Once, and nothing that may have been stored.
    lost.store(9, Ordering::Relaxed);
    database.read(step).await.unwrap_err();
    assert_eq!(tries.swap(0, Ordering::Relaxed), 2);
    database.write(step).await.unwrap_err();
    assert_eq!(tries.swap(0, Ordering::Relaxed), 1);

    // A transaction that cannot begin, because nobody has noticed yet that its connection is lost.
    let process = process(&database).await.unwrap();
    let other = Database::new(&server.url(), 1).unwrap();
    for wait in [0, 100] {
        run(&other, &format!("SELECT pg_terminate_backend({process})")).await;
        tokio::time::sleep(Duration::from_millis(wait)).await;
        let change = async |change: &deadpool_postgres::Transaction<'_>| {
            Ok::<_, DbError>(change.batch_execute("SELECT 1").await?)
        };
        database.change(change).await.unwrap();
    }
}

// Else a server that waits for its standby would have one more connection that works after each try.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_up_is_cancelled_in_the_server() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 2).unwrap().answering();
    let other = Database::new(&server.url(), 1).unwrap();
    run(&other, "CREATE TABLE written (at timestamptz)").await;
    run(&other, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
    run(&other, "SELECT pg_reload_conf()").await;
    let count = async |sql| {
        let asked =
            other.read(async |client| Ok::<i64, DbError>(client.query_one(sql, &[]).await?.get(0)));
        asked.await.unwrap()
    };
    while count("SELECT count(*) FROM pg_settings WHERE setting = 'nobody'").await == 0 {}

    let write = async || {
        let insert = "INSERT INTO written VALUES (now())";
        let write =
            database.change(async |change| Ok::<_, DbError>(change.batch_execute(insert).await?));
        write.await.err().map(|error| error.to_string())
    };
    // A COMMIT waits once the checkpointer has read the setting, too.
    while write().await.is_none() {}
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    for number in 0..3 {
        let (one, two) = tokio::join!(write(), write());
        let both = one.zip(two).expect("a COMMIT waits for nobody");
        println!("try {number}: {both:?}");
        ends(number, async || count(waiting).await).await;
    }
}

async fn ends(case: impl Debug, count: impl AsyncFn() -> i64) {
    let began = Instant::now();
    while count().await != 0 {
        assert!(began.elapsed() < PATIENCE, "{case:?}: the server works on for who has gone");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What a relay does with connections after the first one.
#[derive(Clone, Copy, Debug)]
enum Later {
    /// The next one is closed without a word.
    OneIsLost,
    /// Each waits, as behind a machine that is busy.
    AllAreSlow,
}

/// Passes on what comes to a port.
async fn relay(server: &PrivateServer, later: Later) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = server.folder().join(".s.PGSQL.5432");
    tokio::spawn(async move {
        for number in 0.. {
            let (mut client, _) = listener.accept().await.unwrap();
            let socket = socket.clone();
            tokio::spawn(async move {
                match (later, number) {
                    (_, 0) => {}
                    (Later::OneIsLost, 1) => return,
                    (Later::OneIsLost, _) => {}
                    (Later::AllAreSlow, _) => tokio::time::sleep(Duration::from_secs(1)).await,
                }
                let mut server = UnixStream::connect(socket).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_cancel_that_is_lost_or_slow_is_no_reason_to_work_on() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let other = Database::new(&server.url(), 1).unwrap();
    for later in [Later::OneIsLost, Later::AllAreSlow] {
        let port = relay(&server, later).await;
        let url = format!("postgresql://postgres@127.0.0.1:{port}/postgres");
        let session = Database::new(&url, 1).unwrap().session().await.unwrap();
        // Nothing but a request ends it, as nothing else ends a COMMIT that waits for a standby.
        let alone = "SET statement_timeout = 0; SET client_connection_check_interval = 0";
        session.batch_execute(alone).await.unwrap();
        let sleep = session.batch_execute("SELECT pg_sleep(3600)");
        tokio::time::timeout(Duration::from_millis(100), sleep).await.unwrap_err();
        drop(session);
        let asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        ends(later, async || {
            let asked = other.read(async |client| {
                Ok::<i64, DbError>(client.query_one(asleep, &[]).await?.get(0))
            });
            asked.await.unwrap()
        })
        .await;
    }
}

// A name with several addresses, of which the first is that of a machine that is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn all_addresses_of_a_name_are_asked() {
    let mut server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 1).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    run(&database, "ALTER SYSTEM SET listen_addresses = '127.0.0.2'").await;
    run(&database, &format!("ALTER SYSTEM SET port = {port}")).await;
    server.stop();
    server.launch().unwrap();
    let names = File::new("hosts", "127.0.0.1 several\n127.0.0.2 several\n");
    // Only this process and its children have these names.
    let script = "mount --bind \"$0\" /etc/hosts && \"$@\"";
    let with_names = |program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, names.path()]).args(program).output()
    };
    if !with_names(&["true"]).is_ok_and(|done| done.status.success()) {
        println!("skipped: only root can give a name to several addresses");
        return;
    }
    let program = env!("CARGO_BIN_EXE_call-assistant-postgres");
    let url = format!("postgresql://postgres@several:{port}/postgres");
    let migrate = |query: &str| {
        let url = format!("{url}{query}");
        let done = with_names(&[program, "migrate", "--status", "--database", &url]).unwrap();
        (done.status.success(), String::from_utf8(done.stderr).unwrap())
    };
    let began = Instant::now();
    // A process that asked one address after the other would wait for the silent one for so long.
    let (found, said) = migrate("?connect_timeout=30");
    assert!(found, "{said}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());

    // Where none of them leads, the error says what each has answered.
    server.stop();
    let (found, said) = migrate("");
    assert!(!found, "{said}");
    for answer in ["127.0.0.1: no response within 2 s", "127.0.0.2: Connection refused"] {
        assert!(said.contains(answer), "{said}");
    }
}
