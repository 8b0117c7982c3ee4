//! `tests/CONTRACT.md` against the citations in the comments of the tests, both ways: every id that
//! is cited has a row, and every row names tests that are there and cite it.

#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
#![allow(clippy::string_slice, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Every clause and decision there is: the family, and its numbers from and to.
const IDS: [(&str, u16, u16); 18] = [
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
    ("D", 70, 71),
];

/// A family, and a number within it: they order as they are read.
type Id = (&'static str, u16);

fn shown((family, number): Id) -> String {
    format!("{family}-{number}")
}

/// One row of the page.
struct Row {
    line: usize,
    says: String,
    pins: Vec<Pin>,
}

/// Where a row says its clause is pinned: a file, and the tests in it, or all of it.
struct Pin {
    file: String,
    tests: Vec<String>,
}

/// A Rust file, and where it cites what: the line's number, and the id.
struct Source {
    lines: Vec<String>,
    cited: Vec<(usize, Id)>,
}

#[test]
fn the_page_has_every_clause_and_decision_once() {
    let (rows, mut wrong) = page();
    for id in IDS.iter().flat_map(|(family, from, to)| (*from..=*to).map(|at| (*family, at))) {
        match rows.get(&id) {
            None => writeln!(wrong, "{}: has no row", shown(id)).unwrap(),
            Some(row) if row.says.len() < 20 => {
                writeln!(wrong, "{}: line {} says nothing", shown(id), row.line).unwrap();
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "tests/CONTRACT.md:\n{wrong}");
}

#[test]
fn every_id_that_is_cited_has_a_row() {
    let (rows, _) = page();
    let mut wrong = String::new();
    for folder in ["tests", "src"] {
        for (file, source) in sources(folder) {
            for (line, id) in source.cited.iter().filter(|(_, id)| !rows.contains_key(id)) {
                writeln!(wrong, "{folder}/{file}:{line} cites {}", shown(*id)).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "not in tests/CONTRACT.md:\n{wrong}");
}

#[test]
fn every_row_names_tests_that_cite_it() {
    let (rows, _) = page();
    let sources = sources("tests");
    let mut wrong = String::new();
    for (id, row) in &rows {
        let mut complain = |what: String| {
            writeln!(wrong, "{}, line {}: {what}", shown(*id), row.line).unwrap();
        };
        if row.pins.is_empty() {
            complain("names no test".to_owned());
        }
        for Pin { file, tests } in &row.pins {
            let Some(source) = sources.get(file) else {
                complain(format!("tests/{file} is not there"));
                continue;
            };
            if !source.cites(*id, 0..source.lines.len()) {
                complain(format!("tests/{file} does not cite it"));
            }
            for test in tests {
                let Some(lines) = source.test(test) else {
                    complain(format!("tests/{file} has no #[test] fn {test}"));
                    continue;
                };
                // At the top of the file, for all of its tests, or at this one.
                if !source.cites(*id, source.head()) && !source.cites(*id, lines) {
                    complain(format!("{test} of tests/{file} does not cite it"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "tests/CONTRACT.md:\n{wrong}");
}

#[test]
fn citations_are_found() {
    for (text, expected) in [
        ("// DEL-1", vec![("DEL", 1)]),
        ("    let x = 1; // D-5: a name, KEY-7", vec![("D", 5), ("KEY", 7)]),
        ("/// SIG-1 to SIG-3, D-40.", vec![("SIG", 1), ("SIG", 2), ("SIG", 3), ("D", 40)]),
        ("//! D-40\n//! to D-42).", vec![("D", 40), ("D", 41), ("D", 42)]),
        ("// a range across a gap: D-12 to D-20", vec![("D", 12), ("D", 13), ("D", 20)]),
        ("// SHA-256, UTF-8, RFC-9110, D-\nlet id = \"D-1\";", vec![]),
        ("// XD-1 and D-10a", vec![]),
    ] {
        let cited: Vec<Id> = Source::read(text).cited.into_iter().map(|(_, id)| id).collect();
        assert_eq!(cited, expected, "{text}");
    }
    let source =
        Source::read("//! D-1\n\n// D-2\n#[test]\nfn a() {\n    // D-3\n}\n// D-4\nfn b() {}");
    assert_eq!((source.head(), source.test("a")), (0..1, Some(2..7)));
    assert_eq!(source.test("b"), None);
    // What is cited nowhere else may still be no id.
    let unknown = Source::read("// RES-99").cited;
    assert_eq!(unknown, [(1, ("RES", 99))]);
}

/// The rows of the page, and what keeps other lines of its tables from being rows.
fn page() -> (BTreeMap<Id, Row>, String) {
    let (mut rows, mut wrong) = (BTreeMap::new(), String::new());
    for (line, text) in (1..).zip(read(&folder("tests").join("CONTRACT.md")).lines()) {
        let Some(text) = text.strip_prefix("| ") else { continue };
        let cells: Vec<&str> = text.trim_end_matches('|').split(" | ").map(str::trim).collect();
        let [id, says, pins] = cells[..] else {
            writeln!(wrong, "line {line}: not three cells").unwrap();
            continue;
        };
        if id == "id" {
            continue;
        }
        let Some(id) = self::id(id).filter(|found| shown(*found) == id) else {
            writeln!(wrong, "line {line}: {id} is no id").unwrap();
            continue;
        };
        let pins = pins.split("; ").filter(|pin| !pin.is_empty()).map(|pin| {
            let (file, tests) = pin.split_once(": ").unwrap_or((pin, ""));
            let names = tests.split(", ").filter(|name| !name.is_empty());
            let bare = |name: &str| name.trim_matches('`').to_owned();
            Pin { file: bare(file), tests: names.map(bare).collect() }
        });
        let row = Row { line, says: says.to_owned(), pins: pins.collect() };
        if let Some(first) = rows.insert(id, row) {
            writeln!(wrong, "{}: lines {} and {line}", shown(id), first.line).unwrap();
        }
    }
    (rows, wrong)
}

impl Source {
    fn read(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (mut cited, mut comment) = (Vec::new(), Vec::new());
        // Lines of comments that follow one another are one text: a range may go over their end.
        for (number, line) in (1..).zip(&lines) {
            let Some((code, words)) = line.split_once("//") else { continue };
            comment.extend(words.split_whitespace().map(|word| (number, word)));
            let goes_on = lines.get(number).is_some_and(|next| next.trim_start().starts_with("//"));
            if !(goes_on && code.trim().is_empty()) {
                cited.extend(ids(comment.drain(..)));
            }
        }
        Self { lines, cited }
    }

    fn cites(&self, id: Id, lines: std::ops::Range<usize>) -> bool {
        self.cited.iter().any(|(number, cited)| *cited == id && lines.contains(&(number - 1)))
    }

    /// The comment at the top, which speaks for the whole file.
    fn head(&self) -> std::ops::Range<usize> {
        0..self.lines.iter().take_while(|line| line.starts_with("//!")).count()
    }

    /// The lines of a test, with the comments and attributes in front of it.
    fn test(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let named = format!("fn {name}(");
        let at = self.lines.iter().position(|line| line.trim_start().starts_with(&named))?;
        let above = self.lines[..at].iter().rev().map(|line| line.trim_start());
        let above: Vec<&str> =
            above.take_while(|line| line.starts_with("//") || line.starts_with("#[")).collect();
        let indent = &self.lines[at][..self.lines[at].len() - self.lines[at].trim_start().len()];
        let end = format!("{indent}}}");
        let body = self.lines[at..].iter().position(|line| *line == end).unwrap_or(0);
        above.contains(&"#[test]").then(|| at - above.len()..at + body + 1)
    }
}

/// The ids among these words, and all between the two of a range, each with its word's line.
fn ids<'a>(words: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, Id)> {
    let mut found: Vec<(usize, Id)> = Vec::new();
    let mut range = false;
    for (line, word) in words {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let word = word.strip_suffix("'s").unwrap_or(word);
        let Some(id) = id(word) else {
            // The marks of a comment may stand between the words of a range.
            range = word == "to" || range && word.is_empty();
            continue;
        };
        if let Some((_, first)) = found.last().copied().filter(|(_, last)| range && last.0 == id.0)
        {
            let known = IDS.iter().filter(|(family, ..)| *family == id.0);
            let between = known.flat_map(|(_, from, to)| *from..=*to);
            let between = between.filter(|at| first.1 < *at && *at < id.1);
            found.extend(between.map(|at| (line, (id.0, at))));
        }
        found.push((line, id));
        range = false;
    }
    found
}

fn id(word: &str) -> Option<Id> {
    let (family, number) = word.split_once('-')?;
    let (family, ..) = IDS.iter().find(|(known, ..)| *known == family)?;
    Some((family, number.parse().ok()?))
}

/// The Rust files of a folder of the repository, by their paths within it.
fn sources(name: &str) -> BTreeMap<String, Source> {
    let (root, mut files) = (folder(name), BTreeMap::new());
    let mut folders = BTreeSet::from([root.clone()]);
    while let Some(next) = folders.pop_first() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.insert(path);
                }
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with(file!()) {
                let within = path.strip_prefix(&root).unwrap().to_str().unwrap();
                files.insert(within.replace('\\', "/"), Source::read(&read(&path)));
            }
        }
    }
    files
}

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
