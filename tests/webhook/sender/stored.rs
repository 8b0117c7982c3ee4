//! What lives in people's databases: the stored forms, byte for byte.

use call_assistant::webhook::sender::{
    Attempt, AttemptReport, Delivery, EndpointHealth, MAX_ATTEMPTS, Outcome,
};

use super::{
    BEFORE_LAST, answered, at, attempted, delivery_from, endpoint_from, event, failed_before, start,
};

#[test]
fn attempts_and_outcomes_travel_between_processes() {
    let endpoint = EndpointHealth::new(1, start());
    let row = failed_before(1, &endpoint, start()).into();
    let mut delivery = Delivery::from_columns(7, 1, row).unwrap();
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let text = concat!(
        r#"{"of":[7,1],"event_created_at":"2025-12-31T23:59:50Z","number":2,"manual":false,"#,
        r#""began_at":"2026-01-01T00:00:00Z","#,
        r#""deadline":"2026-01-01T00:00:10Z","lease":3,"generation":0,"#,
        r#""life":1176518656}"#,
    );
    assert_eq!(serde_json::to_string(&attempt).unwrap(), text);
    assert_eq!(serde_json::from_str::<Attempt>(text).unwrap(), attempt);
    // Without its numbers or its life, an attempt would fit any delivery and any endpoint.
    for (field, name) in [(r#""of":[7,1],"#, "of"), (r#","life":1176518656"#, "life")] {
        let error = serde_json::from_str::<Attempt>(&text.replace(field, "")).unwrap_err();
        assert!(error.to_string().starts_with(&format!("missing field `{name}`")), "{error}");
    }
    let error = serde_json::from_str::<Outcome>("204").unwrap_err();
    assert!(error.to_string().contains("expected a string"), "{error}");
    let error = serde_json::from_str::<Outcome>(r#""timed out""#).unwrap_err();
    assert!(
        error.to_string().starts_with(r#"outcome is "timed out", which this version"#),
        "{error}"
    );
}

/// What an attempt means for its endpoint waits in a row of its own, where two rows are not written at once.
#[test]
fn reports_wait_like_this() {
    let endpoint = EndpointHealth::new(1, start());
    for (failed, outcome, effect) in [
        (0, answered(500), "first_failure"),
        (1, answered(500), "none"),
        (BEFORE_LAST, Outcome::TimedOut, "failure"),
        (BEFORE_LAST, answered(204), "success"),
        (2, answered(410), "gone"),
    ] {
        let mut delivery = failed_before(failed, &endpoint, start());
        let report = attempted(&mut delivery, &endpoint, outcome, start(), at(1));
        let text = format!(
            r#"{{"effect":"{effect}","late":false,"endpoint":1,"life":{{"generation":0,"began":1176518656}}}}"#
        );
        assert_eq!(serde_json::to_string(&report).unwrap(), text);
        assert_eq!(serde_json::from_str::<AttemptReport>(&text).unwrap(), report);
        let later = text.replace(effect, "later");
        assert!(serde_json::from_str::<AttemptReport>(&later).is_err(), "{later}");
    }
}

/// What this crate cannot have written is refused, not guessed at.
#[test]
fn rows_that_are_not_ours_are_refused() {
    let endpoint = EndpointHealth::new(1, start());
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let good = serde_json::to_string(&delivery).unwrap();
    for (from, to, says) in [
        (r#""attempts":0"#, r#""attempts":-1"#, "attempts is -1, not from 0 to "),
        (r#""waiting""#, r#""queued""#, "unknown variant"),
        (r#""version":0"#, r#""edition":0"#, "missing field `version`"),
    ] {
        let bad = good.replace(from, to);
        let error = delivery_from(&bad).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let attempt = delivery.begin(&endpoint, start()).unwrap();
    let good = serde_json::to_string(&attempt).unwrap();
    for number in [0, MAX_ATTEMPTS + 1] {
        let bad = good.replace(r#""number":1"#, &format!(r#""number":{number}"#));
        let error = serde_json::from_str::<Attempt>(&bad).unwrap_err().to_string();
        let says = format!("attempt number is not from 1 to {MAX_ATTEMPTS}");
        assert!(error.starts_with(&says), "{error}");
    }
    let row = serde_json::to_string(&endpoint).unwrap();
    // One that does not say whether its endpoint is disabled is no active one.
    let without = row.replace(r#""disabled":null,"#, "");
    let error = endpoint_from(&without).unwrap_err().to_string();
    assert!(error.starts_with("missing field `disabled`"), "{error}");
}
