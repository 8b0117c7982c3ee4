//! `simulate`: a small day, and what it says to a wrong command line.

use std::fs;

use testing::running::{Folder, example, run};

#[test]
fn a_small_day_ends_with_a_table_and_a_chart() {
    let folder = Folder::new();
    let chart = folder.path("new/chart.svg");
    let output = run(example("simulate").args(["20", "500"]).arg(&chart), b"");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("decisions in"), "{}", output.stdout);
    // Not a terminal: nothing is drawn, and a line now and then says how far the day is.
    let progress: Vec<&str> = output.stderr.lines().collect();
    assert!((2..=12).contains(&progress.len()), "{progress:?}");
    for line in progress {
        assert!(line.ends_with("decisions/s") && line.len() < 40, "{line:?}");
    }
    assert!(fs::read_to_string(chart).unwrap().trim_end().ends_with("</svg>"));
}

#[test]
fn a_wrong_command_line_is_told_what_is_wrong() {
    for (arguments, says) in [
        (["many", "5", "x.svg"], "ENDPOINTS: expected a number from 1 to 4294967295"),
        (["0", "5", "x.svg"], "ENDPOINTS: expected"),
        (["5", "-5", "x.svg"], "unknown flag -5"),
        (["5", "5000000000", "x.svg"], "DELIVERIES: expected"),
        (["5", "5", "/dev/null/x.svg"], "CHART.svg: /dev/null/x.svg: "),
    ] {
        let output = run(example("simulate").args(arguments), b"").is(2, says);
        assert!(output.stderr.starts_with(says), "{}", output.stderr);
    }
    let help = run(example("simulate").arg("--help"), b"").is(0, "");
    assert!(help.stdout.contains("Usage: simulate"), "{}", help.stdout);
}
