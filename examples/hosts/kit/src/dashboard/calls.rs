//! What the assistant does in real life: record calls, emit events, and a ping for a test.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, EventId};
use call_assistant::webhook::event::{
    ApiVersion, Event, EventBody, EventData, EventType, NewEvent, NewEventError, Origin,
    OriginSource,
};
use call_assistant::webhook::sender::DisabledReason;
use serde_json::{Map, Value, json};

use super::{Asked, Dashboard, show};
use crate::http::answer::{Answered, Error, created};
use crate::input::{self, Bad};
use crate::random;
use crate::store::scope::{Allowed, Among, Login, Operator};
use crate::store::{Account, EndpointRow, Refused, Store};
use crate::trace::TraceParent;

/// The version that this service's events are written in.
const API_VERSION: &str = "2026-01-15";

impl<S: Store, X> Dashboard<S, X> {
    pub(super) async fn calls(&self, id: Allowed<'_, Account>, asked: &Asked<'_>) -> Answered {
        let part = self.store.calls(asked.page(id)?).await?;
        Ok(show::page(part, |rows| show::rows(rows, show::value)))
    }

    /// Records a call and emits `call.ended`, in one write. It is written now, by the store's clock, unless
    /// whoever imports it says when it was.
    pub(super) async fn record_call(
        &self,
        by: Operator,
        id: Allowed<'_, Account>,
        asked: &Asked<'_>,
    ) -> Answered {
        let account = self.store.account(id).await?.id;
        let mut shown = Value::Null;
        let compose = |now| -> Result<_, Error> {
            let call = input::call("", &asked.body, &defaults(&asked.body, now))?;
            shown = show::value(&call);
            let event = match new_event(account.clone(), Origin::voice(), now).call_ended(&call) {
                Ok(body) => {
                    shown["event_id"] = json!(body.id());
                    Some(body)
                }
                // The call is one all the same; its event comes when there is something to say.
                Err(error) => {
                    shown["event_id"] = Value::Null;
                    shown["not_emitted"] = error.to_string().into();
                    None
                }
            };
            Ok((call, event))
        };
        let trace = TraceParent::of(asked.headers);
        let deliveries = self.store.record_call(by, &account, trace.as_ref(), compose).await?;
        shown["deliveries"] = json!(deliveries);
        Ok(created(&shown))
    }

    /// Emits any event.
    pub(super) async fn emit(
        &self,
        by: Operator,
        id: Allowed<'_, Account>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let event_type = fields.need("type", |text| event_type(text).map(str::to_owned))?;
        let data = fields.required("data", fields.value("data"))?;
        if !data.is_object() {
            return Err(Bad::new("data", "expected an object").into());
        }
        let account = self.store.account(id).await?.id;
        let compose = |now| any_event(account, &event_type, data, now);
        self.accept(Among::All(by), asked, compose).await
    }

    /// Sends one endpoint a ping, or the sample of another type: a delivery like any other.
    pub(super) async fn ping(
        &self,
        login: &Login,
        id: Allowed<'_, EndpointRow>,
        asked: &Asked<'_>,
    ) -> Answered {
        let fields = asked.fields()?;
        let sample = match fields.text("type")?.filter(|text| *text != EventType::Ping.as_str()) {
            None => None,
            Some(text) => Some((text, sample(text)?)),
        };
        let endpoint = self.store.endpoint(id).await?;
        let account = login.account(endpoint.account_id.as_str())?;
        let account = self.store.account(account).await?;
        account.plan.webhooks.check_webhooks().map_err(Refused::Plan)?;
        if endpoint.health.disabled() == Some(DisabledReason::Deleted) {
            return Err(Refused::Conflict("the endpoint is deleted".into()).into());
        }
        let text = "This is a test from the dashboard. Your endpoint works.";
        let compose = |now| match sample {
            None => new_event(account.id, dashboard(), now).ping(text).map_err(not_created),
            Some((event_type, data)) => any_event(account.id, event_type, &data, now),
        };
        self.accept(Among::One(id), asked, compose).await
    }

