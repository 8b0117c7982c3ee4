//! The public API of hosts, side by side: the host in memory, the durable host with one process and with two,
//! and a plain host over PostgreSQL.

mod load;
mod memory;
mod plain;
mod table;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant_postgres::db;
use call_assistant_postgres::key_ring::VARIABLE;
use serde_json::{Value, json};

use crate::server::{Server, cpu_of};
use load::{Asked, Load};
use table::Figures;

const RING: &str = "1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

const ACCOUNTS: usize = 10;
const KEYS: usize = 90;
const CALLS: usize = 1_000;

const PATHS: [&str; 3] = ["/v1/account", "/v1/calls?limit=1", "/v1/calls?limit=100"];
const CLIENTS: [usize; 3] = [1, 16, 64];

/// A host that is measured, in the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Memory,
    Ours(usize),
    Plain,
}

impl Host {
    const ALL: [Self; 4] = [Self::Memory, Self::Ours(1), Self::Ours(2), Self::Plain];

    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "in memory",
            Self::Ours(1) => "ours, 1 process",
            Self::Ours(_) => "ours, 2 processes",
            Self::Plain => "plain host, 1 process",
        }
    }
}

/// What a customer asks for each second beside a flood, how many unknown keys come each second, and how long.
const CUSTOMER: u32 = 250;
const UNKNOWN: u32 = 5_000;
const SECONDS: usize = 4;

/// A customer alone and beside a flood, and the flood.
#[derive(Clone, Debug)]
struct Flood {
    alone: Load,
    beside: Load,
    unknown: Load,
}

/// One measurement, with CPU for each request.
#[derive(Clone, Debug)]
struct Figure {
    load: Load,
    database_us: f64,
    api_us: f64,
}

/// A process that answers, and ends with this value.
struct Process {
    child: Child,
    address: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts this program again, as one of the hosts.
    fn start(arguments: &[&str]) -> Self {
        let own = std::env::current_exe().expect("this program");
        let mut child = Command::new(own)
            .args(arguments)
            .env(VARIABLE, RING)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a host");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("read");
        let first: Value = serde_json::from_str(&line).expect("its first line");
        let address = first["api"].as_str().expect("a URL").trim_start_matches("http://");
        Self { address: address.to_owned(), child }
    }
}

/// Runs one of the hosts. None if the arguments name none.
pub(crate) async fn host(arguments: &[String]) -> Option<()> {
    let ended = match arguments {
        [name, data] if name == "memory" => memory::main(Path::new(data)).await,
        [name, url] if name == "plain" => plain::main(url).await,
        _ => return None,
    };
    if let Err(error) = ended {
        eprintln!("{error}");
    }
    Some(())
}

