//! Three PostgreSQL servers under Patroni, and etcd.
//!
//! One server leads. Each link goes through a proxy that can be cut.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use private_server::{StartError, command_in, programs, signal_all, temporary_folder, user};
use rustix::process::{Pid, Signal, kill_process};

use crate::proxy::Proxy;

/// How long the cluster may take to start: one minute.
const PATIENCE: Duration = Duration::from_secs(60);

/// The servers of a cluster: 3.
const NODES: usize = 3;

/// The disk of each server, where there is one of its own: 1024 MiB.
const DISK_MIB: usize = 1024;

/// How often somebody asks who leads: 200 ms.
const LOOK: Duration = Duration::from_millis(200);

/// The shell that ends all processes and removes the folder when its input ends, as the user who
/// mounted file systems in it. A server that is
/// stopped has to go on to end, and removes its file when it has.
const KEEP: &str = "cat >/dev/null
    for f in *.pid; do kill -KILL -$(cat $f); done
    for f in node*/data/postmaster.pid; do p=$(head -n 1 $f); kill -QUIT $p; kill -CONT $p; done
    for i in $(seq 100); do ls node*/data/postmaster.pid && sleep 0.1 || break; done
    for f in node?; do umount $f; done
    rm -rf \"$PWD\"";

/// A cluster. Dropping it ends all its processes and removes its folder.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    patroni: Patroni,
    mode: Mode,
    settings: String,
    has_disks: bool,
    etcd: Option<Child>,
    etcd_ports: [u16; 2],
    nodes: Vec<Node>,
    members: Arc<Vec<Member>>,
    keeper: Option<Child>,
}

/// Which standbys a COMMIT waits for: the setting `synchronous_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// None.
    Off,
    /// The one that Patroni names.
    On,
    /// Any of them.
    Quorum,
}

/// The programs of Patroni, and what this version is known for.
#[derive(Clone, Debug)]
pub(crate) struct Patroni {
    folder: PathBuf,
    version: [u32; 3],
}

impl Patroni {
    /// Finds it in the folder that `PATRONI_BIN` names, or in Debian's.
    fn find() -> Option<Self> {
        let folder = std::env::var_os("PATRONI_BIN").unwrap_or_else(|| "/usr/bin".into());
        let folder = PathBuf::from(folder);
        let said = Command::new(folder.join("patroni")).arg("--version").output().ok()?;
        let said = String::from_utf8(said.stdout).ok()?;
        let mut numbers = said.trim().strip_prefix("patroni ")?.split('.').map(str::parse);
        let version = [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
        Some(Self { folder, version })
    }

    /// The shortest `ttl` and `retry_timeout` that it takes: in seconds.
    fn shortest(&self) -> [u64; 2] {
        if self.version < [3, 2, 0] { [6, 2] } else { [20, 3] }
    }
}

/// Where a server's manager answers.
#[derive(Debug)]
struct Member {
    name: String,
    rest: u16,
}

#[derive(Debug)]
struct Node {
    name: String,
    port: u16,
    /// The link from the server to etcd.
    etcd: Proxy,
    /// The link from the other servers to it.
    replication: Proxy,
    /// The link from the other managers to its manager.
    rest: Proxy,
    /// The link from clients to it.
    clients: Proxy,
    patroni: Option<Child>,
}

/// Whom a server is cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// etcd alone.
    Etcd,
    /// The other servers alone: they lag, and nobody hears of it.
    Servers,
    /// Everybody: etcd, the other servers and clients.
    Everybody,
}

/// The processes of a server that is stopped.
#[derive(Debug)]
pub(crate) struct Paused(Vec<Pid>);

