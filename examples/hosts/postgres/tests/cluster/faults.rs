//! What happens to the cluster, and to the host's processes.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::fleet::Fleet;
use crate::servers::{Cluster, Cut};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    LeaderKilled,
    Switchover,
    LeaderStopped,
    LeaderCutOff,
    LeaderWithoutEtcd,
    StandbyKilled,
    StandbyStopped,
    StandbyCutOff,
    StandbyThenLeader,
    EtcdStopped,
    AllKilled,
    HostKilled,
    DiskFull,
    /// What an operator does: it happens only when it is asked for.
    MinorVersion,
}

/// Every kind that happens by itself. The gate has the first two.
pub(crate) const ALL: [Fault; 13] = [
    Fault::LeaderKilled,
    Fault::Switchover,
    Fault::LeaderStopped,
    Fault::LeaderCutOff,
    Fault::LeaderWithoutEtcd,
    Fault::StandbyKilled,
    Fault::StandbyStopped,
    Fault::StandbyCutOff,
    Fault::StandbyThenLeader,
    Fault::EtcdStopped,
    Fault::AllKilled,
    Fault::HostKilled,
    Fault::DiskFull,
];

/// How long the host takes to find a leader, and a server to start: 10 s.
const ENOUGH: Duration = Duration::from_secs(10);

/// How much longer than its lock lasts nobody hears of a server: 14 s.
const SILENT: Duration = Duration::from_secs(14);

/// The time that a cluster takes to choose another leader once the lock has ended, and the host to find
/// it: 4 s.
const CHOSEN: Duration = Duration::from_secs(4);

/// The kinds after which another server leads, which lacks what had not reached it.
pub(crate) const LOSING: [Fault; 5] = [
    Fault::LeaderKilled,
    Fault::LeaderStopped,
    Fault::LeaderCutOff,
    Fault::LeaderWithoutEtcd,
    Fault::AllKilled,
];

/// By then the host has given up a COMMIT that waits for a standby, and the cluster has not yet chosen
/// another standby: 3 s.
const GIVEN_UP: Duration = Duration::from_secs(3);

/// How long nothing reaches the standbys before the leader is lost, where no COMMIT waits for them: 2 s.
/// It is less than a lease lasts, so the leases that are known then have not ended.
const LAG: Duration = Duration::from_secs(2);

/// The kind with this name.
pub(crate) fn named(name: &str) -> Option<Fault> {
    ALL.into_iter().chain([Fault::MinorVersion]).find(|fault| format!("{fault:?}") == name)
}

/// So many faults: each of these kinds in turn, each time in another order.
pub(crate) fn in_turn(kinds: &[Fault], count: usize, seed: u64) -> Vec<Fault> {
    let mut dice = seed.max(1);
    let mut faults = Vec::new();
    while faults.len() < count {
        let mut kinds = kinds.to_vec();
        while !kinds.is_empty() {
            // A xorshift: good enough, and the same for the same seed.
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let nth = usize::try_from(dice % u64::try_from(kinds.len()).unwrap()).unwrap();
            faults.push(kinds.swap_remove(nth));
        }
    }
    faults.truncate(count);
    faults
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LeaderKilled => "leader killed",
            Self::Switchover => "switchover",
            Self::LeaderStopped => "leader stopped",
            Self::LeaderCutOff => "leader cut off",
            Self::LeaderWithoutEtcd => "leader cut off from etcd",
            Self::StandbyKilled => "synchronous standby killed",
            Self::StandbyStopped => "synchronous standby stopped",
            Self::StandbyCutOff => "synchronous standby cut off",
            Self::StandbyThenLeader => "synchronous standby stopped, leader killed",
            Self::EtcdStopped => "etcd stopped for 15 s",
            Self::AllKilled => "all servers killed",
            Self::HostKilled => "senders and API processes killed",
            Self::DiskFull => "full disk of the leader for 10 s",
            Self::MinorVersion => "each server restarted, the leader last",
        })
    }
}

impl Fault {
    /// How long writes may be refused although a client that inserts a few bytes may find room for them.
    pub(crate) fn refuses_writes(self) -> Duration {
        if self == Self::DiskFull { ENOUGH } else { Duration::ZERO }
    }

