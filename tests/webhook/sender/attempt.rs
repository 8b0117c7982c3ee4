//! The request that goes out, and what is logged of it.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Delivery, EndpointHealth, EndpointUrl, Excerpt, FailureReason, LogEntry, MAX_ATTEMPTS, Outcome,
    SignedDestination,
};
use call_assistant::webhook::{Signer, Verifier};
use http::header::{HeaderMap, HeaderValue};
use http::{Method, Version};

use super::{BEFORE_LAST, answered, at, event, failed_before, start};
use support::secret;

const BODY: &str = r#"{"id":"evt_1", "type" : "call.ended","created_at":"2026-01-01T00:00:00Z",
    "api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"odd":1.0}}"#;

fn target() -> EndpointUrl {
    EndpointUrl::parse("https://hooks.example.com/in?a=b").unwrap()
}

pub(super) fn destination(endpoint: &EndpointHealth, signer: Signer) -> SignedDestination {
    SignedDestination::new(endpoint, target(), signer)
}

fn body() -> EventBody {
    EventBody::from_stored(BODY).unwrap()
}

/// DEL-1: exactly these, and a body that is not touched. D-50: `t` is when the request is made, which may be a
/// while after the attempt was stored.
#[test]
fn an_attempt_is_a_post_with_the_five_headers() {
    let endpoint = EndpointHealth::new(1, start());
    let attempt = Delivery::accept(&body(), &endpoint, start()).begin(&endpoint, start()).unwrap();
    let destination = destination(&endpoint, Signer::new(secret("whsec_one")));
    for (now, t) in [(start(), "t=1767225600,v1="), (at(3), "t=1767225603,v1=")] {
        let request = attempt.request(&destination, &body(), now).unwrap();
        assert_eq!((request.method(), request.version()), (&Method::POST, Version::HTTP_11));
        assert_eq!(request.uri(), "https://hooks.example.com/in?a=b");
        assert_eq!(*request.body(), BODY.as_bytes());
        let value = |name: &str| request.headers()[name].to_str().unwrap();
        assert_eq!(value("content-type"), "application/json");
        assert_eq!(value("user-agent"), "Service-Webhooks/1.0");
        assert_eq!(value("x-service-event"), "call.ended");
        assert_eq!(value("x-service-delivery"), "evt_1");
        assert!(value("x-service-signature").starts_with(t));
        assert_eq!(request.headers().len(), 5);
    }
}

/// DEL-13, D-50, D-60: the same id and bytes each time, its own time and the secrets of that time.
#[test]
fn every_attempt_is_signed_afresh_over_the_same_bytes() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let (old, new) = (secret("whsec_old"), secret("whsec_new"));
    let mut now = start();
    let mut signatures = Vec::new();
    for number in 1..=MAX_ATTEMPTS {
        let signer = match number {
            1 | 2 => Signer::new(old.clone()),
            3 | 4 => {
                Signer::new(new.clone()).with_previous(old.clone(), Timestamp::MAX, now).unwrap()
            }
            _ => Signer::new(new.clone()),
        };
        let attempt = delivery.begin(&endpoint, now).unwrap();
        let destination = destination(&endpoint, signer);
        let request = attempt.request(&destination, &body(), now).unwrap();
        assert_eq!(*request.body(), BODY.as_bytes(), "attempt {number}");
        assert_eq!(request.headers()["x-service-delivery"], "evt_1", "attempt {number}");
        signatures.push(request.headers()["x-service-signature"].clone());
        for (secret, accepted) in [(&old, number <= 4), (&new, number >= 3)] {
            let verifier = Verifier::new(secret.clone());
            let verified = verifier.verify(request.headers(), BODY.as_bytes(), now);
            assert_eq!(verified.is_ok(), accepted, "attempt {number}");
        }
        let _ = delivery.finish(&attempt, Outcome::TimedOut, attempt.deadline()).unwrap();
        now = delivery.due(now).unwrap_or(now);
    }
    signatures.sort();
    signatures.dedup();
    assert_eq!(signatures.len(), usize::from(MAX_ATTEMPTS));
}

/// An event's type is a header's text, or there is nothing to send.
#[test]
fn a_type_that_is_no_header_text_is_refused() {
    for wrong in ["", "call\\r\\nx: y", "appel-terminé"] {
        let body = BODY.replace("call.ended", wrong);
        assert!(EventBody::from_stored(&body).is_err(), "{wrong}");
    }
}

/// DEL-10: everything a dashboard shows of an attempt, as it is stored.
#[test]
fn the_log_says_what_came_of_an_attempt() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = failed_before(1, &endpoint, start());
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let end = start().saturating_add(Duration::from_micros(1_250_900));
    let report = delivery.finish(&attempt, answered(503), end).unwrap();
    let entry = super::entry(attempt, (answered(503), end), &report, &delivery, Some(b"down\xff"));
    let text = concat!(
        r#"{"attempt":2,"manual":false,"began_at":"2026-01-01T00:00:00Z","took_ms":1250,"#,
        r#""outcome":"503","late":false,"status":"waiting","next_at":"2026-01-01T00:01:01.2509Z","#,
        r#""response":{"text":"down�","cut":false}}"#,
    );
    assert_eq!(serde_json::to_string(&entry).unwrap(), text);
    assert_eq!(serde_json::from_str::<LogEntry>(text).unwrap(), entry);

    // A clock set back while it ran does not make an attempt shorter than nothing.
    let report = delivery.finish(&attempt, Outcome::Reset, start()).unwrap();
    let before = start().saturating_sub(Duration::from_secs(5));
    let entry = super::entry(attempt, (Outcome::Reset, before), &report, &delivery, None);
    assert_eq!((entry.took_ms, entry.late, entry.response), (0, true, None));

    let mut last = failed_before(BEFORE_LAST, &endpoint, at(1));
    let attempt = last.begin(&endpoint, at(1)).unwrap();
    let report = last.finish(&attempt, Outcome::Dns, at(2)).unwrap();
    let entry = super::entry(attempt, (Outcome::Dns, at(2)), &report, &last, None);
    assert_eq!((entry.attempt, entry.next_at), (MAX_ATTEMPTS, None));
}

