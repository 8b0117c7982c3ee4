//! Files that one process at a time may write.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;

/// Keeps a file from every other process that asks, until it is closed: at the latest when this
/// process ends, however it ends. What is no file, as `/dev/null`, is everybody's.
///
/// # Errors
/// Another one has it, or it cannot be locked.
pub fn hold(file: &File) -> Result<(), String> {
    if file.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(());
    }
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err("another process is using it".to_owned()),
        // Some file systems of networks have no locks.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(error.to_string()),
    }
}
