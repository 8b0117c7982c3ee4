//! Command lines: flags by name, a help text, and an error for anything unknown.
//!
//! ```text
//! const HELP: Help = Help {
//!     usage: "service [--listen ADDR]",
//!     about: "What it is, in a sentence.",
//!     flags: &[&[Flag::value("--listen", "ADDR", "where to listen [127.0.0.1:8080]")]],
//!     positional: &[],
//! };
//! let flags = HELP.parse_or_exit();
//! let listen: SocketAddr = flags.read("--listen", DEFAULT, "an address")?;
//! ```
//!
//! Each flag is read from the environment, too, where the command line has none: `--log-format` from
//! `CALL_ASSISTANT_LOG_FORMAT`.

use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;

use clap::builder::{BoolishValueParser, PossibleValuesParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::Value;

use super::terminal;

/// The arguments of a program or a command, and its help text.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// The line after `Usage:`. It begins with the name of the program. Empty: it is made of the flags.
    pub usage: &'static str,
    /// What it does, in a few lines.
    pub about: &'static str,
    /// All flags except `--help` and `--version`, which every program has, in groups that several commands share.
    pub flags: &'static [&'static [Flag]],
    /// The names of the arguments that are not flags. `[NAME]` may be left out.
    pub positional: &'static [&'static str],
    /// A command line that does something, without the name of the program; empty: none.
    pub example: &'static str,
}

/// The words that a value may be.
type Words = fn() -> Vec<&'static str>;

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    name: &'static str,
    value: Option<&'static str>,
    about: &'static str,
    /// The name of its field in a body; empty: that of the flag.
    field: &'static str,
    kind: Kind,
    is_required: bool,
}

/// The kind of a flag's value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Bool,
    Number,
    OneOf(Words),
    SomeOf(Words),
    /// Several of these words; all where the flag is not given.
    AllOf(Words),
}

/// A program with several commands.
#[derive(Clone, Copy, Debug)]
pub struct Commands<T: 'static> {
    /// The name of the program.
    pub program: &'static str,
    /// What the program is, in a few lines.
    pub about: &'static str,
    /// The groups of commands: the first word of their names, and what they are about.
    pub groups: &'static [(&'static str, &'static str)],
    /// The end of each help text: what the exit statuses mean.
    pub statuses: &'static str,
    /// The commands, in tables that are read one after the other.
    pub commands: &'static [&'static [Command<T>]],
}

/// One command of a program.
#[derive(Clone, Copy, Debug)]
pub struct Command<T: 'static> {
    /// One word; or two, of which the first is a group.
    pub name: &'static str,
    pub help: Help,
    /// What the program does for it.
    pub run: T,
}

/// The address of the public API.
pub const LISTEN: Flag =
    Flag::value("--listen", "ADDR", "address of the public API [127.0.0.1:8080]");

/// The address of the dashboard.
pub const DASHBOARD: Flag = Flag::value(
    "--dashboard",
    "ADDR",
    "address of the dashboard; outside loopback it requires an\noperator's token [127.0.0.1:8081]",
);

/// The address that only monitoring asks.
pub const METRICS: Flag = Flag::value(
    "--metrics",
    "ADDR",
    "extra address for /metrics, /healthz and /readyz only; need\nnot be loopback",
);

/// More authorities for the certificates of endpoints.
pub const TRUST_CA: Flag =
    Flag::value("--trust-ca", "FILE.pem", "extra CA certificates, besides the public ones");

/// Whether endpoints may be on this machine.
pub const LOOPBACK: Flag =
    Flag::switch("--allow-loopback-endpoints", "allow webhooks to this machine, also without TLS");

/// Where a flag is read from that the command line has not.
const ENVIRONMENT: &str =
    "A flag may be given by the environment: --log-level by CALL_ASSISTANT_LOG_LEVEL.";

/// A parsed command line.
#[derive(Clone, Debug)]
pub struct Flags {
    matches: ArgMatches,
}

impl Flag {
    /// Creates a flag without a value.
    pub const fn switch(name: &'static str, about: &'static str) -> Self {
        Self { name, value: None, about, field: "", kind: Kind::Text, is_required: false }
    }

    /// Creates a flag with a value: `--name VALUE` or `--name=VALUE`.
    pub const fn value(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self { value: Some(value), ..Self::switch(name, about) }
    }

    /// Limits the value to one of these words.
    pub const fn one_of(self, words: Words) -> Self {
        Self { kind: Kind::OneOf(words), ..self }
    }

    /// Limits the value to one or several of these words, with commas in between.
    pub const fn some_of(self, words: Words) -> Self {
        Self { kind: Kind::SomeOf(words), ..self }
    }

    /// Makes the value all of the words where it is not given.
    pub const fn or_all(self) -> Self {
        match self.kind {
            Kind::SomeOf(words) => Self { kind: Kind::AllOf(words), ..self },
            _ => self,
        }
    }

    /// Names the field of a body that it gives.
    pub const fn of(self, field: &'static str) -> Self {
        Self { field, ..self }
    }

