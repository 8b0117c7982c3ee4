//! What holds for the source of the repository: its rooms, its habits, its public API.

#![allow(clippy::unwrap_used)]

mod api;
mod features;
mod habits;
mod imports;
mod machines;
mod paths;

use std::fs;
use std::path::PathBuf;

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

/// The files with a name that ends so, by their paths within the repository. Hidden folders and what
/// is built are left out.
fn files(suffix: &str) -> Vec<String> {
    let (root, mut files, mut folders) = (repository(), Vec::new(), vec![repository()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            let last = name.rsplit('/').next().unwrap();
            if path.is_dir() {
                folders.extend((!last.starts_with('.') && last != "target").then_some(path));
            } else if name.ends_with(suffix) {
                files.push(name);
            }
        }
    }
    files
}

/// The text of a file, if it is there.
fn read(file: &str) -> Option<String> {
    fs::read_to_string(repository().join(file)).ok()
}
