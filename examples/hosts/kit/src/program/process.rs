//! What the operating system knows of this process, for monitoring.

use std::fs;

use crate::store::Family;

/// The clock ticks of a second in files of `/proc`: 100 on every platform of Linux.
const TICKS: f64 = 100.0;

/// Returns the metrics of this process, by the names that every exporter gives them. Those that the
/// system does not tell are left out.
pub fn families() -> Vec<Family> {
    let found = [cpu_seconds(), resident_bytes(), open_files(), most_files(), start_seconds()];
    found.into_iter().flatten().collect()
}

/// Returns the name of this host.
pub fn host_name() -> Option<String> {
    let told = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    told.or_else(|| std::env::var("HOSTNAME").ok()).map(|name| name.trim().to_owned())
}

fn cpu_seconds() -> Option<Family> {
    let spent = stat_field(14)? + stat_field(15)?;
    let help = "The processor time of this process.";
    Some(Family::counter("process_cpu_seconds", help, spent / TICKS))
}

fn start_seconds() -> Option<Family> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let booted = stat.lines().find_map(|line| line.strip_prefix("btime "))?.parse::<f64>().ok()?;
    let help = "When the process began, since 1970.";
    let at = booted + stat_field(22)? / TICKS;
    Some(Family::gauge("process_start_time_seconds", help, at))
}

/// Returns a field of the process's line, counted from 1. The second is a name in brackets, which may
/// have spaces.
fn stat_field(number: usize) -> Option<f64> {
    let line = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = line.rsplit_once(") ")?;
    rest.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

fn resident_bytes() -> Option<Family> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    let help = "The resident memory of this process.";
    Some(Family::gauge("process_resident_memory_bytes", help, kib.saturating_mul(1024)))
}

fn open_files() -> Option<Family> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(Family::gauge("process_open_fds", "Open file descriptors.", count))
}

fn most_files() -> Option<Family> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(Family::gauge("process_max_fds", "The limit of open file descriptors.", most))
}
