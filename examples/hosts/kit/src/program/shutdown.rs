//! Shutdown: Ctrl-C or SIGTERM, visible to every task.

use std::io;
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A signal for everything that must stop. Clones share it.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Stage>);

/// The other end of a [`Shutdown`]: [`Trigger::pull`] requests shutdown, as Ctrl-C does.
#[derive(Clone, Debug)]
pub struct Trigger(watch::Sender<Stage>);

/// The stages of a program on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// It tells that it is not ready, and serves as before.
    Draining,
    Requested,
}

/// Creates a shutdown and its trigger.
pub fn manual() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(Stage::Running);
    (Trigger(sender), Shutdown(receiver))
}

/// Creates a shutdown for Ctrl-C, and on Unix for SIGTERM, from now on. It is requested `drain` after the
/// signal, and is near from the signal on. A second signal ends the process at once.
///
/// # Errors
/// The signal handlers cannot be installed.
pub fn on_ctrl_c(drain: Duration) -> io::Result<(Trigger, Shutdown)> {
    let (trigger, shutdown) = manual();
    let on_signal = trigger.clone();
    // Here and not in the task, which may begin when the first signal has come and gone.
    #[cfg(unix)]
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    #[cfg(windows)]
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    tokio::spawn(async move {
        loop {
            #[cfg(unix)]
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            #[cfg(windows)]
            interrupt.recv().await;
            if on_signal.0.send_replace(Stage::Draining) != Stage::Running {
                std::process::exit(130);
            }
            let trigger = on_signal.clone();
            tokio::spawn(async move {
                tokio::time::sleep(drain).await;
                trigger.pull();
            });
        }
    });
    Ok((trigger, shutdown))
}

impl Trigger {
    /// Requests shutdown. Returns whether it had been requested before.
    pub fn pull(&self) -> bool {
        self.0.send_replace(Stage::Requested) == Stage::Requested
    }
}

impl Shutdown {
    /// Waits for shutdown; returns at once if it was requested.
    pub async fn requested(&self) {
        // An error means that the trigger was dropped, so shutdown is the only thing left.
        let _ = self.0.clone().wait_for(|stage| *stage == Stage::Requested).await;
    }

    /// Waits until shutdown is near; returns at once if it is.
    pub async fn near(&self) {
        let _ = self.0.clone().wait_for(|stage| *stage != Stage::Running).await;
    }

    /// Returns whether shutdown was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() == Stage::Requested
    }

    /// Returns whether shutdown was requested, or will be once the program has drained.
    pub fn is_near(&self) -> bool {
        *self.0.borrow() != Stage::Running
    }
}
