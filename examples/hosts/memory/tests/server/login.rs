//! Who may use a dashboard with an operator's token, by each way to log in.

use std::process::{Command, Stdio};

use host::dashboard::{Action, ROUTES, Route, Who};
use serde_json::{Value, json};

use testing::running::{Answer, FJORD, File, Service, exchange, request};

const TOKEN: &str = "the-operators-own-token";

fn start() -> (Service, File) {
    let file = File::new("token", &format!("{TOKEN}\n"));
    (Service::start(&["--operator-token-file", file.path()]), file)
}

fn log_in(service: &Service, token: &str, headers: &str) -> Answer {
    let body = json!({ "token": token }).to_string();
    request(service.dashboard(), "POST", "/login", headers, body.as_bytes())
}

/// The cookie that an answer sets, as a header of the next request.
fn cookie(answer: &Answer) -> String {
    let (pair, _) = answer.header("set-cookie").unwrap().split_once(';').unwrap();
    format!("Cookie: other=1; {pair}\r\n")
}

/// Each route behind a login, of an account that exists, and a path that is none.
fn routes() -> Vec<(&'static str, String)> {
    let path = |route: &Route| match route.action {
        Action::FollowAlerts => "/alerts?wait=0".to_owned(),
        _ => format!("/{}", route.path).replace("/accounts/{id}", FJORD).replace("{id}", "nobody"),
    };
    let behind_login = ROUTES.iter().filter(|route| route.who != Who::Anybody);
    let routes = behind_login.map(|route| (route.method.as_str(), path(route)));
    routes.chain([("GET", "/nowhere".to_owned())]).collect()
}

/// Tells whether whoever asked may use the route, whatever it answers.
fn is_let_in(answer: &Answer) -> bool {
    ![401, 403].contains(&answer.status)
}

/// Routes without data: the pages, and the log-in.
const PUBLIC: &[(&str, &str, u16)] = &[
    ("GET", "/", 200),
    ("GET", "/explain", 200),
    ("GET", "/login", 200),
    ("GET", "/portal", 200),
    ("GET", "/portal-login", 401),
    ("PATCH", "/portal-login", 405),
    ("PATCH", "/login", 405),
    ("POST", "/explain", 405),
];

#[test]
fn each_route_by_each_way_to_log_in() {
    let (service, _file) = start();
    let valid = cookie(&log_in(&service, TOKEN, ""));
    let other = cookie(&log_in(&service, TOKEN, ""));
    let ended = request(service.dashboard(), "DELETE", "/login", &other, b"");
    assert_eq!(ended.status, 200);
    assert!(cookie(&ended).contains("dashboard_login=\r\n"));
    // One byte of the MAC, and of what it is about.
    let altered = |at: usize| {
        let mut text = valid.trim_end().to_owned().into_bytes();
        let at = if at == 0 { text.len() - 3 } else { valid.find("login=").unwrap() + 6 + at };
        text[at] = if text[at] == b'A' { b'B' } else { b'A' };
        format!("{}\r\n", String::from_utf8(text).unwrap())
    };
    // The operator's token as a password: base64 of `op:` and the token.
    let basic = "Authorization: Basic b3A6dGhlLW9wZXJhdG9ycy1vd24tdG9rZW4=\r\n";
    let logins: &[(&str, &str, bool)] = &[
        ("a cookie", &valid, true),
        ("a bearer token", &format!("Authorization: Bearer {TOKEN}\r\n"), true),
        ("a password", basic, true),
        ("a cookie beside a wrong token", &format!("{valid}Authorization: Bearer x\r\n"), true),
        ("nothing", "", false),
        ("an ended login", &other, false),
        ("a forged MAC", &altered(0), false),
        ("a forged time", &altered(4), false),
        ("an empty cookie", "Cookie: dashboard_login=\r\n", false),
        ("the token as a cookie", &format!("Cookie: dashboard_login={TOKEN}\r\n"), false),
    ];
    let ask = |method, path: &str, headers: &str| {
        let body: &[u8] = if method == "GET" { b"" } else { b"{}" };
        request(service.dashboard(), method, path, headers, body)
    };
    let routes = routes();
    for (name, headers, may) in logins {
        for (method, path) in &routes {
            let answer = ask(method, path, headers);
            let is_right = if *may { is_let_in(&answer) } else { answer.status == 401 };
            assert!(is_right, "{method} {path} with {name}: {}", answer.text());
        }
        for (method, path, status) in PUBLIC {
            assert_eq!(ask(method, path, headers).status, *status, "{method} {path} with {name}");
        }
        // Another site's page has no way to use what the browser has.
        let foreign = format!("{headers}Origin: https://evil.example\r\n");
        let public = PUBLIC.iter().map(|(method, path, _)| (*method, *path));
        for (method, path) in routes.iter().map(|(method, path)| (*method, &**path)).chain(public) {
            assert_eq!(ask(method, path, &foreign).status, 403, "{method} {path} with {name}");
        }
    }
    assert!(!service.log().contains(TOKEN) && !service.log().contains("dashboard_login"));
}

