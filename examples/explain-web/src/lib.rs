//! `webhook::explain` for a page: four functions over memory that the page and the library share.
//!
//! The page requests a buffer with `input`, writes its question into the buffer, and calls
//! `explain` or `split`. The page then reads the answer, of the returned length, from `output`. A
//! question is a sequence of fields. Before each field is its length, as four bytes in
//! little-endian order. An answer is JSON.
//!
//! The only unsafe operation of this crate is to export a function under a fixed name.

use std::sync::Mutex;

use call_assistant::json::JsonObject;
use call_assistant::webhook::explain::{Cause, Evidence};
use call_assistant::webhook::{DeliveryHeader, DeliveryHeaders, SigningSecret, Verifier};
use call_assistant::{Product, Timestamp};
use serde_json::{Value, json};

use capture::{Capture, header_lines};

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OUTPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Creates a buffer for a question of this length, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut u8 {
    // Both outlive every question, and no other thread is in a page.
    let mut input = INPUT.lock().unwrap_or_else(|error| error.into_inner());
    input.clear();
    input.resize(len, 0);
    input.as_mut_ptr()
}

/// Returns the address of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.lock().unwrap_or_else(|error| error.into_inner()).as_ptr()
}

/// Explains a delivery, and returns the answer's length. The fields of the question are: now,
/// product, headers, body, secret. Then follow any number of pairs: `1` and another secret, or `2`
/// and another request.
#[unsafe(no_mangle)]
pub extern "C" fn explain() -> usize {
    answer(|question| explained(question).unwrap_or_else(|wrong| json!({ "wrong": wrong })))
}

/// Splits a whole request, and returns the answer's length. The fields of the question are:
/// product, request. The answer is `null` if the request has no signature.
#[unsafe(no_mangle)]
pub extern "C" fn split() -> usize {
    answer(|question| {
        let mut fields = Fields(question);
        let product = fields.text().and_then(|name| Product::new(name).ok()).unwrap_or_default();
        let request = fields.next().unwrap_or_default();
        match Capture::of_request(request) {
            Some(capture) if has_signature(&capture.headers(&product)) => {
                json!({ "head": request.len() - capture.body.len() })
            }
            _ => Value::Null,
        }
    })
}

fn answer(ask: impl FnOnce(&[u8]) -> Value) -> usize {
    let question = INPUT.lock().unwrap_or_else(|error| error.into_inner());
    let mut output = OUTPUT.lock().unwrap_or_else(|error| error.into_inner());
    *output = ask(&question).to_string().into_bytes();
    output.len()
}

/// The unread fields of a question.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first_chunk::<4>()?;
        let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
        let (field, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(field)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.next()?).ok()
    }
}

fn explained(question: &[u8]) -> Result<Value, String> {
    let mut fields = Fields(question);
    let now = time(fields.text().ok_or("now is missing")?)?;
    let product = fields.text().ok_or("the product is missing")?;
    let product = Product::new(product).map_err(|error| error.to_string())?;
    let text = fields.next().ok_or("the headers are missing")?;
    let body = fields.next().ok_or("the body is missing")?;
    let secret = fields.text().ok_or("the secret is missing")?;
    let (mut secrets, mut known) = (Vec::new(), Vec::new());
    while let (Some(kind), Some(field)) = (fields.next(), fields.next()) {
        match kind {
            b"1" => secrets.push(std::str::from_utf8(field).map_err(|error| error.to_string())?),
            _ => known.extend(Capture::of_request(field)),
        }
    }

    // Lines of headers, or the value alone.
    let lines = Capture { lines: header_lines(text), body: Vec::new() };
    let found = lines.headers(&product);
    let value = text.trim_ascii();
    let headers = match has_signature(&found) {
        true => found,
        false if value.is_empty() => DeliveryHeaders::new(),
        false => found.signature(value),
    };
    let evidence = Evidence::new(headers, body, secret);
    let evidence = secrets.iter().fold(evidence, |evidence, text| evidence.with_known_secret(text));
    let evidence = known.iter().fold(evidence, |evidence, other| {
        evidence.with_known_delivery(other.headers(&product), &other.body)
    });
    let explanation = evidence.explain(now);
    let cause = |cause: &Cause| json!({ "code": cause.as_str(), "sentence": cause.to_string() });
    Ok(json!({
        "proven": explanation.is_proven(),
        "causes": explanation.causes().iter().map(cause).collect::<Vec<_>>(),
        "text": explanation.to_string(),
        "event": event(headers, body, secret, now),
    }))
}

fn has_signature(headers: &DeliveryHeaders<'_>) -> bool {
    let repeated = headers.repeated() == Some(DeliveryHeader::Signature);
    repeated || headers.value(DeliveryHeader::Signature).is_some()
}

/// Returns the id and the type of a genuine delivery, or the contradiction between its headers and
/// its body. The function does not parse typed events, because their code is as large as all the
/// rest.
fn event(
    headers: DeliveryHeaders<'_>,
    body: &[u8],
    secret: &str,
    now: Timestamp,
) -> Option<String> {
    let verifier = Verifier::new(SigningSecret::parse(secret).ok()?);
    let body = verifier.verify_parts(headers, body, now).ok()?.bytes();
    let object = JsonObject::parse(std::str::from_utf8(body).ok()?).ok();
    let field = |name| object.as_ref().and_then(|object| object.get_str(name));
    let (Some(id), Some(event_type)) = (field("id"), field("type")) else {
        return Some("no event: the body has no id or no type".to_owned());
    };
    for (header, text) in [(DeliveryHeader::Delivery, &id), (DeliveryHeader::Event, &event_type)] {
        if headers.value(header).is_some_and(|value| value != text.as_bytes()) {
            return Some(format!("no event: the {header} header contradicts the body"));
        }
    }
    Some(format!("{id} {event_type}"))
}

/// Parses seconds since 1970, or RFC 3339.
fn time(text: &str) -> Result<Timestamp, String> {
    match text.parse() {
        Ok(seconds) => Timestamp::from_unix(seconds).ok_or_else(|| "now: out of range".to_owned()),
        Err(_) => text.parse().map_err(|error| format!("now: {error}")),
    }
}