    /// Makes it happen to a cluster with this leader and standby, and ends it. If the standbys are to lag,
    /// a leader is lost together with what was written last. Where it is killed, senders hear of the next
    /// one when numbers have been given again.
    pub(crate) async fn happen(
        self,
        cluster: &mut Cluster,
        [leader, standby]: [usize; 2],
        fleet: &mut Fleet,
        lag: bool,
    ) {
        let (silent, chosen) = (cluster.ttl() + SILENT, cluster.ttl() + CHOSEN);
        let lag = lag && LOSING.contains(&self);
        if lag {
            cluster.cut(leader, Cut::Servers, true);
            fleet.live(LAG).await;
        }
        match self {
            Self::LeaderKilled | Self::StandbyKilled => {
                let node = if self == Self::LeaderKilled { leader } else { standby };
                cluster.kill(node);
                if lag {
                    fleet.signal_senders(Signal::STOP);
                    fleet.live(chosen).await;
                    fleet.signal_senders(Signal::CONT);
                    cluster.cut(node, Cut::Servers, false);
                }
                fleet.live(if node == leader { chosen } else { ENOUGH }).await;
                cluster.start_node(node).unwrap();
            }
            Self::Switchover => {
                assert!(cluster.switch_over(leader), "{}", cluster.log(cluster.name(leader)));
                fleet.live(ENOUGH).await;
            }
            Self::LeaderStopped | Self::StandbyStopped => {
                let node = if self == Self::LeaderStopped { leader } else { standby };
                let stopped = cluster.pause(node);
                fleet.live(silent).await;
                cluster.cut(node, Cut::Servers, false);
                stopped.resume();
            }
            Self::LeaderCutOff | Self::StandbyCutOff | Self::LeaderWithoutEtcd => {
                let node = if self == Self::StandbyCutOff { standby } else { leader };
                let from = match self {
                    Self::LeaderWithoutEtcd => Cut::Etcd,
                    _ => Cut::Everybody,
                };
                cluster.cut(node, from, true);
                fleet.live(silent).await;
                cluster.cut(node, from, false);
                cluster.cut(node, Cut::Servers, false);
            }
            Self::StandbyThenLeader => {
                let stopped = cluster.pause(standby);
                fleet.live(GIVEN_UP).await;
                cluster.kill(leader);
                stopped.resume();
                fleet.live(chosen).await;
                cluster.start_node(leader).unwrap();
            }
            Self::EtcdStopped => {
                cluster.pause_etcd(true);
                fleet.live(Duration::from_secs(15)).await;
                cluster.pause_etcd(false);
            }
            Self::AllKilled => {
                let nodes = cluster.all();
                nodes.clone().for_each(|node| cluster.kill(node));
                fleet.live(Duration::from_secs(1)).await;
                if lag {
                    // Another one leads before it is there again.
                    nodes
                        .clone()
                        .filter(|node| *node != leader)
                        .for_each(|node| cluster.start_node(node).unwrap());
                    fleet.live(chosen).await;
                    cluster.cut(leader, Cut::Servers, false);
                    cluster.start_node(leader).unwrap();
                } else {
                    nodes.for_each(|node| cluster.start_node(node).unwrap());
                }
                fleet.live(ENOUGH).await;
            }
            Self::DiskFull if !cluster.has_disks() => {
                println!("skipped: only root can give each server a disk of its own");
            }
            Self::DiskFull => {
                cluster.fill(leader, true);
                fleet.live(ENOUGH).await;
                cluster.fill(leader, false);
                fleet.live(ENOUGH).await;
            }
            Self::MinorVersion => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/minor-version");
                let path = std::env::var("PATH").unwrap_or_default();
                let output = Command::new(script)
                    .arg(cluster.settings(leader))
                    .env("PATH", format!("{}:{path}", cluster.managers().display()))
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{output:?}");
                fleet.live(ENOUGH).await;
            }
            Self::HostKilled => {
                fleet.kill();
                fleet.live(ENOUGH).await;
            }
        }
    }
}
