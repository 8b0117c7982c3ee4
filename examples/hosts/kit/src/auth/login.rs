//! Log-in: a cookie for the browser instead of the operator's token, and links for the owners of accounts.
//!
//! The cookie of an operator has the instant at which it expires and a number, under a MAC whose key is derived
//! from the token. So every process with the token accepts it, and another token ends every login. An owner's
//! link has a random secret, which is the cookie's, too. What every process has to know is in the store: the
//! links that were made, and which logins have ended. What a process remembers itself is bounded: how many wrong
//! secrets of each kind came from an address in the last minute. A right secret is accepted whatever was counted.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use hmac::Mac as _;
use http::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::auth::access::{self, Access, Holder, Token};
use crate::auth::counts::Counts;
use crate::http::answer::{Answer, Answered, Error, created, ok};
use crate::input::{Bad, Fields};
use crate::store::scope::{By, Login};
use crate::store::{LoginRow, Refused, Store};
use crate::{clock, random};

/// The span of a login, and of a link: one hour.
const SPAN: Duration = Duration::from_secs(3600);

/// How far the clocks of two processes may differ: one minute.
const SKEW: Duration = Duration::from_secs(60);

/// The most wrong secrets of a kind from one address in a minute that are answered 401: 10. More are answered 429.
const MOST_WRONG: u32 = 10;

/// The names of the cookies on this machine. Elsewhere they have the prefix [`SECURE`].
const OPERATOR: &str = "dashboard_login";
const OWNER: &str = "portal_login";

/// The prefix with which a browser accepts a cookie only from this host and over TLS: no site next to this one can set it.
const SECURE: &str = "__Host-";

/// The header of each request of an owner's page. Its value is in no cookie, so no other page has it.
const OWNER_TOKEN: &str = "x-portal-token";

/// The check of logins. Clones share what it remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logins {
    wrong: Counts<(Kind, IpAddr)>,
    /// Whether other sites may frame the owner's page.
    framed: bool,
}

/// A kind of secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// An operator's token.
    Token,
    /// The link of an owner.
    Link,
}

/// What an operator's cookie says.
#[derive(Clone, Copy, Debug)]
struct Cookie {
    expires_at: Timestamp,
    number: [u8; 16],
}

/// The secret of an owner's link.
struct Secret([u8; 32]);

impl Logins {
    /// Sets whether other sites may frame an owner's page.
    pub(crate) fn framed(self, framed: bool) -> Self {
        Self { framed, ..self }
    }