// A container is as healthy with a token as without one, which it must have where the dashboard can be reached.
#[test]
fn the_health_check_of_the_image_needs_no_token() {
    let (_, check) = include_str!("../../Dockerfile").split_once("HEALTHCHECK ").unwrap();
    let (_, check) = check.split_once("CMD ").unwrap();
    let check: Vec<String> = serde_json::from_str(check.lines().next().unwrap()).unwrap();
    let is_healthy = |dashboard: &str| {
        let mut command = Command::new(&check[0]);
        command.args(&check[1..]).env("CALL_ASSISTANT_DASHBOARD", dashboard);
        command.stderr(Stdio::null()).status().unwrap().success()
    };
    let ((with, _file), without) = (start(), Service::start(&[]));
    assert!(is_healthy(with.dashboard()) && is_healthy(without.dashboard()));
    assert!(!is_healthy("127.0.0.1:1"));
}

/// Operators with names: one of them only looks, by each way to log in and on each route.
#[test]
fn a_reader_changes_nothing() {
    let tokens = format!("ada:operator:{TOKEN}\nbob:reader:a-token-that-only-reads\n");
    let file = File::new("tokens", &tokens);
    let service = Service::start(&["--operator-token-file", file.path()]);
    let [reader, operator] = [("a-token-that-only-reads", "bob", true), (TOKEN, "ada", false)].map(
        |(token, name, only_reads)| {
            let answer = log_in(&service, token, "");
            let said = answer.json();
            assert_eq!((&said["name"], &said["only_reads"]), (&json!(name), &json!(only_reads)));
            cookie(&answer)
        },
    );
    let bearer = "Authorization: Bearer a-token-that-only-reads\r\n".to_owned();
    let sandbox = [("POST", "/faults"), ("DELETE", "/faults"), ("POST", "/clock")];
    let sandbox = sandbox.map(|(method, path)| (method, path.to_owned()));
    let accounts = || request(service.dashboard(), "GET", "/accounts", &bearer, b"").text();
    let before = accounts();
    for headers in [&reader, &bearer] {
        for (method, path) in routes().iter().chain(&sandbox) {
            let reads = *method == "GET";
            let body: &[u8] = if reads { b"" } else { b"{}" };
            let answer = request(service.dashboard(), method, path, headers, body);
            let is_right = if reads { is_let_in(&answer) } else { answer.status == 403 };
            assert!(is_right, "{method} {path}: {}", answer.text());
        }
    }
    assert_eq!(accounts(), before);
    // What was missed is counted for everybody: the page would say that nothing was.
    for (body, status) in [
        (json!({ "dry_run": true }), 404),
        (json!({ "dry_run": false }), 403),
        (json!({ "dry_run": "true" }), 403),
        (json!([{ "dry_run": true }]), 403),
    ] {
        let path = "/endpoints/whep_nobody/recover";
        let body = body.to_string();
        let answer = request(service.dashboard(), "POST", path, &reader, body.as_bytes());
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
    }
    let changed = request(service.dashboard(), "PATCH", FJORD, &operator, b"{}");
    assert_eq!(changed.status, 200);
    // Whoever reads may end the own login.
    assert_eq!(request(service.dashboard(), "DELETE", "/login", &reader, b"").status, 200);
    assert_eq!(request(service.dashboard(), "GET", "/accounts", &reader, b"").status, 401);
}

