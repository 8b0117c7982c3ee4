//! `tour`: everything it shows is so.

use testing::running::{example, run};

#[test]
fn everything_that_is_shown_is_so() {
    let output = run(&mut example("tour"), b"");
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.ends_with(", 0 failed\n"));
    for rule in ["KEY-1", "LIST-6", "ERR-2", "SIG-4", "DEL-4", "DEL-6", "DEL-7", "SYNC-3"] {
        assert!(output.stdout.contains(&format!("\n  {rule}")), "{rule}");
    }
    assert_eq!(output.stderr, "");
    // No clock, no randomness: every tour is the same.
    assert_eq!(run(&mut example("tour"), b"").stdout, output.stdout);
}

#[test]
fn it_takes_no_argument() {
    run(example("tour").arg("--fast"), b"").is(2, "");
    run(example("tour").arg("--help"), b"").is(0, "");
}