/// Measures so many rounds of so many requests, and prints the medians. `floods` measures unknown keys only.
pub(crate) async fn run(rounds: usize, requests: usize, floods: bool) {
    let folder = std::env::temp_dir().join(format!("requests-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (data, file) = data(&folder);
    let keys: Vec<String> =
        data["accounts"].as_array().into_iter().flatten().flat_map(keys).collect();

    let mut server = Server::start();
    let (ours, plain) = (server.database().await, server.database().await);
    let database = db::Database::new(&ours.url, 1).expect("a URL");
    db::migrate(&database).await.expect("migrated");
    plain::prepare(&plain.url, &data).await;
    let listen = ["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"];
    let api = || {
        Process::start(&[&["api", "--database", &ours.url, "--data", &file], &listen[..]].concat())
    };
    let (one, two) = (api(), api());
    let hosts: Vec<(Host, Vec<Process>)> = vec![
        (Host::Memory, vec![Process::start(&["memory", &file])]),
        (Host::Plain, vec![Process::start(&["plain", &plain.url])]),
    ];
    for database in [&ours, &plain] {
        database.settle().await;
    }
    let processes = |host: Host| -> Vec<&Process> {
        match host {
            Host::Ours(1) => vec![&one],
            Host::Ours(_) => vec![&one, &two],
            host => hosts.iter().filter(|(of, _)| *of == host).flat_map(|(_, all)| all).collect(),
        }
    };
    let (mut figures, mut flooded) = (Figures::new(), Vec::new());
    let cases: Vec<(&str, usize)> = match floods {
        true => Vec::new(),
        false => PATHS.iter().flat_map(|path| CLIENTS.map(|clients| (*path, clients))).collect(),
    };
    for round in 1..=rounds {
        // Keys have a quota of sixty requests of the account in a minute.
        let next = tokio::time::sleep(Duration::from_secs(61));
        for (path, clients) in cases.iter().copied() {
            for host in Host::ALL {
                let processes = processes(host);
                let addresses: Vec<String> =
                    processes.iter().map(|it| it.address.clone()).collect();
                let asked = Asked { path, keys: &keys, status: 200 };
                let ask = async |count| load::run(&addresses, clients, count, None, asked).await;
                // Each key is known by then, and its window is there.
                ask(keys.len()).await;
                let cpu = || processes.iter().map(|it| cpu_of(it.child.id())).sum::<Duration>();
                let (before, api_before) = (server.cpu(), cpu());
                let count = if clients == 1 { requests / 4 } else { requests };
                let load = ask(count).await;
                let each = |spent: Duration| spent.as_secs_f64() * 1e6 / count as f64;
                let figure = Figure {
                    load,
                    database_us: each(server.cpu() - before),
                    api_us: each(cpu() - api_before),
                };
                eprintln!("round {round}: {path}, {clients} clients, {}: {figure:?}", host.name());
                figures.entry((path, clients, host)).or_default().push(figure);
            }
        }
        let flood = flood(&processes(Host::Ours(1)), &keys).await;
        eprintln!("round {round}: {flood:?}");
        flooded.push(flood);
        if round < rounds {
            next.await;
        }
    }
    if !floods {
        println!("\n{rounds} rounds of {requests} requests, a quarter for one client; medians\n");
        table::print(&figures);
        table::print_aims(&figures);
    }
    table::print_floods(&flooded);
    let _ = fs::remove_dir_all(&folder);
}

/// A customer's requests alone, and while requests come with keys that nobody has.
async fn flood(processes: &[&Process], keys: &[String]) -> Flood {
    let addresses: Vec<String> = processes.iter().map(|it| it.address.clone()).collect();
    let unknown: Vec<String> = (0..10_000).map(|n| format!("service_live_{n:032x}")).collect();
    let known = Asked { path: PATHS[1], keys, status: 200 };
    let customer = || load::run(&addresses, 1, SECONDS * CUSTOMER as usize, Some(CUSTOMER), known);
    let flood = || {
        let asked = Asked { path: PATHS[0], keys: &unknown, status: 401 };
        load::run(&addresses, 16, SECONDS * UNKNOWN as usize, Some(UNKNOWN), asked)
    };
    // Each key is known by then.
    load::run(&addresses, 1, keys.len(), None, known).await;
    let alone = customer().await;
    let (beside, unknown) = tokio::join!(customer(), flood());
    Flood { alone, beside, unknown }
}

fn keys(account: &Value) -> Vec<String> {
    let keys = account["keys"].as_array().into_iter().flatten();
    keys.map(|key| key["secret"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The accounts, their keys and their calls, and a file of them.
fn data(folder: &Path) -> (Value, String) {
    let account = |nth: usize| {
        let key = |n: usize| {
            let n = nth * KEYS + n;
            let secret = format!("service_live_{:032x}", 0xABC_0000 + n);
            json!({ "id": format!("cred_{n}"), "name": "a key", "secret": secret })
        };
        let call = |n: usize| {
            let started = 1_767_225_600 + i64::try_from(n * 60).expect("a few");
            let at =
                |seconds: i64| Timestamp::from_unix(started + seconds).expect("2026").to_string();
            json!({
                "id": format!("call_{nth}_{n}"),
                "caller": { "contact_id": null, "phone_number": "+4930123456", "display_name": "A caller" },
                "started_at": at(0), "answered_at": at(4), "ended_at": at(40),
                "duration_seconds": 36, "summary": "Wants an appointment.", "appointment_ids": [],
                "created_at": at(41),
            })
        };
        json!({
            "id": format!("acct_{nth}"), "timezone": "UTC",
            "keys": (0..KEYS).map(key).collect::<Vec<_>>(),
            "calls": (0..CALLS).map(call).collect::<Vec<_>>(),
        })
    };
    let data = json!({ "accounts": (0..ACCOUNTS).map(account).collect::<Vec<_>>() });
    let file: PathBuf = folder.join("accounts.json");
    fs::write(&file, data.to_string()).expect("written");
    (data, file.display().to_string())
}