#[test]
fn the_cookie_is_for_this_site_and_for_an_hour() {
    let (service, _file) = start();
    let host = service.dashboard();
    let attributes = "HttpOnly; SameSite=Strict; Path=/; Max-Age=3600";
    for (origin, attributes) in [
        (String::new(), attributes.to_owned()),
        (format!("Origin: http://{host}\r\n"), attributes.to_owned()),
        // TLS that ends in front of the host.
        (format!("Origin: https://{host}\r\n"), format!("{attributes}; Secure")),
    ] {
        let answer = log_in(&service, TOKEN, &origin);
        assert_eq!(answer.status, 200, "{origin}");
        let set = answer.header("set-cookie").unwrap();
        assert_eq!(set.split_once("; ").unwrap().1, attributes, "{origin}");
        assert!(!set.contains(TOKEN), "{set}");
        assert!(answer.json()["expires_at"].is_string());
    }
    // A host with the same token knows the cookie, one with another token does not.
    let cookie = cookie(&log_in(&service, TOKEN, ""));
    let (second, _file) = start();
    assert_eq!(request(second.dashboard(), "GET", "/accounts", &cookie, b"").status, 200);
    let file = File::new("token", "another-operators-token");
    let third = Service::start(&["--operator-token-file", file.path()]);
    assert_eq!(request(third.dashboard(), "GET", "/accounts", &cookie, b"").status, 401);
    // Without a token there is nothing to log in to.
    let open = Service::start(&[]);
    assert_eq!(log_in(&open, TOKEN, "").status, 409);
    assert_eq!(open.show("/login"), json!({ "required": false }));
}

