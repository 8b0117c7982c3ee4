//! Days: when they are there, and when they go.

use call_assistant::Timestamp;
use call_assistant_postgres::queue::{Accepted, accept};
use serde_json::json;

use crate::support::ping_of;
use crate::support::receiver::Reply;
use crate::support::running::eventually;
use crate::support::service::{PENDING, Service};

fn days_ago(days: i64) -> Timestamp {
    let now = Timestamp::from(std::time::SystemTime::now()).unix_seconds();
    Timestamp::from_unix(now - days * 86_400).unwrap()
}

// D-88, D-62: each cause has a day of its own, in which another endpoint has an event as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_end_keeps_no_day() {
    let service = Service::new().await;
    let good = service.endpoint("/good", &[Reply::Status(204)]);
    let good = good.trim_start_matches("/endpoints/").to_owned();
    let number = async |id: &str| {
        let id = id.trim_start_matches("/endpoints/");
        let sql = "SELECT number::bigint FROM endpoints WHERE id = $1";
        i32::try_from(service.ask(sql, &[&id]).await).unwrap()
    };
    let lost = [
        (
            "secret",
            "UPDATE endpoints SET secrets = (SELECT secrets FROM endpoints WHERE id = $2) WHERE number = $1",
        ),
        ("endpoint", "DELETE FROM endpoints WHERE number = $1 AND $2 <> ''"),
        ("row", "UPDATE deliveries SET status = 'held' WHERE endpoint = $1 AND $2 <> ''"),
        (
            "event",
            "DELETE FROM events WHERE id = (SELECT event_id FROM deliveries WHERE endpoint = $1) AND $2 <> ''",
        ),
    ];
    for (days, (cause, sql)) in (32..).zip(lost) {
        let bad = number(&service.endpoint(&format!("/{cause}"), &[Reply::Status(204)])).await;
        let add = format!("SELECT add_day(((now() AT TIME ZONE 'UTC')::date - {days}))");
        service.run(&add).await;
        let mut session = service.world.session().await;
        let change = session.transaction().await.unwrap();
        for (name, endpoint) in [(cause, bad), (&*format!("{cause} good"), number(&good).await)] {
            let event = ping_of("acct_1", name, days_ago(days));
            accept(&change, &event, Some(endpoint), None, event.created_at()).await.unwrap();
        }
        assert_eq!(change.execute(sql, &[&bad, &good]).await.unwrap(), 1, "{cause}");
        change.commit().await.unwrap();
        session.keep();
        let drop =
            format!("SELECT drop_day((now() AT TIME ZONE 'UTC')::date - {days})::int::bigint");
        assert_eq!(service.count(&drop).await, 0, "{cause}: something is pending");
    }
    let oldest = || service.api.value("oldest_day_seconds").unwrap() as u64 / 86_400;
    eventually("the oldest day that is kept", || (oldest() == 35).then_some(()));

    // What can be sent is, and a sender that starts drops the days.
    let first = service.quick_sender();
    let of_good = "SELECT count(*) FROM deliveries WHERE endpoint = (
        SELECT number FROM endpoints WHERE url LIKE '%/good')";
    service.becomes(of_good, 0).await;
    // Nobody owns that one, so the log alone tells of it.
    first.logged("given up after 31 days: the endpoint is missing");
    first.end();
    let _sender = service.quick_sender();
    service.becomes(PENDING, 0).await;
    eventually("the days are dropped", || (oldest() <= 31).then_some(()));
    for table in ["events", "ended", "attempts"] {
        assert_eq!(service.count(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(service.receiver.got("/good").len(), 4);

    let told = service.show("/accounts/acct_1/alerts");
    let told = told["data"].as_array().unwrap().iter();
    let mut told: Vec<_> = told.map(|alert| (&alert["kind"], alert["message"].as_str())).collect();
    told.sort_unstable_by_key(|(_, message)| *message);
    let why =
        ["a row cannot be read", "the event is missing", "the signing secrets cannot be decrypted"]
            .map(|why| format!("1 delivery was given up after 31 days: {why}"));
    let kind = json!("abandoned");
    assert_eq!(told, why.each_ref().map(|why| (&kind, Some(why.as_str()))));
}

// D-83: their log is kept for thirty days, and they are for as long as that.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_endpoints_are_forgotten_with_their_log() {
    let service = Service::new().await;
    let paths = ["/active", "/lately", "/logged", "/pending", "/deleted"];
    let endpoints = paths.map(|path| service.endpoint(path, &[Reply::Status(204)]));
    let first = service.quick_sender();
    service.ping(&endpoints[2]);
    service.becomes("SELECT count(*) FROM ended", 1).await;
    drop(first);
    service.ping(&endpoints[3]);
    let at = |path: &str| format!("url LIKE '%{path}'");
    let deleted = format!(
        "UPDATE endpoints SET disabled = 'deleted', version = version + 1,
             since = now() - CASE WHEN {} THEN interval '30 days' ELSE interval '32 days' END
         WHERE NOT {}",
        at("/lately"),
        at("/active")
    );
    service.run(&deleted).await;
    // What is pending stays so: a row of a later version.
    service.run("UPDATE deliveries SET status = 'later'").await;
    let _sender = service.quick_sender();
    service.becomes("SELECT count(*) FROM endpoints", 4).await;
    let gone = format!("SELECT count(*) FROM endpoints WHERE {}", at("/deleted"));
    assert_eq!(service.count(&gone).await, 0);
}

// However many owners were told of one outage: no step is so large that its time is over before it is.
#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_numbered_and_dropped_in_steps() {
    let service = Service::new().await;
    service.endpoint("/one", &[Reply::Status(204)]);
    service
        .run(
            "INSERT INTO alerts (endpoint, version, at, alert)
                 SELECT number, n, now() - interval '31 days', '{}'
                 FROM endpoints, generate_series(1, 5000) AS n;
             CREATE FUNCTION bounded() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF (SELECT count(*) FROM changed) > 2000 THEN RAISE 'too many at once'; END IF;
                 RETURN NULL;
             END $$;
             CREATE TRIGGER numbered AFTER UPDATE ON alerts REFERENCING OLD TABLE AS changed
                 FOR EACH STATEMENT EXECUTE FUNCTION bounded();
             CREATE TRIGGER dropped AFTER DELETE ON alerts REFERENCING OLD TABLE AS changed
                 FOR EACH STATEMENT EXECUTE FUNCTION bounded();",
        )
        .await;
    // Whoever reads the feed comes to the end of it, as ever.
    let (mut after, mut pages) = (0, 0);
    while after < 5000 {
        let path = format!("/alerts?wait=0&after={after}");
        let next = service.show(&path)["next"].clone();
        let next = next.as_str().map_or(next.as_i64(), |next| next.parse().ok()).unwrap();
        assert!(next > after, "{next} after {after}");
        (after, pages) = (next, pages + 1);
    }
    assert!(pages >= 3, "{pages} pages");
    assert_eq!(service.count("SELECT count(DISTINCT number) FROM alerts").await, 5000);
    let _sender = service.quick_sender();
    service.becomes("SELECT count(*) FROM alerts", 0).await;
}

// D-60: what an outbox relays as late as events are kept has its day, and without a sender, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_serves_adds_days() {
    let service = Service::new().await;
    let day = |days: i64| {
        format!(
            "SELECT count(*) FROM pg_class WHERE relname = 'events_' || to_char(
                (now() AT TIME ZONE 'UTC')::date + {days}, 'YYYYMMDD')"
        )
    };
    for days in [7, -30] {
        assert_eq!(service.count(&day(days)).await, 1, "{days}");
        service.run(&format!("SELECT drop_day((now() AT TIME ZONE 'UTC')::date + {days})")).await;
    }
    let accepted = service.accept(&ping_of("acct_1", "late", days_ago(29)), days_ago(0)).await;
    assert!(matches!(accepted, Accepted::New(_)));

    let _api = service.world.start("api", &[]);
    for days in [7, -30] {
        service.becomes(&day(days), 1).await;
    }
}
