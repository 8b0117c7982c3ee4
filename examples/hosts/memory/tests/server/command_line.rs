//! How the binary starts and ends.

use serde_json::{Value, json};

use testing::running::{File, Running, Service, command, is_other, request, run, service, spawn};

#[test]
fn mistakes_end_it_with_a_word() {
    let no_value = "--allow-loopback-endpoints takes no value";
    for (arguments, message) in [
        (["--lisen", "127.0.0.1:0"], "unknown flag --lisen; did you mean --listen?"),
        (["--listen", "nowhere"], "--listen: expected an address"),
        (["--dashboard", "0.0.0.0:0"], "--dashboard: expected a loopback address"),
        (["--time-scale", "0"], "--time-scale: expected a number above 0"),
        (["--timeout-scale", "NaN"], "--timeout-scale: expected a number above 0"),
        (["--timeout-scale", "3"], "--timeout-scale: expected a number above 0, at most 2.5"),
        (["--allow-loopback-endpoints", "x"], "too many arguments"),
        (["--endpoint-rate", "-1"], "--endpoint-rate: expected a number of attempts"),
        (["--max-endpoints", "many"], "--max-endpoints: expected a number of endpoints"),
        (["--data=a", "--data=b"], "--data is repeated"),
        (["--allow-loopback-endpoints=yes", "--data=b"], no_value),
        (["--metrics", "--data"], "--metrics <ADDR>: expected a value"),
    ] {
        let told = run(command().args(arguments), b"").is(2, message);
        assert!(told.stderr.starts_with(message) && told.stdout.is_empty(), "{arguments:?}");
    }
    // A flag that is not given is read from the environment, with the same bounds.
    for (variable, value, message) in [
        ("CALL_ASSISTANT_LISTEN", "nowhere", "--listen: expected an address"),
        ("CALL_ASSISTANT_ENDPOINT_RATE", "-1", "--endpoint-rate: expected a number of attempts"),
        ("CALL_ASSISTANT_ALLOW_LOOPBACK_ENDPOINTS", "maybe", "--allow-loopback-endpoints: "),
    ] {
        let told = run(command().env(variable, value), b"").is(2, message);
        assert!(told.stderr.starts_with(message) && told.stdout.is_empty(), "{variable}");
    }
    let help = run(command().arg("--help"), b"").is(0, "").stdout;
    let version = run(command().arg("--version"), b"").is(0, "").stdout;
    let name = if is_other() { "call-assistant-postgres" } else { "service" };
    assert_eq!(version, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    for flag in ["--listen", "--dashboard", "--data", "--trust-ca", "--time-scale"] {
        assert!(help.contains(flag), "{flag}");
    }
}

/// A token that no program can read is no reason to require none.
#[cfg(unix)]
#[test]
fn a_token_that_is_not_text_opens_nothing() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let mut service = service(&[]);
    service.env("OPERATOR_TOKEN", OsStr::from_bytes(b"the-operators-own-token\xff"));
    let told = run(&mut service, b"").is(2, "OPERATOR_TOKEN: it is not UTF-8");
    assert!(!told.stderr.contains("the-operators"), "{}", told.stderr);
}