    /// Limits the value to `true` and `false`.
    pub const fn bool(self) -> Self {
        Self { kind: Kind::Bool, ..self }
    }

    /// Makes the value a number in JSON. Its reader knows the bounds.
    pub const fn number(self) -> Self {
        Self { kind: Kind::Number, ..self }
    }

    /// Refuses a command line without it.
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Returns its name, with `--`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of its field in a body: `instead_of` for `--instead-of`.
    pub fn field(&self) -> String {
        match self.field {
            "" => self.name.trim_start_matches('-').replace('-', "_"),
            field => field.to_owned(),
        }
    }

    /// Returns its value as JSON; `None` if it was not given.
    pub fn json(&self, flags: &Flags) -> Option<Value> {
        let text = flags.text(self.name)?;
        Some(match self.kind {
            Kind::Bool => (text == "true").into(),
            Kind::Number => text.parse::<u64>().map_or(text.into(), Value::from),
            Kind::SomeOf(_) | Kind::AllOf(_) => flags.words(self.name).into(),
            Kind::Text | Kind::OneOf(_) => text.into(),
        })
    }

    fn argument(&self) -> Arg {
        let variable = self.name.replace("--", "CALL_ASSISTANT_").replace('-', "_").to_uppercase();
        let argument = Arg::new(self.name)
            .long(self.name.trim_start_matches('-'))
            .help(self.about)
            .required(self.is_required)
            .env(variable)
            .hide_env(true);
        let of = |argument: Arg, words| argument.value_parser(PossibleValuesParser::new(words));
        let argument = match self.kind {
            Kind::Text | Kind::Number => argument,
            Kind::Bool => of(argument, vec!["true", "false"]),
            Kind::OneOf(words) => of(argument, words()),
            Kind::SomeOf(words) => of(argument, words()).value_delimiter(','),
            Kind::AllOf(words) => of(argument, words())
                .value_delimiter(',')
                .default_values(words())
                .hide_default_value(true),
        };
        match self.value {
            // A negative number is refused by who reads it, and knows the bounds.
            Some(value) => argument.value_name(value).allow_negative_numbers(true),
            None => argument.action(ArgAction::SetTrue).value_parser(BoolishValueParser::new()),
        }
    }
}

impl Help {
    /// Reads the process's command line. Prints help to standard output; prints an error to standard
    /// error and exits with status 2.
    pub fn parse_or_exit(&self) -> Flags {
        let program = self.usage.split(' ').next().unwrap_or_default();
        Flags { matches: parse_or_exit(self.command(program).after_help(ENVIRONMENT)) }
    }

    /// Prints what is wrong with the command line, and exits with status 2.
    pub fn exit(&self, message: &str) -> ! {
        let usage =
            if self.usage.is_empty() { String::new() } else { format!("Usage: {}\n", self.usage) };
        exit(message, &usage)
    }

    /// Reads an address, or returns this port of this machine alone. Exits with a message if it is not one.
    pub fn address(&self, flags: &Flags, name: &str, port: u16) -> SocketAddr {
        let default = SocketAddr::from(([127, 0, 0, 1], port));
        let expected = format_args!("an address, such as {default}");
        flags.read(name, default, expected).unwrap_or_else(|error| self.exit(&error))
    }

    /// Reads [`METRICS`]. Exits with a message if it is not an address.
    pub fn metrics(&self, flags: &Flags) -> Option<SocketAddr> {
        flags.has("--metrics").then(|| self.address(flags, "--metrics", 9090))
    }

    /// Returns whether this flag is one of them.
    pub fn takes(&self, flag: &str) -> bool {
        self.flags.iter().copied().flatten().any(|known| known.name == flag)
    }

    fn command(&self, name: &'static str) -> clap::Command {
        let positional = self.positional.iter().map(|name| {
            let is_optional = name.starts_with('[');
            Arg::new(name.trim_matches(['[', ']']))
                .required(!is_optional)
                .hide(!self.usage.is_empty())
        });
        let command = clap::Command::new(name)
            .about(first_sentence(self.about))
            .before_help(self.about)
            .help_template("{before-help}{usage-heading} {usage}\n\n{options}{after-help}\n")
            .args(self.flags.iter().copied().flatten().map(Flag::argument))
            .args(positional);
        if self.usage.is_empty() { command } else { command.override_usage(self.usage) }
    }
}

impl<T> Commands<T> {
    /// Reads the process's command line as [`Help::parse_or_exit`] does, and returns the command with
    /// its flags.
    pub fn parse_or_exit(&self) -> (&'static Command<T>, Flags) {
        let named = |command: clap::Command, example| {
            let help = format!("{}{}", told(self.program, example), self.statuses);
            command.display_name(self.program).after_help(help)
        };
        let group = |name| named(clap::Command::new(name).subcommand_required(true), "");
        let mut program = group(self.program).about(self.about);
        for (name, about) in self.groups {
            program = program.subcommand(group(name).about(about));
        }
        for command in self.commands.iter().copied().flatten() {
            program = match command.name.split_once(' ') {
                Some((group, name)) => program.mut_subcommand(group, |group| {
                    group.subcommand(named(command.help.command(name), command.help.example))
                }),
                None => {
                    let Help { example, .. } = command.help;
                    program.subcommand(named(command.help.command(command.name), example))
                }
            };
        }
        let mut matches = parse_or_exit(program.disable_help_subcommand(true));
        let mut words = Vec::new();
        while let Some((word, inner)) = matches.remove_subcommand() {
            words.push(word);
            matches = inner;
        }
        let name = words.join(" ");
        let command = self.commands.iter().copied().flatten().find(|command| command.name == name);
        #[expect(clippy::expect_used, reason = "what was parsed is made of these commands")]
        (command.expect("a command of the table"), Flags { matches })
    }
}

