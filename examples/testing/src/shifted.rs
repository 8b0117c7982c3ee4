//! Programs whose clock is wrong. What ships cannot be told a wrong time: the library of `faketime` tells
//! it, where that is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns where Debian's package `libfaketime` has what shifts the clock of a process.
pub fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file())
}

/// Shifts the time of day of a program by a number of seconds.
pub fn shift(command: &mut Command, library: &Path, seconds: i64) {
    preload(command, library).env("FAKETIME", format!("{seconds:+}s"));
}

/// Shifts it by what [`set`] writes to a file, within a second.
pub fn shift_as_told(command: &mut Command, library: &Path, file: &Path) {
    preload(command, library)
        .env("FAKETIME_TIMESTAMP_FILE", file)
        .env("FAKETIME_CACHE_DURATION", "1");
}

/// Sets the shift of a program.
pub fn set(file: &Path, seconds: i64) {
    // At once: one that is half written says something else.
    let next = file.with_extension("next");
    std::fs::write(&next, format!("{seconds:+}s\n")).unwrap();
    std::fs::rename(next, file).unwrap();
}

/// Loads the library. What measures a span is not shifted.
fn preload<'a>(command: &'a mut Command, library: &Path) -> &'a mut Command {
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1")
}