impl Paused {
    /// Lets them go on.
    pub(crate) fn resume(self) {
        for pid in self.0 {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

impl Cluster {
    /// Tells whether Patroni and etcd are installed.
    pub(crate) fn is_installed() -> bool {
        Path::new("/usr/bin/etcd").is_file() && Patroni::find().is_some()
    }

    /// Starts etcd and three servers with these more settings, and waits until one leads and, if the cluster
    /// is synchronous, another one has all that is acknowledged.
    pub(crate) fn start(mode: Mode, settings: &[String]) -> Result<Self, StartError> {
        let patroni = Patroni::find().ok_or(StartError::NotInstalled)?;
        let programs = programs().ok_or(StartError::NotInstalled)?;
        let user = user()?;
        let folder = temporary_folder(user)?;
        let mut cluster = Self {
            folder,
            programs,
            user,
            patroni,
            mode,
            settings: settings.iter().map(|each| format!("    {each}\n")).collect(),
            has_disks: false,
            etcd: None,
            etcd_ports: [free_port(), free_port()],
            nodes: Vec::new(),
            members: Arc::default(),
            keeper: None,
        };
        let mut keeper = command_in(&cluster.folder, None, "sh");
        keeper.args(["-c", KEEP]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        cluster.keeper = Some(keeper.spawn().map_err(|error| StartError::Io("sh", error))?);
        cluster.start_etcd()?;
        let mut members = Vec::new();
        for number in 1..=NODES {
            let name = format!("node{number}");
            let (port, rest) = (free_port(), free_port());
            let proxy = |to| {
                let proxy = Proxy::start(free_port(), to);
                proxy.map_err(|error| StartError::Io("a proxy", error))
            };
            let node = Node {
                name: name.clone(),
                port,
                etcd: proxy(cluster.etcd_ports[0])?,
                replication: proxy(port)?,
                rest: proxy(rest)?,
                clients: proxy(port)?,
                patroni: None,
            };
            cluster.configure(&node, rest)?;
            cluster.has_disks = cluster.mount(&name)?;
            members.push(Member { name, rest });
            cluster.nodes.push(node);
        }
        cluster.members = Arc::new(members);
        for number in 0..NODES {
            cluster.start_node(number)?;
        }
        match cluster.steady_within(PATIENCE) {
            Some(_) => Ok(cluster),
            None => Err(StartError::Program("patroni", cluster.log("node1"))),
        }
    }

    /// Returns the URL of all servers.
    pub(crate) fn url(&self) -> String {
        let place = |node: &Node| format!("127.0.0.1:{}", node.clients.port);
        let places: Vec<String> = self.nodes.iter().map(place).collect();
        format!("postgresql://postgres@{}/postgres", places.join(","))
    }

    /// Waits until a server leads and all the others follow it. Returns the numbers of the leader and of
    /// a standby that has all that is acknowledged; of any, if the cluster is not synchronous.
    pub(crate) fn steady_within(&self, limit: Duration) -> Option<[usize; 2]> {
        let began = Instant::now();
        let path = match self.mode {
            Mode::Off => "/replica",
            Mode::On => "/synchronous",
            Mode::Quorum => "/quorum",
        };
        while began.elapsed() < limit {
            let follows = |member: &&Member| asks(member.rest, "GET", "/replica", "");
            let standby = self.members.iter().position(|member| asks(member.rest, "GET", path, ""));
            let following = self.members.iter().filter(follows).count();
            if let (Some(leader), Some(standby)) = (leader(&self.members), standby)
                && following == NODES - 1
            {
                return Some([leader, standby]);
            }
            sleep(LOOK);
        }
        None
    }

    /// Returns how long the lock of a leader that is silent lasts.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_secs(self.patroni.shortest()[0])
    }

    /// Tells whether a leader that wakes up may take its lock back: what its successor has acknowledged is
    /// lost then.
    pub(crate) fn takes_back(&self) -> bool {
        self.patroni.version < [4, 0, 0]
    }

    /// Returns the folder of Patroni's programs.
    pub(crate) fn managers(&self) -> &Path {
        &self.patroni.folder
    }

    /// Returns the numbers of all servers.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.nodes.len()
    }

    /// Returns the name of a server.
    pub(crate) fn name(&self, number: usize) -> &str {
        &self.nodes[number].name
    }

    /// Returns the file with the settings of a server and of its manager.
    pub(crate) fn settings(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{}.yml", self.name(number)))
    }

    /// Returns what a server and its manager, or `etcd`, have written.
    pub(crate) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(format!("{name}.log"))).unwrap_or_default()
    }

    /// Says who leads, each time that it is another server, on a thread of its own, until the cluster
    /// is dropped.
    pub(crate) fn follow(&self, say: impl Fn(&str) + Send + 'static) {
        let members: Weak<Vec<Member>> = Arc::downgrade(&self.members);
        thread::spawn(move || {
            let mut last = None;
            while let Some(members) = members.upgrade() {
                if let Some(number) = leader(&members).filter(|number| last != Some(*number)) {
                    say(&format!("{} leads", members[number].name));
                    last = Some(number);
                }
                drop(members);
                sleep(LOOK);
            }
        });
    }

