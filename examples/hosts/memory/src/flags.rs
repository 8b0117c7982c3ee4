//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::sender::Pace;
use host::auth::access::{Access, Ancestors};
use host::flags::{DASHBOARD, Flag, Help, LISTEN, LOOPBACK, METRICS, TRUST_CA};
use host::log;
use host::program::scale::Scale;
use host::store::EndpointLimit;

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    pub listen: SocketAddr,
    pub dashboard: SocketAddr,
    pub access: Access,
    pub ancestors: Ancestors,
    pub metrics: Option<SocketAddr>,
    pub data: Option<PathBuf>,
    pub trust_ca: Option<PathBuf>,
    pub allow_loopback: bool,
    pub endpoint_limit: EndpointLimit,
    pub pace: Pace,
}

const HELP: Help = Help {
    usage: "service [OPTIONS]",
    about: "The whole service on one machine: the public REST API, the webhook sender, and a\n\
            dashboard. The first line on standard output is JSON: both addresses, and the keys.",
    flags: &[&[
        LISTEN,
        DASHBOARD,
        Access::FLAG,
        Ancestors::FLAG,
        METRICS,
        Flag::value("--data", "FILE.json", "initial accounts [demonstration data]"),
        TRUST_CA,
        LOOPBACK,
        Scale::WAITS,
        Scale::TIMEOUTS,
        Flag::value(
            "--endpoint-rate",
            "N",
            "limit, in attempts per second and endpoint; 0: no limit [0]",
        ),
        EndpointLimit::FLAG,
        log::FORMAT,
        log::LEVEL,
    ]],
    positional: &[],
    example: "",
};

/// Reads the command line. Exits with a message if it is wrong.
pub fn read() -> Options {
    let flags = HELP.parse_or_exit();
    log::set_or_exit(&HELP, &flags);
    let dashboard = HELP.address(&flags, "--dashboard", 8081);
    let access = Access::read_or_exit(&HELP, &flags, dashboard);
    Options {
        listen: HELP.address(&flags, "--listen", 8080),
        dashboard,
        ancestors: Ancestors::read_or_exit(&HELP, &flags, &access),
        access,
        metrics: HELP.metrics(&flags),
        data: flags.text("--data").map(PathBuf::from),
        trust_ca: flags.text("--trust-ca").map(PathBuf::from),
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        endpoint_limit: EndpointLimit::read(&flags).unwrap_or_else(|error| HELP.exit(&error)),
        pace: Pace {
            scale: Scale::read(&flags).unwrap_or_else(|error| HELP.exit(&error)),
            per_second: flags
                .read("--endpoint-rate", 0, "a number of attempts")
                .unwrap_or_else(|error| HELP.exit(&error)),
        },
    }
}
