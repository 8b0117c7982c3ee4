//! What customers and operators do: each in a transaction of its own, as an API process does it.

use std::sync::Arc;

use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Delivery, EndpointHealth, EndpointUrl, RecoveryBy, SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant::{Timestamp, webhook::sender::RecoveryFilter};
use host::rows::{
    Change as _, Changes as _, Done, Failure, Key, Lock, Locked, Names, Opened, Writes,
};
use host::store::plan::Plan;
use testing::event::ping;
use testing::store::{EndpointRow, Place, Row, Store};

use crate::plan::{Deed, EndpointPlan, SHARDS};

/// Returns a new endpoint.
pub(crate) fn endpoint(plan: &EndpointPlan, now: Timestamp) -> EndpointRow {
    let health = EndpointHealth::new(plan.number.into(), now);
    let shard = u16::try_from(plan.number).unwrap() % SHARDS;
    let (account, endpoint) = (format!("acct_{}", plan.account), format!("we_{}", plan.number));
    let names = Names { account, endpoint, shard };
    EndpointRow { health, account: plan.account, opened: opened(&health, names, "hook") }
}

fn opened(health: &EndpointHealth, names: Names, path: &str) -> Arc<Opened> {
    let url = format!("https://{}.example.com/{path}", names.account.replace('_', "-"));
    let signer = Signer::new(SigningSecret::from_random([7; 32]));
    let target = EndpointUrl::parse(&url).unwrap();
    let destination = Some(SignedDestination::new(health, target, signer.clone()));
    Arc::new(Opened { names, destination, signer })
}

/// Returns the event of this number.
pub(crate) fn event(number: u64, account: u32, now: Timestamp) -> EventBody {
    ping(&format!("evt_{number}"), &format!("acct_{account}"), now)
}

/// The number of the first event that is accepted in a transaction that is open for long.
pub(crate) const HELD: u64 = 1_000_000;

/// Tells whether an event was accepted in a transaction that was open for long.
pub(crate) fn is_held(event: &EventBody) -> bool {
    let number = event.id().as_str().trim_start_matches("evt_").parse::<u64>();
    number.is_ok_and(|number| HELD <= number)
}

/// Does a deed of an owner. Whoever is refused tries again.
pub(crate) async fn does(store: Store, deed: Deed) {
    for _ in 0..5 {
        let done = match deed {
            Deed::Redeliver(endpoint) => redeliver(&store, endpoint).await,
            Deed::Pause(endpoint)
            | Deed::Enable(endpoint)
            | Deed::Move(endpoint)
            | Deed::Recover(endpoint) => change(&store, endpoint, deed).await,
            _ => return,
        };
        if !matches!(done, Err(Failure::Outdated | Failure::Refused(_))) {
            return;
        }
    }
}

async fn change(store: &Store, number: u32, deed: Deed) -> Done<()> {
    let now = store.now();
    let mut change = store.change().await?;
    let Some(before) = change.endpoints(&[number], Lock::Yes).await?.remove(&number) else {
        return Ok(());
    };
    let (mut health, mut recovered) = (before, None);
    match deed {
        Deed::Pause(_) => _ = health.pause(now),
        Deed::Enable(_) => _ = health.enable(now),
        Deed::Move(_) => {
            let _ = health.moved(now);
            let row = match store.tables().rows().find(|(at, _)| **at == Place::Endpoint(number)) {
                Some((_, Row::Endpoint(row))) => row.clone(),
                _ => return Ok(()),
            };
            let path = format!("moved/{}", now.unix_micros());
            change.open(number, opened(&health, row.opened.names.clone(), &path));
        }
        _ => recovered = Some(RecoveryFilter::between(Timestamp::MIN, now, now)),
    }
    if health != before {
        let endpoints = [(number, health)];
        change.write(&Writes { endpoints: &endpoints, ..Writes::at(now) }).await?;
    }
    if let Some(missed) = recovered
        && let Ok(recovery) =
            missed.recover(RecoveryBy::Dashboard, Plan::LARGEST.webhooks, &health, now)
    {
        change.recover(number, recovery);
    }
    change.commit().await
}

/// Makes the last delivery due again that an endpoint did not get.
async fn redeliver(store: &Store, number: u32) -> Done<()> {
    let now = store.now();
    let missed = |(place, row): (&Place, &Row)| match (place, row) {
        (Place::Ended(_), Row::Delivery(row)) => {
            let of = row.delivery.endpoint() == u64::from(number);
            (of && row.delivery.status().is_missed()).then_some(row.delivery)
        }
        _ => None,
    };
    let last: Option<Delivery> = store.tables().rows().filter_map(missed).last();
    let Some(delivery) = last else { return Ok(()) };
    let mut change = store.change().await?;
    let mut locked = change.lock(&[Key::of(&delivery)]).await?;
    let health = change.endpoints(&[number], Lock::Yes).await?.remove(&number);
    let (Some(locked), Some(health)) = (locked.remove(&delivery.id()), health) else {
        return Ok(());
    };
    let Locked { mut row, .. } = locked;
    if row.redeliver(&health, now).is_err() {
        return Ok(());
    }
    let deliveries = vec![(locked, row)];
    change.write(&Writes { deliveries, are_news: true, ..Writes::at(now) }).await?;
    change.commit().await
}

/// Accepts an event, begins its attempt at an endpoint and stores that, as a sender of another kind that dies then.
pub(crate) async fn abandon(
    store: &Store,
    (number, account): (u32, u32),
    event: impl FnOnce(Timestamp) -> EventBody,
) -> Done<EventBody> {
    let mut change = store.change().await?;
    let (event, ids) = change.accept(account, event).await?;
    let now = store.now();
    let page = change.lock_pending(number, 0).await?;
    let health = change.endpoints(&[number], Lock::No).await?.remove(&number);
    let row = page.rows.into_iter().find(|row| ids.contains(&row.id()));
    if let (Some(row), Some(health)) = (row, health) {
        let mut begun = row;
        if begun.begin(&health, now).is_ok() {
            let deliveries = vec![(Locked::of(row), begun)];
            change.write(&Writes { deliveries, are_news: true, ..Writes::at(now) }).await?;
        }
    }
    change.commit().await?;
    Ok(event)
}
