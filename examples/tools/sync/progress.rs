//! Progress: a bar if standard error is a terminal, else one line for each request.

use std::io::{self, IsTerminal as _, Write as _};

use call_assistant::Timestamp;
use call_assistant::rest::client::Progress;

use host::clock;
use host::flags::say;
use host::terminal;

/// Shows how far a flow is.
pub(crate) struct Report {
    terminal: bool,
    /// Where in the list the flow began: by `started_at`, newest first.
    first: Option<Timestamp>,
    /// What the terminal's last line shows.
    shown: String,
}

const WIDTH: u32 = 30;

impl Report {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), first: None, shown: String::new() }
    }

    /// Tells that a request was answered.
    pub(crate) fn asked(&mut self, line: &str) {
        if !self.terminal {
            self.say(line);
        }
    }

    /// Tells that a page was saved.
    pub(crate) fn stored(&mut self, progress: &Progress) {
        self.first = self.first.or(progress.reached);
        let back = progress.reached.map(|at| format!(", back to {at}")).unwrap_or_default();
        let Progress { pages, calls, .. } = progress;
        if self.terminal {
            self.shown = format!("{} {calls} new{back}", self.bar(progress));
            self.draw();
        } else {
            self.say(&format!("page {pages}{back}; {calls} new so far"));
        }
    }

    /// Tells that all pages were saved: so many calls now, so many in all, up to this time.
    pub(crate) fn end(&mut self, fresh: u64, calls: u64, watermark: Option<Timestamp>) {
        self.first = None;
        self.shown.clear();
        self.draw();
        let to = watermark.map(|at| format!(", up to {at}")).unwrap_or_default();
        let noun = if fresh == 1 { "call" } else { "calls" };
        say(&format!("{fresh} new {noun}, {calls} in all{to}"));
    }

    /// Writes a line of its own, above the bar.
    pub(crate) fn say(&mut self, line: &str) {
        let line = terminal::escaped(line);
        let (clear, shown) = match self.terminal {
            true => (CLEAR, self.shown.as_str()),
            false => ("", ""),
        };
        let _ = write!(io::stderr(), "{clear}{} {line}\n{shown}", clock::now());
    }

    fn draw(&self) {
        if self.terminal {
            let _ = write!(io::stderr(), "{CLEAR}{}", self.shown);
        }
    }

    /// Draws the bar: filled as far as the list is read, or with a block that moves where nobody knows how far that
    /// is: where a first sync ends.
    fn bar(&self, progress: &Progress) -> String {
        let share = || {
            let (first, last) = (self.first?, progress.wanted?);
            let whole = first.since(last).as_secs_f64();
            (whole > 0.0)
                .then(|| first.since(progress.reached.unwrap_or(last)).as_secs_f64() / whole)
        };
        let share = share().map(|share| share * f64::from(WIDTH));
        let block = progress.pages.checked_rem(WIDTH.into()).unwrap_or(0);
        let filled = |at: u32| match share {
            Some(share) => f64::from(at) < share,
            None => block.abs_diff(at.into()) <= 1,
        };
        let cells = (0..WIDTH).map(|at| if filled(at) { '#' } else { '.' });
        format!("[{}]", cells.collect::<String>())
    }
}

/// Back to the beginning of the line, and empty it.
const CLEAR: &str = "\r\x1b[2K";
