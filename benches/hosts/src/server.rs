//! One PostgreSQL server for all hosts, a database for each run, and what it counts.

use std::fs;
use std::time::Duration;

use private_server::{PrivateServer, Settings};
use tokio_postgres::{Client, NoTls};

#[derive(Debug)]
pub(crate) struct Server {
    server: PrivateServer,
    databases: u32,
}

#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) name: String,
    pub(crate) client: Client,
}

/// What the server has done by now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: i64,
    pub(crate) wal_bytes: i64,
    pub(crate) dead_tuples: i64,
    /// Of all processes of the server.
    pub(crate) cpu: Duration,
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

impl Server {
    pub(crate) fn start() -> Self {
        let settings = Settings { fsync: true, connections: 400 };
        Self { server: PrivateServer::start(settings).expect("a server"), databases: 0 }
    }

    /// An empty database.
    pub(crate) async fn database(&mut self) -> Database {
        self.databases += 1;
        let name = format!("run_{}", self.databases);
        let url = self.server.url();
        let maintenance = connect(&url).await;
        maintenance.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("created");
        let url = format!("{}/{name}", url.strip_suffix("/postgres").expect("its name"));
        let client = connect(&url).await;
        Database { url, name, client }
    }

    pub(crate) async fn counters(&self, database: &Database) -> Counters {
        // What a session has counted reaches the view a little later.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        self.counters_now(database).await
    }

    pub(crate) async fn counters_now(&self, database: &Database) -> Counters {
        let row = database
            .client
            .query_one(
                "SELECT xact_commit, (pg_current_wal_lsn() - '0/0')::bigint,
                    (SELECT coalesce(sum(n_tup_upd + n_tup_del), 0)::bigint
                        FROM pg_stat_user_tables)
                FROM pg_stat_database WHERE datname = $1",
                &[&database.name],
            )
            .await
            .expect("its counters");
        Counters {
            commits: row.get(0),
            wal_bytes: row.get(1),
            dead_tuples: row.get(2),
            cpu: self.cpu(),
        }
    }

    /// The time of the first process, of its children, and of those that have ended.
    pub(crate) fn cpu(&self) -> Duration {
        let first = self.server.pid().expect("it runs").as_raw_nonzero().get();
        let processes = fs::read_dir("/proc").expect("a system with /proc").flatten();
        let mut ticks = 0;
        for process in processes {
            let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
            // The name may have spaces; nothing behind its parenthesis has.
            let Some((head, rest)) = stat.rsplit_once(") ") else { continue };
            let fields: Vec<i64> = rest.split(' ').skip(1).filter_map(|f| f.parse().ok()).collect();
            let own = head.split(' ').next().and_then(|pid| pid.parse().ok()) == Some(first);
            // After the state: parent, then 9 more, utime, stime, cutime, cstime.
            if own {
                ticks += fields[10..14].iter().sum::<i64>();
            } else if fields.first() == Some(&i64::from(first)) {
                ticks += fields[10..12].iter().sum::<i64>();
            }
        }
        Duration::from_millis(u64::try_from(ticks).unwrap_or(0) * 10)
    }
}

/// The time of one process.
pub(crate) fn cpu_of(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let (_, rest) = stat.rsplit_once(") ").expect("its name");
    let ticks: u64 = rest.split(' ').skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

impl Database {
    /// Leaves nothing to do from before: statistics are there, and what is dirty is on the disk.
    pub(crate) async fn settle(&self) {
        self.client.batch_execute("VACUUM ANALYZE").await.expect("vacuumed");
        self.client.batch_execute("CHECKPOINT").await.expect("written");
    }

    /// A transaction that is held open until the client is dropped.
    pub(crate) async fn hold_open(&self) -> Client {
        let client = connect(&self.url).await;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
        client.batch_execute(begin).await.expect("begun");
        client
    }
}
