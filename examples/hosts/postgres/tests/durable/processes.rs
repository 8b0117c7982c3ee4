//! Several processes over one database, and a database that fails them.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use call_assistant_postgres::db::{self, Database};
use call_assistant_postgres::key_ring::VARIABLE;
use private_server::Settings;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio_postgres::{Client, NoTls};

use crate::support::running::{self, Told, eventually, request};
use crate::support::service::Service;
use crate::support::{KEY, Running, World, data, run_at, said};

/// A caller has an answer before this. The API allows itself two seconds; the rest is for a slow machine.
const IN_TIME: Duration = Duration::from_secs(20);

// RATE-1, RATE-2, D-30: the quotas are those of a key, and not of a process.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_and_six_hundred_across_two_processes() {
    let service = Service::with_calls(3).await;
    let processes = [&service.api, &service.world.start("api", &[])];
    let began = Instant::now();
    for (path, quota, asked) in
        [("/v1/account", 60, 150), ("/v1/calls?limit=1", 600, 900), ("/v1/calls/call_1", 0, 40)]
    {
        let (next, admitted, refused) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let process = processes[thread % 2];
                let (next, admitted, refused) = (&next, &admitted, &refused);
                scope.spawn(move || {
                    while next.fetch_add(1, Ordering::Relaxed) < asked {
                        let answer = process.get(path);
                        let count = match answer.status {
                            200 => admitted,
                            429 => {
                                let wait = answer.header("retry-after").unwrap().parse::<u64>();
                                assert!((1..=60).contains(&wait.unwrap()));
                                refused
                            }
                            status => panic!("{path}: {status} {}", answer.text()),
                        };
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let counted = (admitted.into_inner(), refused.into_inner());
        if began.elapsed() < Duration::from_secs(60) {
            assert_eq!(counted, (quota, asked - quota), "{path}");
        } else {
            // The first ones count no longer: this machine is slow.
            assert!(counted.0 >= quota, "{path}: {counted:?}");
        }
    }
}

// KEY-4, KEY-6, D-22: what one process does, every other one knows.
#[tokio::test(flavor = "multi_thread")]
async fn processes_share_all_there_is() {
    let service = Service::with_calls(3).await;
    let (one, two) = (&service.api, &service.world.start("api", &[]));

    let page = one.get("/v1/calls?limit=2").json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = two.get(&format!("/v1/calls?cursor={cursor}")).json();
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["has_more"]), (1, &json!(false)));

    let call = one.ask("POST", "/accounts/acct_1/calls", &json!({}), 201);
    let path = format!("/v1/calls/{}", call["id"].as_str().unwrap());
    assert_eq!(two.get(&path).json()["id"], call["id"]);

    // The first use is written at once, and the next ones of a minute are not.
    let used = || two.ask("GET", "/accounts/acct_1/keys", &json!({}), 200)["data"][0].clone();
    let first = used()["last_used_at"].clone();
    assert!(first.is_string());
    for process in [one, two] {
        assert_eq!(process.get("/v1/calls").status, 200);
    }
    assert_eq!(used()["last_used_at"], first);

    // A key is replaced, and no process refuses it.
    let asked = json!({ "name": "the next one", "mode": "live", "scopes": ["calls:read"] });
    let made = one.ask("POST", "/accounts/acct_1/keys", &asked, 201);
    let new = made["secret"].as_str().unwrap();
    let each = || {
        [(one, KEY), (two, KEY), (one, new), (two, new)].map(|(api, key)| {
            let authorization = format!("Authorization: Bearer {key}\r\n");
            request(api.api(), "GET", "/v1/calls", &authorization, b"").status
        })
    };
    assert_eq!(each(), [200; 4]);
    // The uses of both are seen, so that the old one is not revoked while somebody has it.
    let keys = two.ask("GET", "/accounts/acct_1/keys", &json!({}), 200);
    assert!(keys["data"].as_array().unwrap().iter().all(|key| key["last_used_at"].is_string()));
    one.ask("POST", "/keys/cred_1/revoke", &json!({}), 200);
    assert_eq!(each(), [401, 401, 200, 200]);
}

#[track_caller]
fn is_in_time(began: Instant, what: &str) {
    let took = began.elapsed();
    assert!(took < IN_TIME, "{what}: {took:?}");
}

