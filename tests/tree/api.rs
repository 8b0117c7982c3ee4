//! The public API, from what rustdoc says of it: it is what `tests/api.txt` says, and what holds for
//! all of its types.
//!
//! `API=write cargo test -p call-assistant-tree` writes the file again. After a release, `API=baseline`
//! writes what later versions are compared with: `tests/api-VERSION.txt`, with the version in Cargo.toml.
//! Another version of Rust writes another format, and then nothing is checked.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use public_api::Builder;

use crate::{files, read, repository};

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
    skipped(&format!(
        "the public API: this rustdoc writes format {format}, and format {FORMAT}, of Rust 1.95, is read"
    ));
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

// `.ci/semver` knows more ways to break a user, where cargo-semver-checks is installed.
#[test]
fn a_compatible_version_breaks_no_user() {
    let (Some(api), version) = (api(), version()) else { return };
    if env::var("API").is_ok_and(|value| value == "baseline") {
        let file = repository().join(format!("tests/api-{version}.txt"));
        fs::write(file, api.join("\n") + "\n").unwrap();
    }
    let api: Vec<&str> = api.iter().map(|line| &**line).collect();
    let mut compared = false;
    for file in files(".txt") {
        let name = file.strip_prefix("tests/api-").and_then(|name| name.strip_suffix(".txt"));
        if !name.is_some_and(|before| compatible(before, &version)) {
            continue;
        }
        let before = read(&file).unwrap_or_default();
        let broken = breaking(&before.lines().collect::<Vec<_>>(), &api);
        assert!(
            broken.is_empty(),
            "{version} breaks users of {file}:\n{}\nTake it back, or raise the version as \
             CONTRIBUTING says. A line that breaks nobody is edited in {file}.",
            broken.join("\n"),
        );
        compared = true;
    }
    if !compared {
        skipped(&format!("breaking changes: there is no baseline for {version} in tests"));
    }
}

#[test]
fn versions_are_compatible_as_cargo_takes_them() {
    for (before, now, expected) in [
        ("0.1.0", "0.1.7", true),
        ("0.1.0", "0.2.0", false),
        ("0.9.0", "1.9.0", false),
        ("1.0.0", "1.4.2", true),
        ("1.0.0", "2.0.0", false),
    ] {
        assert_eq!(compatible(before, now), expected, "{before}, {now}");
    }
}

#[test]
fn any_removal_and_any_new_case_of_a_closed_type_is_found() {
    let before = [
        "pub enum a::Closed<'x, T>",
        "pub a::Closed::One",
        "pub a::Closed::Full",
        "pub a::Closed::Full::x: u8",
        "#[non_exhaustive] pub enum a::Open",
        "pub a::Open::One",
        "pub struct a::Plain",
        "pub a::Plain::x: u8",
        "pub struct a::Opaque",
        "pub fn a::f(u8)",
    ];
    assert_eq!(breaking(&before, &before), Vec::<String>::new());
    for (new, expected) in [
        ("pub a::Closed::Two", 1),
        ("pub a::Closed::Two(u8)", 1),
        ("pub a::Closed::Full::y: u8", 1),
        ("pub a::Plain::y: u8", 1),
        ("pub a::Open::Two", 0),
        ("pub a::Opaque::x: u8", 0),
        ("pub a::New::One", 0),
        ("pub fn a::Closed::one() -> Self", 0),
        ("pub const a::Closed::ALL: u8", 0),
    ] {
        assert_eq!(breaking(&before, &[&before[..], &[new]].concat()).len(), expected, "{new}");
    }
    for at in 0..before.len() {
        let rest: Vec<&str> = before.iter().copied().filter(|line| *line != before[at]).collect();
        assert_eq!(breaking(&before, &rest), [format!("- {}", before[at])]);
    }
}

/// Other crates' types in signatures bind users to their versions.
#[test]
fn public_signatures_mention_four_crates() {
    const LANGUAGE: [&str; 3] = ["core", "alloc", "std"];
    const MAY: [&str; 6] = ["call_assistant", "http", "serde", "serde_core", "serde_json", "url"];
    for line in api().unwrap_or_default() {
        for named in crates(&line) {
            assert!(LANGUAGE.contains(&named) || MAY.contains(&named), "{named} in {line}");
        }
    }
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

/// The lines that are gone, and those that add a variant or a field to a type that is not
/// `non_exhaustive` and has some: each may break a program that was written before.
fn breaking(before: &[&str], now: &[&str]) -> Vec<String> {
    let owner = |line| Some(declared(line, "pub ")?.rsplit_once("::")?.0);
    let owners: BTreeSet<&str> = before.iter().filter_map(|line| owner(line)).collect();
    let closed: BTreeSet<&str> = ["pub enum ", "pub struct ", "pub "]
        .into_iter()
        .flat_map(|words| before.iter().filter_map(move |line| declared(line, words)))
        .collect();
    let gone = before.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}"));
    let new = now.iter().filter(|line| {
        let added = || owner(line).is_some_and(|of| owners.contains(of) && closed.contains(of));
        !before.contains(line) && added()
    });
    gone.chain(new.map(|line| format!("+ {line}"))).collect()
}

/// The path that a line declares with these words: a variant or a field has none but `pub`.
fn declared<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(words)?;
    let path = rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next()?;
    Some(path.trim_end_matches(':')).filter(|path| path.contains("::"))
}

/// Whether Cargo takes one version for the other.
fn compatible(before: &str, now: &str) -> bool {
    let series = |version: &str| {
        let parts: Vec<&str> = version.split('.').collect();
        let len = if parts[0] == "0" { 2 } else { 1 };
        parts[..len].join(".")
    };
    series(before) == series(now)
}

/// The version in Cargo.toml.
fn version() -> String {
    let manifest = read("Cargo.toml").unwrap();
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    line.unwrap().trim_end_matches('"').to_owned()
}

/// Says what was not checked: at once, since the output of a test that passes is not shown, and in the
/// table of `.ci/run`.
fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
    if let Some(table) = env::var_os("SKIPPED") {
        let before = fs::read_to_string(&table).unwrap_or_default();
        fs::write(table, format!("{before}skipped: {what}\n")).unwrap();
    }
}

/// The first names of paths, in a line.
fn crates(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let paths = words.filter_map(|word| word.split_once("::")).map(|(first, _)| first);
    paths.filter(|first| first.starts_with(|c: char| c.is_lowercase()))
}
