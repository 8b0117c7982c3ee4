//! The owner's page: what the link of an account leads to, and what it does not.

use std::collections::{BTreeMap, BTreeSet};

use host::dashboard::{ROUTES, Who};
use serde_json::{Value, json};

use testing::receiver::{Receiver, Reply};
use testing::running::{Answer, File, Service, eventually, request};

const TOKEN: &str = "the-operators-own-token";
const READER: &str = "the-token-of-a-reader";

/// The ids of an account, and of one of each thing in it, by their places in the routes.
type Things = BTreeMap<&'static str, String>;

pub(crate) struct Portal {
    service: Service,
    _file: File,
}

impl Portal {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let file = File::new("token", &format!("ada:operator:{TOKEN}\nbo:reader:{READER}\n"));
        let own = ["--operator-token-file", file.path(), "--allow-loopback-endpoints"];
        Self { service: Service::start(&[&own, flags].concat()), _file: file }
    }

    pub(crate) fn send(&self, headers: &str, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        request(self.service.dashboard(), method, path, headers, body.as_bytes())
    }

    /// Asks as an operator, and expects this status.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let answer = self.send(&bearer(), method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        answer.json()
    }

    /// Makes a link, and returns its secret.
    #[track_caller]
    fn link(&self, account: &str) -> String {
        let made = self.ask("POST", &format!("/accounts/{account}/portal"), &json!({}), 201);
        assert_eq!(made["account_id"], account);
        made["path"].as_str().unwrap().strip_prefix("/portal#link=").unwrap().to_owned()
    }

    fn log_in(&self, link: &str, headers: &str) -> Answer {
        self.send(headers, "POST", "/portal-login", &json!({ "link": link }))
    }

    /// The headers of an owner's page: its cookie, and its token.
    #[track_caller]
    pub(crate) fn owner(&self, account: &str) -> String {
        let answer = self.log_in(&self.link(account), "");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["account_id"], account);
        format!("{}{}", cookie(&answer), token(&answer.json()))
    }

    /// One of each thing in an account. Nothing answers at its endpoint.
    fn things(&self, receiver: &Receiver, account: &str) -> Things {
        let of = |what: &str| format!("/accounts/{account}/{what}");
        let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
        let key = json!({ "name": "a", "mode": "live", "scopes": [] });
        let key = id(&self.ask("POST", &of("keys"), &key, 201));
        let url = json!({ "url": "http://127.0.0.1:9/" });
        let endpoint = id(&self.ask("POST", &of("endpoints"), &url, 201));
        let pause = |how: &str| {
            self.ask("POST", &format!("/endpoints/{endpoint}/{how}"), &json!({}), 200);
        };
        pause("pause");
        let event = json!({ "type": "missed", "data": {} });
        let emitted = self.ask("POST", &of("events"), &event, 201);
        pause("enable");
        let deliveries = emitted["deliveries"].as_array().unwrap();
        let delivery = deliveries.last().unwrap().as_str().unwrap().to_owned();
        let recover = format!("/endpoints/{endpoint}/recover");
        let recovery = id(&self.ask("POST", &recover, &json!({}), 202));
        // An endpoint that answers 410 is disabled, and its owner is told.
        let gone = json!({ "url": receiver.url("/gone", &[Reply::Status(410)]) });
        let gone = id(&self.ask("POST", &of("endpoints"), &gone, 201));
        self.ask("POST", &format!("/endpoints/{gone}/ping"), &json!({}), 201);
        let alert = eventually("an alert", || {
            let alerts = self.ask("GET", &of("alerts"), &Value::Null, 200);
            alerts["data"][0]["id"].as_str().map(str::to_owned)
        });
        [
            ("{account}", account.to_owned()),
            ("{key}", key),
            ("{endpoint}", endpoint),
            ("{delivery}", delivery),
            ("{recovery}", recovery),
            ("{alert}", alert),
            ("{lever}", "lvr_1".to_owned()),
        ]
        .into()
    }
}

fn bearer() -> String {
    with_token(TOKEN)
}

