//! The end: Ctrl-C or a request to terminate, heard by every task that asks.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Told to everything that has to stop. Clone it freely.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Keep it, and call [`Trigger::pull`] to stop what listens, as Ctrl-C does.
#[derive(Clone, Debug)]
pub struct Trigger(watch::Sender<bool>);

/// A shutdown that comes when its trigger is pulled.
pub fn manual() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Trigger(sender), Shutdown(receiver))
}

/// A shutdown that also comes on Ctrl-C, and on Unix on SIGTERM: from now on, however soon they
/// come. A second one of either ends the process without waiting for anything.
///
/// # Errors
/// The signal handlers cannot be installed.
pub fn on_ctrl_c() -> io::Result<(Trigger, Shutdown)> {
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
            if on_signal.pull() {
                std::process::exit(130);
            }
        }
    });
    Ok((trigger, shutdown))
}

impl Trigger {
    /// Tells everybody to stop. Whether they had been told before.
    pub fn pull(&self) -> bool {
        self.0.send_replace(true)
    }
}

impl Shutdown {
    /// Returns when it is time to stop, at once if that time has come.
    pub async fn requested(&self) {
        // An error means that the trigger is gone, so nobody can ask for anything else either.
        let _ = self.0.clone().wait_for(|stop| *stop).await;
    }

    /// Whether it is time to stop.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }
}
