//! The public API, from what rustdoc says of it: it is what `tests/api.txt` says, and what holds for
//! all of its types.
//!
//! `API=write cargo test -p call-assistant-tree` writes the file again.
//! Another version of Rust writes another format, and then nothing is checked.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use public_api::Builder;

use crate::{read, repository};

/// The format that `public_api` reads: that of Rust 1.95.
const FORMAT: u64 = 57;

const FILE: &str = "tests/api.txt";

/// The file that rustdoc writes; `None` if this Rust writes another format.
pub(crate) static JSON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    // With a folder of its own: the variable would have everything else built again.
    let folder = repository().join("target/api");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let made = Command::new(cargo)
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["rustdoc", "--all-features", "--lib", "--locked", "--target-dir"])
        .arg(&folder)
        .args(["--", "-Zunstable-options", "--output-format=json"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = folder.join("doc/call_assistant.json");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let format = &json["format_version"];
    if format == FORMAT {
        return Some(file);
    }
    let skipped = format!("the public API: rustdoc writes format {format}, and {FORMAT} is read");
    eprintln!("skipped: {skipped}");
    if let Some(table) = env::var_os("SKIPPED") {
        let before = fs::read_to_string(&table).unwrap_or_default();
        fs::write(table, format!("{before}skipped: {skipped}\n")).unwrap();
    }
    None
});

#[test]
fn the_public_api_is_the_reviewed_one() {
    let Some(api) = api() else { return };
    if env::var("API").is_ok_and(|value| value == "write") {
        fs::write(repository().join(FILE), api.join("\n") + "\n").unwrap();
    }
    let reviewed = read(FILE).unwrap_or_default();
    let reviewed: Vec<&str> = reviewed.lines().collect();
    let new =
        api.iter().filter(|line| !reviewed.contains(&&***line)).map(|line| format!("+ {line}"));
    let gone = reviewed.iter().filter(|line| !api.iter().any(|own| own == *line));
    let changes: Vec<String> = new.chain(gone.map(|line| format!("- {line}"))).collect();
    assert!(
        changes.is_empty() && api == reviewed,
        "the public API is not that of {FILE}:\n{}\nWrite it again with\n  \
         API=write cargo test -p call-assistant-tree",
        changes.join("\n"),
    );
}

/// Other crates' types in signatures bind users to their versions.
#[test]
fn public_signatures_mention_four_crates() {
    const MAY: [&str; 9] = [
        "call_assistant",
        "core",
        "alloc",
        "std",
        "http",
        "serde",
        "serde_core",
        "serde_json",
        "url",
    ];
    for line in api().unwrap_or_default() {
        for named in crates(&line) {
            assert!(MAY.contains(&named), "{named} in {line}");
        }
    }
}

#[test]
fn any_crate_in_a_signature_is_found() {
    let line = "pub fn call_assistant::a<T: time::B>(&[tokio::C; 2]) -> <Self as hyper::D>::E";
    assert_eq!(crates(line).collect::<Vec<_>>(), ["call_assistant", "time", "tokio", "hyper"]);
}

/// A host may keep any value in a task, behind an `Arc`, in a static.
#[test]
fn values_may_go_anywhere() {
    let Some(json) = &*JSON else { return };
    let all = Builder::from_rustdoc_json(json).omit_blanket_impls(true).build().unwrap();
    let all: Vec<String> = all.items().map(ToString::to_string).collect();
    for auto in ["Send", "Sync", "Unpin"] {
        let has = |line: &&String| line.contains(&format!("core::marker::{auto} for "));
        assert!(all.iter().filter(has).count() > 100, "rustdoc says who is {auto}");
        let without = all.iter().find(|line| line.contains(&format!("!core::marker::{auto} for ")));
        assert_eq!(without, None);
    }
}

/// Each item in a line, without the functions that implement a trait: their trait says them.
fn api() -> Option<Vec<String>> {
    let api = Builder::from_rustdoc_json(JSON.as_ref()?)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .unwrap();
    let (mut lines, mut of_trait) = (Vec::new(), None);
    for line in api.items().map(ToString::to_string) {
        if line.starts_with("impl") {
            let implements = line.split_once(" for ").map(|(_, own)| own);
            of_trait =
                implements.map(|own| own.split(" where ").next().unwrap_or(own).to_owned() + "::");
        }
        let implements = of_trait.as_ref().is_some_and(|own| line.contains(&format!("fn {own}")));
        if !implements && !line.contains("StructuralPartialEq") {
            lines.push(line);
        }
    }
    Some(lines)
}

/// The first names of paths, in a line.
fn crates(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let paths = words.filter_map(|word| word.split_once("::")).map(|(first, _)| first);
    paths.filter(|first| first.starts_with(|c: char| c.is_lowercase()))
}
