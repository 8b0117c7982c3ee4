//! The faults: what each changes, wherever in the hosts and in the simulation's store the changed lines stand.
//!
//! A file of `faults` is named as its fault. It says what is wrong, and has hunks as a diff has them,
//! without the names of files: ` ` stays, `-` goes, `+` comes. The lines that stay or go are found by their
//! text, without its indentation, and have to stand at one place. `FAULT` in a line that comes is true in a
//! process that has the fault.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// The folders where a fault may be, as paths from this package.
const FOLDERS: [&str; 3] = ["src", "../kit/src", "../../testing/src/store"];

/// Returns the files that have faults, as paths from this package, with all the faults.
pub(crate) fn broken() -> Result<BTreeMap<PathBuf, String>, String> {
    let mut sources = BTreeMap::new();
    for folder in FOLDERS {
        read(Path::new(PACKAGE), Path::new(folder), &mut sources);
    }
    let mut faults = BTreeMap::new();
    read(Path::new(PACKAGE), Path::new("tests/broken/faults"), &mut faults);
    assert_eq!(faults.len(), 37, "thirty-six faults, and what chooses one");
    let whole = sources.clone();
    for (path, text) in faults {
        let name = path.file_stem().unwrap().to_str().unwrap();
        apply(name, &text, &mut sources)?;
    }
    sources.retain(|path, source| whole[path] != *source);
    Ok(sources)
}

/// Reads the files of a folder, and of the folders in it.
fn read(package: &Path, folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(package.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => read(package, &path, files),
            false => drop(files.insert(path, fs::read_to_string(entry.path()).unwrap())),
        }
    }
}

/// Applies the hunks of a fault to these sources.
fn apply(name: &str, fault: &str, sources: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let is = format!("host::fault({name:?})");
    for hunk in fault.split("\n@@\n").skip(1) {
        let kept = |but: char| {
            let lines = hunk.lines().filter(move |line| !line.starts_with(but));
            lines.map(|line| line.get(1..).unwrap_or_default()).collect::<Vec<_>>()
        };
        let (before, after) = (kept('+'), kept('-').join("\n").replace("FAULT", &is));
        let mut places = Vec::new();
        for (path, source) in &*sources {
            let lines: Vec<&str> = source.lines().map(str::trim).collect();
            let wanted: Vec<&str> = before.iter().map(|line| line.trim()).collect();
            let found = lines.windows(wanted.len()).enumerate();
            places.extend(
                found.filter(|(_, lines)| *lines == wanted).map(|(line, _)| (path.clone(), line)),
            );
        }
        let [(path, line)] = places.as_slice() else {
            return Err(format!("{name}: at {places:?}, and not at one place: {before:#?}"));
        };
        let source = sources.get_mut(path).unwrap();
        let mut lines: Vec<&str> = source.lines().collect();
        lines.splice(*line..*line + before.len(), [after.as_str()]);
        *source = lines.join("\n") + "\n";
    }
    Ok(())
}

#[test]
fn each_fault_has_its_place() {
    broken().unwrap();
}

#[test]
fn a_fault_has_one_place() {
    let fault = "Nothing is stored.\n@@\n fn store() {\n+    if FAULT { return }\n-    write();\n";
    let store = "use a;\n    fn store() {\n        write();\n    }\n";
    let with = |files: &[(&str, &str)]| {
        files.iter().map(|(path, text)| ((*path).into(), (*text).to_owned())).collect()
    };
    let mut sources = with(&[("a.rs", "fn store() {\n"), ("moved/b.rs", store)]);
    apply("Lost", fault, &mut sources).unwrap();
    let broken = "use a;\nfn store() {\n    if host::fault(\"Lost\") { return }\n    }\n";
    assert_eq!(sources, with(&[("a.rs", "fn store() {\n"), ("moved/b.rs", broken)]));

    for (why, mut sources) in [
        ("nowhere", with(&[("a.rs", "fn store() {\n    log();\n    write();\n")])),
        ("twice in a file", with(&[("a.rs", &store.repeat(2))])),
        ("twice", with(&[("a.rs", store), ("b.rs", store)])),
    ] {
        let before = sources.clone();
        let refused = apply("Lost", fault, &mut sources).unwrap_err();
        assert!(refused.starts_with("Lost: "), "{why}: {refused}");
        assert_eq!(sources, before, "{why}");
    }
}