    /// Checks that a request has a login, or the operator's token itself.
    pub(crate) async fn check(
        &self,
        store: &impl Store,
        access: &Access,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<Login, Error> {
        let Access::Tokens(holders) = access else {
            return Ok(Login::at_terminal(By::THIS_MACHINE));
        };
        if headers.contains_key(OWNER_TOKEN) {
            let (_, account, _) = self.owner(store, headers).await?;
            return Ok(Login::of_owner(account));
        }
        if let Some((_, holder)) = self.operator(store, holders, headers).await? {
            return Ok(of(holder));
        }
        let sent = access::sent(headers).ok_or(Error::NoToken)?;
        let holder = Holder::of(holders, &sent);
        holder.map(of).ok_or_else(|| self.wrong(Kind::Token, peer))
    }

    /// Begins an operator's login: `{"token":"..."}`.
    pub(crate) fn begin(
        &self,
        holders: &[Holder],
        headers: &HeaderMap,
        body: &Value,
        peer: SocketAddr,
    ) -> Answered {
        let fields = Fields::of("", body, "token")?;
        let sent = fields.required("token", fields.text("token")?)?;
        let holder = Holder::of(holders, sent.as_bytes());
        let holder = holder.ok_or_else(|| self.wrong(Kind::Token, peer))?;
        let cookie =
            Cookie { expires_at: clock::now().saturating_add(SPAN), number: random::bytes() };
        let mut answer = ok(&json!({
            "expires_at": cookie.expires_at.to_string(),
            "name": holder.by.as_str(),
            "only_reads": holder.only_reads,
        }));
        let text = cookie.text(&holder.token);
        set(&mut answer, headers, OPERATOR, &text, SPAN, strict(headers))?;
        Ok(answer)
    }

    /// Ends the operator's login of a request, if it has one, in every process.
    pub(crate) async fn end(
        &self,
        store: &impl Store,
        holders: &[Holder],
        headers: &HeaderMap,
    ) -> Answered {
        if let Some((cookie, holder)) = self.operator(store, holders, headers).await? {
            let row = LoginRow { account: None, expires_at: cookie.expires_at, ended: true };
            store.write_login(holder.by, cookie.digest(), row).await?;
        }
        let mut answer = ok(&json!({}));
        set(&mut answer, headers, OPERATOR, "", Duration::ZERO, strict(headers))?;
        Ok(answer)
    }

    /// Makes a link for the owner of an account.
    pub(crate) async fn link(&self, store: &impl Store, by: By, account: AccountId) -> Answered {
        let secret = Secret(random::bytes());
        let expires_at = clock::now().saturating_add(SPAN);
        let shown = json!({
            "account_id": account,
            "path": format!("/portal#link={}", secret.text()),
            "expires_at": expires_at,
        });
        let row = LoginRow { account: Some(account), expires_at, ended: false };
        store.write_login(by, secret.digest(), row).await?;
        Ok(created(&shown))
    }

    /// Begins an owner's login: `{"link":"..."}`.
    pub(crate) async fn begin_owner(
        &self,
        store: &impl Store,
        headers: &HeaderMap,
        body: &Value,
        peer: SocketAddr,
    ) -> Answered {
        let fields = Fields::of("", body, "link")?;
        let secret = Secret::of(fields.required("link", fields.text("link")?)?);
        let found = match &secret {
            Some(secret) => lasting(store, secret).await?,
            None => None,
        };
        let (secret, (account, expires_at)) =
            secret.zip(found).ok_or_else(|| self.wrong(Kind::Link, peer))?;
        let mut answer = ok(&secret.shown(&account, expires_at));
        let left = expires_at.since(clock::now());
        set(&mut answer, headers, OWNER, &secret.text(), left, self.attributes(headers))?;
        Ok(answer)
    }

    /// Tells an owner's page what its login is: only a page of this site reads the answer.
    pub(crate) async fn tell_owner(&self, store: &impl Store, headers: &HeaderMap) -> Answered {
        let secret = cookie(headers, OWNER).and_then(Secret::of).ok_or(Error::NoLink)?;
        let (account, expires_at) = lasting(store, &secret).await?.ok_or(Error::NoLink)?;
        Ok(ok(&secret.shown(&account, expires_at)))
    }

    /// Ends an owner's login, and its link with it.
    pub(crate) async fn end_owner(&self, store: &impl Store, headers: &HeaderMap) -> Answered {
        let (secret, account, expires_at) = self.owner(store, headers).await?;
        let row = LoginRow { account: Some(account), expires_at, ended: true };
        store.write_login(By::OWNER, secret.digest(), row).await?;
        let mut answer = ok(&json!({}));
        set(&mut answer, headers, OWNER, "", Duration::ZERO, self.attributes(headers))?;
        Ok(answer)
    }

    /// Returns the attributes of an owner's cookie: below another site's page it is a login of that page alone.
    fn attributes(&self, headers: &HeaderMap) -> (&'static str, &'static str) {
        if self.framed { ("None", "; Secure; Partitioned") } else { strict(headers) }
    }

    /// Finds the owner's login of a request: the cookie, and the header that no other page can send.
    async fn owner(
        &self,
        store: &impl Store,
        headers: &HeaderMap,
    ) -> Result<(Secret, AccountId, Timestamp), Error> {
        let secret = cookie(headers, OWNER).and_then(Secret::of).ok_or(Error::NoLink)?;
        let sent = headers.get(OWNER_TOKEN).map(HeaderValue::as_bytes).unwrap_or_default();
        // How far two digests agree tells nothing of what was digested.
        if Sha256::digest(sent) != Sha256::digest(secret.page_token()) {
            return Err(Error::NoLink);
        }
        let (account, expires_at) = lasting(store, &secret).await?.ok_or(Error::NoLink)?;
        Ok((secret, account, expires_at))
    }

    /// Finds the operator's login of a request, unless it is forged, expired or ended.
    async fn operator<'a>(
        &self,
        store: &impl Store,
        holders: &'a [Holder],
        headers: &HeaderMap,
    ) -> Result<Option<(Cookie, &'a Holder)>, Error> {
        let Some(text) = cookie(headers, OPERATOR) else { return Ok(None) };
        let mut found =
            holders.iter().filter_map(|holder| Some((Cookie::of(text, &holder.token)?, holder)));
        let Some((cookie, holder)) = found.find(|(cookie, _)| lasts(cookie.expires_at)) else {
            return Ok(None);
        };
        let row = store.login(cookie.digest()).await?;
        Ok(Some((cookie, holder)).filter(|_| row.is_none_or(|row| !row.ended)))
    }

