//! A link that can be cut: the bytes stay where they are, and no side hears of it.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// The part of a PostgreSQL client's first message before its name.
const NAME: &[u8] = b"application_name\0";

/// A proxy on a port of its own.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    cut: Mutex<Cut>,
    mended: Condvar,
}

/// Whose bytes are not passed on.
#[derive(Debug, Default)]
struct Cut {
    all: bool,
    names: BTreeSet<String>,
}

impl Proxy {
    /// Listens on one port, for a server on another one.
    pub(crate) fn start(port: u16, server: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || connect(&client, server, &state));
            }
        });
        Ok(Self { port, state })
    }

    /// Cuts the link for everybody, or mends it: then the kept bytes are passed on.
    pub(crate) fn cut(&self, cut: bool) {
        self.state.lock().all = cut;
        self.state.mended.notify_all();
    }

    /// Cuts the link for the clients of this name, or mends it.
    pub(crate) fn cut_for(&self, name: &str, cut: bool) {
        let mut state = self.state.lock();
        match cut {
            true => _ = state.names.insert(name.to_owned()),
            false => _ = state.names.remove(name),
        }
        drop(state);
        self.state.mended.notify_all();
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Cut> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the link is cut for the client of this name.
    fn wait(&self, name: &OnceLock<String>) {
        let is_cut =
            |cut: &mut Cut| cut.all || name.get().is_some_and(|name| cut.names.contains(name));
        drop(self.mended.wait_while(self.lock(), is_cut));
    }
}

fn connect(client: &TcpStream, server: u16, state: &Arc<State>) {
    let name = Arc::<OnceLock<String>>::default();
    // The client is connected, as to a machine that is stopped.
    state.wait(&name);
    let Ok(server) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], server))) else {
        return;
    };
    for (from, to) in [(client, &server), (&server, client)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { return };
        let (state, name) = (Arc::clone(state), Arc::clone(&name));
        thread::spawn(move || {
            let _ = pass(&from, &to, &state, &name);
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
}

fn pass(
    mut from: &TcpStream,
    mut to: &TcpStream,
    state: &State,
    name: &OnceLock<String>,
) -> io::Result<()> {
    let _ = to.set_nodelay(true);
    let mut bytes = [0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes)?;
        let read = bytes.get(..read).unwrap_or_default();
        if let Some(given) = name_in(read) {
            let _ = name.set(given);
        }
        // The end of a connection is not passed on, either.
        state.wait(name);
        if read.is_empty() {
            return Ok(());
        }
        to.write_all(read)?;
    }
}

/// Finds the name of a client in its first message.
fn name_in(bytes: &[u8]) -> Option<String> {
    // Only the first message is so short, and names are given in no other one.
    let bytes = bytes.get(..bytes.len().min(512))?;
    let at = bytes.windows(NAME.len()).position(|window| window == NAME)?;
    let name = bytes.get(at.checked_add(NAME.len())?..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}
