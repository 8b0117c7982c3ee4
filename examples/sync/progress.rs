//! What people see: a bar where standard error is a terminal, a line a request where it is not.

use std::io::{self, IsTerminal as _, Write as _};

use call_assistant::Timestamp;

use crate::support::clock;

/// How far a walk is.
pub(crate) struct Progress {
    terminal: bool,
    /// Where the walk began and where it will end, in the order of the list: by `started_at`,
    /// newest first. The end is a guess, and unknown in a first walk.
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    pages: usize,
    /// What the terminal's last line shows.
    shown: String,
}

const WIDTH: usize = 30;

impl Progress {
    pub(crate) fn new() -> Self {
        let terminal = io::stderr().is_terminal();
        Self { terminal, first: None, last: None, pages: 0, shown: String::new() }
    }

    /// A walk begins that goes back to about here.
    pub(crate) fn begin(&mut self, watermark: Option<Timestamp>) {
        (self.first, self.last, self.pages) = (None, watermark, 0);
    }

    /// A request was answered.
    pub(crate) fn asked(&mut self, line: &str) {
        if !self.terminal {
            self.say(line);
        }
    }

    /// A page was saved: so many calls, so many fresh ones in this walk, back to this time.
    pub(crate) fn page(&mut self, calls: usize, fresh: usize, reached: Option<Timestamp>) {
        self.pages = self.pages.saturating_add(1);
        self.first = self.first.or(reached);
        let back = reached.map(|at| format!(", back to {at}")).unwrap_or_default();
        if self.terminal {
            self.shown = format!("{} {fresh} new{back}", self.bar(reached));
            self.draw();
        } else {
            self.say(&format!("page {}: {calls} calls{back}; {fresh} new so far", self.pages));
        }
    }

    /// A walk has ended.
    pub(crate) fn end(&mut self, fresh: usize, calls: u64, watermark: Option<Timestamp>) {
        self.shown.clear();
        self.draw();
        let to = watermark.map(|at| format!(", up to {at}")).unwrap_or_default();
        // Whoever was reading may have gone.
        let _ = writeln!(io::stdout(), "{fresh} new calls, {calls} in all{to}");
    }

    /// A line of its own, above the bar.
    pub(crate) fn say(&mut self, line: &str) {
        let visible = |character: char| if character.is_control() { '?' } else { character };
        let line: String = line.chars().map(visible).collect();
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

    /// Filled as far as the walk is, or with a block that moves where nobody knows how far that is.
    fn bar(&self, reached: Option<Timestamp>) -> String {
        let share = || {
            let (first, last) = (self.first?, self.last?);
            let whole = first.since(last).as_secs_f64();
            (whole > 0.0).then(|| first.since(reached.unwrap_or(last)).as_secs_f64() / whole)
        };
        let cell = |at: usize| match share() {
            Some(share) => {
                let at = f64::from(u32::try_from(at).unwrap_or(u32::MAX));
                let width = f64::from(u32::try_from(WIDTH).unwrap_or(u32::MAX));
                if at < share * width { '#' } else { '.' }
            }
            None if at.abs_diff(self.pages.checked_rem(WIDTH).unwrap_or(0)) <= 1 => '#',
            None => '.',
        };
        format!("[{}]", (0..WIDTH).map(cell).collect::<String>())
    }
}

/// Back to the beginning of the line, and empty it.
const CLEAR: &str = "\r\x1b[2K";
