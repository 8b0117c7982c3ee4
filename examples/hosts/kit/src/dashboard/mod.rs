//! The dashboard: what the specification leaves to the service's dashboard, and to the assistant
//! itself, as JSON on an address of its own, and a page for people.
//!
//! It has no accounts of its own. It listens on loopback and answers neither another site's page nor
//! a name that somebody has pointed at this address; or it asks for an operator's token: with each
//! request, or once for a cookie. The owner of an account has a link, which leads to that account alone. The
//! pages themselves have no data, and ask for it.

mod accounts;
mod alerts;
mod calls;
mod day;
mod deliveries;
mod endpoints;
mod extension;
mod fleet;
mod journal;
mod levers;
mod overview;
mod page;
mod recovery;
mod routes;
mod show;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{Instrument as _, debug_span};

use crate::auth::access::{Access, Ancestors};
use crate::auth::counts::Counts;
use crate::auth::login::Logins;
use crate::http::answer::{self, Answer, Answered, Error, ok};
use crate::http::gzip;
use crate::http::monitor::Monitor;
use crate::http::serve::{self, read_body};
use crate::http::shares::{MOST, Shares};
use crate::input::{self, Bad, Fields, NUL};
use crate::log;
use crate::program::shutdown::Shutdown;
use crate::store::scope::{Allowed, Among, Login, Operator};
use crate::store::{Account, PageOf, Place, Refused, Store, bounds};
use crate::trace::TraceParent;

pub use deliveries::MAX_LIST;
pub use extension::Extension;
pub use routes::{Action, ROUTES, Route, Who};

/// The longest body, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The header of the page's own requests.
const BY_PAGE: &str = "x-dashboard-page";

/// The dashboard's server. Clone it freely.
#[derive(Clone, Debug)]
pub struct Dashboard<S, X = ()> {
    store: S,
    extension: X,
    access: Access,
    logins: Logins,
    days: day::Days,
    waiting: alerts::Waiting,
    /// The edits and pings of owners, by their accounts.
    edits: Counts<AccountId>,
    shares: Shares<AccountId>,
    allow_loopback: bool,
    /// Of the operator's page, and of the owner's.
    policies: [HeaderValue; 2],
    stop: Option<Shutdown>,
    monitor: Monitor<S>,
}

/// A request, taken apart. No text in it has a NUL character.
#[derive(Debug)]
pub struct Asked<'a> {
    pub method: &'a Method,
    /// The segments of the path, percent-decoded. One empty segment is the root.
    pub path: Vec<&'a str>,
    pub query: Vec<(String, String)>,
    pub headers: &'a HeaderMap,
    /// An empty object where there is no body.
    pub body: Value,
    pub now: Timestamp,
}

impl<'a> Asked<'a> {
    fn new(
        method: &'a Method,
        path: Vec<&'a str>,
        query: Vec<(String, String)>,
        headers: &'a HeaderMap,
        body: Value,
        now: Timestamp,
    ) -> Result<Self, Error> {
        if path.iter().any(|segment| segment.contains('\0')) {
            return Err(Error::NoSuchPath);
        }
        if let Some((name, _)) = query.iter().find(|(_, value)| value.contains('\0')) {
            return Err(Bad::new(name, NUL).into());
        }
        input::storable(&body)?;
        Ok(Self { method, path, query, headers, body, now })
    }

