//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::sender::Pace;
use host::access::{Access, Ancestors};
use host::flags::{Flag, Help};
use host::log;
use host::scale::Scale;
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
    usage: "service [--listen ADDR] [--dashboard ADDR] [--operator-token-file FILE]\n\
            \x20              [--portal-frame-ancestors ORIGINS] [--data FILE.json] [--trust-ca FILE.pem] [--allow-loopback-endpoints]\n\
            \x20              [--time-scale F] [--timeout-scale F] [--endpoint-rate N]\n\
            \x20              [--max-endpoints N] [--metrics ADDR] [--log-format FORMAT] [--log-level LEVEL]",
    about: "The whole service on one machine: the public REST API, the webhook sender, and a\n\
            dashboard. The first line on standard output is JSON: both addresses, and the keys.",
    flags: &[
        Flag::value("--listen", "ADDR", "address of the public API [127.0.0.1:8080]"),
        Flag::value(
            "--dashboard",
            "ADDR",
            "address of the dashboard; outside loopback it requires an\noperator's token [127.0.0.1:8081]",
        ),
        Access::FLAG,
        Ancestors::FLAG,
        Flag::value(
            "--metrics",
            "ADDR",
            "extra address for /metrics, /healthz and /readyz only; need\nnot be loopback",
        ),
        Flag::value("--data", "FILE.json", "initial accounts [demonstration data]"),
        Flag::value("--trust-ca", "FILE.pem", "extra CA certificates, besides the public ones"),
        Flag::switch(
            "--allow-loopback-endpoints",
            "allow webhooks to this machine, also without TLS",
        ),
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
    ],
    positional: 0,
};

/// Reads the command line. Exits with a message if it is wrong.
pub fn read() -> Options {
    let flags = HELP.parse_or_exit();
    log::set_or_exit(&HELP, &flags);
    let address = |name, default: u16| -> SocketAddr {
        let default = SocketAddr::from(([127, 0, 0, 1], default));
        let expected = format_args!("an address, such as {default}");
        flags.read(name, default, expected).unwrap_or_else(|error| HELP.exit(&error))
    };
    let dashboard = address("--dashboard", 8081);
    let access = Access::read_or_exit(&HELP, &flags, dashboard);
    Options {
        listen: address("--listen", 8080),
        dashboard,
        ancestors: Ancestors::read_or_exit(&HELP, &flags, &access),
        access,
        metrics: flags.has("--metrics").then(|| address("--metrics", 9090)),
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
