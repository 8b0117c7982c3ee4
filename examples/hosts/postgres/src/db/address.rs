//! The address of the database, and the trusted certificates.

use std::error::Error;
use std::path::PathBuf;
use std::{fmt, io};

use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::{self, CertificateError};

use crate::clock::DatabaseClock;
use host::tls;

/// The address of a database. TLS is as its `sslmode` says: `disable`, `prefer` or `require`. With TLS,
/// the certificate and the host that it names are always verified. It may name several hosts, as
/// `postgresql://user@one,two:5433/name`: the one that accepts writes is found among them.
#[derive(Clone)]
pub struct Address {
    url: String,
    ca: Option<PathBuf>,
    /// The clock of the database: all who reach it by this address go by what one of them heard.
    pub(super) clock: DatabaseClock,
}

// A URL may have a password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("ca", &self.ca).finish_non_exhaustive()
    }
}

impl<T: Into<String>> From<T> for Address {
    fn from(url: T) -> Self {
        Self { url: url.into(), ca: None, clock: DatabaseClock::default() }
    }
}

impl Address {
    /// Trusts the certificates of this PEM file, too.
    #[must_use]
    pub fn with_ca(self, ca: Option<PathBuf>) -> Self {
        Self { ca, ..self }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the hosts and the name of the database, and nothing else of its URL.
    pub(crate) fn places(&self) -> String {
        let Ok(config) = self.url.parse::<Config>() else { return String::new() };
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
    }

    /// Reads what a connection needs.
    pub(super) fn read(&self) -> Result<(Config, MakeRustlsConnect), String> {
        let config: Config = self.url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            let hint = if cause.contains("sslmode") {
                "disable, prefer or require; with TLS, certificate and host are verified"
            } else if cause.contains("target_session_attrs") {
                READ_WRITE
            } else {
                "expected postgresql://user@host/name"
            };
            format!("--database: {cause}: {hint}")
        })?;
        if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
            return Err(format!("--database: target_session_attrs=read-only: {READ_WRITE}"));
        }
        // What a server of PostgreSQL 17 expects, if it is told a protocol at all.
        let tls = tls::config(self.ca.as_deref(), b"postgresql")
            .map_err(|error| format!("--database-ca: {error}"))?;
        Ok((config, MakeRustlsConnect::new(tls)))
    }
}

/// What the driver says where the server asks for a password, and the URL has none.
const NO_PASSWORD: &str = "password missing";

/// Tells whether there is no password to send, or no way to log in that both sides know.
pub(super) fn is_of_login(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let words = error.to_string();
        if words == NO_PASSWORD || words.starts_with("authentication error") {
            return true;
        }
        cause = error.source();
    }
    false
}

const READ_WRITE: &str = "this program writes: leave target_session_attrs out, or use read-write";

/// Returns what to do about an error of the login, or of TLS.
pub(super) fn hint(error: &(dyn Error + 'static)) -> &'static str {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return match error {
                rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName
                    | CertificateError::NotValidForNameContext { .. },
                ) => ": the server's certificate does not name the host in --database",
                rustls::Error::InvalidCertificate(
                    CertificateError::Expired | CertificateError::ExpiredContext { .. },
                ) => ": the server needs a new certificate",
                rustls::Error::InvalidCertificate(_) => {
                    ": give the certificate of its CA with --database-ca or DATABASE_CA"
                }
                _ => "",
            };
        }
        if error.to_string() == NO_PASSWORD {
            return ": the URL has no password: postgresql://user:password@host/name";
        }
        if error.source().is_none() && error.to_string().contains("not support TLS") {
            return ": enable TLS in the server (ssl = on), or set sslmode=disable in --database";
        }
        cause = error.source();
    }
    ""
}
