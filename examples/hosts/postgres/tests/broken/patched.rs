//! A copy of the repository, with every fault, its program and its simulation: each built once, for all faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::faults;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// The name of the program.
const NAME: &str = "broken-postgres";

/// The features that packages of others have where the durable host's tests are built.
const BESIDE_TESTS: &str = r#"
[target.'cfg(all())'.dependencies]
http-body-util = { workspace = true, features = ["channel"] }
time = { workspace = true, features = ["formatting", "std"] }
tokio = { workspace = true, features = ["test-util"] }
"#;

/// The program with the faults. It has one only if it is told which.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--bin", NAME, "--manifest-path"]);
        build.arg(copy().join("examples/hosts/postgres/Cargo.toml"));
        assert!(built(&mut build).status().unwrap().success(), "the broken host is built");
        target().join("debug").join(NAME)
    })
}

/// The simulation of senders with the faults.
pub(crate) fn simulation() -> PathBuf {
    let copy = copy();
    let mut build = Command::new(env!("CARGO"));
    build.args(["test", "--no-run", "--test", "simulation", "--manifest-path"]);
    build.arg(copy.join("examples/hosts/kit/Cargo.toml"));
    build.arg("--config").arg(copy.join(".ci/simulation.toml"));
    let output = built(&mut build).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "the broken simulation is built: {said}");
    let path = said.lines().find_map(|line| line.trim().strip_prefix("Executable ")).unwrap();
    let path = path.split('(').next_back().unwrap().trim_end_matches(')');
    // Cargo names it from the folder of its workspace, if it can.
    copy.join(path)
}

/// Has cargo build into this target folder, so that packages of others are built once for both.
fn built(build: &mut Command) -> &mut Command {
    build.arg("--target-dir").arg(target())
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Returns the folder of the copy.
fn copy() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(make)
}

fn make() -> PathBuf {
    let root =
        output(Command::new("git").args(["rev-parse", "--show-toplevel"]).current_dir(PACKAGE));
    let root = match &root {
        Some(root) => Path::new(root.trim_end()),
        None => Path::new(PACKAGE).ancestors().nth(3).unwrap(),
    };
    let package = Path::new(PACKAGE).strip_prefix(root).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
    let (fresh, copy) = (folder.join("fresh"), folder.join("copy"));
    let _ = fs::remove_dir_all(&fresh);
    for file in files(root) {
        write(&fresh.join(&file), &fs::read(root.join(&file)).unwrap());
    }
    for (file, source) in faults::broken().unwrap() {
        write(&fresh.join(package).join(file), source.as_bytes());
    }
    // Packages of others are built once for both. Those of the repository have another version, or else cargo would
    // take what is built of the one for the other's, and the program has another name.
    let workspace = fresh.join("Cargo.toml");
    let own = fs::read_to_string(&workspace).unwrap();
    let (before, own) = own.split_once("\nversion = \"").unwrap();
    let (version, after) = own.split_once('"').unwrap();
    let other = format!("{before}\nversion = \"{version}+broken\"{after}");
    write(&workspace, other.as_bytes());
    let manifest = package.join("Cargo.toml");
    let named = fs::read_to_string(fresh.join(&manifest)).unwrap()
        + &format!("\n[[bin]]\nname = \"{NAME}\"\npath = \"src/main.rs\"\n")
        + BESIDE_TESTS;
    write(&fresh.join(&manifest), named.as_bytes());
    // What is as it was keeps its time, so that it is not built again.
    for file in files_below(&copy) {
        if !fresh.join(&file).exists() {
            fs::remove_file(copy.join(&file)).unwrap();
        }
    }
    for file in files_below(&fresh) {
        let bytes = fs::read(fresh.join(&file)).unwrap();
        if fs::read(copy.join(&file)).ok().as_ref() != Some(&bytes) {
            write(&copy.join(&file), &bytes);
        }
    }
    copy
}

/// The files of the repository, as paths in it: those that git does not ignore, or else all.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    match output(list.current_dir(root)) {
        Some(listed) => {
            let files = listed.split_terminator('\0').map(PathBuf::from);
            // One that is deleted is tracked until that is committed.
            files.filter(|file| root.join(file).is_file()).collect()
        }
        None => files_below(root),
    }
}

/// All files in a folder, as paths in it, without what cargo and git make.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(within) = folders.pop() {
        for entry in fs::read_dir(folder.join(&within)).into_iter().flatten() {
            let entry = entry.unwrap();
            let path = within.join(entry.file_name());
            if !entry.file_type().unwrap().is_dir() {
                files.push(path);
            } else if entry.file_name() != "target" && entry.file_name() != ".git" {
                folders.push(path);
            }
        }
    }
    files
}

fn write(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

/// What a program says. `None` if it fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}
