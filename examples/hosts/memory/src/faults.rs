//! Faults on order: the errors of the next requests and deliveries, and their number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::rest::ErrorCode;
use serde_json::{Value, json};
use tokio::sync::Notify;

use host::input::{Bad, Fields};
use host::lock;

/// A fault of a request to the public API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// The answer is this documented error.
    Error(ErrorCode),
    /// The answer is 429 with this `Retry-After`, in seconds.
    RateLimited(u32),
    /// A look-up fails, so the answer is 500.
    LookupFails,
    /// The answer comes this much later.
    Slow(Duration),
    /// The connection is closed in the middle of the answer.
    Cut,
}

/// A fault of an attempt to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryFault {
    /// It is sent twice.
    Twice,
    /// It is held back until the endpoint's next one has been sent.
    OutOfOrder,
    /// It is signed with a secret that the receiver does not have.
    WrongSignature,
    /// It is signed as of ten minutes ago.
    OldTimestamp,
    /// Its type is unknown to every reader.
    UnknownType,
    /// Its object has none of the fields that its type has.
    ChangedObject,
    /// It has no signature header.
    NoSignature,
    /// It is signed as of ten minutes ahead.
    FutureTimestamp,
    /// Only the oldest of the endpoint's secrets signs it.
    OldSecret,
    /// A foreign digest stands before the good one.
    TwoDigests,
    /// Its body has 1 MiB.
    LargeBody,
    /// Its body has text outside of ASCII.
    NonAscii,
    /// Its body comes in chunks, without a length.
    Chunked,
    /// The names of its header fields begin with capitals.
    HeaderCase,
    /// It is sent twice at the same time.
    TwiceAtOnce,
    /// It is sent a hundred times at the same time.
    Burst,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Request(RequestFault),
    Delivery(DeliveryFault),
}

/// How often.
#[derive(Clone, Debug)]
enum Often {
    Next(u64),
    /// Out of 2^64, and the state of the dice.
    Chance {
        of: f64,
        seed: u64,
        dice: u64,
    },
}

/// Whom it strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whom {
    All,
    Account(String),
    Endpoint(String),
}

#[derive(Clone, Debug)]
struct Order {
    id: u64,
    name: String,
    fault: Fault,
    whom: Whom,
    often: Often,
    done: u64,
}

#[derive(Debug, Default)]
struct Orders {
    last_id: u64,
    orders: Vec<Order>,
    /// Attempts that wait for a later one, by endpoint.
    held: HashMap<u32, Vec<Arc<Notify>>>,
}

/// The orders. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Orders>>);

/// The most orders.
const MOST_ORDERS: usize = 100;

/// The longest that an answer may be late: a customer's time limit has passed long before.
const SLOWEST_MS: u64 = 120_000;

/// How long an attempt waits to be overtaken, if nothing overtakes it.
const HELD: Duration = Duration::from_secs(2);

impl RequestFault {
    /// Returns the name in an order.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Error(code) => code.as_str(),
            Self::RateLimited(_) => "rate_limit_exceeded",
            Self::LookupFails => "lookup_fails",
            Self::Slow(_) => "slow",
            Self::Cut => "cut",
        }
    }
}

impl DeliveryFault {
    const NAMES: [(&str, Self); 16] = [
        ("twice", Self::Twice),
        ("out_of_order", Self::OutOfOrder),
        ("wrong_signature", Self::WrongSignature),
        ("old_timestamp", Self::OldTimestamp),
        ("unknown_type", Self::UnknownType),
        ("changed_object", Self::ChangedObject),
        ("no_signature", Self::NoSignature),
        ("future_timestamp", Self::FutureTimestamp),
        ("old_secret", Self::OldSecret),
        ("two_digests", Self::TwoDigests),
        ("large_body", Self::LargeBody),
        ("non_ascii", Self::NonAscii),
        ("chunked", Self::Chunked),
        ("header_case", Self::HeaderCase),
        ("twice_at_once", Self::TwiceAtOnce),
        ("burst", Self::Burst),
    ];

    /// Returns the names of all.
    fn names() -> [&'static str; 16] {
        Self::NAMES.map(|(name, _)| name)
    }

    /// Returns the name in an order.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, fault)| *fault == self).map_or("", |(name, _)| name)
    }
}

