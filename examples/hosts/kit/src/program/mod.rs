//! The start and the end of a program that listens.

use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;

use tokio::net::TcpListener;
use tracing_subscriber::filter::LevelFilter;

pub mod first_line;
pub mod process;
pub mod scale;
pub mod shutdown;
pub mod watch;

use crate::flags::last_words;
use crate::log::{self, Format};

/// Runs a program to its end, and prints why it failed. Its log is of texts unless that was set.
pub fn run<E: Display>(name: &str, program: impl Future<Output = Result<(), E>>) -> ExitCode {
    log::set(Format::Text, LevelFilter::INFO);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"));
    let ended = runtime.and_then(|runtime| {
        let ended = runtime.block_on(program).map_err(|error| error.to_string());
        // A name that is still looked up, an action that does not end, or an unread line holds nobody up.
        runtime.shutdown_background();
        ended
    });
    log::flush();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            last_words(&format!("{name}: {message}"));
            ExitCode::FAILURE
        }
    }
}

/// Listens on the address of a flag.
///
/// # Errors
/// The address is in use, or not allowed.
pub async fn listen(flag: &str, address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("{flag} {address}: {error}"))
}
