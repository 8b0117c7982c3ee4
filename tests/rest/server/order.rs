//! D-1: the order of refusals, over every pair of what can be wrong.

use call_assistant::rest::ErrorCode as C;
use call_assistant::rest::server::Cursor;
use call_assistant::rest::{Operation, Quota};
use serde_json::{Value, json};
use support::corpus;

use super::scenario::{Scenario, get};
use crate::second;

/// Something wrong with a request.
type Fault = (&'static str, fn(&mut Scenario));

/// In the order of the corpus.
const FAULTS: [Fault; 11] = [
    ("path", |it| it.path.push('/')),
    ("method", |it| it.method = "DELETE"),
    ("credential", |it| it.key.revoke(second(1))),
    ("rate", exhaust),
    ("closing", |it| it.status.closing = true),
    ("subscription", |it| it.status.subscribed = false),
    ("plan", |it| it.status.api_in_plan = false),
    ("scope", |it| it.key.scopes.clear()),
    ("parameters", |it| {
        it.query = Some(it.query.take().map_or("limit=0".into(), |query| query + "&limit=0"));
        if it.path.contains("/call_") {
            it.path = it.path.replace("call_1", "%zz");
        }
    }),
    ("cursor", |it| {
        it.query = Some(it.query.take().map_or("cursor=x".into(), |query| query + "&cursor=x"));
    }),
    ("resource", |it| it.calls.clear()),
];

/// Returns the answers to requests with one fault or two, as an independent program has them.
fn answers() -> Vec<Value> {
    corpus(include_str!("../../vectors/refusals.json"))
}

/// Returns the answer to a fault alone.
fn answer_to(fault: &str) -> Value {
    let mut answers = answers().into_iter();
    answers.find(|answer| answer["faults"] == json!([fault])).unwrap()
}

/// The codes in the order of D-1.
pub(crate) fn codes() -> [C; 11] {
    FAULTS.map(|(fault, _)| C::from(answer_to(fault)["code"].as_str().unwrap()))
}

/// D-1, ERR-2, ERR-3: of each two faults, the first in the order is the answer.
#[test]
fn each_pair_of_the_corpus_has_its_answer() {
    for answer in answers() {
        let mut scenario = get(answer["target"].as_str().unwrap());
        // Parameters change the path too, so they come before a slash is added to it.
        for fault in answer["faults"].as_array().unwrap().iter().rev() {
            let (_, break_it) = FAULTS.iter().find(|(name, _)| fault == name).unwrap();
            break_it(&mut scenario);
        }
        let response = scenario.answer();
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        let told =
            (json!(response.status().as_u16()), &body["error"]["code"], &body["error"]["type"]);
        assert_eq!(told, (answer["status"].clone(), &answer["code"], &answer["type"]), "{answer}");
    }
}

fn exhaust(scenario: &mut Scenario) {
    // What is left of both quotas is used up by other requests of the same credential.
    for quota in [Quota::ACCOUNT, Quota::READS] {
        while scenario.rates.check(&scenario.key.id, quota, scenario.now).is_ok() {}
    }
}

/// An operation lists its codes in the order in which they are looked for.
#[test]
fn operations_list_their_codes_in_that_order() {
    for operation in Operation::ALL {
        let order = codes().into_iter().skip(2).chain([C::InternalError]);
        let listed = order.filter(|code| operation.errors().contains(code));
        assert_eq!(operation.errors(), listed.collect::<Vec<_>>(), "{operation}");
    }
}

/// D-1: every authenticated request counts, whatever it is answered; one that is limited does not,
/// and neither does one without a valid credential.
#[test]
fn what_counts_against_the_quota() {
    for (name, break_it) in &FAULTS {
        let counted = answer_to(name)["counts"] == true;
        let target = match *name {
            "resource" => "/v1/calls/call_1",
            _ => "/v1/calls",
        };
        let mut scenario = get(target).with(break_it);
        let (key, now) = (scenario.key.clone(), scenario.now);
        let _ = scenario.serve().unwrap_err();
        let mut check = || scenario.rates.check(&key.id, Quota::READS, now);
        let left = core::iter::from_fn(|| check().ok()).count();
        let expected = if *name == "rate" { 0 } else { 600 - usize::from(counted) };
        assert_eq!(left, expected, "{name}");
    }
}

/// D-1, D-22: filters that are not the cursor's come after parameters, with cursors.
#[test]
fn other_filters_than_the_cursors_are_a_matter_of_the_cursor() {
    let scenario = get("/v1/calls");
    let first = scenario.calls[0].call.clone();
    let cursor = Cursor::new(first.started_at, first.id);
    let cursor = scenario.cursors.seal(&scenario.key.account_id, scenario.key.mode, &cursor);
    let after = format!("/v1/calls?cursor={cursor}&created_after=2026-01-01T00:00:00Z");
    assert_eq!(get(&after).refused().1, C::InvalidCursor);
    let reversed = format!("{after}&created_before=2025-01-01T00:00:00Z");
    assert_eq!(get(&reversed).refused().1, C::InvalidParameter);
    assert_eq!(get(&format!("/v1/calls?cursor={cursor}")).answer().status(), 200);
}