    /// Counts a wrong secret, and returns its refusal.
    fn wrong(&self, kind: Kind, peer: SocketAddr) -> Error {
        match (self.wrong.add((kind, network(peer.ip())), MOST_WRONG), kind) {
            (Err(seconds), _) => Error::TooManyTries(seconds),
            (Ok(()), Kind::Token) => Error::WrongToken,
            (Ok(()), Kind::Link) => Error::NoLink,
        }
    }
}

impl Cookie {
    /// Returns the value of the cookie.
    fn text(&self, token: &Token) -> String {
        let mut bytes = self.said().to_vec();
        let mac = token.mac(&bytes).finalize().into_bytes();
        bytes.extend(mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn of(text: &str, token: &Token) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (said, mac) = bytes.split_at_checked(24)?;
        token.mac(said).verify_slice(mac).ok()?;
        let (expires_at, number) = said.split_first_chunk::<8>()?;
        Some(Self {
            expires_at: Timestamp::from_unix(i64::from_be_bytes(*expires_at))?,
            number: number.try_into().ok()?,
        })
    }

    fn said(&self) -> Vec<u8> {
        [self.expires_at.unix_seconds().to_be_bytes().as_slice(), &self.number].concat()
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.said()).into()
    }
}

impl Secret {
    fn of(text: &str) -> Option<Self> {
        Some(Self(URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?))
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns what is stored of it.
    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }

    /// Returns what the page sends in a header. A cookie that was seen does not tell it.
    fn page_token(&self) -> String {
        let digest = Sha256::new_with_prefix("portal token 1 ").chain_update(self.0).finalize();
        URL_SAFE_NO_PAD.encode(digest)
    }

    fn shown(&self, account: &AccountId, expires_at: Timestamp) -> Value {
        json!({ "account_id": account, "expires_at": expires_at, "token": self.page_token() })
    }
}

/// The login of an operator who sent the token.
fn of(holder: &Holder) -> Login {
    Login::of_operator(holder.by, holder.only_reads)
}

/// Finds the account of a link, and when it expires, unless it has expired or was revoked.
async fn lasting(
    store: &impl Store,
    secret: &Secret,
) -> Result<Option<(AccountId, Timestamp)>, Error> {
    let row = store.login(secret.digest()).await?;
    let row = row.filter(|row| !row.ended && lasts(row.expires_at));
    Ok(row.and_then(|row| Some((row.account?, row.expires_at))))
}

/// Returns whether a login that expires then is one now. A clock that was ahead has made none that lasts
/// for years.
fn lasts(expires_at: Timestamp) -> bool {
    let now = clock::now();
    expires_at > now && expires_at <= now.saturating_add(SPAN).saturating_add(SKEW)
}

/// Finds a cookie of a request. Outside this machine, only the name counts that no other site can set.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let prefix = prefix(headers);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
    cookies.find_map(|cookie| {
        cookie.trim().strip_prefix(prefix)?.strip_prefix(name)?.strip_prefix('=')
    })
}

/// Returns the prefix of the names of cookies: none where a browser asks for this machine, which has no TLS. Elsewhere
/// TLS ends in front of the host.
fn prefix(headers: &HeaderMap) -> &'static str {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if access::is_local(host) { "" } else { SECURE }
}

/// Returns the attributes of a cookie for this site alone. It goes over TLS only where the page came over TLS: on this
/// machine a browser says so in `Origin`.
fn strict(headers: &HeaderMap) -> (&'static str, &'static str) {
    let over_tls = headers.get(ORIGIN).is_some_and(|o| o.as_bytes().starts_with(b"https://"));
    ("Strict", if over_tls || prefix(headers) == SECURE { "; Secure" } else { "" })
}

/// Sets a cookie, which no script reads.
///
/// # Errors
/// No browser would accept it: its page is of another machine, and came without TLS.
fn set(
    answer: &mut Answer,
    headers: &HeaderMap,
    name: &str,
    value: &str,
    span: Duration,
    (site, more): (&str, &str),
) -> Result<(), Error> {
    let (prefix, seconds) = (prefix(headers), span.as_secs());
    let is_plain = headers.get(ORIGIN).is_some_and(|o| o.as_bytes().starts_with(b"http://"));
    if is_plain && prefix == SECURE {
        let why = "a browser can log in only over https or at a loopback address: terminate TLS in front of the dashboard";
        return Err(Refused::Conflict(why.to_owned()).into());
    }
    let cookie = format!(
        "{prefix}{name}={value}; HttpOnly; SameSite={site}; Path=/; Max-Age={seconds}{more}"
    );
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
