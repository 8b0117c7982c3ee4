//! The two rules about who may use whom.
//!
//! A room is a folder without folders in it: its files may use each other as they like. A file next
//! to a folder stands for itself, and `x.rs` belongs to the room `x` where that is a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::paths::Crate;
use crate::{files, read, repository};

/// The pairs of folders of which neither mentions the other in code, whatever way a path takes.
/// Documentation may link.
const NEVER: [[&str; 2]; 3] = [
    ["src/webhook", "src/rest"],
    ["src/webhook/sender", "src/webhook/receiver"],
    ["src/rest/server", "src/rest/client"],
];

#[test]
fn rooms_form_no_circle() {
    let mut found = BTreeMap::new();
    for root in crate_roots() {
        found.extend(circles(&Crate::read(&root, &read)));
    }
    let found: Vec<String> = found.iter().map(|(rooms, uses)| format!("{rooms}\n{uses}")).collect();
    assert!(found.is_empty(), "circles of\n{}", found.join("\n"));
}

#[test]
fn two_protocols_and_two_sides_never_mention_each_other() {
    let wrong = forbidden(&Crate::read("src/lib.rs", &read));
    assert!(wrong.is_empty(), "{}", Vec::from_iter(wrong).join("\n"));
}

/// Files of a crate in which everything is as it should be, without `src/` and `.rs`.
const HONEST: [(&str, &str); 15] = [
    ("lib", "pub mod webhook; pub mod rest; mod a; mod b; pub use {a::A, rest::client::Client};"),
    // Two files of one folder.
    ("a", "use crate::b::B; pub struct A;"),
    ("b", "use crate::A; pub struct B;"),
    // A folder with rooms: it presents them, and a file next to them is above one and below another.
    (
        "webhook/mod",
        "pub mod sender; pub mod receiver; mod text; pub use text::Text; type A = sender::Sent;",
    ),
    ("webhook/text", "use super::sender::Sent; /// [`super::Inbox`]\npub struct Text;"),
    ("webhook/sender/mod", "mod low; mod high; pub use high::*; use low::*; pub struct Sent;"),
    ("webhook/sender/low", "use super::Sent; use std::fmt::*; type A = crate::b::B;"),
    ("webhook/sender/high", "use super::Low; use rest::{Thing, *}; use crate::webhook;"),
    ("webhook/receiver", "mod inbox; use super::text::Text; pub struct Inbox;"),
    ("webhook/receiver/inbox", "/// [`crate::rest`]\nfn a() { super::Inbox; } // crate::rest::X"),
    ("rest/mod", "pub mod client; pub mod server; mod both; pub use both::Both;"),
    ("rest/both", "pub struct Both;"),
    ("rest/client", "use crate::rest::Both; pub struct Client;"),
    ("rest/server", "#[path = \"../seen.rs\"] mod seen; const A: &str = \"crate::webhook\";"),
    ("seen", "use super::super::{Both, both::Both as B}; use crate::A;"),
];

#[test]
fn any_path_between_two_sides_is_found() {
    assert_eq!(forbidden(&honest_but("a", "")), BTreeSet::new());
    for (file, code) in [
        ("webhook/text", "fn a() { crate::rest::Both::new() }"),
        ("webhook/text", "use crate::rest;"),
        ("webhook/sender/mod", "fn a(x: &super::super::rest::Both) {}"),
        ("webhook/sender/mod", "use super::{Verifier, receiver::{self}};"),
        ("webhook/sender/mod", "mod inner { use super::super::receiver::Inbox; }"),
        ("webhook/receiver", "use crate::webhook::sender::*;"),
        ("webhook/receiver", "fn a() -> Vec<crate::webhook::sender::Sent> { vec![] }"),
        ("webhook/receiver", "fn a() { vec![crate::webhook::sender::Sent] }"),
        ("webhook/receiver", "#[serde(with = \"super::sender\")] struct A;"),
        ("webhook/receiver", "macro_rules! a { () => { $crate::webhook::sender::Sent } }"),
        // By the root's re-export, and by a name of its own.
        ("webhook/text", "use crate::Client;"),
        ("webhook/text", "use crate as all; fn a() { all::rest::Both }"),
        ("rest/both", "pub use crate::webhook::Text;"),
        ("rest/server", "use super::client as other;"),
        ("rest/client", "type A = super::server::Page;"),
    ] {
        let wrong = forbidden(&honest_but(file, code));
        assert_eq!(wrong.len(), 1, "{file}: {code}: {wrong:?}");
    }
}

#[test]
fn any_circle_of_rooms_is_found() {
    assert_eq!(circles(&honest_but("seen", "")), BTreeMap::new());
    let sides = "src/webhook/receiver, src/webhook/sender, src/webhook/text.rs";
    let text = "src/webhook/receiver, src/webhook/text.rs";
    for (file, code, rooms) in [
        ("webhook/sender/low", "use crate::webhook::receiver::Inbox;", sides),
        ("webhook/sender/mod", "pub struct Sent; fn a() { super::receiver::Inbox }", sides),
        ("webhook/text", "use super::receiver::Inbox; pub struct Text;", text),
        ("webhook/text", "pub struct Text; fn a() { print!(\"{}\", super::receiver::I) }", text),
        // A parent that works with a child which needs the parent's own items.
        ("webhook/sender/low", "use crate::webhook::A;", "src/webhook/mod.rs, src/webhook/sender"),
        ("b", "use crate::webhook::sender::Low; pub struct B;", "src/b.rs, src/webhook/sender"),
    ] {
        let found = Vec::from_iter(circles(&honest_but(file, code)).into_keys());
        assert_eq!(found, [rooms], "{file}: {code}");
    }
}