    async fn accept(
        &self,
        to: Among<'_, EndpointRow>,
        asked: &Asked<'_>,
        compose: impl FnOnce(Timestamp) -> Result<EventBody, Error> + Send,
    ) -> Answered {
        let mut shown = Value::Null;
        let compose = |now| {
            compose(now).inspect(|body| {
                shown = json!({
                    "id": body.id(),
                    "type": body.event_type(),
                    "created_at": body.created_at(),
                });
            })
        };
        let trace = TraceParent::of(asked.headers);
        let deliveries = self.store.accept(to, trace.as_ref(), compose).await?;
        shown["deliveries"] = json!(deliveries);
        Ok(created(&shown))
    }
}

/// Reads the type of an event.
pub(super) fn event_type(text: &str) -> Result<&str, &'static str> {
    match (1..=100).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text),
        false => Err("expected 1 to 100 visible ASCII characters"),
    }
}

/// Returns the data of a test event.
fn sample(event_type: &str) -> Result<Value, Bad> {
    let known = EventType::KNOWN.iter().find(|known| known.as_str() == event_type);
    let sample = known.and_then(|known| serde_json::from_str(known.sample()?).ok());
    sample.ok_or_else(|| {
        let known: Vec<&str> = EventType::KNOWN.iter().map(EventType::as_str).collect();
        Bad::new("type", format!("expected one of {}", known.join(", ")))
    })
}

fn new_event(account: AccountId, origin: Origin, now: Timestamp) -> NewEvent {
    let id = EventId::from_random(random::bytes());
    // A date of the calendar.
    #[allow(clippy::expect_used)]
    let version = ApiVersion::parse(API_VERSION).expect("a constant");
    NewEvent::new(id, account, version, origin, now)
}

/// Composes an event: by the library if it knows the type. A type from the future is written field by field.
fn any_event(
    account: AccountId,
    event_type: &str,
    data: &Value,
    now: Timestamp,
) -> Result<EventBody, Error> {
    let envelope = json!({
        "id": EventId::from_random(random::bytes()),
        "type": event_type,
        "created_at": now,
        "api_version": API_VERSION,
        "account_id": account,
        "origin": dashboard(),
        "data": data,
    });
    let text = envelope.to_string();
    let wrong = |error| Bad::of_json("", &error);
    let event = Event::from_bytes_verified_earlier(text.as_bytes()).map_err(wrong)?;
    match &event.data {
        // A known type has its form. Whoever wants another form wants another type.
        EventData::Unreadable { error, .. } => return Err(Bad::of_json("", error).into()),
        EventData::AppointmentCancelled(appointment) => {
            let event = new_event(account, dashboard(), now);
            return event.appointment_cancelled(appointment).map_err(not_created);
        }
        _ => {}
    }
    Ok(EventBody::from_stored(event.to_json()).map_err(wrong)?)
}

fn not_created(error: NewEventError) -> Error {
    Bad::new("", error).into()
}

fn dashboard() -> Origin {
    Origin::new(OriginSource::from("dashboard"))
}

/// Returns what a call recorded by hand has where nothing is said: it took a minute, and has just ended. What is
/// said of its beginning and its end says how long it took.
fn defaults(said: &Value, now: Timestamp) -> Map<String, Value> {
    let instant = |name: &str| {
        let text = said.get(name).and_then(Value::as_str);
        text.and_then(|text| Timestamp::parse(text).ok())
    };
    let took = said.get("duration_seconds").and_then(Value::as_u64);
    let took = took.map(|seconds| Duration::from_secs(seconds.min(86_400)));
    let (written, ended) = (instant("created_at").unwrap_or(now), instant("ended_at"));
    let minute = Duration::from_secs(60);
    let started = instant("started_at").or(instant("answered_at"));
    let started =
        started.unwrap_or_else(|| ended.unwrap_or(written).saturating_sub(took.unwrap_or(minute)));
    let answered = instant("answered_at").unwrap_or(started);
    let took = took.or(ended.map(|ended| ended.since(answered))).unwrap_or(minute);
    let has_no_end = said.get("ended_at").is_some_and(Value::is_null);
    let defaults = json!({
        "id": CallId::from_random(random::bytes()),
        "caller": { "contact_id": null, "phone_number": null, "display_name": null },
        "started_at": started,
        "answered_at": answered,
        "ended_at": answered.saturating_add(took),
        "duration_seconds": (!has_no_end).then_some(took.as_secs()),
        "summary": "Recorded from the dashboard.",
        "appointment_ids": [],
        "created_at": written,
    });
    defaults.as_object().cloned().unwrap_or_default()
}
