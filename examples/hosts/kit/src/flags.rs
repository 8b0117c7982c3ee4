//! Command lines: what all programs do with those that clap's derive declares.
//!
//! ```text
//! /// What it is, in a sentence.
//! #[derive(clap::Parser)]
//! #[command(name = "service", after_help = "--listen 127.0.0.1:0")]
//! struct Options {
//!     /// Where to listen.
//!     #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
//!     listen: SocketAddr,
//! }
//! let options: Options = flags::parse_or_exit();
//! ```
//!
//! The first sentence of a command's comment stands in the list of commands, and `after_help` is its example. Each flag
//! is read from the environment, too, where the command line has none: `--log-format` from `CALL_ASSISTANT_LOG_FORMAT`.

use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;

use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command, Parser};

use super::terminal;

/// The widest line of a command's description, and of a flag's: 110 and 60 characters.
const WIDTHS: (usize, usize) = (110, 60);

/// Reads the process's command line. Prints help to standard output; prints an error to standard error and exits with
/// status 2.
pub fn parse_or_exit<T: Parser>() -> T {
    read_or_exit(&matches_or_exit(T::command(), "", &[]))
}

/// Reads what was given of a command. Exits as [`parse_or_exit`] does.
pub fn read_or_exit<T: clap::FromArgMatches>(matches: &ArgMatches) -> T {
    T::from_arg_matches(matches).unwrap_or_else(|error| exit(&message(&error), ""))
}

/// Reads the process's command line, of a command whose help texts all end with these lines. For a word that is no
/// command, the table says which command is meant. Exits as [`parse_or_exit`] does.
pub fn matches_or_exit(command: Command, end: &str, words: &[(&str, &str)]) -> ArgMatches {
    let name = command.get_name().to_owned();
    let mut command = finished(command, &name, end)
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .disable_help_subcommand(true)
        .term_width(0);
    let arguments = std::iter::once(OsString::from(name)).chain(std::env::args_os().skip(1));
    let error = match command.try_get_matches_from_mut(arguments) {
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
    let meant = meant(&error, &command, words);
    exit(&(message(&error) + &meant), &usage.unwrap_or_default())
}

/// The commands that remove something. A word gets one of them as a suggestion only if both begin with the same three
/// letters.
const REMOVING: [&str; 4] = ["cancel", "delete", "erase", "revoke"];

/// Returns which commands an unknown word may mean: by the table; those of this name in groups; those that are similar.
fn meant(error: &clap::Error, program: &Command, words: &[(&str, &str)]) -> String {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return String::new();
    };
    let by_table = words.iter().filter(|(known, _)| known == word).map(|(_, it)| (*it).to_owned());
    let by_group = program.get_subcommands().flat_map(|group| {
        let own = group.get_subcommands().filter(|own| own.get_name() == word);
        own.map(|own| format!("{} {}", group.get_name(), own.get_name()))
    });
    let is_safe = |it: &String| !REMOVING.contains(&it.as_str()) || it.get(..3) == word.get(..3);
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(many)) => many.clone(),
        _ => Vec::new(),
    };
    let similar = similar.into_iter().filter(is_safe).collect();
    let found = [by_table.collect(), by_group.collect(), similar];
    let found = found.into_iter().find(|found: &Vec<String>| !found.is_empty());
    found.map(|found| format!("; did you mean {}?", found.join(", "))).unwrap_or_default()
}

/// Prints what is wrong with the command line, and exits with status 2.
pub fn wrong(message: impl Display) -> ! {
    exit(&message.to_string(), "")
}

/// Returns a reader of values that says what it expects, and never shows what it got.
pub fn expected<T: FromStr>(
    what: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| text.parse().map_err(|_| format!("expected {what}"))
}

/// Reads an address.
///
/// # Errors
/// It is none.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    expected("an address, such as 127.0.0.1:8080")(text)
}

/// Prints a line on standard output. A closed pipe, as with `head`, is ignored.
pub fn say(line: &str) {
    let _ = terminal::print(line);
}

/// Prints a last message on standard error. A closed pipe is ignored.
pub fn last_words(text: &str) {
    terminal::print_error(text);
}