impl Faults {
    /// Takes an order, as JSON.
    pub(super) fn order(&self, body: &Value) -> Result<Value, Bad> {
        let known = "fault, account, endpoint, next, probability, seed, retry_after, milliseconds";
        let fields = Fields::of("", body, known)?;
        let name = fields.required("fault", fields.text("fault")?)?;
        let fault = fault(name, &fields)?;
        let whom = whom(&fields, &fault)?;
        let often = often(&fields)?;
        let mut orders = lock(&self.0);
        if orders.orders.len() >= MOST_ORDERS {
            return Err(Bad::new("", format!("at most {MOST_ORDERS} orders at a time")));
        }
        orders.last_id = orders.last_id.wrapping_add(1);
        let order =
            Order { id: orders.last_id, name: name.to_owned(), fault, whom, often, done: 0 };
        let shown = order.shown();
        orders.orders.push(order);
        Ok(shown)
    }

    /// Shows the orders that are not done, oldest first.
    pub(super) fn shown(&self) -> Vec<Value> {
        lock(&self.0).orders.iter().map(Order::shown).collect()
    }

    /// Shows the faults that can be ordered: of requests, and of deliveries.
    pub(super) fn known() -> Value {
        json!({ "requests": of_requests(), "deliveries": DeliveryFault::names() })
    }

    /// Removes one order, or all. False if there is none of this id.
    pub(super) fn remove(&self, id: Option<u64>) -> bool {
        let mut orders = lock(&self.0);
        let before = orders.orders.len();
        orders.orders.retain(|order| id.is_some_and(|id| order.id != id));
        id.is_none() || orders.orders.len() < before
    }

    /// Says what goes wrong with a request of an account, and counts it. `has_cursor` tells whether a
    /// cursor can be refused.
    pub fn request(
        &self,
        path: &str,
        has_cursor: bool,
        account: Option<&str>,
    ) -> Option<RequestFault> {
        let strikes = |whom: &Whom| match whom {
            Whom::All => true,
            Whom::Account(id) => account == Some(id),
            Whom::Endpoint(_) => false,
        };
        self.next(strikes, |fault| match fault {
            Fault::Request(RequestFault::Error(ErrorCode::InvalidCursor)) if !has_cursor => None,
            Fault::Request(fault) if path.starts_with("/v1/") => Some(fault.clone()),
            _ => None,
        })
    }

    /// Says what goes wrong with an attempt to deliver to this endpoint of this account, and counts it.
    pub fn delivery(&self, account: &str, endpoint: &str) -> Option<DeliveryFault> {
        let strikes = |whom: &Whom| match whom {
            Whom::All => true,
            Whom::Account(id) => account == id,
            Whom::Endpoint(id) => endpoint == id,
        };
        self.next(strikes, |fault| match fault {
            Fault::Delivery(fault) => Some(*fault),
            Fault::Request(_) => None,
        })
    }

    /// Waits until another attempt to this endpoint was sent, or for two seconds.
    pub async fn overtaken(&self, endpoint: u32) {
        let notify = Arc::new(Notify::new());
        lock(&self.0).held.entry(endpoint).or_default().push(Arc::clone(&notify));
        let _ = tokio::time::timeout(HELD, notify.notified()).await;
    }

    /// Lets go the attempts to this endpoint that wait to be overtaken.
    pub fn sent(&self, endpoint: u32) {
        for held in lock(&self.0).held.remove(&endpoint).unwrap_or_default() {
            held.notify_one();
        }
    }

    /// Returns the first order that fits and whose turn it is.
    fn next<T>(
        &self,
        strikes: impl Fn(&Whom) -> bool,
        fits: impl Fn(&Fault) -> Option<T>,
    ) -> Option<T> {
        let mut orders = lock(&self.0);
        let (at, fault) = orders.orders.iter_mut().enumerate().find_map(|(at, order)| {
            let fault = fits(&order.fault).filter(|_| strikes(&order.whom))?;
            order.strikes().then_some((at, fault))
        })?;
        if orders.orders.get(at).is_some_and(|order| matches!(order.often, Often::Next(0))) {
            orders.orders.remove(at);
        }
        Some(fault)
    }
}

impl Order {
    fn strikes(&mut self) -> bool {
        let strikes = match &mut self.often {
            Often::Next(left) => {
                let strikes = *left > 0;
                *left = left.saturating_sub(1);
                strikes
            }
            Often::Chance { of, dice, .. } => throw(dice) < *of,
        };
        self.done = self.done.saturating_add(u64::from(strikes));
        strikes
    }

