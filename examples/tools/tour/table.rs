//! The results of the tour, and their output.

use std::io::{self, IsTerminal as _, Write as _};

/// Rules, with what was shown of each.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    rule: &'static str,
    what: String,
    so: bool,
}

impl Table {
    /// Begins a chapter of the tour.
    pub(crate) fn chapter(&self, title: &str) {
        let (bold, plain) =
            if io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        say(&format!("\n{bold}{title}{plain}\n"));
    }

    /// Tells something that happened.
    pub(crate) fn tell(&self, line: &str) {
        say(&format!("  {line}\n"));
    }

    /// Shows whether what a rule says was seen.
    pub(crate) fn show(&mut self, rule: &'static str, what: impl Into<String>, so: bool) {
        self.rows.push(Row { rule, what: what.into(), so });
    }

    pub(crate) fn all_shown(&self) -> bool {
        self.rows.iter().all(|row| row.so)
    }

    pub(crate) fn print(&self) {
        self.chapter("Results");
        let width = self.rows.iter().map(|row| row.rule.len()).max().unwrap_or(0);
        for Row { rule, what, so } in &self.rows {
            let mark = if *so { "ok" } else { "FAILED" };
            say(&format!("  {rule:width$}  {mark:2}  {what}\n"));
        }
        let not = self.rows.iter().filter(|row| !row.so).count();
        say(&format!("\n  {} shown, {not} failed\n", self.rows.len()));
    }
}

/// Writes to standard output. A closed pipe is ignored: the exit status still tells the result.
pub(crate) fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
