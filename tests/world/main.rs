//! Both sides against each other: a service that embeds `service` and `delivery`, a customer that
//! embeds `client`, and a wire between them that loses, doubles, delays, cuts off and answers in
//! somebody else's name. Whatever happens, the customer ends with exactly the service's calls,
//! each processed once: SYNC-1, SYNC-2, SYNC-3, LIST-6, LIST-7, EVT-8, DEL-8, DEL-13, KEY-6, KEY-4.
//!
//! `SIMULATION_WORLDS=5000` runs more worlds, `SIMULATION_SEED=17` the one that failed.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod customer;
mod service;

use std::panic::catch_unwind;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::Outcome;
use http::{Response, StatusCode};

use crate::customer::Customer;
use crate::dice::{Dice, HOUR, MINUTE, SECOND, at};
use crate::service::Service;
use support::dice;
use support::simulation::{Tally, seeds};

/// The way back.
fn millis(instant: Timestamp) -> i64 {
    i64::try_from(instant.since(at(0)).as_millis()).unwrap()
}

/// What the wire does to requests, in percent of them, and the longest it takes each way.
struct Wire {
    loses: u64,
    doubles: u64,
    cuts: u64,
    intercepts: u64,
    delay: i64,
}

#[test]
fn every_world_ends_with_the_services_calls() {
    let seeds = seeds(60);
    let one = seeds.end - seeds.start == 1;
    let mut met = Tally::default();
    for seed in seeds {
        match catch_unwind(|| run(seed)) {
            Ok(world) => met.add(&world),
            Err(_) => panic!("SIMULATION_SEED={seed} cargo test --test world"),
        }
    }
    println!("{met:?}");
    let all: Vec<_> = customer::EVERYTHING.split(' ').collect();
    assert!(one || met.has_all(&all), "{met:?}");
}

fn run(seed: u64) -> Tally {
    let mut dice = Dice::new(seed);
    let mut percent = |most: i64| if dice.chance(40) { 0 } else { dice.up_to(most).unsigned_abs() };
    let (loses, doubles, cuts, intercepts) = (percent(30), percent(20), percent(20), percent(20));
    let wire = Wire { loses, doubles, cuts, intercepts, delay: dice.span(MINUTE) };
    let mut service = Service::new(&mut dice);
    let mut customer = Customer::new(&mut dice, service.keys.clone(), service.secret.clone());

    let mut now = 0;
    loop {
        let calm = now > service.settled && !service.has_deliveries();
        if calm && customer.calm_walks >= 2 {
            break;
        }
        let sync_at = customer.next_at.max(now);
        let delivery_at = service.next_delivery_at(now);
        match delivery_at.filter(|delivery_at| *delivery_at <= sync_at) {
            Some(delivery_at) => {
                now = now.max(delivery_at);
                deliver(&mut service, &mut customer, &wire, now, &mut dice);
            }
            None => {
                now = sync_at;
                if calm {
                    service.recover();
                } else {
                    service.mishap(now, &mut dice);
                }
                exchange(&mut service, &mut customer, &wire, now, calm, &mut dice);
            }
        }
        assert!(now < 60 * 24 * HOUR, "a world without an end");
    }

    for written in &service.calls {
        let times = customer.processed().get(&written.row.call.id);
        assert_eq!(times, Some(&1), "{written:?}");
    }
    assert_eq!(customer.processed().len(), service.calls.len());
    let met = customer.met;
    if wire.doubles == 0 {
        // A paced client alone on its credential never meets one.
        assert_eq!(met.of("limited"), 0);
    }
    met
}

/// One step of the customer's: a request leaves, or its answer arrives.
fn exchange(
    service: &mut Service,
    customer: &mut Customer,
    wire: &Wire,
    now: i64,
    calm: bool,
    dice: &mut Dice,
) {
    if let Some(answer) = customer.awaited.take() {
        return customer.receive_answer(answer, now);
    }
    let Some((request, ticket)) = customer.ask(now, calm, dice) else {
        return;
    };
    let mut time = now + dice.span(wire.delay);
    if dice.chance(wire.loses) && !calm {
        return customer.await_answer(ticket, time + 30 * SECOND, None);
    }
    let mut response = service.serve(&request, time);
    if dice.chance(wire.doubles) && !calm {
        time += dice.span(wire.delay);
        response = service.serve(&request, time);
    }
    time += dice.span(wire.delay);
    let answer = if calm {
        Some(response)
    } else if dice.chance(wire.loses) {
        time += 30 * SECOND;
        None
    } else if dice.chance(wire.intercepts) {
        let status = [502, 503, 504][dice.up_to(2) as usize];
        let mut page = Response::new(b"<h1>The gateway says no</h1>".to_vec());
        *page.status_mut() = StatusCode::from_u16(status).unwrap();
        Some(page)
    } else if dice.chance(wire.cuts) {
        let (head, mut body) = response.into_parts();
        body.truncate(dice.up_to(body.len() as i64 - 1) as usize);
        Some(Response::from_parts(head, body))
    } else {
        Some(response)
    };
    customer.await_answer(ticket, time, answer);
}

/// One attempt of a delivery, over the same wire.
fn deliver(service: &mut Service, customer: &mut Customer, wire: &Wire, now: i64, dice: &mut Dice) {
    let Some((attempt, request)) = service.begin_attempt(now) else {
        return;
    };
    let mut copies = 1 + i64::from(dice.chance(wire.doubles));
    if dice.chance(wire.loses) {
        copies = 0;
    }
    let mut outcome = Outcome::TimedOut;
    for _ in 0..copies {
        let mut body = request.body().clone();
        if dice.chance(wire.cuts) {
            body.truncate(dice.up_to(body.len() as i64 - 1) as usize);
        }
        outcome = match customer.receive_event(request.headers(), &body, now, dice) {
            Some(answer) => Outcome::Answered(answer.status()),
            None => Outcome::Reset,
        };
    }
    if dice.chance(wire.loses) {
        outcome = Outcome::TimedOut;
    }
    if dice.chance(2) {
        // The sender dies before it has written down how it went: its lease runs out.
        return;
    }
    let took = match outcome {
        Outcome::TimedOut => Duration::from_secs(10),
        _ => Duration::from_millis(20),
    };
    service.finish_attempt(&attempt, outcome, now + took.as_millis() as i64);
}
