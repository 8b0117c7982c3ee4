//! The table of routes: method and path, the people it is for, the fields of a body, and the word of the journal.
//!
//! The router, the answer to a wrong method and the templates of the log come from it. Commands at a terminal name
//! its actions, and tests compare it with the page, the README and the journals of the stores.

use http::Method;

use Action::*;
use Who::*;

/// One route.
#[derive(Clone, Debug)]
pub struct Route {
    pub action: Action,
    /// `GET` also answers `HEAD`.
    pub method: Method,
    /// The segments of its path, `{id}` for one that may be anything.
    pub path: &'static str,
    pub who: Who,
    /// The fields of its body, with `, ` in between.
    pub takes: &'static str,
    /// The word of the journal for it; empty where nothing is written.
    pub journal: &'static str,
}

/// The people whom a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody who reaches the dashboard.
    Anybody,
    /// An operator, and the owner of the account that it is about.
    Owner,
    /// An operator.
    Operator,
}

/// The action of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    ShowPage,
    ShowPortal,
    ShowExplain,
    TellLogin,
    BeginLogin,
    EndLogin,
    TellOwnerLogin,
    BeginOwnerLogin,
    EndOwnerLogin,
    Monitor,
    ListAccounts,
    CreateAccount,
    ShowAccount,
    ChangeAccount,
    MakeLink,
    RevokeLinks,
    ShowOverview,
    ShowDay,
    ListKeys,
    CreateKey,
    RevokeKey,
    ListCalls,
    RecordCall,
    EmitEvent,
    ListEndpoints,
    CreateEndpoint,
    ShowEndpoint,
    EditEndpoint,
    DeleteEndpoint,
    EnableEndpoint,
    PauseEndpoint,
    PingEndpoint,
    RotateSecret,
    RecoverEndpoint,
    RecoverAccount,
    RecoverAll,
    ListRecoveries,
    ShowRecovery,
    PauseRecovery,
    ContinueRecovery,
    CancelRecovery,
    ListDeliveries,
    ShowDelivery,
    Redeliver,
    SendNow,
    CancelPending,
    ListAlerts,
    FollowAlerts,
    Acknowledge,
    ShowFleet,
    ShowLevers,
    SetLever,
    UndoLever,
    ReadJournal,
}

const ACCOUNT: &str = "id, business_name, timezone, plan, subscription_active, closing";
const ACCOUNT_CHANGE: &str = "timezone, plan, subscription_active, closing";
const CALL: &str = crate::input::CALL;
const ENDPOINT: &str = "url, secret, description";
const KEY: &str = "name, mode, scopes, expires_at";
const LEVER: &str = "account_id, endpoint_id, per_second, instead_of";
const MISSED: &str = "from, until, types, statuses, dry_run";
const SECRET: &str = "secret, overlap_seconds";
const MISSED_PAGE: &str = "from, until, types, statuses, after";