#[test]
fn wrong_tokens_are_few() {
    let (service, _file) = start();
    for body in [json!({}), json!({ "token": 7 }), json!({ "token": TOKEN, "x": 1 })] {
        service.ask("POST", "/login", &body, 400);
    }
    let valid = cookie(&log_in(&service, TOKEN, ""));
    let challenges = |headers: &str| {
        let answer = request(service.dashboard(), "GET", "/accounts", headers, b"");
        let found = answer.headers.into_iter().filter(|(name, _)| name == "www-authenticate");
        found.map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(challenges(""), ["Basic realm=\"dashboard\"", "Bearer"]);
    // The page has a form: no browser asks for a password over it.
    assert_eq!(challenges("X-Dashboard-Page: 1\r\n"), ["Bearer"]);

    for _ in 0..5 {
        let refused = log_in(&service, "not-the-operators-token", "");
        assert_eq!(refused.status, 401);
        assert_eq!(refused.header("set-cookie"), None);
        let wrong = "Authorization: Bearer not-the-operators-token\r\n";
        let sent = request(service.dashboard(), "GET", "/accounts", wrong, b"");
        // Each says which token is right, and a missing one is another matter.
        let said = [&refused, &sent].map(|answer| answer.json()["error"]["message"].clone());
        assert_eq!((sent.status, &said[0]), (401, &said[1]));
        assert!(said[0].as_str().unwrap().contains("--operator-token-file"), "{}", said[0]);
        let none = request(service.dashboard(), "GET", "/accounts", "", b"");
        assert_ne!(none.json()["error"]["message"], said[0]);
    }
    // Wrong ones are refused for the rest of the minute, which keeps no right one out.
    let refused = log_in(&service, "not-the-operators-token", "");
    assert_eq!(refused.status, 429);
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(refused.json()["error"]["code"], Value::from("too_many_tries"));
    assert_eq!(request(service.dashboard(), "GET", "/accounts", &valid, b"").status, 200);
}

// D-105: wrong secrets are counted for each kind of secret, and a right one of any kind is never refused for them.
#[test]
fn wrong_secrets_keep_no_right_one_out() {
    let (service, _file) = start();
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let ask = |path: &str, headers: &str, body: &Value| {
        let method = if body.is_null() { "GET" } else { "POST" };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        request(service.dashboard(), method, path, headers, body.as_bytes())
    };
    let link = || {
        let made = ask(&format!("{FJORD}/portal"), &bearer, &json!({})).json();
        made["path"].as_str().unwrap().strip_prefix("/portal#link=").unwrap().to_owned()
    };
    let wrong_token = || log_in(&service, "not-the-operators-token", "").status;
    let wrong_link = || ask("/portal-login", "", &json!({ "link": "a-made-up-link" })).status;
    let right = |row: &str| {
        assert_eq!(ask("/accounts", &bearer, &Value::Null).status, 200, "a bearer token {row}");
        assert_eq!(ask("/metrics", &bearer, &Value::Null).status, 200, "a scrape {row}");
        assert_eq!(log_in(&service, TOKEN, "").status, 200, "a log-in {row}");
        let owner = ask("/portal-login", "", &json!({ "link": link() }));
        assert_eq!(owner.status, 200, "an owner's link {row}");
    };
    let statuses = |count: usize, wrong: &dyn Fn() -> u16| -> Vec<u16> {
        (0..count).map(|_| wrong()).collect()
    };
    assert_eq!(statuses(12, &wrong_link), [[401; 10].as_slice(), &[429, 429]].concat());
    right("after wrong links");
    assert_eq!(statuses(12, &wrong_token), [[401; 10].as_slice(), &[429, 429]].concat());
    right("after wrong tokens");
}

// Where TLS ends in front of the host, no site next to it can set the cookie of a login: neither an operator's nor an
// owner's.
#[test]
fn behind_tls_a_cookie_is_of_this_host_alone() {
    let (service, _file) = start();
    let site = "dashboard.example.com";
    let send = |host: &str, method: &str, path: &str, headers: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        exchange(service.dashboard(), &[head.as_bytes(), body.as_bytes()].concat()).unwrap()
    };
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let made = send(site, "POST", &format!("{FJORD}/portal"), &bearer, &json!({})).json();
    let link = made["path"].as_str().unwrap().strip_prefix("/portal#link=").unwrap();
    for (path, name, body, shown) in [
        ("/login", "dashboard_login", json!({ "token": TOKEN }), "/accounts"),
        ("/portal-login", "portal_login", json!({ "link": link }), "/portal-login"),
    ] {
        let origin = format!("Origin: https://{site}\r\n");
        let answer = send(site, "POST", path, &origin, &body);
        let set = answer.header("set-cookie").unwrap();
        let (pair, attributes) = set.split_once("; ").unwrap();
        let value = pair.strip_prefix(&format!("__Host-{name}=")).unwrap();
        assert!(attributes.contains("Path=/; ") && attributes.ends_with("; Secure"), "{set}");
        assert!(!attributes.contains("Domain"), "{set}");
        let status = |cookies: &str| {
            send(site, "GET", shown, &format!("Cookie: {cookies}\r\n"), &Value::Null).status
        };
        assert_eq!(status(&format!("__Host-{name}={value}")), 200, "{name}");
        // The name that a site next to this one can set leads nowhere, and hides nothing.
        assert_eq!(status(&format!("{name}={value}")), 401, "{name}");
        assert_eq!(status(&format!("{name}=x; __Host-{name}={value}")), 200, "{name}");
        // A browser would not accept the cookie of a page that came without TLS.
        let plain = send(site, "POST", path, &format!("Origin: http://{site}\r\n"), &body);
        assert_eq!((plain.status, plain.header("set-cookie")), (409, None), "{name}");
        for local in [service.dashboard(), "localhost:8081"] {
            let answer = send(local, "POST", path, "", &body);
            let set = answer.header("set-cookie").unwrap();
            assert!(set.starts_with(&format!("{name}=")), "{local}: {set}");
        }
    }
}
