//! A temporary PostgreSQL server from the installed binaries, for `demo` and for tests.
//!
//! It listens on a socket in its folder and on no port, so any number of them run beside each other.
//! It ends with the process that started it, however that ends.
#![allow(clippy::disallowed_methods, reason = "how long a program takes to start")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether a COMMIT waits for the disk.
    pub fsync: bool,
    /// The most connections.
    pub connections: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self { fsync: false, connections: 100 }
    }
}

/// A running server. Dropping it ends it and removes its folder.
#[derive(Debug)]
pub struct PrivateServer {
    folder: PathBuf,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    settings: Settings,
    environment: Vec<(OsString, OsString)>,
    /// A shell that ends the server when its standard input ends.
    keeper: Option<Child>,
}

/// The reason why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// PostgreSQL is not installed.
    #[error("PostgreSQL is not installed: on Debian and Ubuntu, `apt-get install postgresql`")]
    NotInstalled,
    /// PostgreSQL does not run as root, and there is no user to run it as.
    #[error("PostgreSQL does not run as root, and neither `postgres` nor `nobody` is a user here")]
    Root,
    /// Something of the system failed.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
    /// A program failed.
    #[error("{0} failed: {1}")]
    Program(&'static str, String),
}

impl PrivateServer {
    /// Makes a folder with an empty database and starts a server on it.
    ///
    /// # Errors
    /// [`StartError`] says what to install, or what failed.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let programs = programs().ok_or(StartError::NotInstalled)?;
        let user = user()?;
        let folder = temporary_folder(user)?;
        let mut server =
            Self { folder, programs, user, settings, environment: Vec::new(), keeper: None };
        server.initialise()?;
        server.launch()?;
        Ok(server)
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        let folder = self.folder.to_string_lossy().replace('/', "%2F");
        format!("postgresql://postgres@{folder}/postgres")
    }

    /// Returns where its files are, for whoever wants to put more beside them.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets a variable of the server's environment, from the next [`launch`](Self::launch) on.
    pub fn set_env(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// Returns the number of the server's first process.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.said()?.lines().next()?.parse().ok()?)
    }

    /// Sends a signal to the server's first process.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = self.pid().ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(pid, signal)?)
    }

    /// Sends a signal to all of the server's processes, and returns them.
    pub fn signal_all(&self, signal: Signal) -> Vec<Pid> {
        self.pid().map(|server| signal_all(server, signal)).unwrap_or_default()
    }

    /// Stops it as an operator does, and waits: connections are closed, nothing is lost.
    pub fn stop(&mut self) {
        let _ = self.signal(Signal::INT);
        self.wait();
    }

    /// Kills it as a crash does, and waits.
    pub fn kill(&mut self) {
        let _ = self.signal(Signal::KILL);
        self.wait();
    }

    /// Starts it again after [`stop`](Self::stop) or [`kill`](Self::kill).
    ///
    /// # Errors
    /// It does not start.
    pub fn launch(&mut self) -> Result<(), StartError> {
        // After a kill, processes of the previous server may still be ending.
        let began = Instant::now();
        loop {
            match self.try_launch() {
                Err(_) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(100))
                }
                launched => return launched,
            }
        }
    }

    /// Copies the files of a new server: `initdb` takes longer than a copy, and runs once in a process.
    fn initialise(&self) -> Result<(), StartError> {
        static TEMPLATE: Mutex<Option<Template>> = Mutex::new(None);
        let mut made = TEMPLATE.lock().unwrap_or_else(PoisonError::into_inner);
        let template = match &mut *made {
            Some(template) => template.folder.clone(),
            none => none.insert(Template::make(&self.programs, self.user)?).folder.clone(),
        };
        drop(made);
        let data = self.folder.join("data");
        run("cp", self.command("cp").arg("-a").arg(template.join("data")).arg(&data))?;
        let fsync = if self.settings.fsync { "on" } else { "off" };
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nmax_connections = {}\n\
             fsync = {fsync}\nshared_buffers = '256MB'\nmax_wal_size = '4GB'\n\
             log_min_messages = fatal\nlog_min_error_statement = panic\n\
             shared_memory_type = mmap\nautovacuum_naptime = 5\n",
            self.folder.display(),
            self.settings.connections,
        );
        let file = data.join("postgresql.auto.conf");
        fs::write(&file, settings).map_err(|error| StartError::Io("the server's settings", error))
    }

    fn try_launch(&mut self) -> Result<(), StartError> {
        self.wait();
        // What a server that was killed has left says that it is ready.
        let left = self.said();
        // The shell ends with the server, and ends it when its input ends: when we do, however that
        // happens. Then nobody else removes the folder.
        let keep = "exec 3<&0; \"$@\" & server=$!; \
            (cat >/dev/null; : >left; kill -QUIT $server) <&3 2>/dev/null & \
            wait $server; kill $! 2>/dev/null; [ ! -e left ] || rm -rf \"$PWD\"";
        let log = fs::File::create(self.folder.join("log"))
            .map_err(|error| StartError::Io("the server's log", error))?;
        let keeper = self
            .command("sh")
            .arg("-c")
            .arg(keep)
            .arg("sh")
            .arg(self.programs.join("postgres"))
            .arg("-D")
            .arg(self.folder.join("data"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| StartError::Io("the server", error))?;
        self.keeper = Some(keeper);
        let began = Instant::now();
        while self.said() == left || !self.is_ready() {
            let ended =
                self.keeper.as_mut().is_none_or(|keeper| !matches!(keeper.try_wait(), Ok(None)));
            if ended || PATIENCE < began.elapsed() {
                let said = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                self.keeper = None;
                return Err(StartError::Program("postgres", said));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Reads how far the server is: the last line of its own file says it.
    fn is_ready(&self) -> bool {
        let said = self.said();
        said.is_some_and(|text| text.lines().last().is_some_and(|line| line.trim() == "ready"))
    }

    fn said(&self) -> Option<String> {
        fs::read_to_string(self.folder.join("data/postmaster.pid")).ok()
    }

    fn wait(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            // Waiting closes its input, unless that is kept: it says that we are gone.
            let input = keeper.stdin.take();
            let _ = keeper.wait();
            drop(input);
        }
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        command_in(&self.folder, self.user, program)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let _ = self.signal(Signal::QUIT);
        self.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The files of a new server. They go with this process, however that ends.
struct Template {
    folder: PathBuf,
    /// A shell that removes the folder when its standard input ends.
    _keeper: Child,
}

impl Template {
    fn make(programs: &Path, user: Option<(u32, u32)>) -> Result<Self, StartError> {
        let folder = temporary_folder(user)?;
        let keeper = command_in(&folder, user, "sh")
            .args(["-c", "cat >/dev/null; rm -rf \"$PWD\""])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| StartError::Io("the folder's keeper", error))?;
        let mut initdb = command_in(&folder, user, programs.join("initdb"));
        initdb.args(["--username=postgres", "--auth=trust", "--no-locale", "--encoding=UTF8"]);
        run("initdb", initdb.args(["--no-sync", "--pgdata"]).arg(folder.join("data")))?;
        Ok(Self { folder, _keeper: keeper })
    }
}

/// Runs a program to its end.
fn run(name: &'static str, command: &mut Command) -> Result<(), StartError> {
    let output = command.output().map_err(|error| StartError::Io(name, error))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(StartError::Program(name, said))
        }
    }
}

/// Sends a signal to a server's first process, and then to its children: one that was stopped starts no
/// other meanwhile.
pub fn signal_all(server: Pid, signal: Signal) -> Vec<Pid> {
    let number = server.as_raw_nonzero();
    let children =
        || fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    let before = children();
    let _ = kill_process(server, signal);
    // A server that is killed has none any more.
    let children = Some(children()).filter(|now| !now.is_empty()).unwrap_or(before);
    let children = children.split_whitespace().flat_map(str::parse).filter_map(Pid::from_raw);
    let mut sent = vec![server];
    for pid in children {
        let _ = kill_process(pid, signal);
        sent.push(pid);
    }
    sent
}

fn random() -> Result<u64, StartError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| StartError::Io("a random name", error.into()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Creates a folder that this user owns.
pub fn temporary_folder(user: Option<(u32, u32)>) -> Result<PathBuf, StartError> {
    let folder = std::env::temp_dir().join(format!("call-assistant-{:016x}", random()?));
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder.create(&folder).map_err(|error| StartError::Io("a temporary folder", error))?;
    if let Some((user, group)) = user {
        chown(&folder, Some(user), Some(group))
            .map_err(|error| StartError::Io("the temporary folder's owner", error))?;
    }
    Ok(folder)
}

/// Prepares a program of this user, in a folder.
pub fn command_in(folder: &Path, user: Option<(u32, u32)>, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin");
    // In a group of its own: Ctrl-C in a terminal is ours to pass on.
    command.process_group(0);
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command
}

/// Returns the folder of PostgreSQL's programs: the one that `POSTGRESQL_BIN` names, or that of the newest
/// installed server.
pub fn programs() -> Option<PathBuf> {
    let is_whole =
        |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    if let Some(folder) = std::env::var_os("POSTGRESQL_BIN") {
        return Some(PathBuf::from(folder)).filter(is_whole);
    }
    let debian = fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = debian
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let others = ["/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql/bin"].map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let newest = versions.into_iter().rev().map(|(_, folder)| folder);
    newest.chain(path).chain(others).find(is_whole)
}

/// Finds the user and the group to run the server as, if this process is root.
pub fn user() -> Result<Option<(u32, u32)>, StartError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    find("postgres").or_else(|| find("nobody")).map(Some).ok_or(StartError::Root)
}
