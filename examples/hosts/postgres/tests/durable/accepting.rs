//! Accepting events, in both hosts' stores.

use call_assistant_postgres::clock;
use call_assistant_postgres::queue::{Accepted, accept};
use call_assistant_service::store::{Store, Tables};
use host::data;
use serde_json::{Value, json};

use crate::support::ping_of;
use crate::support::receiver::Reply;
use crate::support::service::Service;

/// A tenant's id beside a value of another tenant, in both stores: an event is never accepted for another
/// account's endpoint, and nothing of it is stored.
#[tokio::test(flavor = "multi_thread")]
async fn no_store_accepts_an_event_for_another_accounts_endpoint() {
    let now = clock::now().floor_to_micros();
    let asked = [
        ("acct_1", 1, Ok(1)),
        ("acct_2", 1, Err(())),
        ("acct_2", 2, Ok(1)),
        ("acct_1", 2, Err(())),
    ];

    let memory = Store::default();
    let account = |n: u32| -> Value {
        let url = format!("https://hooks.example.com/{n}");
        let secret = format!("whsec_0123456789abcdefghijklmnopqrst{n:02}");
        let endpoint = json!({ "id": format!("we_{n}"), "url": url, "secret": secret });
        json!({ "id": format!("acct_{n}"), "timezone": "UTC", "endpoints": [endpoint] })
    };
    let file = json!({ "accounts": [account(1), account(2)] });
    for new in data::read(&file, false, now).unwrap() {
        memory.lock().load(new, now).unwrap();
    }
    let deliveries = |tables: &Tables| -> usize {
        let of = |id| tables.deliveries(tables.account(id).unwrap()).count();
        ["acct_1", "acct_2"].map(of).iter().sum()
    };
    for (account, n, expected) in asked {
        let mut tables = memory.lock();
        let (number, _) = tables.endpoint(&format!("we_{n}")).unwrap();
        let stored = deliveries(&tables);
        let accepted = tables.accept(&ping_of(account, &n.to_string(), now), Some(number), now);
        let accepted = accepted.map(|sent| sent.len()).map_err(drop);
        assert_eq!(accepted, expected, "memory, {account} for we_{n}");
        let more = expected.unwrap_or_default();
        assert_eq!(deliveries(&tables), stored + more, "memory, {account} for we_{n}");
    }

    let service = Service::new().await;
    for n in [1, 2] {
        service.endpoint_of(&format!("acct_{n}"), &format!("/{n}"), &[Reply::Status(204)]);
    }
    for (account, n, expected) in asked {
        let of = "SELECT number::bigint FROM endpoints WHERE account_id = $1";
        let number = service.ask(of, &[&format!("acct_{n}")]).await;
        let number = i32::try_from(number).unwrap();
        let events = "SELECT count(*) FROM events";
        let stored = service.count(events).await;
        let event = ping_of(account, &n.to_string(), now);
        let database = &service.world.database;
        let accepted =
            database.change(async |change| accept(change, &event, Some(number), None, now).await);
        let accepted = match accepted.await {
            Ok(Accepted::New(ids)) => Ok(ids.len()),
            Ok(Accepted::Again) => panic!("{account} for {n} was accepted before"),
            Err(error) => {
                let told = error.to_string();
                assert_eq!(told, "the event's account has no such endpoint", "{account} for {n}");
                Err(())
            }
        };
        assert_eq!(accepted, expected, "PostgreSQL, {account} for {n}");
        let more = i64::from(expected.is_ok());
        assert_eq!(service.count(events).await, stored + more, "PostgreSQL, {account} for {n}");
    }
}