fn exit(message: &str, usage: &str) -> ! {
    last_words(&format!("{message}\n{usage}Try --help."));
    std::process::exit(2);
}

/// Adds to a command, and to those below it, what is the same of all.
fn finished(command: Command, program: &str, end: &str) -> Command {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let sentence = about.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned();
    let example = command.get_after_help().map(|it| format!("Example:\n  {program} {it}\n\n"));
    let example = example.unwrap_or_default();
    let flags = command.get_arguments().filter_map(Arg::get_long);
    let environment = flags.map(|flag| {
        format!("A flag may be given by the environment: --{flag} by {}.\n\n", variable(flag))
    });
    let environment = environment.take(1).collect::<String>();
    command
        .display_name(program.to_owned())
        .about(sentence)
        .before_help(wrapped(&format!("{}.", about.trim_end_matches('.')), WIDTHS.0))
        .after_help(format!("{example}{environment}{end}"))
        .help_template("{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}\n")
        .arg_required_else_help(false)
        .mut_args(|argument| match argument.get_long() {
            Some(long) => finished_flag(long.to_owned(), argument),
            None => argument,
        })
        .mut_subcommands(|command| finished(command, program, end))
}

/// Returns the environment variable of a flag.
fn variable(flag: &str) -> String {
    format!("CALL_ASSISTANT_{}", flag.replace('-', "_").to_uppercase())
}

fn finished_flag(long: String, flag: Arg) -> Arg {
    let variable = variable(&long);
    let help = flag.get_help().map(|help| wrapped(&help.to_string(), WIDTHS.1));
    let flag = flag.env(variable).hide_env(true).help(help.unwrap_or_default());
    match flag.get_action().takes_values() {
        // A negative number is refused by who reads it, and knows the bounds.
        true => flag.allow_negative_numbers(true),
        false => flag.value_parser(BoolishValueParser::new()),
    }
}

fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len().saturating_add(word.len()) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Returns what is wrong, without any argument that is not the name of a flag or like one: it may be a
/// secret that was meant for a flag.
fn message(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => one.clone(),
        Some(ContextValue::Strings(many)) => many.join(", "),
        _ => String::new(),
    };
    let name = |argument: &str| {
        let first = argument.split([',', ' ']).next().unwrap_or_default();
        first.trim_matches(['<', '>', '[', ']']).to_owned()
    };
    let argument = context(ContextKind::InvalidArg);
    let flag = name(&argument);
    let shown = |name: &str| if name.len() <= 40 { format!(" {name}") } else { String::new() };
    match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with('-') => {
            let near = match context(ContextKind::SuggestedArg) {
                near if near.is_empty() => near,
                near => format!("; did you mean {near}?"),
            };
            format!("unknown flag{}{near}", shown(&flag))
        }
        ErrorKind::InvalidSubcommand => {
            format!("unknown command{}", shown(&context(ContextKind::InvalidSubcommand)))
        }
        ErrorKind::MissingSubcommand => {
            format!("expected one of {}", context(ContextKind::ValidSubcommand))
        }
        ErrorKind::InvalidValue => match context(ContextKind::ValidValue) {
            words if words.is_empty() => format!("{argument}: expected a value"),
            words => format!("{flag}: expected one of {words}"),
        },
        // A group of flags: `<--from <ID>|--to <ID>>`.
        ErrorKind::MissingRequiredArgument if argument.contains('|') => {
            let names: Vec<String> = argument.split('|').map(name).collect();
            format!("expected one of {}", names.join(", "))
        }
        ErrorKind::MissingRequiredArgument => format!("missing {flag}"),
        // The cause does not quote the value.
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            format!("{flag}: {}", cause.unwrap_or_else(|| "not valid".to_owned()))
        }
        ErrorKind::ArgumentConflict => match name(&context(ContextKind::PriorArg)) {
            prior if prior == flag => format!("{flag} is repeated"),
            prior => format!("{flag}: not allowed with {prior}"),
        },
        ErrorKind::TooManyValues if flag.starts_with('-') => format!("{flag} takes no value"),
        ErrorKind::UnknownArgument | ErrorKind::TooManyValues => "too many arguments".to_owned(),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8".to_owned(),
        other => other.to_string(),
    }
}
