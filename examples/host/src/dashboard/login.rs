//! Log-in with the operator's token: a cookie for the browser instead of the token.
//!
//! The cookie has the instant at which it expires and a number, under a MAC whose key is derived from the
//! token. So every process with the token accepts it, and another token ends every login. What a process
//! remembers is bounded: the numbers of ended logins until they would have expired, and how many wrong
//! tokens came from an address in the last minute.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use call_assistant::Timestamp;
use hmac::Mac as _;
use http::header::{COOKIE, ORIGIN, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use tokio::time::Instant;

use super::access::{self, Token};
use crate::answer::{Answer, Error, ok};
use crate::input::{Bad, Fields};
use crate::{clock, random};

/// The span of a login: one hour. It is also how long a copy of an ended login's cookie is accepted by
/// the processes that were not told of its end.
const SPAN: Duration = Duration::from_secs(3600);

/// How far the clocks of two processes may differ: one minute.
const SKEW: Duration = Duration::from_secs(60);

/// The most wrong tokens from one address in a minute: 10.
const MOST_WRONG: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The most addresses that are remembered: 1,024. One more replaces the oldest.
const MOST_ADDRESSES: usize = 1024;

/// The most ended logins that are remembered: 4,096. Only those with the token can end one.
const MOST_ENDED: usize = 4096;

/// The name of the cookie.
const NAME: &str = "dashboard_login";

/// The logins of this process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Logins(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The numbers of ended logins, and when each would have expired.
    ended: BTreeMap<[u8; 16], Timestamp>,
    /// Wrong tokens by address, and since when they are counted.
    wrong: HashMap<IpAddr, (Instant, u32)>,
}

/// What a cookie says.
#[derive(Clone, Copy, Debug)]
struct Login {
    expires_at: Timestamp,
    number: [u8; 16],
}

impl Logins {
    /// Checks that a request has a login, or the token itself.
    pub(super) fn check(
        &self,
        token: &Token,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<(), Error> {
        if self.login(token, headers).is_some() {
            return Ok(());
        }
        let sent = access::sent(headers).ok_or(Error::NoToken)?;
        if self.is_token(token, &sent, peer)? { Ok(()) } else { Err(Error::NoToken) }
    }

    /// Begins a login: `{"token":"..."}`.
    pub(super) fn begin(
        &self,
        token: &Token,
        headers: &HeaderMap,
        body: &serde_json::Value,
        peer: SocketAddr,
    ) -> Result<Answer, Error> {
        let fields = Fields::of("", body, "token")?;
        let sent = fields.required("token", fields.text("token")?)?;
        if !self.is_token(token, sent.as_bytes(), peer)? {
            return Err(Error::WrongToken);
        }
        let login =
            Login { expires_at: clock::machine().saturating_add(SPAN), number: random::bytes() };
        let mut answer = ok(&json!({ "expires_at": login.expires_at.to_string() }));
        set(&mut answer, headers, &login.cookie(token), SPAN)?;
        Ok(answer)
    }

    /// Ends the login of a request, if it has one.
    pub(super) fn end(&self, token: &Token, headers: &HeaderMap) -> Result<Answer, Error> {
        if let Some(login) = self.login(token, headers) {
            let now = clock::machine();
            let mut state = self.lock();
            state.ended.retain(|_, expires_at| *expires_at > now);
            if state.ended.len() >= MOST_ENDED {
                state.ended.pop_first();
            }
            state.ended.insert(login.number, login.expires_at);
        }
        let mut answer = ok(&json!({}));
        set(&mut answer, headers, "", Duration::ZERO)?;
        Ok(answer)
    }

    /// Returns the login of a request, unless it is forged, expired or ended.
    fn login(&self, token: &Token, headers: &HeaderMap) -> Option<Login> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
        let found = cookies.find_map(|cookie| cookie.trim().strip_prefix(NAME)?.strip_prefix('='));
        let login = Login::of_cookie(found?, token)?;
        let now = clock::machine();
        // A clock that was ahead has made none that lasts for years.
        let latest = now.saturating_add(SPAN).saturating_add(SKEW);
        let lasts = login.expires_at > now && login.expires_at <= latest;
        (lasts && !self.lock().ended.contains_key(&login.number)).then_some(login)
    }

    /// Compares a token, and counts it if it is wrong.
    ///
    /// # Errors
    /// Too many wrong ones came from this address: this one was not compared.
    fn is_token(&self, token: &Token, sent: &[u8], peer: SocketAddr) -> Result<bool, Error> {
        let (now, address) = (Instant::now(), network(peer.ip()));
        let wrong = &mut self.lock().wrong;
        wrong.retain(|_, (since, _)| now.duration_since(*since) < MINUTE);
        if let Some((since, _)) = wrong.get(&address).filter(|(_, count)| *count >= MOST_WRONG) {
            let left = MINUTE.saturating_sub(now.duration_since(*since));
            return Err(Error::TooManyTries(left.as_secs().saturating_add(1)));
        }
        if token.is(sent) {
            return Ok(true);
        }
        if wrong.len() >= MOST_ADDRESSES && !wrong.contains_key(&address) {
            let oldest = wrong.iter().min_by_key(|(_, (since, _))| *since);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                wrong.remove(&oldest);
            }
        }
        let (_, count) = wrong.entry(address).or_insert((now, 0));
        *count = count.saturating_add(1);
        Ok(false)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Login {
    fn cookie(&self, token: &Token) -> String {
        let mut bytes = self.expires_at.unix_seconds().to_be_bytes().to_vec();
        bytes.extend(self.number);
        let mac = token.mac(&bytes).finalize().into_bytes();
        bytes.extend(mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn of_cookie(text: &str, token: &Token) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (said, mac) = bytes.split_at_checked(24)?;
        token.mac(said).verify_slice(mac).ok()?;
        let (expires_at, number) = said.split_first_chunk::<8>()?;
        Some(Self {
            expires_at: Timestamp::from_unix(i64::from_be_bytes(*expires_at))?,
            number: number.try_into().ok()?,
        })
    }
}

/// Sets the cookie. It goes over TLS only where the page came over TLS: a browser says so in `Origin`.
fn set(answer: &mut Answer, headers: &HeaderMap, value: &str, span: Duration) -> Result<(), Error> {
    let over_tls = headers.get(ORIGIN).is_some_and(|o| o.as_bytes().starts_with(b"https://"));
    let secure = if over_tls { "; Secure" } else { "" };
    let seconds = span.as_secs();
    let cookie =
        format!("{NAME}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let cookie = HeaderValue::try_from(cookie).map_err(|error| Bad::new("", error))?;
    answer.headers_mut().insert(SET_COOKIE, cookie);
    Ok(())
}

/// Returns what one customer of a network has: an IPv4 address, or 64 bits of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        v4 => v4,
    }
}
