//! The sandbox: faults on order, and a clock that can be moved.
//!
//! Both are routes of the dashboard. Only this host has them, because it is for tests.
//!
//! | route | |
//! |---|---|
//! | `POST /faults` | orders a fault: `{"fault":"slow","milliseconds":500,"next":3}`; with `account` or `endpoint`, for one |
//! | `GET /faults`, `DELETE /faults`, `DELETE /faults/{id}` | shows and removes orders |
//! | `GET /clock` | the service's time, and how far it is ahead of the machine's |
//! | `POST /clock` | moves it: `{"advance_seconds":3600}` or `{"to":"2027-01-01T00:00:00Z"}` |

mod answer;

use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use http::Method;
use serde_json::{Value, json};

use crate::faults::Faults;
use crate::sender::Mover;
use crate::store::Store;
use host::dashboard::{Asked, Extension};
use host::http::answer::{Answered, Error, created, ok};
use host::input::{Bad, Fields};
use host::store::Refused;
use host::store::scope::Operator;
use host::{clock, log};

pub use answer::{Body, answer};

/// The furthest that one request moves the clock: a leap year.
const FURTHEST: Duration = Duration::from_secs(366 * 86_400);

/// The sandbox of a service, as its dashboard has it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub faults: Faults,
    pub mover: Mover,
    pub store: Arc<Store>,
}

impl Extension for Sandbox {
    const PATHS: &'static [&'static str] = &["faults", "clock"];

    async fn route(&self, _: Operator, asked: &Asked<'_>) -> Answered {
        let Self { faults, mover, store } = self;
        let (get, post, delete) = (
            [Method::GET, Method::HEAD].contains(asked.method),
            *asked.method == Method::POST,
            *asked.method == Method::DELETE,
        );
        match asked.path.as_slice() {
            ["faults"] if get => {
                Ok(ok(&json!({ "data": faults.shown(), "known": Faults::known() })))
            }
            ["faults"] if post => order(asked, faults, store),
            ["faults"] if delete => {
                faults.remove(None);
                Ok(ok(&json!({ "data": [] })))
            }
            ["faults", id] if delete => match id.parse().is_ok_and(|id| faults.remove(Some(id))) {
                true => Ok(ok(&json!({ "data": faults.shown() }))),
                false => Err(Refused::NotFound("fault").into()),
            },
            ["clock"] if get => Ok(ok(&time(store))),
            ["clock"] if post => advance(asked, mover, store).await,
            ["faults"] => Err(Error::Method("GET, HEAD, POST, DELETE".to_owned())),
            ["faults", _] => Err(Error::Method("DELETE".to_owned())),
            ["clock"] => Err(Error::Method("GET, HEAD, POST".to_owned())),
            _ => Err(Error::NoSuchPath),
        }
    }

    fn shown(&self) -> Value {
        json!({ "faults": self.faults.shown(), "clock": time(&self.store) })
    }
}

fn order(asked: &Asked<'_>, faults: &Faults, store: &Store) -> Answered {
    if let Some(id) = asked.body["account"].as_str() {
        store.lock().account(id)?;
    }
    if let Some(id) = asked.body["endpoint"].as_str() {
        store.lock().endpoint(id)?;
    }
    let order = faults.order(&asked.body)?;
    log::info!("sandbox ordered {order}");
    Ok(created(&order))
}

/// Moves the clock. On the way it stops whenever something is due, and goes on when the attempts of
/// that time have ended.
async fn advance(asked: &Asked<'_>, mover: &Mover, store: &Store) -> Answered {
    let fields = Fields::of("", &asked.body, "advance_seconds, to")?;
    let now = store.now();
    let span = |value: &Value| Duration::try_from_secs_f64(value.as_f64()?).ok();
    let by = fields.number("advance_seconds", span, "a number of at least 0")?;
    let (field, to) = match (by, fields.read("to", Timestamp::parse)?) {
        (Some(by), None) => ("advance_seconds", now.saturating_add(by)),
        (None, Some(to)) => ("to", to),
        (None, None) => return Err(Bad::new("", "expected advance_seconds or to").into()),
        (Some(_), Some(_)) => return Err(Bad::new("to", "not allowed with advance_seconds").into()),
    };
    if to < now {
        return Err(Bad::new(field, "expected a later time than the clock's").into());
    }
    if to.since(now) > FURTHEST {
        return Err(Bad::new(field, "expected at most 366 days from the clock's time").into());
    }
    let stops = mover.advance(to).await.ok_or_else(|| {
        Refused::Conflict(
            "another request has moved the clock; get the time with GET /clock".into(),
        )
    })?;
    log::info!("sandbox clock moved by {} s, {stops} stops", to.since(now).as_secs());
    let mut shown = time(store);
    shown["stops"] = stops.into();
    Ok(ok(&shown))
}

fn time(store: &Store) -> Value {
    json!({
        "now": store.now().to_string(),
        "machine": clock::now().to_string(),
        "ahead_seconds": store.clock.ahead().as_secs_f64(),
    })
}
