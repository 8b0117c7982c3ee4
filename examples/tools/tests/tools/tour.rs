//! `tour`: everything it shows is so.

use crate::program::{example, run, stderr, stdout};

#[test]
fn everything_that_is_shown_is_so() {
    let output = run(&mut example("tour"), b"");
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).ends_with(", 0 not so\n"));
    for rule in ["KEY-1", "LIST-6", "ERR-2", "SIG-4", "DEL-4", "DEL-6", "DEL-7", "SYNC-3"] {
        assert!(stdout(&output).contains(&format!("\n  {rule}")), "{rule}");
    }
    assert_eq!(stderr(&output), "");
    // No clock, no randomness: every tour is the same.
    assert_eq!(run(&mut example("tour"), b"").stdout, output.stdout);
}

#[test]
fn it_takes_no_argument() {
    assert_eq!(run(example("tour").arg("--fast"), b"").status.code(), Some(2));
    assert_eq!(run(example("tour").arg("--help"), b"").status.code(), Some(0));
}