#[test]
fn bad_data_is_refused_with_the_path_of_the_field() {
    let call = |field: &str| {
        format!(
            r#"{{"accounts":[{{"id":"a","timezone":"Etc/UTC","calls":[{{"id":"c","caller":
               {{"contact_id":null,"phone_number":null,"display_name":null}},"answered_at":null,
               "ended_at":null,"duration_seconds":null,"summary":null,"appointment_ids":[],
               "created_at":"2026-01-01T00:00:00Z",{field}}}]}}]}}"#
        )
    };
    let account = |rest: &str| format!(r#"{{"accounts":[{{"id":"a","timezone":"UTC"{rest}}}]}}"#);
    for (text, message) in [
        ("{".to_owned(), "is not JSON at line 1 column 1"),
        ("{}".to_owned(), "accounts: missing"),
        (account("").replace(r#""id":"a","#, ""), "accounts[0].id: missing"),
        (account("").replace("UTC", "Mars standard"), "accounts[0].timezone: not an IANA timezone"),
        (
            account(r#","keys":[{"secret":"oops"}]"#),
            "accounts[0].keys[0].secret: API key does not begin with",
        ),
        (
            account(r#"},{"id":"a","timezone":"UTC""#),
            "accounts[1].id: an account with this id already exists",
        ),
        (account(r#","endpoints":[{"url":"http://x/"}]"#), "accounts[0].endpoints[0].url is not"),
        (call(r#""started_at":"noon""#), "accounts[0].calls[0].started_at: "),
        (call(r#""note":1"#), "accounts[0].calls[0].note: unknown field"),
    ] {
        let file = File::new("bad.json", &text);
        let told = run(&mut service(&["--data", file.path()]), b"").is(1, message);
        assert!(!told.stderr.contains("oops"), "{text}");
    }
}

#[test]
fn data_is_what_it_says() {
    let data = json!({ "accounts": [{
        "id": "acct_1",
        "timezone": "America/Argentina/Buenos_Aires",
        "keys": [
            { "name": "one", "secret": "service_live_0123456789abcdef0123456789abcdef" },
            { "name": "two", "secret": "service_test_0123456789abcdef0123456789abcdef" },
            { "name": "three", "secret": "service_live_three0123456789abcdef", "state": "revoked" },
        ],
    }]});
    let file = File::new("good.json", &data.to_string());
    let service = Service::start(&["--data", file.path()]);
    let mut keys = json!([
        { "name": "one", "secret": data["accounts"][0]["keys"][0]["secret"], "state": "full" },
        { "name": "two", "secret": data["accounts"][0]["keys"][1]["secret"], "state": "test" },
        { "name": "three", "secret": data["accounts"][0]["keys"][2]["secret"], "state": "revoked" },
    ]);
    let secret = |n: usize| data["accounts"][0]["keys"][n]["secret"].as_str().unwrap();
    let account = service.get("/v1/account", secret(0)).json();
    assert_eq!(account["business_name"], json!(null));
    assert_eq!(service.get("/v1/account", secret(2)).status, 401);
    if is_other() {
        // The durable host shows no key that it did not make.
        for key in keys.as_array_mut().unwrap() {
            key.as_object_mut().unwrap().remove("secret");
        }
    }
    assert_eq!(service.first["accounts"], json!([{ "id": "acct_1", "keys": keys }]));
    #[cfg(unix)]
    assert_eq!(service.terminate().code, Some(0));
}

// Whoever does not read what it says, or has gone, stops nobody.
#[cfg(unix)]
#[test]
fn nobody_has_to_listen() {
    let lives = |process: &Running, address: &str| {
        let status = request(address, "GET", "/v1/account", "", b"").status;
        assert_eq!((status, process.terminate().code), (401, Some(0)));
    };

    // The first line is longer than a pipe.
    let keys: Vec<_> =
        (0..1000).map(|key| json!({ "secret": format!("service_live_{key:0100}") })).collect();
    let data = json!({ "accounts": [{ "id": "acct_1", "timezone": "UTC", "keys": keys }] });
    let file = File::new("long.json", &data.to_string());
    let mut child = spawn(&mut service(&["--data", file.path()]));
    let _unread = child.stdout.take();
    let unread = Running::of(child);
    let line = unread.logged("  Public API   http://");
    lives(&unread, line.strip_prefix("  Public API   http://").unwrap());

    let mut child = spawn(&mut service(&[]));
    drop(child.stderr.take());
    let unlogged = Running::of(child);
    let first: Value = serde_json::from_str(&unlogged.said("{")).unwrap();
    lives(&unlogged, first["api"].as_str().unwrap().strip_prefix("http://").unwrap());
}
