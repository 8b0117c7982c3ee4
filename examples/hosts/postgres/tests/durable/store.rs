//! The store on a database of its own.

use call_assistant_postgres::db::{self, Database, DbError};
use call_assistant_postgres::queue::SHARDS;
use private_server::{PrivateServer, Settings};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::support::running::File;
use crate::support::service::Service;
use crate::support::{Running, World, data};

#[tokio::test]
async fn migrations_are_applied_once_and_checked() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 4).unwrap();
    let error = db::check(&database).await.unwrap_err();
    assert_eq!(error.to_string(), "migration 1 is not applied: run `migrate --database URL` first");

    let (first, second) = tokio::join!(db::migrate(&database), db::migrate(&database));
    first.unwrap();
    second.unwrap();
    db::check(&database).await.unwrap();

    let sql = "UPDATE migrations SET digest = ''";
    database.read(async |client| Ok::<_, DbError>(client.execute(sql, &[]).await?)).await.unwrap();
    let error = db::check(&database).await.unwrap_err();
    assert_eq!(error.to_string(), "migration 1 as applied differs from the one of this build");
}

// A pooler that drops `options` leaves a session as one that has other settings.
#[tokio::test]
async fn sessions_without_their_settings_are_refused() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    db::migrate(&Database::new(&server.url(), 1).unwrap()).await.unwrap();
    for (name, value) in [
        ("plan_cache_mode", "auto"),
        ("enable_seqscan", "on"),
        ("jit", "on"),
        ("statement_timeout", "0"),
        ("lock_timeout", "0"),
    ] {
        let url = format!("{}?options=-c%20{name}%3D{value}", server.url());
        let error = db::check(&Database::new(&url, 1).unwrap()).await.expect_err(name);
        let expected = format!("the setting `{name}` of this program's sessions is ignored");
        assert!(error.to_string().starts_with(&expected), "{name}: {error}");
    }
    let url = format!("{}?options=-c%20statement_timeout%3D900", server.url());
    db::check(&Database::new(&url, 1).unwrap()).await.unwrap();
}

/// The SHA-256 of each migration, which databases have stored. A migration is never changed, not by a
/// space: what changes comes as a new file, and a line here.
const DIGESTS: [(&str, &str); 18] = [
    ("0001_schema.sql", "0fb9372ff8cc206cb06d884887481b95a7432cd9efbf6116fb25098b63d962b5"),
    ("0002_renewals.sql", "61bddccfca748be739e1ab57fc5919bcd2ac82a778478c41451e3a463432be00"),
    ("0003_clocks.sql", "1fc10b294fbdd2eda1873b60c92ca32c143aafc9b03decdfcff94b77b07dd850"),
    ("0004_erasing.sql", "8800be5a5db6179ee005a3e4584847f9709e03cb544bde90b70cd22f85d5bf55"),
    ("0005_recoveries.sql", "7cef008098169c62b2feb91fab9f30c7deda98f13fd7d1896a04700a8785e831"),
    ("0006_late_calls.sql", "6d31858e95d1bce4982905316cb1e8d7dd95f8be879f4d4e30e78cc03e995f43"),
    (
        "0007_request_windows.sql",
        "8551c4b5222215dc0a07a8ca1245837b641cba7e2ef7e6a92b5ec05bf34371f6",
    ),
    ("0008_accounts.sql", "da86f3a9a70430ce567828f1568f801d850313ace077c5f8380e0841af8c4230"),
    ("0009_days_as_owner.sql", "6b3868ca69f53346198faea778aeab703f60ac33ed92b73d8df835e0c0f51342"),
    ("0010_logins.sql", "d635522c8acfc8c4e635e3d13914bb893665966729c92f462669ee0fcd8a21b0"),
    ("0011_alerts.sql", "1760b9b4c332f193cdeaa2ac81f939f38f4d3ed251cd7eee491f575d1f98e8b3"),
    ("0012_levers.sql", "8850172880068bbc8242ceac45f2d35be19f94cb3238400e56e79878656616d3"),
    ("0013_dashboard.sql", "5f0f682dca39b23183c0a4b578975ae123a2bc8fd13c7dfba9671ee923f077c7"),
    ("0014_traces.sql", "0b42341706c59816dd04135a48a6b829f709b538a7f03a1ea44f363eba40648c"),
    ("0015_journal.sql", "e3e3a7a26a5e70d584493bd1ac71c4ea33a49d9172d9a17f81e983c9f2ae5e15"),
    ("0016_gauges.sql", "077f41b96d5fb76d41246c6e0dd5f8a285bdda9854439bf4744d4c76df54727f"),
    ("0017_sender_places.sql", "e7cfd8d47b5b616b15fc00e85047937dfa2fa908e6ef1c0762413b19beac36c6"),
    ("0018_kept_shards.sql", "ee28e4928eddab0ef9a3519b984d1c4ce86db33603c54eaff87fb34211403f4b"),
];