/// Asks until nothing but refusals came for a while, each of them in the envelope and in time.
#[track_caller]
fn refused(process: &Running, what: &str) {
    eventually(&format!("a refusal: {what}"), || {
        let began = Instant::now();
        let answer = process.get("/v1/calls?limit=1");
        is_in_time(began, what);
        (answer.status == 500).then_some(())
    });
    for request in 0..20 {
        let began = Instant::now();
        let answer = process.get("/v1/account");
        is_in_time(began, &format!("{what}, request {request}"));
        assert_eq!(answer.status, 500, "{what}, request {request}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "internal_error", "{what}, request {request}");
        assert_eq!(error["request_id"], answer.header("x-request-id").unwrap(), "{what}");
    }
    let refused = process.ask("GET", "/accounts", &json!({}), 503);
    assert_eq!(refused["error"]["code"], "unavailable", "{what}");
}

/// A server all of whose processes are stopped, until this is dropped: connections are accepted by the
/// system, and nobody answers.
struct Silent(Vec<Pid>);

impl Silent {
    fn now(world: &World) -> Self {
        Self(world.server.signal_all(Signal::STOP))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}

// ERR-1, ERR-2: 500 in the envelope, at once, and back by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_fails() {
    const CONNECTIONS: u16 = 24;
    let settings = Settings { connections: CONNECTIONS, ..Settings::default() };
    let Service { mut world, api: process, .. } = Service::of(&data(3), settings).await;
    assert_eq!(process.get("/v1/account").status, 200);

    world.server.stop();
    refused(&process, "it is stopped");
    world.server.launch().unwrap();
    process.becomes("/v1/account", 200);

    world.server.kill();
    refused(&process, "it was killed");
    world.server.launch().unwrap();
    process.becomes("/v1/account", 200);

    // A statement waits for a lock that somebody keeps: that one request has no answer in time.
    let held = world.held("LOCK TABLE keys IN ACCESS EXCLUSIVE MODE").await;
    let began = Instant::now();
    assert_eq!(process.get("/v1/account").status, 500, "a table is locked");
    is_in_time(began, "a table is locked");
    process.ask("GET", "/accounts", &json!(null), 200);
    drop(held);
    process.becomes("/v1/account", 200);

    // The server is silent. One tries whether it is better, for the two seconds that a step may take.
    // Nobody else waits, and a quarter of a second passes before the next one tries.
    let silent = Silent::now(&world);
    let began = Instant::now();
    assert_eq!(process.get("/v1/account").status, 500, "it is silent");
    is_in_time(began, "it is silent");
    let (began, mut waits) = (Instant::now(), Vec::new());
    for _ in 0..20 {
        let began = Instant::now();
        assert_eq!(process.get("/v1/account").status, 500);
        waits.extend(Some(began.elapsed()).filter(|took| *took >= Duration::from_secs(2)));
    }
    let quick = began.elapsed() - waits.iter().sum::<Duration>();
    let allowed = 1 + quick.as_millis() / 250;
    assert!(waits.len() as u128 <= allowed, "{waits:?} and {quick:?}");
    drop(silent);
    process.becomes("/v1/account", 200);

    // Every connection is taken: who else has one loses it.
    let mut config: tokio_postgres::Config = world.server.url().parse().unwrap();
    config.application_name("taker");
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                  WHERE backend_type = 'client backend' AND application_name <> 'taker'";
    let mut held = Vec::<Client>::new();
    while held.len() < CONNECTIONS.into() {
        match (config.connect(NoTls).await, held.last()) {
            (Ok((client, connection)), _) => {
                tokio::spawn(connection);
                held.push(client);
            }
            (Err(_), Some(first)) => drop(first.query(others, &[]).await.unwrap()),
            (Err(_), None) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    refused(&process, "it has no connection left");
    drop(held);
    process.becomes("/v1/account", 200);
}

/// A login is one of all processes: so are its end, and the revocation of an owner's link.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_has_ended_has_ended_in_every_process() {
    let service = Service::new().await;
    let token = "the-operators-own-token";
    let [one, two] = [(); 2].map(|()| {
        let mut command = service.world.command("api", &[]);
        command.env("OPERATOR_TOKEN", token);
        Running::of(command)
    });
    let ask = |at: &Running, headers: &str, method, path, body: &str| {
        request(at.dashboard(), method, path, headers, body.as_bytes())
    };
    let cookie = |answer: &running::Answer| {
        let (pair, _) = answer.header("set-cookie").unwrap().split_once(';').unwrap();
        format!("Cookie: {pair}\r\n")
    };
    let shown = |at: &Running, headers: &str| {
        ask(at, headers, "GET", "/accounts/acct_1/overview", "").status
    };
    let login = json!({ "token": token }).to_string();
    let operator = cookie(&ask(&one, "", "POST", "/login", &login));
    let made = ask(&one, &operator, "POST", "/accounts/acct_1/portal", "");
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json()["path"].as_str().unwrap().to_owned();
    let link = json!({ "link": made.strip_prefix("/portal#link=").unwrap() }).to_string();
    // The link of one process is known to the other.
    let begun = ask(&two, "", "POST", "/portal-login", &link);
    let pass = begun.json()["token"].as_str().unwrap().to_owned();
    let owner = format!("{}X-Portal-Token: {pass}\r\n", cookie(&begun));
    for (at, name) in [(&one, "one"), (&two, "two")] {
        assert_eq!((shown(at, &operator), shown(at, &owner)), (200, 200), "{name}");
    }
    let revoked = ask(&one, &operator, "DELETE", "/accounts/acct_1/portal", "");
    assert_eq!(revoked.json(), json!({ "revoked": 1 }));
    assert_eq!(ask(&two, &operator, "DELETE", "/login", "").status, 200);
    for (at, name) in [(&one, "one"), (&two, "two")] {
        assert_eq!((shown(at, &operator), shown(at, &owner)), (401, 401), "{name}");
        assert_eq!(ask(at, "", "POST", "/portal-login", &link).status, 401, "{name}");
    }
    // No secret is stored.
    assert_eq!(service.count("SELECT count(digest) FROM logins WHERE ended").await, 2);
    assert_eq!(service.count("SELECT count(*) FROM logins").await, 2);
    // What an account's links were goes with the account.
    service.run("DELETE FROM accounts WHERE id = 'acct_1'").await;
    let left = "SELECT count(*) FROM logins WHERE account_id IS NOT NULL";
    assert_eq!(service.count(left).await, 0);
}

/// The commands between backticks that pages show, and the flags of each.
fn commands_of(pages: &[&str], helps: &BTreeMap<String, String>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for text in pages.iter().flat_map(|page| page.split('`').skip(1).step_by(2)) {
        let text = text.trim_start_matches("call-assistant-postgres ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let command = words.iter().take_while(|word| !word.starts_with('-'));
        let command: Vec<&str> = command.copied().collect();
        // A value may follow, as an id does. One word alone may be any name.
        let named = (1..=command.len()).rev().map(|to| command[..to].join(" "));
        let Some(name) = named.into_iter().find(|name| helps.contains_key(name)) else { continue };
        let flags = words.iter().filter(|word| word.starts_with("--"));
        found.entry(name).or_default().extend(flags.map(|flag| (*flag).to_owned()));
    }
    found
}

fn run(arguments: &[&str]) -> Told {
    said(program().args(arguments))
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"))
}

/// A demonstration, with these variables.
fn demo(command: &mut Command) -> Running {
    command.args(["demo", "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]);
    Running::of(command)
}

/// The help texts of the program, of its groups and of their commands, by their names.
pub(crate) fn help_texts() -> &'static BTreeMap<String, String> {
    static HELPS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    HELPS.get_or_init(read_help_texts)
}

fn read_help_texts() -> BTreeMap<String, String> {
    let said = |arguments: &[&str]| {
        let said = run(arguments);
        assert_eq!((said.code, &*said.stderr), (Some(0), ""), "{arguments:?}");
        said.stdout
    };
    let version = concat!("call-assistant-postgres ", env!("CARGO_PKG_VERSION"), "\n");
    let mut waiting = vec![Vec::new()];
    let mut helps = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        let help = said(&[&path[..], &["--help"]].concat());
        assert!(help.contains("\nUsage: call-assistant-postgres"), "{path:?}: {help}");
        assert_eq!(said(&[&path[..], &["--version"]].concat()), version, "{path:?}");
        helps.insert(path.join(" "), help.clone());
        // The commands of a group stand below each other, with what they do.
        let Some((_, commands)) = help.split_once("\nCommands:\n") else { continue };
        for line in commands.lines().take_while(|line| line.starts_with("  ")) {
            let name = line.split_whitespace().next().unwrap().to_owned().leak();
            waiting.push([&path[..], &[&*name]].concat());
        }
    }
    assert!(helps.len() > 9, "{helps:?}");
    helps
}

/// Every role says what it takes, to whoever reads standard output, and so does the program.
#[test]
fn each_role_has_a_help_text() {
    let helps = help_texts();
    let pages = [
        include_str!("../../docs/operating.md"),
        include_str!("../../docs/scaling.md"),
        include_str!("../../docs/failover.md"),
        include_str!("../../docs/roles.md"),
        include_str!("../../../../../src/guide/security.md"),
    ];
    let told = commands_of(&pages, helps);
    assert!(told.len() > 8, "{told:?}");
    for (command, flags) in told {
        for flag in flags {
            assert!(helps[&command].contains(&flag), "a page has `{command} {flag}`");
        }
    }
    for (arguments, words) in [
        (&["migrat"][..], "unknown command migrat; did you mean migrate?\nUsage: "),
        (&["pause"], "unknown command pause; did you mean levers set?\nUsage: "),
        (&["endpoints", "retry"], "unknown command retry; did you mean deliveries redeliver?\n"),
        (&["ping"], "unknown command ping; did you mean endpoints ping?\n"),
        (&["redeliver"], "unknown command redeliver; did you mean deliveries redeliver?\n"),
        (&["eraze"], "unknown command eraze; did you mean erase?\n"),
        // Nobody who does not ask for it is told how to remove something.
        (&["prase"], "unknown command prase\n"),
        (&[], "expected one of demo, migrate, api, "),
        (&["api", "--databse", "x"], "unknown flag --databse; did you mean --database?\nUsage: "),
        (&["api", "whsec_secret"], "too many arguments\nUsage: call-assistant-postgres api "),
        (&["whsec_0123456789abcdef0123456789abcdef0123456789"], "unknown command\n"),
    ] {
        let Told { code, stderr: told, .. } = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(told.starts_with(words) && !told.contains("whsec"), "{arguments:?}: {told}");
    }
}

// A process does not start on a database that is not as it needs it.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_start() {
    let world = World::new(Settings::default()).await;
    let mut without_ring = world.command("api", &[]);
    without_ring.env_remove(VARIABLE);
    let mut without_database = world.command("api", &[]);
    without_database.env_remove("DATABASE_URL");
    let mut nowhere = world.command("api", &["--keys", "/nowhere"]);
    let no_ring = "--keys: no key ring: the environment variable SECRETS_KEY_RING: not set; \
        `keygen 1` prints the first";
    for (command, message) in [
        (&mut without_ring, no_ring),
        (&mut without_database, "missing --database: set DATABASE_URL, or give --database;"),
        (&mut nowhere, "--keys: no key ring: /nowhere: "),
    ] {
        let said = said(command);
        assert_eq!(said.code, Some(2), "{message}");
        assert!(said.stderr.starts_with(message), "{}", said.stderr);
    }
    // A failed start reports only its own error, and nothing of the tasks that it had begun.
    for role in ["sender", "all"] {
        let said = said(&mut world.command(role, &["--trust-ca", "/nowhere"]));
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(
            said.stderr.starts_with("call-assistant-postgres: --trust-ca: "),
            "{}",
            said.stderr
        );
        assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    }
    let empty = private_server::PrivateServer::start(Settings::default()).unwrap();
    let no_such = format!("{}/no_such", empty.url().rsplit_once('/').unwrap().0);
    for (url, messages) in [
        (&empty.url(), ["migration 1 is not applied: ", "run `migrate --database URL` first"]),
        (
            &no_such,
            [
                "\"no_such\" does not exist: create the database",
                "run `migrate --database URL` first",
            ],
        ),
    ] {
        for role in ["api", "sender", "all"] {
            let said = said(world.command(role, &[]).env("DATABASE_URL", url));
            assert_eq!(said.code, Some(1), "{role} {url}");
            let is_told = messages.iter().all(|message| said.stderr.contains(message));
            assert!(is_told, "{role} {url}: {}", said.stderr);
        }
    }
}

#[tokio::test]
async fn a_demonstration_names_its_database() {
    let demo = demo(&mut program());
    // Its keys are made by it, and there is one to try.
    let key = demo.first["accounts"][0]["keys"][0]["secret"].as_str().unwrap();
    let bearer = format!("Authorization: Bearer {key}\r\n");
    assert_eq!(request(demo.api(), "GET", "/v1/account", &bearer, b"").status, 200);
    let (url, ring) = eventually("its database and its key ring", || {
        let log = demo.log();
        let (_, rest) = log.split_once("Its database, while it runs: psql ")?;
        let (url, rest) = rest.split_once('\n')?;
        let (_, rest) = rest.split_once(&format!("export DATABASE_URL='{url}' {VARIABLE}="))?;
        Some((url.to_owned(), rest.split_once('\n')?.0.to_owned()))
    });
    db::check(&Database::new(&url, 1).unwrap()).await.unwrap();
    // What seals works beside it.
    let create = ["endpoints", "create", "acct_fjord_dental", "--url", "https://example.com/"];
    let said = run_at(&url, &ring, &create);
    assert!(said.code == Some(0) && said.stdout.contains("whsec_"), "{}", said.stderr);
    demo.end();
    let gone = db::check(&Database::new(&url, 1).unwrap()).await.unwrap_err();
    assert!(gone.to_string().starts_with("no connection to "), "{gone}");
}

#[test]
fn a_demonstration_that_is_killed_leaves_nothing() {
    let folder = std::env::temp_dir().join(format!("demo-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    // The server's own user removes its folder from it.
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    drop(demo(program().env("TMPDIR", &folder)));
    eventually("its folder is gone", || {
        (std::fs::read_dir(&folder).unwrap().count() == 0).then_some(())
    });
    std::fs::remove_dir(&folder).unwrap();
}
