//! Who may use the dashboard: a browser on this machine, or whoever has the operator's token.

use std::env::VarError;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use sha2::{Digest as _, Sha256};

use crate::flags::wrong;
use crate::http::answer::Error;
use crate::store::scope::By;

/// Who may use it.
#[derive(Clone, Debug)]
pub enum Access {
    /// This machine. Whoever listens has to listen on loopback.
    ThisMachine,
    /// Whoever has a token, from anywhere.
    Tokens(Arc<[Holder]>),
}

/// One operator: a token, and what its holder is called and may do.
#[derive(Clone, Debug)]
pub struct Holder {
    pub(crate) token: Token,
    pub(crate) by: By,
    /// Whether it may look, and change nothing.
    pub(crate) only_reads: bool,
}

/// The digest of an operator's token, which is also the key of the cookies that it gives out.
#[derive(Clone)]
pub struct Token([u8; 32]);

/// The sites that may frame the owner's page, as a policy names them.
#[derive(Clone, Debug, Default)]
pub struct Ancestors(Option<String>);

/// The most sites that may frame the owner's page: 16.
const MOST_ANCESTORS: usize = 16;

/// The shortest token: 16 bytes.
const SHORTEST: usize = 16;

/// The roles of a tokens' file: who may change, and who only looks.
const OPERATOR: &str = "operator";
const READER: &str = "reader";

/// The environment variable of the token.
const VARIABLE: &str = "OPERATOR_TOKEN";

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Creates a token from its text.
    ///
    /// # Errors
    /// It is too short to be one, or no header can carry it.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("expected {SHORTEST} or more visible ASCII characters"));
        }
        Ok(Self(Sha256::digest(text).into()))
    }

    /// Returns whether this is the text of the token.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        // How far two digests agree tells nothing of what was digested.
        self.0 == <[u8; 32]>::from(Sha256::digest(text))
    }

    /// Returns what signs and verifies a text under a key that only those have who have the token.
    pub(crate) fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        #[expect(clippy::expect_used, reason = "a key of HMAC may have any length")]
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length");
        mac.chain_update(b"dashboard login 1 ").chain_update(text)
    }
}

impl Holder {
    /// Reads operators: lines of `name:role:token`, or one token without a name, which has no colon: else a role
    /// that is misspelled would be a part of it. Empty lines and those that begin with `#` are ignored where there
    /// are several.
    ///
    /// # Errors
    /// The number of the wrong line, never its content.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        let text = text.trim_end_matches(['\r', '\n']);
        if !text.contains(['\n', ':']) {
            return Ok(vec![Self {
                token: Token::new(text)?,
                by: By::OPERATOR,
                only_reads: false,
            }]);
        }
        let mut holders: Vec<Self> = Vec::new();
        for (at, line) in (1_u32..).zip(text.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| format!("line {at}: {why}");
            let mut parts = line.splitn(3, ':');
            let (Some(name), Some(role @ (OPERATOR | READER)), Some(token)) =
                (parts.next(), parts.next(), parts.next())
            else {
                return Err(wrong(
                    "expected name:operator:token or name:reader:token, or one token without a colon",
                ));
            };
            let by = By::person(name).map_err(wrong)?;
            let token = Token::new(token).map_err(|why| wrong(&why))?;
            if holders.iter().any(|other| other.by == by || other.token.0 == token.0) {
                return Err(wrong("a name or a token is repeated"));
            }
            holders.push(Self { token, by, only_reads: role == READER });
        }
        Ok(holders)
    }

    /// Finds the one who has this token.
    pub(crate) fn of<'a>(holders: &'a [Self], sent: &[u8]) -> Option<&'a Self> {
        holders.iter().find(|holder| holder.token.is(sent))
    }
}

impl Ancestors {
    /// Reads the sites, with spaces in between.
    ///
    /// # Errors
    /// One of them is none, or there are too many.
    pub fn parse(text: &str) -> Result<Self, String> {
        let sites: Vec<&str> = text.split_ascii_whitespace().collect();
        if sites.is_empty() || sites.len() > MOST_ANCESTORS {
            return Err(format!("expected 1 to {MOST_ANCESTORS} origins"));
        }
        for site in &sites {
            let url = url::Url::parse(site).ok();
            // What a policy reads otherwise than a person does: a wildcard, the end of a directive, or what
            // is not the origin of its own URL.
            let is_plain =
                site.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:/[]".contains(&byte));
            let is_origin = is_plain
                && url.is_some_and(|url| {
                    let is_safe = url.scheme() == "https" || url.host_str().is_some_and(is_local);
                    is_safe
                        && url.origin().is_tuple()
                        && url.origin().ascii_serialization() == *site
                });
            if !is_origin {
                return Err(format!(
                    "expected origins such as https://app.example.com, not {site}"
                ));
            }
        }
        Ok(Self(Some(sites.join(" "))))
    }

    /// Returns whether there is any.
    pub(crate) fn is_any(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or("'none'")
    }
}