#[test]
fn no_migration_is_changed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    for (name, expected) in DIGESTS {
        let sql = std::fs::read(format!("{folder}/{name}")).unwrap();
        let digest: String = Sha256::digest(sql).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, expected, "{name}");
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), DIGESTS.len());
}

#[tokio::test]
async fn each_shard_has_its_row() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 1).unwrap();
    db::migrate(&database).await.unwrap();
    let sql = "SELECT shard FROM shards ORDER BY shard";
    let rows = database.read(async |client| Ok::<_, DbError>(client.query(sql, &[]).await?));
    let shards: Vec<i16> = rows.await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(shards, (0..i16::try_from(SHARDS.get()).unwrap()).collect::<Vec<_>>());
}

/// An alert whose transaction ends late is behind all that was read before, and none is read twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_that_is_committed_late_is_not_left_out() {
    let world = World::new(Settings::default()).await;
    let file = File::new("alerts.json", &data(1).to_string());
    let flags = ["--data", file.path(), "--allow-loopback-endpoints"];
    let [one, two] = [(); 2].map(|()| world.start("api", &flags));
    let asked = json!({ "url": "http://127.0.0.1:9/" });
    one.ask("POST", "/accounts/acct_1/endpoints", &asked, 201);
    let alert = |version: u32| {
        format!(
            "INSERT INTO alerts (endpoint, version, at, alert)
             SELECT number, {version}, now(), '{{\"kind\":\"suspect\"}}' FROM endpoints"
        )
    };
    let late = world.database.session().await.unwrap();
    late.batch_execute(&format!("BEGIN; {}", alert(1))).await.unwrap();
    let session = world.database.session().await.unwrap();
    session.batch_execute(&alert(2)).await.unwrap();
    let read = |at: &Running, after: &str| {
        let page = at.ask("GET", &format!("/alerts?wait=0&after={after}"), &json!(null), 200);
        let ids = page["data"].as_array().unwrap().iter();
        let ids: Vec<String> = ids.map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        (ids, page["next"].as_str().unwrap().to_owned())
    };
    let (ids, next) = read(&one, "");
    assert_eq!(ids, ["alrt_2"]);
    assert_eq!(read(&two, &next).0, [""; 0]);
    late.batch_execute("COMMIT").await.unwrap();
    // The cursor is of the database, not of a process.
    drop(one);
    let (ids, next) = read(&two, &next);
    assert_eq!(ids, ["alrt_1"], "it was committed after what was read");
    // Many readers at once give each alert one place.
    for version in 3..40 {
        session.batch_execute(&alert(version)).await.unwrap();
        let reads: Vec<_> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3).map(|_| scope.spawn(|| read(&two, &next).0)).collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        let expected: Vec<String> = (3..=version).map(|id| format!("alrt_{id}")).collect();
        assert!(reads.iter().all(|ids| *ids == expected), "{version}: {reads:?}");
    }
    two.ask("GET", "/alerts?after=9999", &json!(null), 409);
    let noted = two.ask("POST", "/alerts/alrt_1/acknowledge", &json!({ "by": "Ada" }), 200);
    assert_eq!(noted["acknowledged"]["by"], "Ada");
}

/// Accounts are found by the beginning of an id or a name, in pages.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_searched() {
    let service = Service::new().await;
    let add =
        "INSERT INTO accounts (id, business_name, timezone, plan, subscription_active, closing)
        SELECT 'acct_s' || n, CASE n % 3 WHEN 0 THEN 'Fjord ' || n WHEN 1 THEN 'Ås_100% ' || n END,
            'UTC', 'pro', true, false FROM generate_series(100, 219) AS n";
    service.run(add).await;
    let ask = |query: &str| service.api.ask("GET", &format!("/accounts?{query}"), &json!({}), 200);
    for (search, found) in [
        ("acct_s", 120),
        ("acct_s10", 10),
        ("acct_s107", 1),
        ("ACCT_S107", 0),
        ("fJORD+", 40),
        ("Fjord+102", 1),
        ("%C3%85s_100%25+", 40),
        ("%25", 0),
        ("_", 0),
    ] {
        let all = ask(&format!("search={search}"))["data"].as_array().unwrap().clone();
        assert_eq!(all.len(), found, "{search}");
        let (mut pages, mut after) = (Vec::new(), String::new());
        loop {
            let page = ask(&format!("search={search}&limit=7&after={after}"));
            pages.extend(page["data"].as_array().unwrap().clone());
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(pages, all, "{search}");
    }
}
