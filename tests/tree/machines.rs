//! The sender of the hosts does the same for the same events: nothing in it reads a clock, or leaves an order to
//! chance.

use crate::{files, read};

const ROOM: &str = "examples/hosts/kit/src/sender/";

/// What carries commands out, with channels and tasks. All else is a machine or a transaction, which anything can
/// drive.
const SHELLS: [&str; 4] = ["keep.rs", "leases/owner.rs", "load.rs", "shell.rs"];

/// Monitoring: it tells for how long a process is behind, and nothing is decided by that.
const MONITORING: &str = "load.rs";

#[test]
fn no_sender_reads_a_clock_or_leaves_an_order_to_chance() {
    let all = files(".rs");
    let mut room: Vec<&str> = all.iter().filter_map(|file| file.strip_prefix(ROOM)).collect();
    for expected in ["core.rs", "leases/core.rs", "settle.rs"].iter().chain(&SHELLS) {
        assert!(room.contains(expected), "{ROOM} has no {expected}");
    }
    room.push("../rows.rs");
    let text = |file: &str| read(&format!("{ROOM}{file}")).unwrap();
    let wrong: Vec<String> = room.iter().flat_map(|file| by_chance(file, &text(file))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn any_clock_and_any_chance_in_a_sender_is_found() {
    for (file, code) in [
        ("core.rs", "let at = std::time::Instant::now();"),
        ("core.rs", "use std::time::{Duration, SystemTime};"),
        ("shell.rs", "tokio::time::sleep(wait).await;"),
        ("shell.rs", "use tokio::{sync::watch, time::sleep};"),
        ("keep.rs", "let _ = timeout(wait, tokio::\n    time::pending());"),
        ("settle.rs", "tokio::spawn(task);"),
        ("leases/core.rs", "for (shard, _) in &HashMap::<u16, i64>::new() {}"),
        ("load.rs", "use std::collections::HashSet;"),
        ("shell.rs", "tokio::select! {\n    _ = a => {}\n}"),
        ("leases/owner.rs", "select!{ _ = a => {} // biased;\n }"),
        ("keep.rs", "tokio::join!(one(0), one(1))"),
        ("keep.rs", "tokio::select! { biased; _ = a => {} } select! { _ = a => {} }"),
    ] {
        assert_eq!(by_chance(file, code).len(), 1, "{file}: {code}");
    }
    for (file, code) in [
        (
            "core.rs",
            "// Instant::now()\n/// tokio\nuse std::time::Duration; type A = BTreeMap<Instance, B>;",
        ),
        ("shell.rs", "tokio::select! {\n    biased;\n    _ = clock.sleep(wait) => {}\n}"),
        ("keep.rs", "tokio::join!(biased; one(0), one(1)); timed(tokio::sync::watch::channel(0));"),
        ("load.rs", "use tokio::time::Instant;"),
    ] {
        assert_eq!(by_chance(file, code), Vec::<String>::new(), "{file}: {code}");
    }
}

/// Returns what a file of the sender must not have.
fn by_chance(file: &str, text: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap());
    let code = code.collect::<Vec<_>>().join(" ");
    let is_part = |of: char| of.is_alphanumeric() || of == '_';
    let words: Vec<&str> = code.split(|of| !is_part(of)).filter(|word| !word.is_empty()).collect();
    let mut wrong = Vec::new();
    let clocks = ["Instant", "SystemTime"];
    let of_tokio = code.split(';').filter(|part| part.contains("tokio"));
    let times = of_tokio.flat_map(|part| part.split(|of| !is_part(of))).any(|word| word == "time");
    if file != MONITORING && (times || words.iter().any(|word| clocks.contains(word))) {
        wrong.push("a clock");
    } else if !SHELLS.contains(&file) && words.contains(&"tokio") {
        wrong.push("tokio");
    }
    if words.iter().any(|word| ["HashMap", "HashSet"].contains(word)) {
        wrong.push("an order by hashes");
    }
    let branches = ["select!", "join!"].into_iter().flat_map(|name| code.split(name).skip(1));
    let mut opened = branches.map(|rest| rest.trim_start().trim_start_matches(['{', '(']));
    if opened.any(|rest| !rest.trim_start().starts_with("biased;")) {
        wrong.push("branches without an order");
    }
    wrong.into_iter().map(|what| format!("{file}: {what}")).collect()
}
