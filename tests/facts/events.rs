//! The types of events, as pages list them.

use std::collections::BTreeSet;

use call_assistant::webhook::event::EventType;

use crate::{text, texts};

/// EVT-3, EVT-4: the protocol's table has each type, in order, and says when it is sent.
#[test]
fn the_protocol_lists_the_types() {
    let page = text("src/guide/protocol.md");
    let (_, table) = page.split_once("| `type` | sent when | `data` |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let rows: Vec<(&str, &str)> = rows
        .map(|row| {
            let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
            (cells.next().unwrap().trim_matches('`'), cells.next().unwrap())
        })
        .collect();
    let types: Vec<_> =
        EventType::KNOWN.iter().map(|of| (of.as_str(), of.sent_when().unwrap())).collect();
    assert_eq!(rows, types, "src/guide/protocol.md, # Events");
}

/// The page for services names the method of each type.
#[test]
fn each_type_has_a_method_and_its_place_in_the_guide() {
    let (code, page) = (text("src/webhook/event/compose.rs"), text("src/guide/sending.md"));
    for known in EventType::KNOWN {
        let method = known.as_str().replace('.', "_");
        let declared = format!("pub fn {method}(");
        assert!(code.contains(&declared), "src/webhook/event/compose.rs has no {declared}");
        let named = format!("`{method}`");
        assert!(page.contains(&named), "src/guide/sending.md, # Events, has no {named}");
    }
}

/// Whatever is read from JSON and written again has the property of `json` in `tests/bytes`.
#[test]
fn each_model_has_its_property() {
    let properties = text("tests/bytes/src/vocabulary.rs");
    let mut models = BTreeSet::new();
    for (file, text) in texts() {
        if !file.starts_with("src/model/") && file != "src/rest/error.rs" {
            continue;
        }
        let mut of = "";
        for line in text.lines() {
            let begins = line.strip_prefix("impl ").and_then(|rest| rest.strip_suffix(" {"));
            of = begins.filter(|name| !name.contains(' ')).unwrap_or(of);
            if line.contains("pub fn from_json(") {
                models.insert(of.to_owned());
            }
        }
    }
    assert!(models.contains("Call") && models.contains("Account"), "{models:?}");
    for model in models {
        let row = format!("{model}::from_json, {model}::to_json");
        assert!(properties.contains(&row), "tests/bytes/src/vocabulary.rs has no round of {row}");
    }
}