    /// Has another server lead, as an operator does, and waits for it.
    pub(crate) fn switch_over(&self, from: usize) -> bool {
        let member = &self.members[from];
        asks(member.rest, "POST", "/switchover", &format!("{{\"leader\": \"{}\"}}", member.name))
    }

    /// Stops all processes of a server, as a machine that hangs.
    pub(crate) fn pause(&self, number: usize) -> Paused {
        Paused(self.signal(number, Signal::STOP))
    }

    /// Kills all processes of a server, as a machine that loses its power.
    pub(crate) fn kill(&mut self, number: usize) {
        let _ = self.signal(number, Signal::KILL);
        if let Some(mut patroni) = self.nodes[number].patroni.take() {
            let _ = patroni.wait();
        }
    }

    /// Starts a server that was killed.
    pub(crate) fn start_node(&mut self, number: usize) -> Result<(), StartError> {
        let name = self.nodes[number].name.clone();
        let patroni = self.patroni.folder.join("patroni");
        let patroni = self.spawn(&name, &patroni, &[format!("{name}.yml")])?;
        self.nodes[number].patroni = Some(patroni);
        Ok(())
    }

    /// Tells whether each server has a disk of its own, which can be filled: only root can mount one.
    pub(crate) fn has_disks(&self) -> bool {
        self.has_disks
    }

    /// Fills the disk of a server, or makes room again.
    pub(crate) fn fill(&self, number: usize, full: bool) {
        let file = self.folder.join(&self.nodes[number].name).join("filler");
        let _ = match full {
            // It ends with an error, when the disk is full.
            true if self.has_disks => fs::write(file, vec![0; DISK_MIB << 20]),
            _ => fs::remove_file(file),
        };
    }

    /// Stops etcd, or lets it go on.
    pub(crate) fn pause_etcd(&self, pause: bool) {
        let etcd = self.etcd.as_ref().and_then(|etcd| Pid::from_raw(etcd.id().cast_signed()));
        if let Some(etcd) = etcd {
            let _ = kill_process(etcd, if pause { Signal::STOP } else { Signal::CONT });
        }
    }

    /// Cuts a server off, or mends its links. No side hears of it: packets only do not arrive.
    pub(crate) fn cut(&self, number: usize, from: Cut, cut: bool) {
        let node = &self.nodes[number];
        let links: &[&Proxy] = match from {
            Cut::Etcd => &[&node.etcd],
            Cut::Servers => &[&node.replication],
            Cut::Everybody => &[&node.etcd, &node.replication, &node.rest, &node.clients],
        };
        links.iter().for_each(|link| link.cut(cut));
        if from == Cut::Everybody {
            for other in self.nodes.iter().filter(|other| other.name != node.name) {
                other.replication.cut_for(&node.name, cut);
            }
        }
    }

    /// Signals to the manager first, so that it starts nothing again. Returns whom it was sent to.
    fn signal(&self, number: usize, signal: Signal) -> Vec<Pid> {
        let node = &self.nodes[number];
        let file = self.folder.join(&node.name).join("data/postmaster.pid");
        let said = fs::read_to_string(file).unwrap_or_default();
        let server = said.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
        let manager =
            node.patroni.as_ref().and_then(|child| Pid::from_raw(child.id().cast_signed()));
        if let Some(manager) = manager {
            let _ = kill_process(manager, signal);
        }
        let sent = server.map(|server| signal_all(server, signal)).unwrap_or_default();
        manager.into_iter().chain(sent).collect()
    }

    fn start_etcd(&mut self) -> Result<(), StartError> {
        let [clients, peers] = self.etcd_ports.map(|port| format!("http://127.0.0.1:{port}"));
        let flags = [
            ("--data-dir", "etcd"),
            ("--name", "one"),
            ("--listen-client-urls", &clients),
            ("--advertise-client-urls", &clients),
            ("--listen-peer-urls", &peers),
            ("--initial-advertise-peer-urls", &peers),
            ("--initial-cluster", &format!("one={peers}")),
        ];
        let flags: Vec<String> =
            flags.iter().flat_map(|(flag, value)| [(*flag).into(), (*value).into()]).collect();
        self.etcd = Some(self.spawn("etcd", Path::new("/usr/bin/etcd"), &flags)?);
        let began = Instant::now();
        while !asks(self.etcd_ports[0], "GET", "/health", "") {
            if PATIENCE < began.elapsed() {
                return Err(StartError::Program("etcd", self.log("etcd")));
            }
            sleep(LOOK);
        }
        Ok(())
    }

