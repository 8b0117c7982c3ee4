//! `simulate`: a small day, and what it says to a wrong command line.

use std::fs;

use crate::program::{Folder, example, run, stderr, stdout};

#[test]
fn a_small_day_ends_with_a_table_and_a_chart() {
    let folder = Folder::new();
    let chart = folder.path("new/chart.svg");
    let output = run(example("simulate").args(["20", "500"]).arg(&chart), b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("decisions in"), "{}", stdout(&output));
    // Not a terminal: nothing is drawn, and a line now and then says how far the day is.
    let progress: Vec<&str> = stderr(&output).lines().collect();
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
        (["5", "-5", "x.svg"], "-5 is not known"),
        (["5", "5000000000", "x.svg"], "DELIVERIES: expected"),
        (["5", "5", "/dev/null/x.svg"], "CHART.svg: /dev/null/x.svg: "),
    ] {
        let output = run(example("simulate").args(arguments), b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).starts_with(says), "{}", stderr(&output));
    }
    let help = run(example("simulate").arg("--help"), b"");
    assert_eq!(help.status.code(), Some(0));
    assert!(stdout(&help).contains("Usage: simulate"), "{}", stdout(&help));
}
