//! What operators set to stop sending or to slow it down, over senders that start and end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use call_assistant_postgres::queue::{SHARDS, shard_of};
use private_server::Settings;
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;

use crate::support::receiver::Reply;
use crate::support::running::{eventually, request};
use crate::support::service::Service;
use crate::support::{Running, World};

const SENDER: [&str; 3] = ["--allow-loopback-endpoints", "--metrics", "127.0.0.1:0"];
const DELIVERED: &str = "SELECT count(*) FROM ended WHERE status = 'delivered'";

/// The value of a metric.
pub(crate) fn value(address: &str, name: &str) -> Option<f64> {
    let text = request(address, "GET", "/metrics", "", b"").text();
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(&format!("call_assistant_{name} "))?.parse().ok())
}

#[track_caller]
pub(crate) fn shows(address: &str, name: &str, wanted: f64) {
    eventually(&format!("{name} is {wanted}"), || {
        value(address, name).filter(|value| *value == wanted)
    });
}

/// Checks that each shard that a sender got was given back by its owner before.
#[track_caller]
pub(crate) fn has_taken_nothing(sender: &Running) {
    let log = sender.log();
    let mut taken = log.split("taken_over=").skip(1);
    assert!(taken.all(|count| count.starts_with("0\n")), "{log}");
}

/// Waits until a loop of a sender has looked at what is set: a look may have begun before, so until two
/// have succeeded.
pub(crate) fn has_looked(sender: &Running, name: &str) {
    for _ in 0..2 {
        let began = Instant::now();
        eventually(&format!("a look of {name}"), || {
            let age = value(sender.metrics(), &format!("loop_age_seconds{{loop=\"{name}\"}}"))?;
            (age < began.elapsed().as_secs_f64()).then_some(())
        });
    }
}

#[track_caller]
fn set(service: &Service, asked: Value) -> String {
    let set = service.api.ask("POST", "/levers", &asked, 201);
    format!("/levers/{}/undo", set["id"].as_str().unwrap())
}

