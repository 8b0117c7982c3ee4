//! Command lines: flags by name, a help text, and an error for anything unknown.
//!
//! ```text
//! const HELP: Help = Help {
//!     usage: "service [--listen ADDR]",
//!     about: "What it is, in a sentence.",
//!     flags: &[Flag::value("--listen", "ADDR", "where to listen [127.0.0.1:8080]")],
//!     positional: 0,
//! };
//! let flags = HELP.parse_or_exit();
//! let listen: SocketAddr = flags.read("--listen", DEFAULT)?;
//! ```

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write as _;
use std::str::FromStr;

/// The arguments of a program, and its help text.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// The line after `Usage:`.
    pub usage: &'static str,
    /// What the program does, in a few lines.
    pub about: &'static str,
    /// All flags except `--help`, which every program has.
    pub flags: &'static [Flag],
    /// The most arguments that are not flags.
    pub positional: usize,
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    name: &'static str,
    value: Option<&'static str>,
    about: &'static str,
}

impl Flag {
    /// Creates a flag without a value.
    pub const fn switch(name: &'static str, about: &'static str) -> Self {
        Self { name, value: None, about }
    }

    /// Creates a flag with a value: `--name VALUE` or `--name=VALUE`.
    pub const fn value(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self { name, value: Some(value), about }
    }
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    given: BTreeMap<&'static str, String>,
    positional: Vec<String>,
}

/// The reason why the program does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `--help` was given.
    Help,
    /// The command line is wrong: the message for the user.
    Wrong(String),
}

impl Help {
    /// Reads the process's command line. Prints help to standard output; prints an error to standard
    /// error and exits with status 2.
    pub fn parse_or_exit(&self) -> Flags {
        let mut arguments = Vec::new();
        for argument in std::env::args_os().skip(1) {
            match argument.into_string() {
                Ok(text) => arguments.push(text),
                Err(_) => self.exit("an argument is not UTF-8"),
            }
        }
        self.read_or_exit(arguments)
    }

    /// Reads arguments as [`parse_or_exit`](Self::parse_or_exit) does.
    pub fn read_or_exit(&self, arguments: Vec<String>) -> Flags {
        match self.parse(arguments) {
            Ok(flags) => flags,
            Err(Stop::Help) => {
                // The reader may have closed the pipe.
                let _ = std::io::stdout().write_all(self.text().as_bytes());
                std::process::exit(0);
            }
            Err(Stop::Wrong(message)) => self.exit(&message),
        }
    }

    /// Prints what is wrong with the command line, and exits with status 2.
    pub fn exit(&self, message: &str) -> ! {
        last_words(&format!("{message}\nUsage: {}\nTry --help.", self.usage));
        std::process::exit(2);
    }

    /// Reads a command line.
    ///
    /// # Errors
    /// [`Stop`]: help was asked for; a flag is unknown or repeated, lacks its value, or has one that it
    /// does not take; or there are too many other arguments.
    pub fn parse(&self, arguments: Vec<String>) -> Result<Flags, Stop> {
        let mut flags = Flags::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                flags.positional.extend(arguments.by_ref());
                break;
            }
            if argument == "-h" || argument == "--help" {
                return Err(Stop::Help);
            }
            if !argument.starts_with('-') || argument == "-" {
                flags.positional.push(argument);
                continue;
            }
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let flag = self.find(name)?;
            let value = match (flag.value, attached) {
                (None, None) => String::new(),
                (None, Some(_)) => return Err(wrong(format!("{name} takes no value"))),
                (Some(_), Some(value)) => value,
                (Some(what), None) => {
                    arguments.next().ok_or_else(|| wrong(format!("{name} needs {what}")))?
                }
            };
            if flags.given.insert(flag.name, value).is_some() {
                return Err(wrong(format!("{name} is repeated")));
            }
        }
        match flags.positional.get(self.positional) {
            // The argument is not shown: it may be a secret that was meant for a flag.
            Some(_) => Err(wrong("too many arguments".to_owned())),
            None => Ok(flags),
        }
    }

    /// Returns the help text.
    pub fn text(&self) -> String {
        let mut rows: Vec<(String, &str)> = Vec::new();
        for flag in self.flags {
            let value = flag.value.map(|value| format!(" {value}")).unwrap_or_default();
            rows.push((format!("{}{value}", flag.name), flag.about));
        }
        rows.push(("--help".to_owned(), "print this text"));
        let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
        let mut text = format!("{}\n\nUsage: {}\n\n", self.about, self.usage);
        for (left, about) in rows {
            for (line, about) in about.lines().enumerate() {
                let left = if line == 0 { left.as_str() } else { "" };
                text.push_str(&format!("  {left:width$}  {about}\n"));
            }
        }
        text
    }

    fn find(&self, name: &str) -> Result<&'static Flag, Stop> {
        if let Some(flag) = self.flags.iter().find(|flag| flag.name == name) {
            return Ok(flag);
        }
        // Only a short name is shown, for the same reason.
        let shown = if name.len() <= 40 { format!(" {name}") } else { String::new() };
        let near = self.flags.iter().map(|flag| flag.name).find(|known| is_near(known, name));
        Err(wrong(match near {
            Some(near) => format!("unknown flag{shown}; did you mean {near}?"),
            None => format!("unknown flag{shown}"),
        }))
    }
}

impl Flags {
    /// Returns whether a switch was given.
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Returns the text of a flag's value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    /// Reads the value of a flag, or returns `default` if the flag was not given.
    ///
    /// # Errors
    /// A message that names the flag.
    pub fn read<T>(&self, name: &str, default: T) -> Result<T, String>
    where
        T: FromStr,
        T::Err: Display,
    {
        match self.text(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|error| format!("{name}: {error}")),
        }
    }

    /// Returns the arguments that are not flags, in their order.
    pub fn positional(&self) -> &[String] {
        &self.positional
    }
}

/// Prints a line on standard output. A closed pipe, as with `head`, is ignored.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a last message on standard error. A closed pipe is ignored.
pub fn last_words(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn wrong(message: String) -> Stop {
    Stop::Wrong(message)
}

/// Returns whether two names differ by one letter or one swap, or `name` begins the known one.
fn is_near(known: &str, name: &str) -> bool {
    if name.len() > 4 && known.starts_with(name) {
        return true;
    }
    let (known, name): (Vec<char>, Vec<char>) = (known.chars().collect(), name.chars().collect());
    let front = known.iter().zip(&name).take_while(|(a, b)| a == b).count();
    let back = known.iter().rev().zip(name.iter().rev()).take_while(|(a, b)| a == b).count();
    let longer = known.len().max(name.len());
    // A swap of two neighbours leaves two letters between what is equal.
    front.saturating_add(back).saturating_add(2) >= longer && known.len().abs_diff(name.len()) <= 2
}
