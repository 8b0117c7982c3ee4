//! Facts that stand in one place of the library, and every text that says them: types of events, numbers of the
//! protocol, parameters and fields of the API, parts of the gates.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod events;
mod metrics;
mod numbers;
mod parameters;
mod parts;

use std::fs;
use std::path::Path;

/// What no person writes, or what says how things were.
const LEFT_OUT: [&str; 9] = [
    "CHANGELOG.md",
    "Cargo.lock",
    "examples/explain-web/explain.html",
    "fuzz/",
    "target/",
    "tests/api.txt",
    "tests/facts/",
    "tests/vectors/",
    "tests/webhook/wire/explain/accidents.json",
];

/// The path and the text of each file.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut texts, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            let is_hidden = name.starts_with('.') && name != ".github" && name != ".ci";
            let in_folder = format!("{name}/");
            if is_hidden && !name.contains('/')
                || name.contains("node_modules")
                || LEFT_OUT.iter().any(|left_out| name == *left_out || in_folder == *left_out)
            {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                texts.push((name, text));
            }
        }
    }
    texts
}

fn text(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}
