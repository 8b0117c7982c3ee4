//! The statements of the durable host, as its files have them.

use std::collections::BTreeMap;
use std::fs;

/// Reads each statement, by the name of its file and its own: `store/accounts_one`.
///
/// # Panics
/// A file does not begin with the name of a statement.
#[must_use]
pub fn statements() -> BTreeMap<String, String> {
    let mut statements = BTreeMap::new();
    for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../sql")).unwrap() {
        let path = file.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap();
        let text = format!("\n{}", fs::read_to_string(&path).unwrap());
        let mut parts = text.split("\n-- name: ");
        assert_eq!(parts.next(), Some(""), "{room}");
        for part in parts {
            let (name, sql) = part.split_once('\n').unwrap();
            statements.insert(format!("{room}/{name}"), sql.to_owned());
        }
    }
    statements
}

/// Reads a statement.
///
/// # Panics
/// There is none of this name.
#[must_use]
#[track_caller]
pub fn statement(name: &str) -> String {
    statements().remove(name).unwrap_or_else(|| panic!("no statement {name}"))
}