    /// Makes the folder of a server, and tells whether it has a disk of its own.
    fn mount(&self, name: &str) -> Result<bool, StartError> {
        let folder = self.folder.join(name);
        let io = |error| StartError::Io("a server's folder", error);
        fs::create_dir(&folder).map_err(io)?;
        let Some((user, group)) = self.user else { return Ok(false) };
        let mut mount = command_in(&self.folder, None, "mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_MIB}m"), "tmpfs", name]);
        // A container may forbid it.
        let mounted = mount.stderr(Stdio::null()).status();
        chown(&folder, Some(user), Some(group)).map_err(io)?;
        Ok(mounted.is_ok_and(|status| status.success()))
    }

    /// Writes the settings of a server: those of Patroni are the shortest that it takes.
    fn configure(&self, node: &Node, rest: u16) -> Result<(), StartError> {
        let Node { name, port, etcd, replication, rest: rest_link, .. } = node;
        let [etcd, replication, rest_link] = [etcd, replication, rest_link].map(|link| link.port);
        let (folder, programs) = (self.folder.display(), self.programs.display());
        let [ttl, retry] = self.patroni.shortest();
        let (mode, settings) = (format!("{:?}", self.mode).to_lowercase(), &self.settings);
        let text = format!(
            "scope: call-assistant
name: {name}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest_link}'}}
etcd3: {{hosts: ['127.0.0.1:{etcd}'], use_proxies: true}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 1
    retry_timeout: {retry}
    synchronous_mode: {mode}
    maximum_lag_on_failover: 104857600
{settings}    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        wal_log_hints: 'on'
        shared_buffers: '64MB'
        wal_sender_timeout: '3s'
        wal_receiver_timeout: '3s'
        shared_memory_type: mmap
        max_wal_size: '256MB'
  initdb: [no-locale, no-sync, {{encoding: UTF8}}, {{auth: trust}}]
  pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust',
    'host replication all 127.0.0.1/32 trust']
postgresql:
  listen: '127.0.0.1:{port}'
  connect_address: '127.0.0.1:{replication}'
  data_dir: '{folder}/{name}/data'
  bin_dir: '{programs}'
  pgpass: '{folder}/{name}.pass'
  authentication:
    superuser: {{username: postgres}}
    replication: {{username: postgres}}
    rewind: {{username: postgres}}
  parameters: {{unix_socket_directories: '{folder}', fsync: 'off', logging_collector: 'off'}}
"
        );
        fs::write(self.folder.join(format!("{name}.yml")), text)
            .map_err(|error| StartError::Io("a server's settings", error))
    }

    /// Starts a program, with its output in a file and its number in another one.
    fn spawn(&self, name: &str, program: &Path, flags: &[String]) -> Result<Child, StartError> {
        let io = |what| move |error| StartError::Io(what, error);
        let log = self.folder.join(format!("{name}.log"));
        let log = fs::File::options().create(true).append(true).open(log).map_err(io("a log"))?;
        let child = command_in(&self.folder, self.user, program)
            .args(flags)
            .env("HOME", &self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(io("a log"))?)
            .stderr(log)
            .spawn()
            .map_err(io("a program of the cluster"))?;
        let file = self.folder.join(format!("{name}.pid"));
        fs::write(file, child.id().to_string()).map_err(io("a number of a process"))?;
        Ok(child)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            // Its input ends.
            let _ = keeper.wait();
        }
        let patronis = self.nodes.iter_mut().filter_map(|node| node.patroni.take());
        for mut child in patronis.chain(self.etcd.take()) {
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn leader(members: &[Member]) -> Option<usize> {
    members.iter().position(|member| asks(member.rest, "GET", "/leader", ""))
}

/// Returns a port that was free a moment ago, and that no connection is given.
fn free_port() -> u16 {
    loop {
        let port = 20_000 + u16::from_le_bytes(host::random::bytes()) % 12_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Asks over HTTP, and tells whether the answer is a success.
fn asks(port: u16, method: &str, path: &str, body: &str) -> bool {
    let ask = || -> io::Result<[u8; 12]> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        // A switchover is answered when it is over.
        let patience = if method == "GET" { Duration::from_secs(1) } else { PATIENCE };
        stream.set_read_timeout(Some(patience))?;
        let length = body.len();
        let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json";
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut said = [0; 12];
        stream.read_exact(&mut said)?;
        Ok(said)
    };
    ask().is_ok_and(|said| said.ends_with(b" 200") || said.ends_with(b" 202"))
}