fn with_token(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn cookie(answer: &Answer) -> String {
    let (pair, _) = answer.header("set-cookie").unwrap().split_once(';').unwrap();
    format!("Cookie: {pair}\r\n")
}

fn token(login: &Value) -> String {
    format!("X-Portal-Token: {}\r\n", login["token"].as_str().unwrap())
}

/// Each route behind a login: what its own owner is answered, with this body. 403: it is the operators'.
fn routes() -> Vec<(&'static str, &'static str, Value, u16)> {
    let none = json!({});
    let key = json!({ "name": "b", "mode": "live", "scopes": [] });
    vec![
        ("GET", "/accounts", Value::Null, 403),
        ("POST", "/accounts", json!({ "id": "acct_new", "timezone": "UTC" }), 403),
        ("GET", "/accounts/{account}", Value::Null, 200),
        ("PATCH", "/accounts/{account}", json!({ "closing": true }), 403),
        ("POST", "/accounts/{account}/portal", none.clone(), 403),
        ("DELETE", "/accounts/{account}/portal", Value::Null, 403),
        ("GET", "/accounts/{account}/overview", Value::Null, 200),
        ("GET", "/accounts/{account}/day", Value::Null, 200),
        ("GET", "/accounts/{account}/keys", Value::Null, 200),
        ("POST", "/accounts/{account}/keys", key, 201),
        ("GET", "/accounts/{account}/calls", Value::Null, 200),
        ("POST", "/accounts/{account}/calls", none.clone(), 403),
        ("POST", "/accounts/{account}/events", json!({ "type": "x", "data": {} }), 403),
        ("GET", "/accounts/{account}/endpoints", Value::Null, 200),
        ("POST", "/accounts/{account}/endpoints", json!({ "url": "http://127.0.0.1:9/b" }), 201),
        ("GET", "/accounts/{account}/deliveries", Value::Null, 200),
        ("GET", "/accounts/{account}/recoveries", Value::Null, 200),
        ("POST", "/accounts/{account}/recover", none.clone(), 202),
        ("POST", "/accounts/{account}/cancel", json!({ "type": "ping" }), 403),
        ("GET", "/levers", Value::Null, 403),
        ("GET", "/fleet", Value::Null, 403),
        ("POST", "/levers", json!({ "per_second": 0 }), 403),
        ("POST", "/levers/{lever}/undo", none.clone(), 403),
        ("GET", "/accounts/{account}/alerts", Value::Null, 200),
        ("GET", "/alerts", Value::Null, 403),
        ("GET", "/journal", Value::Null, 403),
        ("POST", "/alerts/{alert}/acknowledge", json!({ "by": "me" }), 200),
        ("POST", "/recoveries", none.clone(), 403),
        ("GET", "/recoveries/{recovery}", Value::Null, 200),
        // Whether it still runs is its sender's matter.
        ("POST", "/recoveries/{recovery}/pause", none.clone(), 0),
        ("POST", "/recoveries/{recovery}/continue", none.clone(), 0),
        ("POST", "/recoveries/{recovery}/cancel", none.clone(), 200),
        ("GET", "/deliveries/{delivery}", Value::Null, 200),
        ("POST", "/deliveries/{delivery}/redeliver", none.clone(), 0),
        ("POST", "/deliveries/{delivery}/send", none.clone(), 0),
        ("POST", "/keys/{key}/revoke", none.clone(), 200),
        ("GET", "/endpoints/{endpoint}", Value::Null, 200),
        ("PATCH", "/endpoints/{endpoint}", json!({ "url": "http://127.0.0.1:9/c" }), 200),
        ("POST", "/endpoints/{endpoint}/ping", none.clone(), 201),
        ("POST", "/endpoints/{endpoint}/ping", json!({ "type": "call.ended" }), 201),
        ("POST", "/endpoints/{endpoint}/rotate", none.clone(), 200),
        ("POST", "/endpoints/{endpoint}/recover", json!({ "dry_run": true }), 200),
        ("POST", "/endpoints/{endpoint}/pause", none.clone(), 200),
        ("POST", "/endpoints/{endpoint}/enable", none, 200),
        ("DELETE", "/endpoints/{endpoint}", Value::Null, 200),
        ("GET", "/metrics", Value::Null, 403),
        ("GET", "/healthz", Value::Null, 403),
        ("GET", "/readyz", Value::Null, 403),
    ]
}

fn path_of(route: &str, things: &Things) -> String {
    things.iter().fold(route.to_owned(), |path, (place, id)| path.replace(place, id))
}

/// What operators are answered where owners are refused.
fn of_operators(method: &str, route: &str) -> u16 {
    match (method, route) {
        // This host keeps no journal, and has no levers.
        ("GET", "/journal") | ("POST", "/accounts/{account}/cancel") => 409,
        ("POST", route) if route.starts_with("/levers") => 409,
        ("POST", "/recoveries") => 202,
        ("POST", _) => 201,
        _ => 200,
    }
}

/// A route that is new has to be tried by each kind of login, and is for whom the table says.
#[test]
fn no_route_is_left_out() {
    let template = |path: &str| {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "{id}" } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    let tried = routes().into_iter();
    let tried = tried
        .map(|(method, path, _, status)| (format!("{method} {}", template(path)), status == 403));
    let known = ROUTES.iter().filter(|route| route.who != Who::Anybody);
    let known = known
        .map(|route| (format!("{} /{}", route.method, route.path), route.who == Who::Operator));
    let [tried, known]: [BTreeSet<(String, bool)>; 2] = [tried.collect(), known.collect()];
    assert_eq!(tried, known);
}

#[test]
fn each_route_by_each_kind_of_login() {
    let portal = Portal::start(&[]);
    let (own, other) = ("acct_fjord_dental", "acct_harbour_hair");
    portal.ask("PATCH", &format!("/accounts/{other}"), &json!({ "plan": "business" }), 200);
    let things = portal.things(&Receiver::start(), own);
    let (owner, stranger) = (portal.owner(own), portal.owner(other));
    let state = || {
        let show = |path: &str| portal.ask("GET", path, &Value::Null, 200);
        let endpoint = show(&path_of("/endpoints/{endpoint}", &things));
        let account = ["", "/keys"].map(|what| show(&format!("/accounts/{own}{what}")));
        let fields = ["url", "reason", "previous_secrets_until"];
        (account, fields.map(|field| endpoint[field].clone()))
    };
    let before = state();
    // No login, and one that is no operator's.
    let nobody = ["", "Cookie: portal_login=x; login=x\r\n"];
    for (method, route, body, status) in routes() {
        let path = path_of(route, &things);
        for login in nobody {
            let refused = portal.send(login, method, &path, &body).status;
            assert_eq!(refused, 401, "{method} {path}: {login}");
        }
        // An account that is not one's own, and what is in it, does not exist. The operators' is nobody's.
        let expected = if status == 403 { 403 } else { 404 };
        let refused = portal.send(&stranger, method, &path, &body);
        assert_eq!(refused.status, expected, "{method} {path}: {}", refused.text());
        // Nor does the cookie alone lead anywhere, or the token alone, or both with another's.
        let (cookie, token) = owner.split_once("\r\n").unwrap();
        let (_, strange) = stranger.split_once("\r\n").unwrap();
        for part in [format!("{cookie}\r\n"), token.to_owned(), format!("{cookie}\r\n{strange}")] {
            assert_eq!(portal.send(&part, method, &path, &body).status, 401, "{method} {path}");
        }
        let foreign = format!("{owner}Origin: https://evil.example\r\n");
        assert_eq!(portal.send(&foreign, method, &path, &body).status, 403, "{method} {path}");
    }
    assert_eq!(state(), before, "what others were refused was done");
    let is_expected = |found: u16, expected: u16| match expected {
        0 => [200, 202, 409].contains(&found),
        expected => found == expected,
    };
    for (method, route, body, status) in routes() {
        let path = path_of(route, &things);
        let answer = portal.send(&owner, method, &path, &body);
        let found = answer.status;
        assert!(is_expected(found, status), "{method} {path}: {found} {}", answer.text());
    }
    // Operators do all of it, to whatever account; readers look, and count.
    let things = portal.things(&Receiver::start(), other);
    for (method, route, body, status) in routes() {
        let path = path_of(route, &things);
        let reads = method == "GET" || body["dry_run"] == true;
        let reader = portal.send(&with_token(READER), method, &path, &body).status;
        let answer = portal.send(&bearer(), method, &path, &body);
        let found = answer.status;
        let expected = if status == 403 { of_operators(method, route) } else { status };
        assert!(is_expected(found, expected), "{method} {path}: {found} {}", answer.text());
        assert_eq!(reader, if reads { found } else { 403 }, "{method} {path}: a reader");
    }
    // A host that has a sandbox has it for operators.
    for (method, path) in [("GET", "/faults"), ("POST", "/clock"), ("DELETE", "/faults/1")] {
        let answer = portal.send(&owner, method, path, &json!({ "advance_seconds": 1 }));
        assert!([403, 404].contains(&answer.status), "{method} {path}: {}", answer.status);
    }
    let log = portal.service.log();
    let (_, secret) = owner.split_once("portal_login=").unwrap();
    assert!(!log.contains(secret.split_once("\r\n").unwrap().0), "the log has the secret");
}

/// Who is logged in takes note, whoever the request names: an owner signs in no operator's name, and closes nothing for
/// operators, nor they for an owner.
#[test]
fn an_owner_and_operators_take_note_of_an_alert_apart() {
    let (portal, receiver) = (Portal::start(&[]), Receiver::start());
    portal.ask("PATCH", "/accounts/acct_harbour_hair", &json!({ "plan": "business" }), 200);
    for (account, is_owner_first) in [("acct_fjord_dental", true), ("acct_harbour_hair", false)] {
        let things = portal.things(&receiver, account);
        let path = path_of("/alerts/{alert}/acknowledge", &things);
        let owner = portal.owner(account);
        let note = |is_owner: bool| {
            let headers = if is_owner { &owner } else { &bearer() };
            let answer = portal.send(headers, "POST", &path, &json!({ "by": "bo" }));
            assert_eq!(answer.status, 200, "{account}: {}", answer.text());
            answer.json()
        };
        let none = portal.ask("GET", &format!("/accounts/{account}/alerts"), &Value::Null, 200);
        let [by_operator, by_owner] = ["acknowledged", "owner_acknowledged_at"];
        assert_eq!(none["data"][0][by_operator], Value::Null, "{none}");
        assert_eq!(none["data"][0].get(by_owner), Some(&Value::Null), "{none}");
        let one = note(is_owner_first);
        assert_eq!(one[by_operator].is_null(), is_owner_first, "{one}");
        assert_eq!(one[by_owner].is_null(), !is_owner_first, "{one}");
        let both = note(!is_owner_first);
        assert_eq!(both[by_operator]["by"], "ada", "{both}");
        let first = if is_owner_first { by_owner } else { by_operator };
        assert_eq!(both[first], one[first], "{both}");
        assert!(both[by_owner].is_string(), "{both}");
        assert_eq!((note(true), note(false)), (both.clone(), both.clone()), "the first stays");
        let feed = portal.ask("GET", "/alerts?wait=0", &Value::Null, 200);
        assert!(feed["data"].as_array().unwrap().contains(&both), "{feed}");
    }
}

#[test]
fn a_host_with_one_sender_says_that_it_has_no_levers() {
    let portal = Portal::start(&[]);
    let none = portal.ask("GET", "/levers", &Value::Null, 200);
    assert_eq!(none, json!({ "levers": [], "senders": [], "processes": [] }));
    let refused = portal.ask("POST", "/levers", &json!({ "per_second": 0 }), 409);
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("no levers"), "{said}");
}

