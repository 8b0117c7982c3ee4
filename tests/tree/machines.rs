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