impl Access {
    /// Reads who may use a dashboard that listens there, from the file of `--operator-token-file` or the environment.
    /// Exits with a message if that is not safe.
    pub fn read_or_exit(file: Option<&Path>, dashboard: SocketAddr) -> Self {
        let (text, place) = match file {
            Some(file) => match std::fs::read_to_string(file) {
                Ok(text) => (text, "--operator-token-file"),
                Err(error) => wrong(format_args!("--operator-token-file: {error}")),
            },
            None => match std::env::var(VARIABLE) {
                Ok(text) => (text, VARIABLE),
                // Whoever has set a token wants one to be required.
                Err(VarError::NotUnicode(_)) => wrong(format_args!("{VARIABLE}: it is not UTF-8")),
                Err(VarError::NotPresent) if dashboard.ip().is_loopback() => {
                    return Self::ThisMachine;
                }
                Err(VarError::NotPresent) => wrong(format_args!(
                    "--dashboard: expected a loopback address, or an operator's token: \
                     --operator-token-file or {VARIABLE}"
                )),
            },
        };
        match Holder::parse(&text) {
            Ok(holders) if holders.is_empty() => wrong(format_args!("{place}: no token")),
            Ok(holders) => Self::Tokens(holders.into()),
            Err(error) => wrong(format_args!("{place}: {error}")),
        }
    }

    /// Checks where a request comes from.
    ///
    /// A site that a person visits can make their browser send requests here, or have its own name
    /// resolve to this address. The first says where it comes from, the second asks for another
    /// host.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Error> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        let own =
            |scheme: &str| origin.is_none_or(|origin| origin.strip_prefix(scheme) == Some(host));
        let expected = match self {
            Self::ThisMachine => is_local(host) && own("http://"),
            // TLS may end in front of this host.
            Self::Tokens(_) => own("http://") || own("https://"),
        };
        if expected { Ok(()) } else { Err(Error::Foreign) }
    }
}

/// Returns the token that a script sends with each request: as a bearer token, or as a password.
pub(crate) fn sent(headers: &HeaderMap) -> Option<Vec<u8>> {
    let authorization = headers.get(AUTHORIZATION)?.as_bytes();
    let at = authorization.iter().position(|byte| *byte == b' ')?;
    let (scheme, value) = (authorization.get(..at)?, authorization.get(at..)?.trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(value.to_vec());
    }
    let pair = STANDARD.decode(value).ok().filter(|_| scheme.eq_ignore_ascii_case(b"basic"))?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    pair.get(colon.checked_add(1)?..).map(<[u8]>::to_vec)
}

/// Returns whether a host, with or without a port, is this machine by its name or address.
pub fn is_local(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::arithmetic_side_effects)]

    use super::*;

    #[test]
    fn operators_have_names_and_roles() {
        let (one, two) = ("0123456789abcdef", "fedcba9876543210");
        let read = |text: &str| {
            let shown = |holder: &Holder| (holder.by.as_str(), holder.only_reads);
            Holder::parse(text).map(|all| all.iter().map(shown).collect::<Vec<_>>())
        };
        assert_eq!(read(&format!("{one}\r\n")), Ok(vec![("operator", false)]));
        let named = format!("# who\n\nada:operator:{one}\nbob:reader:{two}:x\n");
        assert_eq!(read(&named), Ok(vec![("ada", false), ("bob", true)]));
        let holders = Holder::parse(&named).unwrap();
        let found = |sent: &[u8]| Holder::of(&holders, sent).map(|holder| holder.by.as_str());
        assert_eq!(found(one.as_bytes()), Some("ada"));
        assert_eq!(found(format!("{two}:x").as_bytes()), Some("bob"));
        assert_eq!(found(two.as_bytes()), None);
        for (text, why) in [
            ("short".to_owned(), "expected 16 or more"),
            (format!("ada:operator:{one}\n{two}"), "line 2: expected name:operator:token"),
            (format!("ada:admim:{one}"), "line 1: expected name:operator:token"),
            (format!("ada:{one}"), "line 1: expected name:operator:token"),
            (format!("{one}:{two}"), "line 1: expected name:operator:token"),
            ("ada:reader:short".to_owned(), "line 1: expected 16 or more"),
            (format!(":reader:{one}"), "line 1: expected a name"),
            (format!("owner:reader:{one}"), "line 1: expected another name"),
            (format!("ada:operator:{one}\nada:reader:{two}"), "line 2: a name or a token is"),
            (format!("ada:operator:{one}\nbob:reader:{one}"), "line 2: a name or a token is"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(why) && !error.contains(one), "{text}: {error}");
        }
    }

    #[test]
    fn a_site_that_frames_is_an_origin() {
        let site = "https://app.example.com";
        for (text, framed) in [
            (site, site),
            (
                "https://a.example  https://b.example:8443\n",
                "https://a.example https://b.example:8443",
            ),
            ("http://localhost:3000", "http://localhost:3000"),
        ] {
            assert_eq!(Ancestors::parse(text).unwrap().as_str(), framed, "{text}");
        }
        let many = vec![site; MOST_ANCESTORS + 1].join(" ");
        for text in [
            "",
            "*",
            "'self'",
            "https:",
            "https://*.example.com",
            "http://app.example.com",
            "https://app.example.com/",
            "https://app.example.com;",
            "https://a;b.example",
            "https://App.example.com",
            "https://u@app.example.com",
            "data:x",
            "https://a.example,https://b.example",
            &many,
        ] {
            assert!(Ancestors::parse(text).is_err(), "{text}");
        }
    }
}
