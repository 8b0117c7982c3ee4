//! The store on a database of its own.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::Delivery;
use call_assistant_postgres::clock;
use call_assistant_postgres::db::{self, Database, DbError, delivery_of};
use call_assistant_postgres::queue::SHARDS;
use private_server::{PrivateServer, Settings};
use serde_json::json;
use testing::port;

use crate::support::Running;
use crate::support::service::Service;

#[tokio::test]
async fn migrations_and_settings_of_sessions_are_checked() {
    let server = PrivateServer::start(Settings::default()).unwrap();
    let database = Database::new(&server.url(), 4).unwrap();
    let error = db::check(&database).await.unwrap_err();
    assert_eq!(error.to_string(), "migration 1 is not applied: run `migrate --database URL` first");

    let (first, second) = tokio::join!(db::migrate(&database), db::migrate(&database));
    first.unwrap();
    second.unwrap();
    db::check(&database).await.unwrap();
    let sql = "SELECT shard FROM shards ORDER BY shard";
    let rows = database.read(async |client| Ok::<_, DbError>(client.query(sql, &[]).await?));
    let shards = rows.await.unwrap().into_iter().map(|row| row.get::<_, i16>(0));
    assert!(shards.eq(0..i16::try_from(SHARDS.get()).unwrap()), "each shard has its row");

    // A pooler that drops `options` leaves a session as one that has other settings.
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

    let sql = "UPDATE migrations SET digest = ''";
    database.read(async |client| Ok::<_, DbError>(client.execute(sql, &[]).await?)).await.unwrap();
    let error = db::check(&database).await.unwrap_err();
    assert_eq!(error.to_string(), "migration 1 as applied differs from the one of this build");
}

/// An alert whose transaction ends late is behind all that was read before, and none is read twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_alert_that_is_committed_late_is_not_left_out() {
    let service = Service::new().await;
    let (one, two) = (service.world.start("api", &[]), &service.api);
    service.endpoint("/hook", &[]);
    let alert = |version: u32| {
        format!(
            "INSERT INTO alerts (endpoint, version, at, alert)
             SELECT number, {version}, now(), '{{\"kind\":\"suspect\"}}' FROM endpoints"
        )
    };
    let late = service.world.held(&alert(1)).await;
    service.run(&alert(2)).await;
    let read = |at: &Running, after: &str| {
        let page = at.ask("GET", &format!("/alerts?wait=0&after={after}"), &json!(null), 200);
        let ids = page["data"].as_array().unwrap().iter();
        let ids: Vec<String> = ids.map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        (ids, page["next"].as_str().unwrap().to_owned())
    };
    let (ids, next) = read(&one, "");
    assert_eq!(ids, ["alrt_2"]);
    assert_eq!(read(two, &next).0, [""; 0]);
    late.batch_execute("COMMIT").await.unwrap();
    // The cursor is of the database, not of a process.
    drop(one);
    let (ids, next) = read(two, &next);
    assert_eq!(ids, ["alrt_1"], "it was committed after what was read");
    // Many readers at once give each alert one place.
    for version in 3..40 {
        service.run(&alert(version)).await;
        let reads: Vec<_> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3).map(|_| scope.spawn(|| read(two, &next).0)).collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        let expected: Vec<String> = (3..=version).map(|id| format!("alrt_{id}")).collect();
        assert!(reads.iter().all(|ids| *ids == expected), "{version}: {reads:?}");
    }
    two.ask("GET", "/alerts?after=9999", &json!(null), 409);
    let noted = two.ask("POST", "/alerts/alrt_1/acknowledge", &json!({ "by": "Ada" }), 200);
    assert_eq!(noted["acknowledged"]["by"], "Ada");
}

/// A database with one endpoint, and nobody who sends to it.
struct Tables<'a>(&'a Service, String, Database);

impl port::World for Tables<'_> {
    type Store = Database;

    fn store(&self) -> &Database {
        &self.2
    }

    async fn accept(&self) -> Delivery {
        self.0.ping(&self.1);
        let session = self.0.world.session().await;
        let sql = "SELECT * FROM deliveries ORDER BY id DESC LIMIT 1";
        let row = session.query_one(sql, &[]).await.unwrap();
        session.keep();
        delivery_of(&row).unwrap()
    }

    async fn attempts(&self, delivery: &Delivery) -> usize {
        let sql = "SELECT count(*) FROM attempts WHERE delivery = $1";
        let count = self.0.ask(sql, &[&delivery.id().cast_signed()]).await;
        usize::try_from(count).unwrap()
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_what_the_port_promises() {
    let service = Service::new().await;
    let database = &service.world.database;
    // Also where a step has no deadline of its own.
    for (path, database) in [("/hook", database.clone()), ("/unhurried", database.unhurried())] {
        let endpoint = service.endpoint(path, &[]);
        port::holds(&Tables(&service, endpoint, database)).await;
    }
}
