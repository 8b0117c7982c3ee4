//! The calls and the state, in two files that agree after any crash.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use call_assistant::rest::client::{Batch, CallSync};
use serde::{Deserialize, Serialize};

use tools::files;

/// Both files, open.
pub(crate) struct Store {
    path: PathBuf,
    state: State,
    out: File,
    /// Which stands for the state: that is another file each time.
    _lock: File,
}

/// What is kept between runs.
#[derive(Clone, Serialize, Deserialize)]
struct State {
    /// 1. A change that an older program would misread raises it.
    format: u32,
    /// How much of the other file counts, in bytes. What is behind was never finished.
    out_len: u64,
    /// How many calls that is.
    calls: u64,
    sync: CallSync,
}

impl Store {
    /// Opens both files, or begins them, and cuts off calls whose state was not saved.
    ///
    /// # Errors
    /// A file cannot be read or written, another process has them, or they are not of one sync.
    pub(crate) fn open(path: &Path, out_path: &Path, begin: CallSync) -> Result<Self, String> {
        let out = files::open_to_append(out_path);
        let out = out.map_err(|error| at(out_path)(error.to_string()))?;
        files::hold(&out).map_err(at(out_path))?;
        // Before the state is read: another process would be about to replace it.
        let lock = files::open_to_append(&beside(path, ".lock"));
        let lock = lock.map_err(|error| at(path)(error.to_string()))?;
        files::hold(&lock).map_err(at(path))?;
        let stored: Option<State> = match fs::read(path) {
            Ok(bytes) => Some(read(&bytes).map_err(at(path))?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(at(path)(error.to_string())),
        };
        let len = out.metadata().map_err(|error| at(out_path)(error.to_string()))?.len();
        let fresh = stored.is_none();
        let state = stored.unwrap_or(State { format: 1, out_len: 0, calls: 0, sync: begin });
        if fresh && len > 0 {
            return Err(at(out_path)(
                "the file has calls, but the state file does not exist".to_owned(),
            ));
        }
        if len < state.out_len {
            return Err(at(out_path)("the file is shorter than the state says".to_owned()));
        }
        let mut store = Self { path: path.to_owned(), state, out, _lock: lock };
        if len > store.state.out_len {
            let cut = store.out.set_len(store.state.out_len).and_then(|()| store.out.sync_all());
            cut.map_err(|error| at(out_path)(error.to_string()))?;
        }
        if fresh {
            // Before the first call is written: a file of calls without a state is nobody's.
            store.replace_state(store.state.clone())?;
        }
        Ok(store)
    }

    pub(crate) fn sync(&self) -> &CallSync {
        &self.state.sync
    }

    pub(crate) fn calls(&self) -> u64 {
        self.state.calls
    }

    /// Saves what a page brought: the calls, then the state that counts them.
    ///
    /// # Errors
    /// A file cannot be written. Nothing may be saved after that: opening anew puts it right.
    pub(crate) fn save(&mut self, step: &Batch<CallSync>) -> Result<(), String> {
        let mut lines = Vec::new();
        for call in &step.calls {
            lines.extend(call.to_json());
            lines.push(b'\n');
        }
        for item in &step.unreadable {
            // Line ends are between its parts only, and none may be between its bytes here.
            lines.extend(item.json().get().replace(['\n', '\r'], " ").bytes());
            lines.push(b'\n');
        }
        if !lines.is_empty() {
            let written = self.out.write_all(&lines).and_then(|()| self.out.sync_data());
            written.map_err(|error| format!("the calls cannot be written: {error}"))?;
        }
        let calls = step.calls.len().saturating_add(step.unreadable.len());
        let [bytes, calls] = [lines.len(), calls].map(|len| u64::try_from(len).unwrap_or(u64::MAX));
        self.replace_state(State {
            out_len: self.state.out_len.saturating_add(bytes),
            calls: self.state.calls.saturating_add(calls),
            sync: step.next.clone(),
            ..self.state
        })
    }

    /// Puts a new state in the place of the old one: afterwards there is one or the other.
    fn replace_state(&mut self, state: State) -> Result<(), String> {
        let new = beside(&self.path, ".new");
        let write = || {
            let bytes = serde_json::to_vec_pretty(&state)?;
            let mut file = File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &self.path)?;
            files::sync_folder_of(&self.path)
        };
        write().map_err(|error: io::Error| at(&self.path)(error.to_string()))?;
        self.state = state;
        Ok(())
    }
}

/// Returns the files that belong to a state: itself, the new one before it replaces the old one, and the lock.
pub(crate) fn files_of(path: &Path) -> [PathBuf; 3] {
    ["", ".new", ".lock"].map(|end| beside(path, end))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn read(bytes: &[u8]) -> Result<State, String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = serde_json::from_slice(bytes)
        .map_err(|error| format!("not the state of a sync: {error}"))?;
    if format != 1 {
        return Err(format!("state of format {format}; expected 1"));
    }
    serde_json::from_slice(bytes).map_err(|error| format!("damaged state: {error}"))
}

fn at(path: &Path) -> impl Fn(String) -> String {
    move |error| format!("{}: {error}", path.display())
}