#[test]
fn nothing_of_plans_and_sandbox_is_in_it() {
    let portal = Portal::start(&[]);
    let account = "acct_fjord_dental";
    let owner = portal.owner(account);
    let path = format!("/accounts/{account}/overview");
    let shown = portal.send(&owner, "GET", &path, &Value::Null).json();
    let operators = portal.ask("GET", &path, &Value::Null, 200);
    assert_eq!((&shown["plans"], &shown["sandbox"]), (&Value::Null, &Value::Null));
    let fields: Vec<&String> = shown["account"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["business_name", "calls", "id", "timezone"]);
    for list in ["keys", "endpoints", "calls", "recoveries", "alerts"] {
        let [own, all] = [&shown, &operators].map(|shown| shown[list].as_array().unwrap().len());
        assert_eq!(own, all, "{list}");
    }
    assert!(operators["account"]["plan"].is_string() && operators["plans"].is_array());
}

#[test]
fn a_link_lasts_an_hour_and_is_revoked() {
    let portal = Portal::start(&[]);
    let (one, two) = ("acct_fjord_dental", "acct_harbour_hair");
    let link = portal.link(one);
    let answer = portal.log_in(&link, "");
    let set = answer.header("set-cookie").unwrap();
    let (_, attributes) = set.split_once("; ").unwrap();
    let (before, seconds) = attributes.split_once("Max-Age=").unwrap();
    assert_eq!(before, "HttpOnly; SameSite=Strict; Path=/; ");
    assert!((3500..=3600).contains(&seconds.parse::<u32>().unwrap()), "{set}");
    // A page that is loaded again is told its token, and nobody else is.
    let told = portal.send(&cookie(&answer), "GET", "/portal-login", &Value::Null);
    assert_eq!(told.json(), answer.json());
    assert_eq!(portal.send("", "GET", "/portal-login", &Value::Null).status, 401);

    let first = format!("{}{}", cookie(&answer), token(&answer.json()));
    let (second, other) = (portal.owner(one), portal.owner(two));
    let may = |headers: &str, account: &str| {
        portal.send(headers, "GET", &format!("/accounts/{account}/calls"), &Value::Null).status
    };
    assert_eq!((may(&first, one), may(&second, one), may(&other, two)), (200, 200, 200));
    // A log-out ends its own login, and its link.
    assert_eq!(portal.send(&cookie(&answer), "DELETE", "/portal-login", &Value::Null).status, 401);
    assert_eq!(portal.send(&first, "DELETE", "/portal-login", &Value::Null).status, 200);
    assert_eq!((may(&first, one), may(&second, one)), (401, 200));
    assert_eq!(portal.log_in(&link, "").status, 401);
    // A revocation ends all of an account, and none of another.
    let revoked = portal.ask("DELETE", &format!("/accounts/{one}/portal"), &Value::Null, 200);
    assert_eq!(revoked, json!({ "revoked": 1 }));
    assert_eq!((may(&second, one), may(&other, two)), (401, 200));
    portal.ask("DELETE", "/accounts/acct_nobody/portal", &Value::Null, 404);
    portal.ask("POST", "/accounts/acct_nobody/portal", &json!({}), 404);
    portal.ask("POST", &format!("/accounts/{one}/portal"), &json!({ "hours": 9 }), 400);
    for body in [json!({}), json!({ "link": 7 }), json!({ "link": "x", "y": 1 })] {
        assert_eq!(portal.send("", "POST", "/portal-login", &body).status, 400, "{body}");
    }
    // Guesses are few, as those of the operator's token are.
    for wrong in ["x", &link].iter().cycle().take(9) {
        let refused = portal.log_in(wrong, "");
        assert_eq!(refused.status, 401);
        let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(said, "this link has expired or was revoked: ask for a new link");
    }
    assert_eq!(portal.log_in("x", "").status, 429);
}

