//! The flags that the command lines of both hosts have.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::auth::access::{Access, Ancestors};
use crate::flags::{address, expected, wrong};
use crate::log;
use crate::program::scale::Scale;
use crate::store::EndpointLimit;

/// The flags of each process that listens or sends.
#[derive(Clone, Debug, Args)]
pub struct Process {
    /// Allow webhooks to this machine, also without TLS.
    #[arg(long = "allow-loopback-endpoints")]
    pub allow_loopback: bool,
    /// Extra address for /metrics, /healthz and /readyz only; need not be loopback.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub log: log::Flags,
}

/// The flags of a process that answers requests.
#[derive(Clone, Debug, Args)]
pub struct Serving {
    /// Address of the public API.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,
    /// Address of the dashboard; an address outside loopback requires an operator's token.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081", value_parser = address)]
    pub dashboard: SocketAddr,
    /// The token that the dashboard requires, or lines of name:operator:token and name:reader:token [the variable
    /// OPERATOR_TOKEN].
    #[arg(long, value_name = "FILE")]
    operator_token_file: Option<PathBuf>,
    /// The sites that may frame the owner's page, with a space between them; requires an operator's token.
    #[arg(long, value_name = "ORIGINS", value_parser = Ancestors::parse)]
    portal_frame_ancestors: Option<Ancestors>,
    /// Accounts to add; existing accounts do not change.
    #[arg(long, value_name = "FILE.json")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub endpoint_limit: EndpointLimit,
    #[command(flatten)]
    pub process: Process,
}

/// The flags of a process that sends.
#[derive(Clone, Debug, Args)]
pub struct Sending {
    /// Extra CA certificates, besides the public ones.
    #[arg(long, value_name = "FILE.pem")]
    pub trust_ca: Option<PathBuf>,
    #[command(flatten)]
    pub scale: Scale,
    /// The maximum number of attempts per second to each endpoint, in each sender; 0: no limit.
    #[arg(long = "endpoint-rate", value_name = "N", default_value = "0")]
    #[arg(value_parser = expected::<u32>("a number of attempts"))]
    pub per_second: u32,
}

impl Serving {
    /// Returns who may use the dashboard, and the sites that may frame the owner's page. Exits with a message if that
    /// is not safe.
    pub fn access_or_exit(&self) -> (Access, Ancestors) {
        let access = Access::read_or_exit(self.operator_token_file.as_deref(), self.dashboard);
        let ancestors = self.portal_frame_ancestors.clone().unwrap_or_default();
        if ancestors.is_any() && matches!(access, Access::ThisMachine) {
            wrong("--portal-frame-ancestors: expected an operator's token, too");
        }
        (access, ancestors)
    }
}