    /// Finds the route.
    fn route(&self) -> Result<&'static Route, Error> {
        let found = Route::at(&self.path).find(|route| route.answers(self.method));
        found.ok_or_else(|| match Route::methods(&self.path) {
            none if none.is_empty() => Error::NoSuchPath,
            methods => Error::Method(methods),
        })
    }

    /// Takes the body as an object with the fields of the route and no others.
    fn fields(&self) -> Result<Fields<'_>, Error> {
        Ok(Fields::of("", &self.body, self.route()?.takes)?)
    }

    /// Checks that the query has no other parameters than these.
    fn check_query(&self, known: &[&str]) -> Result<(), Bad> {
        if self.query.iter().all(|(name, _)| known.contains(&name.as_str())) {
            return Ok(());
        }
        let (last, others) = known.split_last().unwrap_or((&"", &[]));
        Err(Bad::new("query", format!("the parameters are {} and {last}", others.join(", "))))
    }

    /// Returns the last value of a parameter.
    fn given(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// Returns the last value of a parameter, unless it is empty.
    fn text(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// Reads `limit`.
    fn limit(&self) -> Result<usize, Bad> {
        let Some(value) = self.given("limit") else { return Ok(MAX_LIST) };
        let read = value.parse().ok().filter(|limit| (1..=MAX_LIST).contains(limit));
        read.ok_or_else(|| Bad::new("limit", format!("not from 1 to {MAX_LIST}")))
    }

    /// Reads `after` and `before`, of which `before` prevails.
    fn place(&self) -> Place<'_> {
        match self.given("before") {
            Some(_) => Place::Before(self.text("before")),
            None => Place::After(self.text("after")),
        }
    }

    /// Reads a query that has nothing but `after` and `limit`.
    fn page<'b>(&'b self, account: Allowed<'b, Account>) -> Result<PageOf<'b>, Bad> {
        self.check_query(&["after", "limit"])?;
        Ok(PageOf { account, after: self.text("after"), limit: self.limit()? })
    }
}

impl<S: Store> Dashboard<S> {
    /// Creates a dashboard over a store. With `allow_loopback`, endpoints may be on this machine.
    pub fn new(store: S, access: Access, allow_loopback: bool) -> Self {
        Self::extended(store, (), access, allow_loopback)
    }
}

impl<S: Store, X: Extension> Dashboard<S, X> {
    /// Creates a dashboard to which its host adds something.
    pub fn extended(store: S, extension: X, access: Access, allow_loopback: bool) -> Self {
        let policy = page::policy(&page::DASHBOARD.text, "'none'");
        Self {
            monitor: Monitor::new(store.clone()),
            store,
            extension,
            access,
            logins: Logins::default(),
            days: day::Days::default(),
            waiting: alerts::Waiting::default(),
            edits: Counts::default(),
            shares: Shares::default(),
            allow_loopback,
            policies: [policy.clone(), policy],
            stop: None,
        }
    }

    /// Shows what this monitor knows, which is more than the store: the public API of this process.
    pub fn monitored(self, monitor: Monitor<S>) -> Self {
        Self { monitor, ..self }
    }

    /// Allows these sites to frame an owner's page.
    pub fn framed_by(self, ancestors: &Ancestors) -> Self {
        let [own, _] = self.policies;
        let framed = page::policy(&page::DASHBOARD.text, ancestors.as_str());
        let logins = self.logins.framed(ancestors.is_any());
        Self { policies: [own, framed], logins, ..self }
    }

