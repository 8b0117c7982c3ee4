//! Who may use the dashboard: a browser on this machine, or whoever has the operator's token.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use sha2::{Digest as _, Sha256};

use crate::answer::Error;

/// Who may use it.
#[derive(Clone, Debug)]
pub enum Access {
    /// This machine. Whoever listens has to listen on loopback.
    ThisMachine,
    /// Whoever has the token, from anywhere.
    Token(Token),
}

/// The digest of an operator's token.
#[derive(Clone, Debug)]
pub struct Token([u8; 32]);

/// The shortest token, in bytes.
const SHORTEST: usize = 16;

impl Token {
    /// A token as the operator gave it.
    ///
    /// # Errors
    /// It is too short to be one, or no header can carry it.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("expected {SHORTEST} or more visible ASCII characters"));
        }
        Ok(Self(Sha256::digest(text).into()))
    }

    fn is(&self, text: &[u8]) -> bool {
        // How far two digests agree tells nothing of what was digested.
        self.0 == <[u8; 32]>::from(Sha256::digest(text))
    }
}

impl Access {
    /// Checks the head of a request.
    ///
    /// A site that a person visits can make their browser send requests here, or have its own name
    /// resolve to this address. The first says where it comes from, the second asks for another
    /// host.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Error> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        let own =
            |scheme: &str| origin.is_none_or(|origin| origin.strip_prefix(scheme) == Some(host));
        match self {
            Self::ThisMachine if is_local(host) && own("http://") => Ok(()),
            Self::ThisMachine => Err(Error::Foreign),
            // TLS may end in front of this host.
            Self::Token(_) if !own("http://") && !own("https://") => Err(Error::Foreign),
            Self::Token(token) => {
                let sent = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
                let sent = sent.and_then(password);
                if sent.is_some_and(|sent| token.is(&sent)) { Ok(()) } else { Err(Error::NoToken) }
            }
        }
    }
}

/// A bearer token, or the password that a browser asked for.
fn password(authorization: &[u8]) -> Option<Vec<u8>> {
    let at = authorization.iter().position(|byte| *byte == b' ')?;
    let (scheme, value) = (authorization.get(..at)?, authorization.get(at..)?.trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(value.to_vec());
    }
    let pair = STANDARD.decode(value).ok().filter(|_| scheme.eq_ignore_ascii_case(b"basic"))?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    pair.get(colon.checked_add(1)?..).map(<[u8]>::to_vec)
}

fn is_local(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}