#[track_caller]
fn undo(service: &Service, path: &str) {
    service.api.ask("POST", path, &json!({}), 200);
    service.api.ask("POST", path, &json!({}), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_waits_for_its_end_and_nothing_else_does() {
    let service = Service::new().await;
    let got = |path| service.receiver.got(path).len();
    let api = service.api.dashboard();
    let paused = service.endpoint("/paused", &[Reply::Status(204)]);
    let other = service.endpoint_of("acct_2", "/other", &[Reply::Status(204)]);
    let pause = set(&service, json!({ "account_id": "acct_1", "per_second": 0 }));
    // Also by a sender that starts later.
    for round in 1..=2 {
        let sender = service.world.start("sender", &SENDER);
        for _ in 0..10 {
            service.ping(&paused);
            service.ping(&other);
        }
        service.becomes(DELIVERED, 10 * round).await;
        shows(sender.metrics(), "sender_limited", 10.0 * round as f64);
        assert_eq!((got("/paused"), got("/other")), (0, 10 * round as usize));
    }
    // The log of a sender says why nothing is sent, and says it once.
    let sender = service.world.start("sender", &SENDER);
    let held = "a lever holds back what is sent lever=lvr_1 on=\"account acct_1\" per_second=0";
    sender.logs(held);
    for _ in 0..2 {
        has_looked(&sender, "levers");
    }
    assert_eq!(sender.log().matches("a lever holds").count(), 1, "{}", sender.log());
    shows(api, "sending_paused", 1.0);
    shows(api, "sender_held", 20.0);
    shows(api, "sender_oldest_due_seconds", 0.0);
    undo(&service, &pause);
    service.becomes(DELIVERED, 40).await;
    sender.logs("a lever is undone lever=lvr_1");
    assert_eq!((got("/paused"), got("/other")), (20, 20), "each once");

    // While it runs: an endpoint, and everything.
    let id = paused.rsplit('/').next().unwrap();
    for asked in [json!({ "endpoint_id": id, "per_second": 0 }), json!({ "per_second": 0 })] {
        let all = asked.get("endpoint_id").is_none();
        let (before, ended) = (got("/other"), service.count(DELIVERED).await);
        let pause = set(&service, asked);
        has_looked(&sender, "levers");
        service.ping(&paused);
        service.ping(&other);
        shows(sender.metrics(), "sender_limited", if all { 2.0 } else { 1.0 });
        service.becomes(DELIVERED, ended + i64::from(!all)).await;
        assert_eq!(got("/other"), before + usize::from(!all));
        undo(&service, &pause);
        service.becomes(DELIVERED, ended + 2).await;
    }
    shows(api, "sending_paused", 0.0);
    assert_eq!((got("/paused"), got("/other")), (22, 22), "each once");
    let said = r#"by="this machine" action=lever.set on="account acct_1" after="#;
    service.api.logs(said);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_throttled_is_sent_at_that_pace() {
    let service = Service::new().await;
    let slow = service.endpoint("/slow", &[Reply::Status(204)]);
    for (asked, refused) in [
        (json!({ "account_id": "acct_1" }), 400),
        (json!({ "account_id": "acct_1", "per_second": 10_001 }), 400),
        (json!({ "account_id": "acct_1", "endpoint_id": "whep_1", "per_second": 1 }), 400),
        (json!({ "account_id": "acct_9", "per_second": 1 }), 404),
        (json!({ "endpoint_id": "whep_9", "per_second": 1 }), 404),
    ] {
        service.api.ask("POST", "/levers", &asked, refused);
    }
    // Two people act at once: the second is told what stands, and takes nothing back unknowingly.
    let ask = |per_second: u32, instead_of: &Value, status| {
        let asked =
            json!({ "account_id": "acct_1", "per_second": per_second, "instead_of": instead_of });
        service.api.ask("POST", "/levers", &asked, status)
    };
    let paused = ask(0, &Value::Null, 201);
    let refused = ask(4, &Value::Null, 409);
    let id = paused["id"].as_str().unwrap();
    for words in
        [id, "account acct_1 is paused", "this machine", paused["set_at"].as_str().unwrap()]
    {
        assert!(
            refused["error"]["message"].as_str().unwrap().contains(words),
            "{words}: {refused}"
        );
    }
    ask(4, &json!("lvr_999"), 409);
    assert_eq!(ask(0, &Value::Null, 201), paused, "the same once more changes nothing");
    let throttled = ask(4, &paused["id"], 201);
    assert_ne!(throttled["id"], paused["id"]);
    ask(9, &paused["id"], 409);
    service.api.ask("POST", "/levers", &json!({ "per_second": 9, "instead_of": id }), 409);
    shows(service.api.dashboard(), "sending_throttled", 1.0);
    for _ in 0..12 {
        service.ping(&slow);
    }
    let _sender = service.world.start("sender", &SENDER);
    service.becomes(DELIVERED, 12).await;
    let got = service.receiver.got("/slow");
    let took = got[11].at.since(got[0].at);
    // Eleven quarters of a second, less what the machine held up the first of them.
    assert!(took >= Duration::from_millis(1_500), "{took:?}");
}

// D-56: what was cancelled can be recovered.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_of_a_type_is_cancelled_in_steps() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/hook", &[Reply::Status(204)]);
    let other = service.endpoint_of("acct_2", "/other", &[Reply::Status(204)]);
    for _ in 0..3 {
        service.ping(&endpoint);
        service.ping(&other);
        service.api.ask("POST", "/accounts/acct_1/calls", &json!({}), 201);
    }
    let pending = service.count("SELECT count(*) FROM deliveries").await;
    let cancel =
        |asked: Value, status| service.api.ask("POST", "/accounts/acct_1/cancel", &asked, status);
    cancel(json!({}), 400);
    cancel(json!({ "type": "ping", "after": "x" }), 409);
    let first = cancel(json!({ "type": "ping" }), 200);
    assert_eq!(first["cancelled"], 3);
    let last = cancel(json!({ "type": "ping", "after": first["next"] }), 200);
    assert_eq!(last, json!({ "cancelled": 0, "next": null }));
    assert_eq!(cancel(json!({ "type": "ping" }), 200)["cancelled"], 0, "it can be repeated");
    let _sender = service.world.start("sender", &SENDER);
    service.becomes(DELIVERED, pending - 3).await;
    let pings = || {
        let got = service.receiver.got("/hook");
        got.iter().filter(|got| got.header("x-service-event") == "ping").count()
    };
    assert_eq!((pings(), service.receiver.got("/other").len()), (0, 3));
    let recover = json!({ "types": ["ping"] });
    service.api.ask("POST", &format!("{endpoint}/recover"), &recover, 202);
    service.becomes(DELIVERED, pending).await;
    assert_eq!(pings(), 3);
}

// D-84: a drained sender gives its shards back as one that ends does, and lives.
#[tokio::test(flavor = "multi_thread")]
async fn the_shards_of_a_drained_sender_move_without_a_gap() {
    let service = Service::new().await;
    let endpoints: Vec<String> =
        (0..16).map(|nth| service.endpoint(&format!("/{nth}"), &[Reply::Status(204)])).collect();
    let senders = [(); 2].map(|()| service.world.start("sender", &SENDER));
    // How many shards each sender has, by its id.
    let shards = || {
        let shown = service.api.ask("GET", "/levers", &json!({}), 200);
        let senders = shown["senders"].as_array().unwrap().iter();
        let each = senders.map(|sender| {
            let lease = sender["lease_ms"].as_u64().unwrap();
            assert!((0..=4_000).contains(&lease), "{sender}");
            let id = sender["id"].as_str().unwrap().to_owned();
            (id, sender["shards"].as_array().unwrap().len())
        });
        each.collect::<Vec<_>>()
    };
    let become_so = |wanted: [usize; 2]| {
        eventually(&format!("{wanted:?}"), || {
            let counts: Vec<usize> = shards().iter().map(|(_, count)| *count).collect();
            (counts == wanted).then_some(())
        });
    };
    become_so([32, 32]);
    // Each endpoint gets an event, and how long that takes until the last one has it.
    let mut rounds = 0;
    let mut round = || {
        let accepted = Instant::now();
        endpoints.iter().for_each(|endpoint| service.ping(endpoint));
        rounds += 1;
        eventually("all have arrived", || {
            let all = (0..16).all(|nth| service.receiver.got(&format!("/{nth}")).len() >= rounds);
            all.then_some(())
        });
        accepted.elapsed()
    };
    let usual = (0..3).map(|_| round()).max().unwrap();
    // A sender's name leads to its process, and a process to its name.
    let listed = service.api.ask("GET", "/levers", &json!(null), 200);
    for sender in &senders {
        let pid = json!(sender.id());
        let rows = listed["senders"].as_array().unwrap();
        let row = rows.iter().find(|row| row["pid"] == pid).unwrap();
        let (id, host) = (row["id"].as_str().unwrap(), row["host"].as_str().unwrap());
        shows(sender.metrics(), &format!("sender_info{{sender=\"{id}\"}}"), 1.0);
        let log = sender.log();
        let started = log.lines().find(|line| line.contains(" started ")).unwrap();
        for told in [format!("sender={id}"), format!("host={host}"), format!("pid={pid}")] {
            assert!(started.contains(&told), "{told}: {started}");
        }
    }
    let drained = format!("/senders/{}", shards()[0].0);
    service.api.ask("POST", "/senders/nobody/drain", &json!({}), 404);
    for _ in 0..2 {
        service.api.ask("POST", &format!("{drained}/drain"), &json!({}), 200);
    }
    let noted = "SELECT count(*) FROM journal WHERE action = 'sender.drained'";
    assert_eq!(service.count(noted).await, 1, "the second has changed nothing");
    let (began, mut longest) = (Instant::now(), Duration::ZERO);
    for nth in 0.. {
        if nth >= 3 && shards()[0].1 == 0 && shards()[1].1 == 64 {
            break;
        }
        longest = longest.max(round());
    }
    println!("moved within {:?}; a round of {usual:?} took {longest:?} at most", began.elapsed());
    senders.iter().for_each(has_taken_nothing);
    assert!(longest < usual + Duration::from_secs(4), "{longest:?}: the leases had to end");
    shows(service.api.dashboard(), "senders_drained", 1.0);
    shows(service.api.dashboard(), "shards_unowned", 0.0);
    service.api.ask("POST", &format!("{drained}/undo"), &json!({}), 200);
    become_so([32, 32]);
    let all = i64::try_from(16 * rounds).unwrap();
    service.becomes(DELIVERED, all).await;
    shows(service.api.dashboard(), "senders_drained", 0.0);
}

/// The shards that each sender owns, and how many are kept for it, by its id.
fn owned(service: &Service) -> BTreeMap<String, (Vec<i64>, usize)> {
    let shown = service.api.ask("GET", "/levers", &json!({}), 200);
    let row = |row: &Value| {
        let shards = row["shards"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap());
        let kept = row["kept"].as_array().unwrap().len();
        (row["id"].as_str().unwrap().to_owned(), (shards.collect(), kept))
    };
    shown["senders"].as_array().unwrap().iter().map(row).collect()
}

/// Waits until the senders own as many shards as this, the fewest first.
#[track_caller]
fn share(service: &Service, wanted: &[usize]) {
    eventually(&format!("{wanted:?}"), || {
        let mut counts: Vec<_> = owned(service).values().map(|(shards, _)| shards.len()).collect();
        counts.sort_unstable();
        (counts == wanted).then_some(())
    });
}

/// Waits until a sender owns a shard.
#[track_caller]
fn owns(service: &Service, sender: &str, shard: i64) {
    eventually(&format!("{sender} has {shard}"), || {
        owned(service).get(sender)?.0.contains(&shard).then_some(())
    });
}

fn owner_of(service: &Service, shard: i64) -> String {
    eventually("an owner", || {
        let mut all = owned(service).into_iter();
        all.find(|(_, (shards, _))| shards.contains(&shard)).map(|(id, _)| id)
    })
}

#[track_caller]
fn moved(service: &Service, sender: &str, asked: &Value) -> Value {
    service.api.ask("POST", &format!("/senders/{sender}/move"), asked, 200)
}

// D-84: a shard that is moved changes hands as one of a sender that ends, and then stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_moved_shard_stays_with_its_sender_and_each_delivery_is_sent_once() {
    let service = Service::new().await;
    let endpoints: Vec<String> =
        (0..8).map(|nth| service.endpoint(&format!("/{nth}"), &[Reply::Status(204)])).collect();
    let mut senders: Vec<Running> =
        (0..2).map(|_| service.world.start("sender", &SENDER)).collect();
    share(&service, &[32, 32]);
    let mut rounds = 0;
    let mut round = || {
        endpoints.iter().for_each(|endpoint| service.ping(endpoint));
        rounds += 1;
        eventually("all have arrived", || {
            let all = (0..8).all(|nth| service.receiver.got(&format!("/{nth}")).len() >= rounds);
            all.then_some(())
        });
    };
    round();
    // Of what is beyond a share, a sender lets go of the last first.
    let last = i64::from(SHARDS.get()) - 1;
    let ids = endpoints.iter().map(|endpoint| endpoint.rsplit('/').next().unwrap());
    let shards = ids.map(|id| (id, i64::from(shard_of(id))));
    let (id, shard) = shards.into_iter().find(|(_, shard)| *shard != last).unwrap();
    let from = owner_of(&service, shard);
    let to = owned(&service).into_keys().find(|other| *other != from).unwrap();
    for before in [json!(null), json!(to)] {
        assert_eq!(
            moved(&service, &to, &json!({ "endpoint_id": id })),
            json!({ "shard": shard, "kept_for": to, "before": before })
        );
    }
    service.api.logs(&format!("action=shard.moved on={shard} after="));
    while !owned(&service)[&to].0.contains(&shard) {
        round();
    }
    moved(&service, &to, &json!({ "shard": last }));
    owns(&service, &to, last);
    share(&service, &[32, 32]);
    senders.iter().for_each(has_taken_nothing);
    shows(service.api.dashboard(), "shards_moved", 2.0);

    // The senders share again, and neither is let go.
    let epochs = format!("SELECT sum(epoch)::bigint FROM shards WHERE shard IN ({shard}, {last})");
    let before = service.count(&epochs).await;
    senders.push(service.world.start("sender", &SENDER));
    share(&service, &[20, 22, 22]);
    round();
    assert_eq!(service.count(&epochs).await, before);
    assert!([shard, last].iter().all(|kept| owner_of(&service, *kept) == to));

    let third = owned(&service).into_keys().find(|id| *id != from && *id != to).unwrap();
    assert_eq!(
        moved(&service, &third, &json!({ "shard": shard })),
        json!({ "shard": shard, "kept_for": third, "before": to })
    );
    owns(&service, &third, shard);
    undo(&service, &format!("/shards/{shard}/undo"));
    assert_eq!(owned(&service).values().map(|(_, kept)| kept).sum::<usize>(), 1);
    shows(service.api.dashboard(), "shards_moved", 1.0);
    round();
    share(&service, &[21, 21, 22]);
    senders.iter().for_each(has_taken_nothing);
    service.becomes(DELIVERED, i64::try_from(8 * rounds).unwrap()).await;
    for nth in 0..8 {
        assert_eq!(service.receiver.got(&format!("/{nth}")).len(), rounds, "/{nth}: each once");
    }
    let noted = "SELECT count(*) FROM journal WHERE account_id IS NULL AND target = $1::text
        AND (action, before ->> 'kept_for', after ->> 'kept_for') IS NOT DISTINCT FROM ($2::text, $3::text, $4::text)";
    let (to, third) = (Some(to.as_str()), Some(third.as_str()));
    for (action, before, after) in
        [("shard.moved", None, to), ("shard.moved", to, third), ("shard.shared", third, None)]
    {
        let parameters: [&(dyn ToSql + Sync); 4] = [&shard.to_string(), &action, &before, &after];
        assert_eq!(service.ask(noted, &parameters).await, 1, "{action} {before:?} {after:?}");
    }
    let all = "SELECT count(*) FROM journal WHERE action LIKE 'shard.%'";
    assert_eq!(service.count(all).await, 4, "the same once more has changed nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_moved_goes_beyond_a_share_until_it_is_undone() {
    let service = Service::new().await;
    let _senders = [(); 2].map(|()| service.world.start("sender", &SENDER));
    share(&service, &[32, 32]);
    let (to, _) = owned(&service).pop_first().unwrap();
    for shard in 0..40 {
        moved(&service, &to, &json!({ "shard": shard }));
    }
    share(&service, &[24, 40]);
    assert_eq!(owned(&service)[&to], ((0..40).collect(), 40));
    for shard in 0..40 {
        undo(&service, &format!("/shards/{shard}/undo"));
    }
    share(&service, &[32, 32]);
}

// No shard is without a sender for the sake of one that does not send.
#[tokio::test(flavor = "multi_thread")]
async fn a_moved_shard_is_shared_while_its_sender_is_drained_and_when_it_is_gone() {
    let service = Service::new().await;
    let endpoint = service.endpoint("/", &[Reply::Status(204)]);
    let shard = i64::from(shard_of(endpoint.rsplit('/').next().unwrap()));
    // A lease that ends later than any is of before the clock was set back: nobody lives by it.
    let later = format!(
        "INSERT INTO senders (id, expires_at) VALUES ('later', now() + interval '1 hour');
         UPDATE kept_shards SET sender = 'later' WHERE shard = {shard}"
    );
    service.run(&later).await;
    let first = service.world.start("sender", &SENDER);
    let (name, _) = eventually("all shards", || {
        owned(&service).into_iter().find(|(_, (shards, _))| shards.len() == 64)
    });
    service.run("DELETE FROM senders WHERE id = 'later'").await;
    let second = service.world.start("sender", &SENDER);
    share(&service, &[32, 32]);
    let other = owned(&service).into_keys().find(|id| *id != name).unwrap();
    moved(&service, &name, &json!({ "shard": shard }));
    owns(&service, &name, shard);

    let at = format!("/senders/{name}");
    service.api.ask("POST", &format!("{at}/drain"), &json!({}), 200);
    owns(&service, &other, shard);
    service.ping(&endpoint);
    service.becomes(DELIVERED, 1).await;
    let refused = service.api.ask("POST", &format!("{at}/move"), &json!({ "shard": shard }), 409);
    assert!(refused["error"]["message"].as_str().unwrap().contains("is drained"), "{refused}");
    service.api.ask("POST", &format!("{at}/undo"), &json!({}), 200);
    owns(&service, &name, shard);

    // It is killed.
    drop(first);
    owns(&service, &other, shard);
    service.ping(&endpoint);
    service.becomes(DELIVERED, 2).await;
    assert_eq!(service.receiver.got("/").len(), 2, "each once");
    for unknown in [&name, "nobody"] {
        let path = format!("/senders/{unknown}/move");
        service.api.ask("POST", &path, &json!({ "shard": shard }), 404);
    }
    let third = service.world.start("sender", &SENDER);
    share(&service, &[32, 32]);
    has_taken_nothing(&third);
    shows(second.metrics(), "shards_moved", 0.0);

    // With the row of a sender that ended an hour ago, the move is forgotten.
    let kept = "SELECT count(*) FROM kept_shards WHERE sender IS NOT NULL";
    assert_eq!(service.count(kept).await, 1);
    let ago =
        format!("UPDATE senders SET expires_at = now() - interval '2 hours' WHERE id = '{name}'");
    service.run(&ago).await;
    service.run(include_str!("../../sql/owners/forget.sql")).await;
    assert_eq!(service.count(kept).await, 0);
}

#[tokio::test]
async fn a_claim_begins_with_what_is_kept_for_the_sender_and_leaves_what_is_kept_for_another() {
    let world = World::new(Settings::default()).await;
    let session = world.database.session().await.unwrap();
    // By leases of an hour.
    let set = "INSERT INTO senders (id, expires_at, drained) VALUES
            ('one', now() + interval '1 hour', false), ('two', now() + interval '1 hour', false),
            ('drained', now() + interval '1 hour', true), ('gone', now(), false),
            ('later', now() + interval '3 hours', false);
        UPDATE kept_shards AS k SET sender = w.sender FROM (VALUES
            (7, 'one'), (8, 'one'), (9, 'two'), (10, 'drained'), (11, 'gone'), (12, 'later')
        ) AS w (shard, sender) WHERE k.shard = w.shard";
    session.batch_execute(set).await.unwrap();
    let claim = session.prepare(include_str!("../../sql/owners/claim.sql")).await.unwrap();
    let claims = async |sender: &str, wanted: i64| {
        let rows = session.query(&claim, &[&sender, &wanted, &3600_f64]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<BTreeSet<i16>>()
    };
    let free = "UPDATE shards SET owner = NULL, expires_at = '-infinity'";
    let kept = BTreeSet::from([7, 8]);
    assert_eq!(claims("one", 0).await, kept);
    session.batch_execute(free).await.unwrap();
    let three = claims("one", 3).await;
    assert!(three.is_superset(&kept) && three.len() == 3, "{three:?}");
    session.batch_execute(free).await.unwrap();
    let others = (0..64).filter(|shard| !kept.contains(shard)).collect();
    assert_eq!(claims("two", 64).await, others);
    assert_eq!(claims("one", 64).await, kept);
    session.keep();
}

// Whoever moves a shard may wait for a standby, or die between two statements.
#[tokio::test(flavor = "multi_thread")]
async fn no_lease_waits_for_an_operator() {
    let service = Service::new().await;
    let sender = service.world.start("sender", &SENDER);
    let (name, _) = owned(&service).pop_first().unwrap();
    let mut session = service.world.database.session().await.unwrap();
    let change = session.transaction().await.unwrap();
    change.batch_execute("SET LOCAL idle_in_transaction_session_timeout = 0").await.unwrap();
    let shard: i16 = 7;
    change.query_one(include_str!("../../sql/levers/move.sql"), &[&shard, &name]).await.unwrap();
    for _ in 0..2 {
        has_looked(&sender, "leases");
    }
    change.commit().await.unwrap();
    session.keep();
    assert_eq!(owned(&service)[&name].1, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_names_one_shard_within_its_bounds() {
    let service = Service::new().await;
    let _sender = service.world.start("sender", &SENDER);
    let (name, _) = owned(&service).pop_first().unwrap();
    let id = service.endpoint("/", &[Reply::Status(204)]).rsplit('/').next().unwrap().to_owned();
    let bound = "shard: expected a whole number from 0 to 63";
    for (asked, status, said) in [
        (json!({ "shard": 64 }), 400, bound),
        (json!({ "shard": -1 }), 400, bound),
        (json!({ "shard": "7" }), 400, bound),
        (json!({}), 400, "shard: missing: expected it, or endpoint_id"),
        (json!({ "shard": 7, "endpoint_id": id }), 400, "endpoint_id: expected none beside shard"),
        (json!({ "endpoint_id": "whep_9" }), 404, "endpoint not found"),
        (json!({ "shard": 0 }), 200, ""),
        (json!({ "shard": 63 }), 200, ""),
        (json!({ "endpoint_id": id }), 200, ""),
    ] {
        let answer = service.api.ask("POST", &format!("/senders/{name}/move"), &asked, status);
        assert_eq!(answer["error"]["message"].as_str().unwrap_or_default(), said, "{asked}");
    }
    for (shard, status) in [("64", 404), ("-1", 404), ("x", 404), ("5", 409), ("63", 200)] {
        service.api.ask("POST", &format!("/shards/{shard}/undo"), &json!({}), status);
    }
}
