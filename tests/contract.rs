//! `tests/CONTRACT.md` against the citations in the comments of the tests, both ways: every id that
//! is cited has a row, and every row names tests that exist and cite it.

#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
#![allow(clippy::string_slice, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every clause and decision there is: the family, and its numbers from and to.
const IDS: [(&str, u16, u16); 19] = [
    ("RES", 1, 12),
    ("HTTP", 1, 7),
    ("LIST", 1, 7),
    ("SYNC", 1, 3),
    ("KEY", 1, 7),
    ("AUTH", 1, 6),
    ("RATE", 1, 5),
    ("ERR", 1, 5),
    ("EVT", 1, 9),
    ("DEL", 1, 13),
    ("SIG", 1, 5),
    ("VER", 1, 2),
    ("D", 1, 13),
    ("D", 20, 24),
    ("D", 30, 31),
    ("D", 40, 47),
    ("D", 50, 63),
    ("D", 70, 103),
    ("D", 105, 105),
];

/// A family, and a number within it.
type Id = (&'static str, u16);

fn all() -> impl Iterator<Item = Id> {
    IDS.iter().flat_map(|(family, from, to)| (*from..=*to).map(|at| (*family, at)))
}

fn shown((family, number): &Id) -> String {
    format!("{family}-{number}")
}

/// One row of the page: what holds, and the files and their tests that pin it.
struct Row {
    says: String,
    pins: Vec<(String, Vec<String>)>,
}

#[test]
fn every_id_that_is_cited_has_a_row() {
    let (rows, _) = page();
    let mut wrong = Vec::new();
    for (file, text) in tests().into_iter().chain(files("src")) {
        let cited = ids(&comments(&text)).into_iter().filter(|id| !rows.contains_key(id));
        wrong.extend(cited.map(|id| format!("{file} cites {}", shown(&id))));
    }
    assert!(wrong.is_empty(), "not in tests/CONTRACT.md:\n{}", wrong.join("\n"));
}

#[test]
fn every_clause_and_decision_has_a_row_that_names_its_tests() {
    let (rows, mut wrong) = page();
    let files = tests();
    let cites = |text: &str, id: &Id| ids(&comments(text)).contains(id);
    for id in all().chain(rows.keys().copied()).collect::<BTreeSet<_>>() {
        let name = shown(&id);
        let Some(row) = rows.get(&id) else {
            wrong.push(format!("{name} has no row"));
            continue;
        };
        if row.says.len() < 20 || row.pins.is_empty() {
            wrong.push(format!("{name} says nothing, or names no test"));
        }
        for (file, tests) in &row.pins {
            let Some(text) = files.get(file) else {
                wrong.push(format!("{name}: tests/{file} does not exist"));
                continue;
            };
            if !cites(text, &id) {
                wrong.push(format!("{name}: tests/{file} does not cite it"));
            }
            for test in tests {
                match test_of(text, test) {
                    None => wrong.push(format!("{name}: tests/{file} has no #[test] fn {test}")),
                    // At the top of the file, for all of its tests, or at this one.
                    Some(own) if cites(head(text), &id) || cites(own, &id) => {}
                    Some(_) => {
                        wrong.push(format!("{name}: {test} of tests/{file} does not cite it"))
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "tests/CONTRACT.md:\n{}", wrong.join("\n"));
}

#[test]
fn citations_are_found() {
    for (text, expected) in [
        ("// DEL-1", vec![("DEL", 1)]),
        ("    let x = 1; // D-5: a name, KEY-7's", vec![("D", 5), ("KEY", 7)]),
        ("/// SIG-1 to SIG-3, D-40.", vec![("D", 40), ("SIG", 1), ("SIG", 2), ("SIG", 3)]),
        ("//! D-40\n//! to D-42).", vec![("D", 40), ("D", 41), ("D", 42)]),
        ("// a range across a gap: D-12 to D-20", vec![("D", 12), ("D", 13), ("D", 20)]),
        ("// SHA-256, UTF-8, RFC-9110, D-\nlet id = \"D-1\";", vec![]),
        ("// XD-1 and D-10a", vec![]),
        // What is cited nowhere else may still be no id.
        ("// RES-99", vec![("RES", 99)]),
    ] {
        assert_eq!(ids(&comments(text)), BTreeSet::from_iter(expected), "{text}");
    }
    let text = "//! D-1\n\n// D-2\n#[test]\nfn a() {\n    // D-3\n}\n// D-4\nfn b() {}";
    assert_eq!(head(text), "//! D-1\n");
    assert_eq!(test_of(text, "a"), Some("// D-2\n#[test]\nfn a() {\n    // D-3\n}\n"));
    assert_eq!(test_of(text, "b"), None);
}

/// The rows of the page, and what is wrong with other lines of its tables.
fn page() -> (BTreeMap<Id, Row>, Vec<String>) {
    let (mut rows, mut wrong) = (BTreeMap::new(), Vec::new());
    let page = fs::read_to_string(folder("tests").join("CONTRACT.md")).unwrap();
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id |")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let ([name, says, pins], Some(id)) = (&cells[..], id(cells[0])) else {
            wrong.push(format!("not an id and two cells: {line}"));
            continue;
        };
        let pins = pins.split("; ").filter(|pin| !pin.is_empty()).map(|pin| {
            let (file, tests) = pin.trim_matches('`').split_once(": ").unwrap_or((pin, ""));
            let tests = tests.split(", ").filter(|name| !name.is_empty());
            (file.trim_matches('`').to_owned(), tests.map(str::to_owned).collect())
        });
        let row = Row { says: (*says).to_owned(), pins: pins.collect() };
        if rows.insert(id, row).is_some() {
            wrong.push(format!("{name} has two rows"));
        }
    }
    (rows, wrong)
}

/// What comments say, those of several lines as one text.
fn comments(text: &str) -> String {
    let said = text.lines().filter_map(|line| line.split_once("//"));
    said.map(|(_, said)| said.trim_start_matches(['/', '!'])).collect::<Vec<_>>().join(" ")
}

/// The ids among the words of a text, and all between the two of `D-1 to D-3`.
fn ids(text: &str) -> BTreeSet<Id> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut found: BTreeSet<Id> = words.iter().filter_map(|word| id(word)).collect();
    for range in words.windows(3).filter(|range| range[1] == "to") {
        if let (Some(first), Some(last)) = (id(range[0]), id(range[2]))
            && first.0 == last.0
        {
            found.extend(all().filter(|id| (first..last).contains(id)));
        }
    }
    found
}

fn id(word: &str) -> Option<Id> {
    let (family, number) = word.split_once('-')?;
    let (family, ..) = IDS.iter().find(|(known, ..)| *known == family)?;
    Some((family, number.parse().ok()?))
}

/// The comment at the top, which speaks for the whole file.
fn head(text: &str) -> &str {
    let lines = text.split_inclusive('\n').take_while(|line| line.starts_with("//!"));
    &text[..lines.map(str::len).sum()]
}

/// A test, with the comments and attributes in front of it.
fn test_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let named = format!("fn {name}(");
    let mut starts =
        text.match_indices(&named).map(|(at, _)| text[..at].rfind('\n').map_or(0, |end| end + 1));
    starts.find_map(|start| {
        let above = text[..start].split_inclusive('\n').rev();
        let above: Vec<&str> =
            above.take_while(|line| line.trim_start().starts_with(['/', '#'])).collect();
        let indent = text[start..].len() - text[start..].trim_start().len();
        let end = format!("\n{}}}\n", &text[start..start + indent]);
        let end = text[start..].find(&end).map_or(text.len(), |at| start + at + end.len());
        let above_it = above.iter().map(|line| line.len()).sum::<usize>();
        let is_test = |line: &str| line == "#[test]" || line.starts_with("#[tokio::test");
        above.iter().any(|line| is_test(line.trim())).then(|| &text[start - above_it..end])
    })
}

/// The tests of the library, and those of its hosts and tools.
fn tests() -> BTreeMap<String, String> {
    let hosts = ["hosts/kit", "hosts/memory", "hosts/postgres", "tools"]
        .map(|name| files(&format!("examples/{name}/tests")));
    hosts.into_iter().fold(files("tests"), |mut all, more| {
        all.extend(more);
        all
    })
}

/// The Rust files of a folder of the repository, by their paths within it.
fn files(name: &str) -> BTreeMap<String, String> {
    let (root, mut files, mut folders) = (folder(name), BTreeMap::new(), vec![folder(name)]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with(file!()) {
                let within = path.strip_prefix(&root).unwrap().to_str().unwrap();
                files.insert(within.replace('\\', "/"), fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