impl Flags {
    /// Returns whether a flag was given.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.matches.try_get_one::<bool>(name), Ok(Some(true)))
            || self.text(name).is_some()
    }

    /// Returns the text of a flag's value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.matches.try_get_one::<String>(name).ok().flatten().map(String::as_str)
    }

    /// Returns the words of a flag's value; none if the flag was not given.
    pub fn words(&self, name: &str) -> Vec<&str> {
        let given = self.matches.try_get_many::<String>(name).ok().flatten();
        given.into_iter().flatten().map(String::as_str).collect()
    }

    /// Reads the value of a flag, or returns `default` if the flag was not given.
    ///
    /// # Errors
    /// A message that names the flag and what was expected of it.
    pub fn read<T: FromStr>(
        &self,
        name: &str,
        default: T,
        expected: impl Display,
    ) -> Result<T, String> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| format!("{name}: expected {expected}")),
        }
    }
}

/// Prints a line on standard output. A closed pipe, as with `head`, is ignored.
pub fn say(line: &str) {
    let _ = terminal::print(line);
}

/// Prints a last message on standard error. A closed pipe is ignored.
pub fn last_words(text: &str) {
    terminal::print_error(text);
}

fn parse_or_exit(command: clap::Command) -> ArgMatches {
    let command = command.version(env!("CARGO_PKG_VERSION")).propagate_version(true).term_width(0);
    let name = OsString::from(command.get_name());
    let arguments = std::iter::once(name).chain(std::env::args_os().skip(1));
    let error = match command.try_get_matches_from(arguments) {
        Ok(matches) => return matches,
        Err(error) => error,
    };
    if !error.use_stderr() {
        // The reader may have closed the pipe.
        let _ = error.print();
        std::process::exit(0);
    }
    let usage =
        error.get(ContextKind::Usage).map(|usage| format!("{}\n", usage.to_string().trim()));
    exit(&message(&error), &usage.unwrap_or_default())
}

fn exit(message: &str, usage: &str) -> ! {
    last_words(&format!("{message}\n{usage}Try --help."));
    std::process::exit(2);
}

/// Returns what is wrong, without any argument that is not the name of a flag or like one: it may be a
/// secret that was meant for a flag.
fn message(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => one.clone(),
        Some(ContextValue::Strings(many)) => many.join(", "),
        _ => String::new(),
    };
    let argument = context(ContextKind::InvalidArg);
    let flag = argument.split(' ').next().unwrap_or_default();
    let near = |kind| match context(kind) {
        near if near.is_empty() => near,
        near => format!("; did you mean {near}?"),
    };
    let shown = |name: &str| if name.len() <= 40 { format!(" {name}") } else { String::new() };
    match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with('-') => {
            format!("unknown flag{}{}", shown(flag), near(ContextKind::SuggestedArg))
        }
        ErrorKind::InvalidSubcommand => {
            let name = context(ContextKind::InvalidSubcommand);
            format!("unknown command{}{}", shown(&name), near(ContextKind::SuggestedSubcommand))
        }
        ErrorKind::MissingSubcommand => {
            format!("expected one of {}", context(ContextKind::ValidSubcommand))
        }
        ErrorKind::InvalidValue => match context(ContextKind::ValidValue) {
            words if words.is_empty() => format!("{argument}: expected a value"),
            words => format!("{flag}: expected one of {words}"),
        },
        ErrorKind::MissingRequiredArgument => {
            let first = argument.split([',', ' ']).next().unwrap_or_default();
            format!("missing {}", first.trim_matches(['<', '>']))
        }
        // The cause does not quote the value.
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            format!("{flag}: {}", cause.unwrap_or_else(|| "not valid".to_owned()))
        }
        ErrorKind::ArgumentConflict => format!("{flag} is repeated"),
        ErrorKind::TooManyValues if flag.starts_with('-') => format!("{flag} takes no value"),
        ErrorKind::UnknownArgument | ErrorKind::TooManyValues => "too many arguments".to_owned(),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the end of a help text: an example, and where a flag is read from besides.
fn told(program: &str, example: &str) -> String {
    let example = match example {
        "" => String::new(),
        example => format!("Example:\n  {program} {example}\n\n"),
    };
    format!("{example}{ENVIRONMENT}\n\n")
}

fn first_sentence(text: &str) -> String {
    let line = text.replace('\n', " ");
    line.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned()
}