    /// Refuses what is not complete when the end is asked for.
    pub fn until(self, stop: Shutdown) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Answers a request.
    pub async fn answer(self, request: Request<Incoming>, peer: SocketAddr) -> Answer {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let decoded: Vec<Cow<'_, str>> =
            head.uri.path().trim_start_matches('/').split('/').map(decode).collect();
        let path: Vec<&str> = decoded.iter().map(|segment| &**segment).collect();
        let (route, trace) = (template::<X>(&path), TraceParent::of(&head.headers));
        let traceparent = trace.as_ref().map(TraceParent::as_str);
        let span = debug_span!("dashboard", route, traceparent);
        let mut stranger = true;
        let answered = async {
            if self.stop.as_ref().is_some_and(Shutdown::is_requested) {
                return Err(Error::Stopping);
            }
            self.access.check_origin(&head.headers)?;
            let login = match path.as_slice() {
                ["" | "explain" | "login" | "portal" | "portal-login"] => None,
                _ => {
                    let (store, access) = (&self.store, &self.access);
                    let login = self.logins.check(store, access, &head.headers, peer).await?;
                    stranger = false;
                    Some(login)
                }
            };
            let body = match head.method {
                Method::POST | Method::PATCH => {
                    let read = read_body(&head.extensions, body, MAX_BODY, PATIENCE);
                    let read = tokio::select! {
                        read = read => read,
                        () = self.stopping() => return Err(Error::Stopping),
                    };
                    read?
                }
                _ => Default::default(),
            };
            let body = match body.is_empty() {
                true => json!({}),
                false => serde_json::from_slice(&body).map_err(|error| {
                    let at = format!("line {} column {}", error.line(), error.column());
                    Bad::new("", format!("the body is not JSON at {at}"))
                })?,
            };
            let query = head.uri.query().unwrap_or_default().as_bytes();
            let query = url::form_urlencoded::parse(query).into_owned().collect();
            let (method, headers) = (&head.method, &head.headers);
            let asked = Asked::new(method, path, query, headers, body, self.store.now())?;
            let _share = match login.as_ref().and_then(Login::owner) {
                Some(owner) => {
                    let share = self.shares.enter(owner.clone()).await;
                    Some(share.ok_or(Error::TooManyAtOnce(MOST))?)
                }
                None => None,
            };
            match login {
                Some(login) => self.route(&asked, &login).await,
                None => self.public_route(&asked, peer).await,
            }
        };
        let answered = answered.instrument(span.clone()).await;
        let reason = answered.as_ref().err().and_then(Error::reason).map(str::to_owned);
        let mut answer = gzip::encoded(&head, answered.unwrap_or_else(Error::answer));
        // The page has a form: a browser that finds Basic asks for a password itself.
        if answer.status() == StatusCode::UNAUTHORIZED && head.headers.contains_key(BY_PAGE) {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // A login that succeeds has the right secret.
        stranger &= !(head.method == Method::POST && answer.status().is_success());
        // The page asks every second; that nothing has changed is not worth a line.
        if answer.status() != StatusCode::NOT_MODIFIED {
            let (status, took_us) = (answer.status().as_u16(), log::micros(began.elapsed()));
            let method = serve::method(&head.method);
            match reason {
                Some(_) => log::warn!(
                    parent: &span,
                    stranger, method, route, status, took_us, reason, traceparent,
                    "dashboard"
                ),
                None => log::info!(
                    parent: &span,
                    stranger, method, route, status, took_us, traceparent,
                    "dashboard"
                ),
            }
        }
        answer
    }

    /// Answers what somebody asks without HTTP: a command at a terminal. The segments of the path are not
    /// encoded.
    pub async fn ask(
        &self,
        login: &Login,
        method: &Method,
        path: Vec<&str>,
        query: Vec<(String, String)>,
        body: Value,
    ) -> Answer {
        let (headers, now) = (HeaderMap::new(), self.store.now());
        let answered = match Asked::new(method, path, query, &headers, body, now) {
            Ok(asked) => self.route(&asked, login).await,
            Err(error) => Err(error),
        };
        if let Some(why) = answered.as_ref().err().and_then(Error::reason) {
            log::warn!(error = %why, "store");
        }
        answered.unwrap_or_else(Error::answer)
    }

    /// Returns when the end is asked for.
    async fn stopping(&self) {
        match &self.stop {
            Some(stop) => stop.requested().await,
            None => std::future::pending().await,
        }
    }

    /// Answers what needs no login: pages without data, and logging in.
    async fn public_route(&self, asked: &Asked<'_>, peer: SocketAddr) -> Answered {
        let Asked { headers, body, .. } = asked;
        let (store, logins) = (&self.store, &self.logins);
        let [own, framed] = &self.policies;
        match (asked.route()?.action, &self.access) {
            (Action::ShowPage, _) => Ok(answer::page(&page::DASHBOARD, own)),
            (Action::ShowPortal, _) => Ok(answer::page(&page::DASHBOARD, framed)),
            (Action::ShowExplain, _) => {
                Ok(answer::page(&page::EXPLAIN, &page::own_policy(&page::EXPLAIN.text)))
            }
            (Action::TellLogin, access) => {
                Ok(ok(&json!({ "required": matches!(access, Access::Tokens(_)) })))
            }
            (Action::BeginLogin, Access::Tokens(holders)) => {
                logins.begin(holders, headers, body, peer)
            }
            (Action::EndLogin, Access::Tokens(holders)) => {
                logins.end(store, holders, headers).await
            }
            (Action::BeginLogin | Action::EndLogin, Access::ThisMachine) => Err(no_token()),
            (Action::TellOwnerLogin, _) => logins.tell_owner(store, headers).await,
            (Action::BeginOwnerLogin, _) => logins.begin_owner(store, headers, body, peer).await,
            (Action::EndOwnerLogin, _) => logins.end_owner(store, headers).await,
            _ => Err(Error::NoSuchPath),
        }
    }

    async fn route(&self, asked: &Asked<'_>, login: &Login) -> Answered {
        let Asked { method, path, .. } = asked;
        let operator = login.operator();
        if login.only_reads()
            && *method != Method::GET
            && *method != Method::HEAD
            && !only_counts(asked)
        {
            return Err(Error::OnlyReads);
        }
        if path.first().is_some_and(|first| X::PATHS.contains(first)) {
            return self.extension.route(operator?, asked).await;
        }
        let store = &self.store;
        let route = asked.route()?;
        if let Some(owner) = login.owner().filter(|_| route.is_edit() && !only_counts(asked)) {
            let most = bounds::EDITS.most;
            self.edits
                .add(owner.clone(), most)
                .map_err(|seconds| Error::TooOften(bounds::EDITS.reached(most.into()), seconds))?;
        }
        let id = path.get(1).copied().unwrap_or_default();
        let account = || login.account(id);
        let endpoint = || login.endpoint(store, id);
        let delivery = || login.delivery(store, id);
        let recovery = || login.recovery(store, id);
        match route.action {
            Action::Monitor => {
                operator?;
                self.monitor.route(method, route.path).await
            }
            Action::ListAccounts => self.accounts(operator?, asked).await,
            Action::CreateAccount => self.create_account(operator?, asked).await,
            Action::ShowAccount => {
                Ok(ok(&show::account(&store.account(account()?).await?, operator.ok())))
            }
            Action::ChangeAccount => self.change_account(operator?, id, asked).await,
            Action::MakeLink => self.link(operator?, login, id, asked).await,
            Action::RevokeLinks => self.end_links(operator?, id).await,
            Action::ShowOverview => self.overview(account()?, operator.ok(), asked).await,
            Action::ShowDay => self.day(account()?, asked).await,
            Action::ListKeys => self.keys(account()?, asked).await,
            Action::CreateKey => self.create_key(account()?, asked).await,
            Action::RevokeKey => {
                let key = login.key(store, id).await?;
                asked.fields()?;
                Ok(ok(&show::key(&store.revoke_key(key).await?, asked.now)))
            }
            Action::ListCalls => self.calls(account()?, asked).await,
            Action::RecordCall => self.record_call(operator?, account()?, asked).await,
            Action::EmitEvent => self.emit(operator?, account()?, asked).await,
            Action::ListEndpoints => self.endpoints(account()?, asked).await,
            Action::CreateEndpoint => self.create_endpoint(account()?, asked).await,
            Action::ListDeliveries => self.deliveries(account()?, asked).await,
            Action::CancelPending => self.cancel_pending(operator?, account()?, asked).await,
            Action::ListRecoveries => self.recoveries(account()?, asked).await,
            Action::RecoverAccount => self.recover_all(Among::One(account()?), asked).await,
            Action::RecoverAll => self.recover_all(Among::All(operator?), asked).await,
            Action::ListAlerts => self.alerts(account()?, asked).await,
            Action::FollowAlerts => self.alerts_after(operator?, asked).await,
            Action::Acknowledge => self.acknowledge(login.alert(store, id).await?, asked).await,
            Action::ShowFleet => self.fleet(operator?, asked).await,
            Action::ShowLevers => Ok(ok(&store.levers(operator?).await?)),
            Action::SetLever => self.set_lever(operator?, asked).await,
            Action::UndoLever => {
                let by = operator?;
                asked.fields()?;
                Ok(ok(&store.undo_lever(by, id).await?))
            }
            Action::ReadJournal => self.journal(operator?, asked).await,
            Action::ShowEndpoint => {
                Ok(ok(&show::endpoint(&store.endpoint(endpoint().await?).await?)))
            }
            Action::EditEndpoint => self.edit_endpoint(endpoint().await?, asked).await,
            Action::DeleteEndpoint => {
                Ok(ok(&show::endpoint(&store.delete_endpoint(endpoint().await?).await?)))
            }
            Action::EnableEndpoint => self.enable(endpoint().await?, asked).await,
            Action::PauseEndpoint => {
                let id = endpoint().await?;
                asked.fields()?;
                Ok(ok(&show::endpoint(&store.pause(id).await?)))
            }
            Action::PingEndpoint => self.ping(login, endpoint().await?, asked).await,
            Action::RotateSecret => self.rotate_secret(endpoint().await?, asked).await,
            Action::RecoverEndpoint => self.recover(endpoint().await?, asked).await,
            Action::ShowDelivery => {
                Ok(ok(&show::delivery(&store.delivery(delivery().await?).await?)))
            }
            Action::Redeliver | Action::SendNow => {
                let id = delivery().await?;
                asked.fields()?;
                let row = match route.action {
                    Action::Redeliver => store.redeliver(id).await?,
                    _ => store.send_now(id).await?,
                };
                Ok(answer::json(StatusCode::ACCEPTED, &show::delivery(&row)))
            }
            Action::ShowRecovery => {
                Ok(ok(&show::recovery(&store.recovery(recovery().await?).await?)))
            }
            Action::PauseRecovery | Action::ContinueRecovery | Action::CancelRecovery => {
                let id = recovery().await?;
                asked.fields()?;
                let row = match route.action {
                    Action::PauseRecovery => store.pause_recovery(id, true).await?,
                    Action::ContinueRecovery => store.pause_recovery(id, false).await?,
                    _ => store.cancel_recovery(id).await?,
                };
                Ok(ok(&show::recovery(&row)))
            }
            _ => Err(Error::NoSuchPath),
        }
    }

    /// Makes a link for the owner of an account.
    async fn link(&self, _: Operator, login: &Login, id: &str, asked: &Asked<'_>) -> Answered {
        asked.fields()?;
        if matches!(self.access, Access::ThisMachine) {
            return Err(no_token());
        }
        let account = self.store.account(login.account(id)?).await?.id;
        self.logins.link(&self.store, login.by(), account).await
    }

    /// Revokes every link of an account.
    async fn end_links(&self, by: Operator, id: &str) -> Answered {
        let revoked = self.store.end_logins(by, id).await?;
        Ok(ok(&json!({ "revoked": revoked })))
    }
}

/// Returns the refusal of a link where everybody who reaches the dashboard is an operator: it would bind nobody.
fn no_token() -> Error {
    let why = "this dashboard requires no token, so everybody is an operator: start the process \
               with --operator-token-file";
    Refused::Conflict(why.to_owned()).into()
}

/// Returns whether a request counts what was missed, and starts nothing: the page asks it of everybody.
fn only_counts(asked: &Asked<'_>) -> bool {
    let is_recovery = matches!(asked.path.as_slice(), ["endpoints", _, "recover"]);
    is_recovery && asked.body["dry_run"] == true
}

/// Returns a path for the log: what stands where an id belongs may be anything, a secret included.
fn template<X: Extension>(path: &[&str]) -> String {
    if let Some(first) = path.first().filter(|first| X::PATHS.contains(first)) {
        return format!("/{first}");
    }
    match Route::at(path).next() {
        Some(route) => format!("/{}", route.path),
        None => "(unknown path)".to_owned(),
    }
}

/// Percent-decodes a segment of a path. What is broken stays as it is: no id is like that.
fn decode(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8().unwrap_or(Cow::Borrowed(segment))
}
