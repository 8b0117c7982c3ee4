//! The tree of `src` as ARCHITECTURE has it: which rooms never mention each other, that files form
//! no circle, that the listing is short, and that public documentation cites nothing that its
//! readers cannot look up.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use source::Crate;

/// Neither of two mentions the other in code, whatever way a path takes. Documentation may link.
const NEVER: [[&str; 2]; 3] =
    [["webhook", "rest"], ["webhook/sender", "webhook/receiver"], ["rest/server", "rest/client"]];

/// The most entries that `src` has.
const ENTRIES: usize = 12;

#[test]
fn two_protocols_and_two_sides_never_mention_each_other() {
    let wrong = offenders(&read_src());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_form_no_circle() {
    let wrong = circles(&read_src());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_listing_is_short() {
    let files = files();
    let entries: BTreeSet<&str> =
        files.iter().filter_map(|(name, _)| name.split('/').next()).collect();
    assert!(entries.len() <= ENTRIES, "src has {} entries: {entries:?}", entries.len());
}

#[test]
fn public_documentation_cites_no_internal_id() {
    let files = read_src();
    let wrong: Vec<String> = files.iter().flat_map(|(file, text)| cited(file, text)).collect();
    assert!(wrong.is_empty(), "ids that readers cannot look up:\n{}", wrong.join("\n"));
}

// They are also read where nobody hides a line or knows what `crate::` is.
#[test]
fn pages_of_the_guide_read_well_as_plain_markdown() {
    let pages = files().into_iter().filter(|(name, _)| name.starts_with("guide/"));
    for (name, path) in pages.filter(|(name, _)| name.ends_with(".md")) {
        let text = std::fs::read_to_string(path).unwrap();
        let (mut fence, mut first) = (None, None);
        for (at, line) in text.lines().enumerate() {
            if let Some(language) = line.strip_prefix("```") {
                fence = fence.is_none().then_some(language);
                first = first.or(Some(at));
            }
            let hidden = fence == Some("rust") && (line == "#" || line.starts_with("# "));
            assert!(!hidden, "{name}:{}: a hidden line", at + 1);
            assert!(!line.contains("](crate::"), "{name}:{}: define the link below", at + 1);
        }
        assert!(first.is_some_and(|at| at < 15), "{name} begins with code");
        assert!(text.lines().count() <= 400, "{name} has at most 400 lines");
    }
}

#[test]
fn any_id_in_documentation_is_found() {
    for text in
        ["/// See D-12.", "    //! (SIG-1)", "a;\n/// `RES-4`s", "/** D-1 */", "#[doc = \"D-1\"]"]
    {
        assert_eq!(cited("a.rs", text).len(), 1, "{text}");
    }
    for text in [
        "// D-12",
        "//// D-1",
        "/// SHA-256, UTF-8, AD-1, D-x",
        "const A: &str = \"D-1\"; // KEY-1",
    ] {
        assert_eq!(cited("a.rs", text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn any_path_between_two_sides_is_found() {
    let honest = [
        ("lib.rs", "pub mod webhook; pub mod rest; pub use rest::client::Client;"),
        ("webhook/mod.rs", "pub mod sender; pub mod receiver; pub struct Verifier;"),
        ("webhook/sender.rs", "use super::Verifier; use rest::Thing;"),
        (
            "webhook/receiver.rs",
            "/// See [`crate::rest`].\nfn a() { super::Verifier; } // crate::rest::X",
        ),
        ("rest/mod.rs", "pub mod client; pub mod server; mod both; pub use both::Both;"),
        ("rest/both.rs", "pub struct Both;"),
        ("rest/client.rs", "use crate::rest::Both; pub struct Client;"),
        (
            "rest/server.rs",
            "use super::{Both, both::Both as B}; const A: &str = \"crate::webhook\";",
        ),
    ];
    assert_eq!(offenders(&honest.into()), Vec::<String>::new());
    for (file, code) in [
        ("webhook/mod.rs", "fn a() { crate::rest::Both::new() }"),
        ("webhook/mod.rs", "use crate::rest;"),
        ("webhook/sender.rs", "fn a(x: &super::super::rest::Both) {}"),
        ("webhook/sender.rs", "use super::{Verifier, receiver::{self}};"),
        ("webhook/sender.rs", "mod inner { use super::super::receiver::Inbox; }"),
        ("webhook/receiver.rs", "use crate::webhook::sender::*;"),
        ("webhook/receiver.rs", "fn a() -> Vec<crate::webhook::sender::Delivery> { vec![] }"),
        ("webhook/receiver.rs", "#[serde(with = \"super::sender\")] struct A;"),
        ("webhook/receiver.rs", "macro_rules! a { () => { $crate::webhook::sender::Delivery } }"),
        // By the root's re-export, and by a name of its own.
        ("webhook/mod.rs", "use crate::Client;"),
        ("webhook/mod.rs", "use crate as all; fn a() { all::rest::Both }"),
        ("rest/both.rs", "pub use crate::webhook::Verifier;"),
        ("rest/server.rs", "use super::client as other;"),
        ("rest/client.rs", "type A = super::server::Page;"),
    ] {
        let mut tree: BTreeMap<&str, &str> = honest.into();
        tree.insert(file, code);
        assert_eq!(offenders(&tree).len(), 1, "{file}: {code}: {:?}", offenders(&tree));
    }
}

#[test]
fn any_circle_of_files_is_found() {
    let lib = ("lib.rs", "mod a; mod b; mod room; pub use a::A;");
    let room = ("room/mod.rs", "mod low; mod high; pub use low::Low; pub use high::High;");
    let low = ("room/low.rs", "pub struct Low;");
    let high = ("room/high.rs", "use super::Low; pub struct High;");
    // A parent that re-exports its children is in no circle with them.
    for (a, b) in [
        ("pub struct A;", "use crate::A;"),
        ("use crate::room::High; pub struct A;", "use crate::{A, room::Low};"),
        ("use crate::b; pub struct A;", "use crate::A; pub struct B;"),
        ("/// [`crate::b::B`]\npub struct A;", "use crate::a::A; pub struct B;"),
    ] {
        let tree = [lib, room, low, high, ("a.rs", a), ("b.rs", b)].into();
        assert_eq!(circles(&tree), Vec::<String>::new(), "{a} {b}");
    }
    for (file, code) in [
        ("room/low.rs", "pub struct Low; use super::High;"),
        ("room/low.rs", "pub struct Low; fn a() { super::high::High }"),
        ("room/low.rs", "pub struct Low; fn a() { crate::room::High }"),
        ("room/low.rs", "use crate::room; pub struct Low; fn a() { room::High }"),
        // A parent that works with a child which needs the parent's own items.
        ("room/mod.rs", "mod low; mod high; pub use low::Low; pub struct Own; use high::High;"),
    ] {
        let mut tree: BTreeMap<_, _> = [lib, room, low, high, ("a.rs", ""), ("b.rs", "")].into();
        tree.insert("room/high.rs", "use super::{Low, Own}; pub struct High;");
        tree.insert(file, code);
        assert_eq!(circles(&tree).len(), 1, "{file}: {code}");
    }
}

/// The mentions that [`NEVER`] forbids.
fn offenders(files: &BTreeMap<&str, &str>) -> Vec<String> {
    let within = |file: &str, room: &str| {
        file == format!("{room}.rs") || file.starts_with(&format!("{room}/"))
    };
    let mut wrong = Vec::new();
    for link in Crate::read(files.iter().map(|(file, text)| (*file, *text))).links() {
        for [one, other] in NEVER.into_iter().flat_map(|[one, other]| [[one, other], [other, one]])
        {
            if within(&link.from, one) && link.through.iter().any(|file| within(file, other)) {
                wrong.push(format!("{link}: {one} may not know {other}"));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}

/// The circles of files: those from each of which all others of the circle are reached.
///
/// A file uses another where its code mentions an item that the other defines, by whatever path and
/// re-export. It does not where it names a module only, nor where a folder's `mod.rs` (or `lib.rs`)
/// re-exports what is below it: that is how parents present their children.
fn circles(files: &BTreeMap<&str, &str>) -> Vec<String> {
    let links = Crate::read(files.iter().map(|(file, text)| (*file, *text))).links();
    let mut uses: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for link in &links {
        let Some(to) = link.through.last().filter(|to| **to != link.from && link.to_item) else {
            continue;
        };
        let folder = link.from.strip_suffix("mod.rs").or_else(|| link.from.strip_suffix("lib.rs"));
        if link.exports && folder.is_some_and(|folder| to.starts_with(folder)) {
            continue;
        }
        uses.entry(&link.from).or_default().insert(to, &link.path);
    }
    let reached = |from| {
        let (mut seen, mut next) = (BTreeSet::<&str>::new(), vec![from]);
        while let Some(file) = next.pop() {
            let used = uses.get(file).into_iter().flat_map(BTreeMap::keys);
            next.extend(used.copied().filter(|used| seen.insert(*used)));
        }
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|file| (*file, reached(file))).collect();
    let mut found = BTreeSet::new();
    for (file, reached) in &all {
        let back = |other: &&&str| all.get(**other).is_some_and(|theirs| theirs.contains(file));
        let circle: Vec<&str> = reached.iter().filter(back).copied().collect();
        if !circle.is_empty() {
            let edges = circle.iter().flat_map(|from| {
                let used = uses[from].iter().filter(|(to, _)| circle.contains(to));
                used.map(move |(to, path)| format!("\n  {from} uses {to} as {path}"))
            });
            found.insert(format!(
                "a circle of {}:{}",
                circle.join(", "),
                edges.collect::<String>()
            ));
        }
    }
    found.into_iter().collect()
}

/// The ids of clauses and decisions in the documentation of a file.
fn cited(file: &str, text: &str) -> Vec<String> {
    const FAMILIES: [&str; 13] = [
        "RES", "HTTP", "LIST", "SYNC", "KEY", "AUTH", "RATE", "ERR", "EVT", "DEL", "SIG", "VER",
        "D",
    ];
    let is_id = |word: &&str| {
        word.split_once('-').is_some_and(|(family, number)| {
            FAMILIES.contains(&family) && number.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    let docs = source::documentation(text);
    let words = docs.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(is_id).map(|id| format!("{file} cites {id}")).collect()
}

/// The files of `src`, by their paths in it. Folders without any are nothing to git.
fn files() -> Vec<(String, PathBuf)> {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let (mut files, mut folders) = (Vec::new(), vec![src.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(src).unwrap().to_str().unwrap().replace('\\', "/");
                files.push((name, path));
            }
        }
    }
    files
}

/// The Rust files of `src`. They are read once and kept: a test ends soon.
fn read_src() -> BTreeMap<&'static str, &'static str> {
    let code = files().into_iter().filter(|(name, _)| name.ends_with(".rs"));
    let read = |path| std::fs::read_to_string(path).unwrap();
    code.map(|(name, path)| (&*name.leak(), &*read(path).leak())).collect()
}
