//! How the program ends: its exit statuses, the same of each command.

use std::error::Error;
use std::fmt::Display;
use std::io;

use host::store::Refused;
use host::terminal;

/// The statuses, for each help text.
pub(crate) const STATUSES: &str = "\
Exit status:
  0  done
  1  failed or refused, or a check found a problem: see the message
  2  the command line, a value or a file is wrong: nothing was done
  3  not done, or not all of it: run it again";

/// The status of what failed, was refused, or found something wrong: 1.
pub(crate) const FAILED: i32 = 1;
/// The status of a wrong command line: 2.
pub(crate) const USAGE: i32 = 2;
/// The status of what is to be run again: 3.
pub(crate) const AGAIN: i32 = 3;

/// The reason for a status other than 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// A value or a file that the command line names is wrong.
    #[error("{0}")]
    Usage(String),
    /// The same may succeed later.
    #[error("{0}")]
    Again(String),
}

/// Returns the error of what a store refuses.
pub(crate) fn refused(refused: Refused) -> Box<dyn Error> {
    match refused {
        Refused::NotFound(what) => format!("{what} not found").into(),
        Refused::Conflict(why) | Refused::Unfit(why) => why.into(),
        Refused::Plan(error) => error.to_string().into(),
        Refused::Bad(bad) => Ended::Usage(bad.to_string()).into(),
        Refused::Unavailable(why) => Ended::Again(why).into(),
        Refused::Broken(_, why) => why.into(),
    }
}

/// Prints a line on standard output. A reader that has gone, as `head` does, changes nothing of how the command ends.
///
/// # Errors
/// What is printed is lost, as on a full disk.
pub(crate) fn print(line: impl Display) -> Result<(), String> {
    is_read(terminal::print(line)).map(|_| ())
}

/// Tells whether somebody still reads what is printed.
///
/// # Errors
/// What is printed is lost.
pub(crate) fn is_read(printed: io::Result<()>) -> Result<bool, String> {
    match printed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("standard output: {error}")),
    }
}