/// DEL-10: what a host adds to an entry is stored with it, and an entry without it is read as before.
#[test]
fn the_log_says_why_and_what_the_response_was_like() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = failed_before(1, &endpoint, start());
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let report = delivery.finish(&attempt, Outcome::Tls, at(2)).unwrap();
    let mut entry = super::entry(attempt, (Outcome::Tls, at(2)), &report, &delivery, None);
    assert_eq!((&entry.reason, &entry.headers), (&None, &None));
    entry.reason = Some(FailureReason::CertificateExpired);
    let mut fields = HeaderMap::new();
    for (name, value) in [("server", "acme"), ("x-note", "whsec_abc"), ("set-cookie", "id=1")] {
        fields.append(name, HeaderValue::from_static(value));
    }
    entry.headers = Some(Excerpt::from_fields(&fields));
    let text = serde_json::to_string(&entry).unwrap();
    let end = concat!(
        r#","reason":"certificate_expired","headers":{"text":"server: acme\n"#,
        r#"x-note: whsec_[redacted]\nset-cookie: [redacted]\n","cut":false}}"#,
    );
    assert!(text.ends_with(end), "{text}");
    assert_eq!(serde_json::from_str::<LogEntry>(&text).unwrap(), entry);

    fields.append("x-long", HeaderValue::from_bytes(&[b'a'; Excerpt::MAX_LEN]).unwrap());
    let long = Excerpt::from_fields(&fields);
    assert_eq!((long.text.len() <= Excerpt::MAX_LEN + 16, long.cut), (true, true));
}

/// What is kept of a body: so much, as text, and nothing that looks like a secret.
#[test]
fn an_excerpt_is_short_and_holds_no_secret() {
    let exact = vec![b'a'; Excerpt::MAX_LEN];
    assert!(!Excerpt::new(&exact).cut);
    let long = vec![b'a'; Excerpt::MAX_LEN + 1];
    let excerpt = Excerpt::new(&long);
    assert_eq!((excerpt.text.len(), excerpt.cut), (Excerpt::MAX_LEN, true));
    // A character that is cut through is left out; what is not UTF-8 is replaced.
    let mut cut = vec![b'a'; Excerpt::MAX_LEN - 1];
    cut.extend("é".as_bytes());
    let excerpt = Excerpt::new(&cut);
    assert_eq!((excerpt.text.len(), excerpt.cut), (Excerpt::MAX_LEN - 1, true));
    cut.truncate(Excerpt::MAX_LEN);
    assert!(Excerpt::new(&cut).text.ends_with("a\u{fffd}"));
    assert_eq!(Excerpt::new(b"a\xffb").text, "a\u{fffd}b");
    assert_eq!(Excerpt::new(b"").text, "");
    for (body, text) in [
        ("key=whsec_abc+/=; next", "key=whsec_[redacted]; next"),
        (r#"{"secret":"whsec_abc","x":1}"#, r#"{"secret":"whsec_[redacted]","x":1}"#),
        ("whsec_a whsec_b", "whsec_[redacted] whsec_[redacted]"),
        ("whsec_whsec_a", "whsec_[redacted]"),
        ("SERVICE_API_KEY=acme_live_0af", "SERVICE_API_KEY=acme_live_[redacted]"),
        ("<b>acme_test_0af</b>whsec_a", "<b>acme_test_[redacted]</b>whsec_[redacted]"),
        ("whsec whsec_ a_live_", "whsec whsec_ a_live_"),
    ] {
        assert_eq!(Excerpt::new(body.as_bytes()).text, text);
    }
}

/// D-52: ten seconds to the head of the answer, and what comes of the body is only logged.
#[test]
fn the_status_decides_whatever_becomes_of_the_body() {
    let endpoint = EndpointHealth::new(1, start());
    let body = "a body that breaks off".as_bytes();
    let bodies = [None, Some(&b""[..]), Some(&body[..6]), Some(body)];
    for (failures, status) in [(0, 200), (0, 500), (BEFORE_LAST, 299), (BEFORE_LAST, 302), (0, 410)]
    {
        let mut ends = Vec::new();
        for body in bodies {
            let mut delivery = failed_before(failures, &endpoint, start());
            let attempt = delivery.begin(&endpoint, at(3)).unwrap();
            assert_eq!((attempt.began_at(), attempt.deadline()), (at(3), at(13)), "{status}");
            // The head came in time; how long the body took after it is nobody's business.
            let report = delivery.finish(&attempt, answered(status), at(4)).unwrap();
            let entry = super::entry(attempt, (answered(status), at(4)), &report, &delivery, body);
            assert_eq!(entry.response.is_some(), body.is_some(), "{status}");
            assert_eq!((entry.outcome, entry.late), (answered(status), false), "{status}");
            ends.push((report, delivery));
        }
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{status}");
    }
    // Taken over from a sender that died, it is ten seconds too.
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let first = delivery.begin(&endpoint, start()).unwrap();
    let again = delivery.begin(&endpoint, delivery.due(start()).unwrap()).unwrap();
    assert_eq!(again.deadline().since(again.began_at()), Duration::from_secs(10));
    assert_eq!(again.number(), first.number());
}
