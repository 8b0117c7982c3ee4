//! What holds for any bytes whatever: each property under random input, and replayed over the
//! corpus that fuzzing has left in `fuzz/corpus`.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use call_assistant::webhook::event::EventType;
use proptest::prelude::*;
use serde_json::Value;

/// Every file of every corpus, through the property of the same name.
#[test]
fn corpora_hold() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut replayed = 0;
    for &(name, property) in properties::ALL {
        let files = fs::read_dir(corpora.join(name))
            .unwrap_or_else(|error| panic!("fuzz/corpus/{name}: {error}"));
        for file in files {
            property(&fs::read(file.unwrap().path()).unwrap());
            replayed += 1;
        }
    }
    assert!(replayed >= properties::ALL.len(), "only {replayed} files in the corpora");
}

/// A sample of each type of event, in its event and alone, as a seed that no file has to hold.
#[test]
fn samples_of_events_hold() {
    for known in EventType::KNOWN {
        let data = known.sample().unwrap();
        let event = format!(
            r#"{{"id":"evt_1","type":"{known}","created_at":"2026-01-01T00:00:00Z","api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{data}}}"#
        );
        let data: Value = serde_json::from_str(data).unwrap();
        for seed in [&event, &data.to_string(), &data["object"].to_string()] {
            properties::events::event(seed.as_bytes());
            properties::vocabulary::json(seed.as_bytes());
        }
    }
}

/// Whatever happens to one of two bodies is found, with each of its two details.
#[test]
fn each_mishap_is_found() {
    for body in [r#"{"id":"evt_1"}"#, "{\n\"a\":\"\u{e9}<b>&'\\\"\"}"] {
        for how in (0..42).flat_map(|kind| [[kind, 0], [kind, 1]]) {
            properties::cause::cause(&[&how, body.as_bytes()].concat());
        }
    }
}

/// A corpus without a property, or a target without one, would be replayed by nobody.
#[test]
fn every_corpus_and_target_has_its_property() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let names = |folder: &str| {
        let mut names: Vec<String> = fs::read_dir(fuzz.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    let mut expected: Vec<_> = properties::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(names("corpus"), expected);
    assert_eq!(names("fuzz_targets"), expected);
}

proptest! {
    #[test]
    fn random_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        for (_, property) in properties::ALL {
            property(&bytes);
        }
    }
}
