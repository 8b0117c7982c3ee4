//! An event as one line for people.
//!
//! Its texts come from untrusted people: they are quoted, and control characters are escaped.

use call_assistant::json::JsonObject;
use call_assistant::model::{Appointment, Call};
use call_assistant::webhook::event::{Event, EventData};
use host::terminal;

/// Returns what a body that was verified earlier says.
pub(crate) fn what_happened(body: &[u8]) -> String {
    match Event::from_bytes_verified_earlier(body) {
        Ok(event) => format!("{} {} {}", event.id, event.event_type(), told(&event.data)),
        Err(error) => {
            format!("a genuine body of {} bytes that cannot be read, kept: {error}", body.len())
        }
    }
}

fn told(data: &EventData) -> String {
    match data {
        EventData::CallEnded(call) => call_told(call),
        EventData::CallTransferred(transferred) => {
            let label = transferred.target_label();
            let to = label.map_or("somebody".to_owned(), |label| format!("{label:?}"));
            let at = transferred.transferred_at().map(|at| format!(" at {at}"));
            let at = at.unwrap_or_default();
            format!("{}, handed to {to}{at}", call_told(&transferred.call))
        }
        EventData::AppointmentCreated(appointment) => appointment_told(appointment, "booked"),
        EventData::AppointmentUpdated(appointment) => appointment_told(appointment, "changed"),
        EventData::AppointmentCancelled(appointment) => appointment_told(appointment, "cancelled"),
        EventData::ContactCreated(contact) => format!("added {}", identified(contact.object())),
        EventData::ContactUpdated(contact) => format!("changed {}", identified(contact.object())),
        EventData::UsageThresholdReached(counters) => {
            let counters = terminal::escaped(counters.as_str());
            format!("three quarters of the included minutes are used: {counters}")
        }
        EventData::Ping { message, .. } => format!("{message:?}"),
        EventData::Unreadable { error, .. } => format!("kept, of an unknown form: {error}"),
        EventData::Unknown(unknown) => {
            format!("kept, of an unknown type: {} bytes", unknown.json().get().len())
        }
        _ => "kept, of a type that this program does not show".to_owned(),
    }
}

fn call_told(call: &Call) -> String {
    let who = call.caller.display_name.as_ref().or(call.caller.phone_number.as_ref());
    let who = who.map_or("an unknown caller".to_owned(), |who| format!("{who:?}"));
    let long = call.duration_seconds.map(|seconds| format!(" for {seconds} s")).unwrap_or_default();
    let booked = match call.appointment_ids.len() {
        0 => String::new(),
        booked => format!(", {booked} booked"),
    };
    let about = call.summary.as_ref().map(|text| format!(": {text:?}")).unwrap_or_default();
    format!("call {} from {who} at {}{long}{booked}{about}", call.id, call.started_at)
}

fn appointment_told(appointment: &Appointment, what: &str) -> String {
    let status = appointment.status().map(|status| format!(" (status {:?})", status.as_str()));
    format!("{what} {}{}", identified(appointment.object()), status.unwrap_or_default())
}

fn identified(object: &JsonObject) -> String {
    object.get_str("id").map_or("an object without an id".to_owned(), |id| format!("{id:?}"))
}
