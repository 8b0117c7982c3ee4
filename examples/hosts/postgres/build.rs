//! Lists the migrations: the files of the folder, each by the number that its name begins with.

#![allow(clippy::unwrap_used, reason = "then there is no build")]

use std::{env, fs, path::Path};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("migrations");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let each = files.iter().map(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        let number: i32 = name.split('_').next().unwrap().parse().unwrap();
        format!("Migration {{ number: {number}, sql: include_str!({file:?}) }},\n")
    });
    let out = Path::new(&env::var("OUT_DIR").unwrap()).join("migrations.rs");
    fs::write(out, format!("&[\n{}]\n", each.collect::<String>())).unwrap();
}