fn honest_but(file: &str, code: &str) -> Crate {
    let mut files = BTreeMap::from(HONEST);
    files.insert(file, code);
    Crate::read("src/lib.rs", &|file| {
        let text = files.get(file.strip_prefix("src/")?.strip_suffix(".rs")?)?;
        Some((*text).to_owned())
    })
}

/// The mentions that [`NEVER`] forbids.
fn forbidden(read: &Crate) -> BTreeSet<String> {
    let within = |file: &str, room: &str| {
        file.strip_prefix(room).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    let mut wrong = BTreeSet::new();
    for link in read.links() {
        for [one, other] in NEVER.into_iter().flat_map(|[one, other]| [[one, other], [other, one]])
        {
            if within(&link.from, one) && link.through.iter().any(|file| within(file, other)) {
                wrong.insert(format!("{} mentions {}: {other}", link.from, link.path));
            }
        }
    }
    wrong
}

/// The circles of rooms: the names of the rooms, and the uses that make the circle.
///
/// A room uses another where its code mentions an item that a file of the other defines, by
/// whatever path and re-export. It does not where it names a module only, nor where a module
/// re-exports what is below it. Files of one folder may use each other in a circle.
fn circles(read: &Crate) -> BTreeMap<String, String> {
    let files: BTreeSet<&str> = read.files().collect();
    let folder = |file: &str| -> String {
        let own = file.trim_end_matches(".rs");
        let (parent, name) = own.rsplit_once('/').unwrap_or(("", own));
        let has_folder = files.iter().any(|other| other.starts_with(&format!("{own}/")));
        if has_folder && !["mod", "lib", "main"].contains(&name) { own } else { parent }.to_owned()
    };
    let folders: BTreeMap<&str, String> = files.iter().map(|file| (*file, folder(file))).collect();
    let room = |file: &str| -> String {
        let own = &folders[file];
        let below = |other: &String| other.starts_with(&format!("{own}/"));
        if folders.values().any(below) { file.to_owned() } else { own.clone() }
    };

    // Of each room and a room that it uses, a mention that shows it.
    let mut uses = BTreeMap::new();
    let mut folder_of = BTreeMap::new();
    for link in read.links().into_iter().filter(|link| link.to_item && !link.presents) {
        let Some(to) = link.through.last() else { continue };
        let (one, other) = (room(&link.from), room(to));
        folder_of.insert(one.clone(), folders[&*link.from].clone());
        folder_of.insert(other.clone(), folders[&**to].clone());
        uses.insert((one, other), format!("  {} uses {to} as {}\n", link.from, link.path));
    }
    let mut reaches: BTreeSet<(&str, &str)> = uses.keys().map(|(a, b)| (&**a, &**b)).collect();
    for middle in folder_of.keys() {
        let to: Vec<_> = reaches.iter().filter(|way| way.0 == middle).map(|way| way.1).collect();
        let from: Vec<_> = reaches.iter().filter(|way| way.1 == middle).map(|way| way.0).collect();
        reaches.extend(from.iter().flat_map(|from| to.iter().map(|to| (*from, *to))));
    }
    let mut found = BTreeMap::new();
    for room in folder_of.keys() {
        let in_circle =
            |other: &&String| reaches.contains(&(room, other)) && reaches.contains(&(other, room));
        let circle: Vec<&String> = folder_of.keys().filter(in_circle).collect();
        if circle.iter().map(|room| &folder_of[*room]).collect::<BTreeSet<_>>().len() > 1 {
            let within =
                uses.iter().filter(|((a, b), _)| circle.contains(&a) && circle.contains(&b));
            let names: Vec<String> = circle.iter().map(|room| named(room)).collect();
            found.insert(names.join(", "), within.map(|(_, why)| why.as_str()).collect());
        }
    }
    found
}

/// Without the `src` of packages below the top.
fn named(room: &str) -> String {
    let below = room.replace("/src/", "/");
    below.strip_suffix("/src").unwrap_or(&below).to_owned()
}

/// The root file of each target of each package.
fn crate_roots() -> BTreeSet<String> {
    let root = repository();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut roots = BTreeSet::new();
    for manifest in files("Cargo.toml") {
        let asked = Command::new(&cargo)
            .args(["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"])
            .arg(root.join(&manifest))
            .output()
            .unwrap();
        assert!(asked.status.success(), "{manifest}: {}", String::from_utf8_lossy(&asked.stderr));
        let read: Value = serde_json::from_slice(&asked.stdout).unwrap();
        let packages = read["packages"].as_array().unwrap().iter();
        for target in packages.flat_map(|package| package["targets"].as_array().unwrap()) {
            let path = Path::new(target["src_path"].as_str().unwrap()).strip_prefix(&root).unwrap();
            roots.insert(path.to_str().unwrap().replace('\\', "/"));
        }
    }
    roots
}