/// All of them, but for those of an [`Extension`](super::Extension).
pub const ROUTES: &[Route] = &[
    get(ShowPage, "", Anybody),
    get(ShowPortal, "portal", Anybody),
    get(ShowExplain, "explain", Anybody),
    get(TellLogin, "login", Anybody),
    post(BeginLogin, "login", Anybody, "token", ""),
    delete(EndLogin, "login", Anybody, ""),
    get(TellOwnerLogin, "portal-login", Anybody),
    post(BeginOwnerLogin, "portal-login", Anybody, "link", ""),
    delete(EndOwnerLogin, "portal-login", Anybody, ""),
    get(Monitor, "metrics", Operator),
    get(Monitor, "healthz", Operator),
    get(Monitor, "readyz", Operator),
    get(ListAccounts, "accounts", Operator),
    post(CreateAccount, "accounts", Operator, ACCOUNT, "account.created"),
    get(ShowAccount, "accounts/{id}", Owner),
    patch(ChangeAccount, "accounts/{id}", Operator, ACCOUNT_CHANGE, "account.changed"),
    post(MakeLink, "accounts/{id}/portal", Operator, "", "link.made"),
    delete(RevokeLinks, "accounts/{id}/portal", Operator, "links.revoked"),
    get(ShowOverview, "accounts/{id}/overview", Owner),
    get(ShowDay, "accounts/{id}/day", Owner),
    get(ListKeys, "accounts/{id}/keys", Owner),
    post(CreateKey, "accounts/{id}/keys", Owner, KEY, "key.created"),
    post(RevokeKey, "keys/{id}/revoke", Owner, "", "key.revoked"),
    get(ListCalls, "accounts/{id}/calls", Owner),
    post(RecordCall, "accounts/{id}/calls", Operator, CALL, "call.recorded"),
    post(EmitEvent, "accounts/{id}/events", Operator, "type, data", "event.emitted"),
    get(ListEndpoints, "accounts/{id}/endpoints", Owner),
    post(CreateEndpoint, "accounts/{id}/endpoints", Owner, ENDPOINT, "endpoint.created"),
    get(ShowEndpoint, "endpoints/{id}", Owner),
    patch(EditEndpoint, "endpoints/{id}", Owner, "url, description", "endpoint.changed"),
    delete(DeleteEndpoint, "endpoints/{id}", Owner, "endpoint.deleted"),
    post(EnableEndpoint, "endpoints/{id}/enable", Owner, "", "endpoint.enabled"),
    post(PauseEndpoint, "endpoints/{id}/pause", Owner, "", "endpoint.disabled"),
    post(PingEndpoint, "endpoints/{id}/ping", Owner, "type", "event.emitted"),
    post(RotateSecret, "endpoints/{id}/rotate", Owner, SECRET, "endpoint.rotated"),
    post(RecoverEndpoint, "endpoints/{id}/recover", Owner, MISSED, "recovery.started"),
    post(RecoverAccount, "accounts/{id}/recover", Owner, MISSED_PAGE, "recoveries.started"),
    post(RecoverAll, "recoveries", Operator, MISSED_PAGE, "recoveries.started"),
    get(ListRecoveries, "accounts/{id}/recoveries", Owner),
    get(ShowRecovery, "recoveries/{id}", Owner),
    post(PauseRecovery, "recoveries/{id}/pause", Owner, "", "recovery.paused"),
    post(ContinueRecovery, "recoveries/{id}/continue", Owner, "", "recovery.continued"),
    post(CancelRecovery, "recoveries/{id}/cancel", Owner, "", "recovery.cancelled"),
    get(ListDeliveries, "accounts/{id}/deliveries", Owner),
    get(ShowDelivery, "deliveries/{id}", Owner),
    post(Redeliver, "deliveries/{id}/redeliver", Owner, "", "delivery.redelivered"),
    post(SendNow, "deliveries/{id}/send", Owner, "", "delivery.sent"),
    post(CancelPending, "accounts/{id}/cancel", Operator, "type, after", "deliveries.cancelled"),
    get(ListAlerts, "accounts/{id}/alerts", Owner),
    get(FollowAlerts, "alerts", Operator),
    post(Acknowledge, "alerts/{id}/acknowledge", Owner, "by", "alert.acknowledged"),
    get(ShowFleet, "fleet", Operator),
    get(ShowLevers, "levers", Operator),
    post(SetLever, "levers", Operator, LEVER, "lever.set"),
    post(UndoLever, "levers/{id}/undo", Operator, "", "lever.undone"),
    get(ReadJournal, "journal", Operator),
];

const fn get(action: Action, path: &'static str, who: Who) -> Route {
    Route { action, method: Method::GET, path, who, takes: "", journal: "" }
}

const fn post(
    action: Action,
    path: &'static str,
    who: Who,
    takes: &'static str,
    journal: &'static str,
) -> Route {
    Route { action, method: Method::POST, path, who, takes, journal }
}

const fn patch(
    action: Action,
    path: &'static str,
    who: Who,
    takes: &'static str,
    journal: &'static str,
) -> Route {
    Route { action, method: Method::PATCH, path, who, takes, journal }
}

const fn delete(action: Action, path: &'static str, who: Who, journal: &'static str) -> Route {
    Route { action, method: Method::DELETE, path, who, takes: "", journal }
}

impl Route {
    /// Finds the routes of a path.
    pub(super) fn at(path: &[&str]) -> impl Iterator<Item = &'static Self> {
        let is_it = |route: &&Route| {
            let mut rest = path.iter();
            let mut fits = |part: &str| rest.next().is_some_and(|is| part == "{id}" || part == *is);
            route.path.split('/').all(&mut fits) && rest.next().is_none()
        };
        ROUTES.iter().filter(is_it)
    }

    /// Returns the first route of an action.
    pub fn of(action: Action) -> &'static Self {
        let found = ROUTES.iter().find(|route| route.action == action);
        #[expect(clippy::expect_used, reason = "a test looks for each")]
        found.expect("each action has a route")
    }

    /// Tells whether an owner changes something with it that has no bound of its own.
    pub(super) fn is_edit(&self) -> bool {
        let is_bounded = matches!(
            self.action,
            CreateKey | RevokeKey | CreateEndpoint | DeleteEndpoint | Redeliver
        );
        !self.journal.is_empty() && !is_bounded
    }

    /// Returns whether it answers a method.
    pub(super) fn answers(&self, method: &Method) -> bool {
        *method == self.method || self.method == Method::GET && *method == Method::HEAD
    }

    /// Returns the methods of a path, as `Allow` has them; empty where there is no such path.
    pub(super) fn methods(path: &[&str]) -> String {
        let allowed = Self::at(path).map(|route| match route.method.as_str() {
            "GET" => "GET, HEAD",
            other => other,
        });
        allowed.collect::<Vec<_>>().join(", ")
    }
}
