//! The store is held to what the port promises of every store.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use call_assistant::Timestamp;
use call_assistant::webhook::sender::Delivery;
use testing::port;
use testing::store::{Calm, Place, Row, Store, Time};

use crate::customers;
use crate::plan::{EndpointPlan, Manner};

struct World(Store, AtomicU64);

impl port::World for World {
    type Store = Store;

    fn store(&self) -> &Store {
        &self.0
    }

    async fn accept(&self) -> Delivery {
        let number = self.1.fetch_add(1, Ordering::Relaxed);
        let event = |now| customers::event(number, 1, now);
        let (_, ids) = self.0.accept(1, event).await.unwrap();
        let tables = self.0.tables();
        let row = tables.rows().find(|(place, _)| **place == Place::Pending(ids[0])).unwrap().1;
        match row {
            Row::Delivery(row) => row.delivery,
            other => panic!("{other:?}"),
        }
    }

    async fn attempts(&self, delivery: &Delivery) -> usize {
        let tables = self.0.tables();
        let of = |place: &Place| matches!(place, Place::Attempt(of, _) if *of == delivery.id());
        tables.rows().filter(|(place, _)| of(place)).count()
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Runs the port's suite over the store.
pub(crate) fn keeps_what_the_port_promises() {
    let start = Timestamp::from_unix(1_767_225_600).unwrap();
    let store = Store::new(Time::default(), Arc::new(Calm), start, 16);
    let plan = EndpointPlan { number: 1, account: 1, manner: Manner::Good };
    store.add_endpoint(1, customers::endpoint(&plan, start));
    let world = World(store, AtomicU64::new(1));
    let mut suite = pin!(port::holds(&world));
    let mut context = Context::from_waker(Waker::noop());
    // Nobody waits for anybody in it, so it ends.
    for _ in 0..1_000_000 {
        if let Poll::Ready(()) = suite.as_mut().poll(&mut context) {
            return;
        }
    }
    panic!("the port's suite waits for ever");
}