#[test]
fn only_the_named_sites_frame_the_owners_page() {
    let policy = |portal: &Portal, path: &str| {
        let answer = portal.send("", "GET", path, &Value::Null);
        let policy = answer.header("content-security-policy").unwrap();
        let (all, framed) = policy.split_once("; frame-ancestors ").unwrap();
        (all.to_owned(), framed.to_owned())
    };
    let alone = Portal::start(&[]);
    let sites = "https://app.example http://localhost:1";
    let framed = Portal::start(&["--portal-frame-ancestors", sites]);
    let (rest, none) = policy(&alone, "/");
    assert_eq!((&*none, &*policy(&alone, "/portal").1), ("'none'", "'none'"));
    // All else of the policy is the same, and the operator's page is never framed.
    assert_eq!(policy(&framed, "/"), (rest.clone(), "'none'".to_owned()));
    assert_eq!(policy(&framed, "/portal"), (rest, sites.to_owned()));
    assert_eq!(policy(&framed, "/explain").1, "'none'");
    let answer = framed.log_in(&framed.link("acct_fjord_dental"), "");
    let set = answer.header("set-cookie").unwrap();
    let (name, attributes) = set.split_once('=').unwrap();
    assert_eq!(name, "portal_login");
    assert!(attributes.contains("; HttpOnly; SameSite=None; Path=/; "), "{set}");
    assert!(attributes.ends_with("; Secure; Partitioned"), "{set}");
    // The operator's cookie never goes along below another site.
    let operator = framed.send("", "POST", "/login", &json!({ "token": TOKEN }));
    assert!(operator.header("set-cookie").unwrap().contains("SameSite=Strict"));
    // Without a token everybody who reaches the dashboard is an operator: there are no links.
    let open = Service::start(&[]);
    open.ask("POST", "/accounts/acct_fjord_dental/portal", &json!({}), 409);
}
