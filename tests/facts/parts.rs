//! The parts of `.ci/run`, and who runs each.

use crate::text;

/// The words after this text, up to a character that ends them.
fn words(text: &str, begin: &str, end: char) -> Vec<String> {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
    let (words, _) = rest.split_once(end).unwrap();
    words.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_part_of_the_gates_has_a_job() {
    let run = text(".ci/run");
    let parts = |name: &str| words(&run, &format!("{name}_parts=\""), '"');
    let each_change = [parts("short"), parts("more")].concat();
    for (parts, workflow) in [(each_change, "ci"), (parts("long"), "nightly")] {
        let jobs = text(&format!(".github/workflows/{workflow}.yml"));
        assert_eq!(parts, words(&jobs, "part: [", ']'), "{workflow}.yml");
    }
    for part in parts("long") {
        assert!(run.contains(&format!("\n#       {part} ")), "--help says nothing of {part}");
    }
}
