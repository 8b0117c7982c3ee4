//! Files with one writing process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Keeps a file from every other process that asks, until it is closed: at the latest when this
/// process ends, however it ends. What is no file, as `/dev/null`, is everybody's.
///
/// # Errors
/// Another process has it, or it cannot be locked.
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

/// Opens a file to read and to append to. If it is new, only its owner may read it, and its name is put
/// onto the disk, too.
///
/// # Errors
/// It cannot be opened, or its folder cannot be.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    let file = options.read(true).append(true).create(true).open(path)?;
    sync_folder_of(path)?;
    Ok(file)
}

/// Puts a new name in a folder onto the disk.
///
/// # Errors
/// The folder cannot be opened or synced.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
