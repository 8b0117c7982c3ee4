//! Command lines: flags by name, a help text, and nothing unknown ignored.
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

/// What a program takes, and says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// The line after `Usage:`.
    pub usage: &'static str,
    /// What the program does, in a few lines.
    pub about: &'static str,
    /// Every flag there is. `--help` is understood besides.
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
    /// A flag that is there or not.
    pub const fn switch(name: &'static str, about: &'static str) -> Self {
        Self { name, value: None, about }
    }

    /// A flag with a value, as `--name VALUE` or `--name=VALUE`.
    pub const fn value(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self { name, value: Some(value), about }
    }
}

/// A command line that was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    given: BTreeMap<&'static str, String>,
    positional: Vec<String>,
}

/// Why the program does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody asked what it does.
    Help,
    /// The command line is wrong, and how.
    Wrong(String),
}

impl Help {
    /// Reads the process's command line. Help goes to standard output, a mistake to standard error
    /// with status 2.
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
                // Whoever was reading may have seen enough.
                let _ = std::io::stdout().write_all(self.text().as_bytes());
                std::process::exit(0);
            }
            Err(Stop::Wrong(message)) => self.exit(&message),
        }
    }

    /// Says what is wrong with the command line, and ends with status 2.
    pub fn exit(&self, message: &str) -> ! {
        last_words(&format!("{message}\nUsage: {}\nTry --help.", self.usage));
        std::process::exit(2);
    }

    /// Reads a command line.
    ///
    /// # Errors
    /// [`Stop`]: help is asked for, or a flag is unknown, repeated, without its value or with one
    /// it does not take, or there are too many other arguments.
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
                return Err(wrong(format!("{name} is given twice")));
            }
        }
        match flags.positional.get(self.positional) {
            // Not shown: it may be a secret that was meant for a flag.
            Some(_) => Err(wrong("there is an argument too many".to_owned())),
            None => Ok(flags),
        }
    }

    /// The whole help text.
    pub fn text(&self) -> String {
        let mut rows: Vec<(String, &str)> = Vec::new();
        for flag in self.flags {
            let value = flag.value.map(|value| format!(" {value}")).unwrap_or_default();
            rows.push((format!("{}{value}", flag.name), flag.about));
        }
        rows.push(("--help".to_owned(), "this text"));
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
        // Only a short name is shown, for the same reason as above.
        let shown = if name.len() <= 40 { name } else { "a flag" };
        let near = self.flags.iter().map(|flag| flag.name).find(|known| is_near(known, name));
        Err(wrong(match near {
            Some(near) => format!("{shown} is not known; did you mean {near}?"),
            None => format!("{shown} is not known"),
        }))
    }
}

impl Flags {
    /// Whether a switch is there.
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// The text of a flag.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    /// The value of a flag, or `default` where it is not given.
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

    /// What is not a flag, in its order.
    pub fn positional(&self) -> &[String] {
        &self.positional
    }
}

/// Says a line on standard output. Whoever was reading may have gone, with `head` for instance.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Says why a program ends. Who has gone does not hear it.
pub fn last_words(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn wrong(message: String) -> Stop {
    Stop::Wrong(message)
}

/// One letter more, less or different, or one the beginning of the other.
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