    fn shown(&self) -> Value {
        let mut shown = json!({ "id": self.id, "fault": self.name, "done": self.done });
        match &self.fault {
            Fault::Request(RequestFault::RateLimited(seconds)) => {
                shown["retry_after"] = json!(seconds);
            }
            Fault::Request(RequestFault::Slow(late)) => {
                shown["milliseconds"] = json!(u64::try_from(late.as_millis()).unwrap_or(u64::MAX));
            }
            _ => {}
        }
        match &self.whom {
            Whom::All => {}
            Whom::Account(id) => shown["account"] = json!(id),
            Whom::Endpoint(id) => shown["endpoint"] = json!(id),
        }
        match &self.often {
            Often::Next(left) => shown["next"] = json!(left),
            Often::Chance { of, seed, .. } => {
                shown["probability"] = json!(of);
                shown["seed"] = json!(seed);
            }
        }
        shown
    }
}

/// Returns the faults of requests: the documented error codes, and others.
fn of_requests() -> Vec<&'static str> {
    let codes = ErrorCode::KNOWN.iter().map(ErrorCode::as_str);
    codes.chain(["lookup_fails", "slow", "cut"]).collect()
}

/// Returns a number from 0 up to 1, from dice that fall the same way for the same seed: SplitMix64.
fn throw(dice: &mut u64) -> f64 {
    *dice = dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *dice;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let top = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(u32::MAX);
    f64::from(top) / (f64::from(u32::MAX) + 1.0)
}

fn fault(name: &str, fields: &Fields<'_>) -> Result<Fault, Bad> {
    let number = |name: &str, most: u64| {
        let read = |value: &Value| value.as_u64().filter(|n| (1..=most).contains(n));
        fields.number(name, read, format!("1 to {most}"))
    };
    let retry_after = number("retry_after", u64::from(u32::MAX))?;
    let milliseconds = number("milliseconds", SLOWEST_MS)?;
    if retry_after.is_some() && name != "rate_limit_exceeded" {
        return Err(Bad::new(fields.path("retry_after"), "allowed only with rate_limit_exceeded"));
    }
    if milliseconds.is_some() && name != "slow" {
        return Err(Bad::new(fields.path("milliseconds"), "allowed only with slow"));
    }
    if let Some((_, fault)) = DeliveryFault::NAMES.iter().find(|(known, _)| *known == name) {
        return Ok(Fault::Delivery(*fault));
    }
    let fault = match name {
        "lookup_fails" => RequestFault::LookupFails,
        "cut" => RequestFault::Cut,
        "slow" => RequestFault::Slow(Duration::from_millis(
            fields.required("milliseconds", milliseconds)?,
        )),
        "rate_limit_exceeded" => {
            let seconds = retry_after.and_then(|seconds| u32::try_from(seconds).ok());
            RequestFault::RateLimited(seconds.unwrap_or(1))
        }
        name => match ErrorCode::from(name) {
            code if code.status().is_some() => RequestFault::Error(code),
            _ => {
                let known = [of_requests(), DeliveryFault::names().to_vec()].concat().join(", ");
                return Err(Bad::new(fields.path("fault"), format!("expected {known}")));
            }
        },
    };
    Ok(Fault::Request(fault))
}

fn whom(fields: &Fields<'_>, fault: &Fault) -> Result<Whom, Bad> {
    match (fields.text("account")?, fields.text("endpoint")?) {
        (None, None) => Ok(Whom::All),
        (Some(id), None) => Ok(Whom::Account(id.to_owned())),
        (None, Some(_)) if matches!(fault, Fault::Request(_)) => {
            Err(Bad::new(fields.path("endpoint"), "allowed only with a fault of a delivery"))
        }
        (None, Some(id)) => Ok(Whom::Endpoint(id.to_owned())),
        (Some(_), Some(_)) => Err(Bad::new(fields.path("endpoint"), "not allowed with account")),
    }
}

fn often(fields: &Fields<'_>) -> Result<Often, Bad> {
    let share = |value: &Value| value.as_f64().filter(|of| *of > 0.0 && *of <= 1.0);
    let chance = fields.number("probability", share, "above 0 and up to 1")?;
    let whole = |name: &str| fields.number(name, Value::as_u64, "a whole number of at least 0");
    match (chance, whole("next")?, whole("seed")?) {
        (Some(of), None, seed) => {
            let seed = seed.unwrap_or(0);
            Ok(Often::Chance { of, seed, dice: seed })
        }
        (Some(_), Some(_), _) => Err(Bad::new(fields.path("next"), "not allowed with probability")),
        (None, _, Some(_)) => Err(Bad::new(fields.path("seed"), "allowed only with probability")),
        (None, Some(0), None) => Err(Bad::new(fields.path("next"), "expected 1 or more")),
        (None, next, None) => Ok(Often::Next(next.unwrap_or(1))),
    }
}
