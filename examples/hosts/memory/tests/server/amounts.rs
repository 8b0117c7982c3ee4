//! Bounds of everything that an owner can make, and pages of each list.

use host::dashboard::{Action, ROUTES, Who};
use serde_json::{Value, json};

use testing::receiver::{Receiver, Reply};
use testing::running::{Answer, eventually};

use crate::portal::Portal;

const ACCOUNT: &str = "/accounts/acct_fjord_dental";

/// An account with an owner who is logged in.
struct Owner {
    portal: Portal,
    headers: String,
}

impl Owner {
    fn of(portal: Portal) -> Self {
        let headers = portal.owner("acct_fjord_dental");
        Self { portal, headers }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.portal.send(&self.headers, method, path, body)
    }

    /// Does something over and over until it is refused in these words, and returns how often it was done.
    #[track_caller]
    fn until_refused(&self, status: u16, words: &str, act: impl Fn(&Self) -> Answer) -> usize {
        for done in 0..300 {
            let answer = act(self);
            if answer.status >= 400 {
                let said = answer.json()["error"]["message"].as_str().unwrap().to_owned();
                assert!(answer.status == status && said.starts_with(words), "{said}");
                return done;
            }
        }
        panic!("it has no bound");
    }

    /// Reads a list page by page, so many rows at a time, and compares that with the list as one page.
    #[track_caller]
    fn in_pages(&self, list: &str, limit: usize) -> Vec<String> {
        let list = format!("{ACCOUNT}/{list}");
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page =
                self.send("GET", &format!("{list}?limit={limit}&after={after}"), &Value::Null);
            let page = page.json();
            let rows = ids(&page["data"]);
            assert!(rows.len() <= limit, "{list}: {}", rows.len());
            seen.extend(rows);
            assert_eq!(page["has_more"], !page["next"].is_null(), "{list}");
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        let all = ids(&self.send("GET", &list, &Value::Null).json()["data"]);
        assert_eq!(seen, all, "{list}");
        assert!(all.len() > 2 * limit, "{list}: {}", all.len());
        for (query, field) in [("after=x", "after"), ("limit=0", "limit"), ("limit=1001", "limit")]
        {
            let wrong = self.send("GET", &format!("{list}?{query}"), &Value::Null);
            let said = wrong.json()["error"]["field"].clone();
            assert_eq!((wrong.status, said), (400, json!(field)), "{list}?{query}");
        }
        all
    }
}

fn ids(rows: &Value) -> Vec<String> {
    rows.as_array().unwrap().iter().map(id).collect()
}

fn id(of: &Value) -> String {
    of["id"].as_str().unwrap().to_owned()
}

// D-104: the error tells the bound. Operators are outside, and so are others.
#[test]
fn what_an_owner_makes_has_a_bound() {
    let owner = Owner::of(Portal::start(&[]));
    let portal = &owner.portal;
    let of = |what: &str| format!("{ACCOUNT}/{what}");
    let other = "/accounts/acct_harbour_hair";
    let before = portal.ask("GET", &format!("{other}/keys"), &Value::Null, 200);
    let none = json!({});

    // Most of it is made by operators, who do not wait for their turn.
    let (keys, key) = (of("keys"), json!({ "name": "b", "mode": "live", "scopes": [] }));
    let there = portal.ask("GET", &keys, &Value::Null, 200);
    for _ in ids(&there["data"]).len()..97 {
        portal.ask("POST", &keys, &key, 201);
    }
    let words = "100 working keys, and the limit is 100";
    owner.until_refused(409, words, |owner| owner.send("POST", &keys, &key));
    let made = id(&portal.ask("POST", &keys, &key, 201));
    // Keys that are revoked count for a day.
    let revoke = |owner: &Owner, key: &str| {
        assert_eq!(owner.send("POST", &format!("/keys/{key}/revoke"), &none).status, 200);
    };
    revoke(&owner, &made);
    for _ in 0..90 {
        portal.ask("POST", &keys, &key, 201);
    }
    for one in ids(&portal.ask("GET", &keys, &Value::Null, 200)["data"]).iter().take(95) {
        portal.ask("POST", &format!("/keys/{one}/revoke"), &none, 200);
    }
    let words = "200 keys made in the last 24 hours, and the limit is 200";
    owner.until_refused(409, words, |owner| {
        let made = owner.send("POST", &keys, &key);
        if made.status == 201 {
            revoke(owner, &id(&made.json()));
        }
        made
    });
    portal.ask("POST", &keys, &key, 201);
    // The page of the account has the newest keys.
    let all = owner.in_pages("keys", 90);
    let overview = owner.send("GET", &of("overview"), &Value::Null).json();
    assert_eq!(ids(&overview["keys"]), all[all.len() - 200..]);
    assert_eq!(overview["keys_more"], true);

    let endpoints = of("endpoints");
    let new = json!({ "url": "https://hooks.example.com/" });
    let delete = |path: &str| portal.ask("DELETE", path, &Value::Null, 200);
    for _ in 0..95 {
        delete(&format!("/endpoints/{}", id(&portal.ask("POST", &endpoints, &new, 201))));
    }
    for _ in 0..90 {
        portal.ask("POST", &endpoints, &new, 201);
    }
    let words = "the account has 100 endpoints, and the limit is 100";
    owner.until_refused(409, words, |owner| owner.send("POST", &endpoints, &new));
    let first = || {
        let there = portal.ask("GET", &format!("{endpoints}?limit=1"), &Value::Null, 200);
        format!("/endpoints/{}", ids(&there["data"])[0])
    };
    let words = "100 endpoints deleted in the last 24 hours, and the limit is 100";
    let deleted = owner.until_refused(409, words, |owner| {
        let first = first();
        let deleted = owner.send("DELETE", &first, &Value::Null);
        if deleted.status == 200 {
            // It is deleted already.
            assert_eq!(owner.send("DELETE", &first, &Value::Null).status, 200);
            assert_eq!(owner.send("POST", &endpoints, &new).status, 201);
        }
        deleted
    });
    assert_eq!(deleted, 5);
    delete(&first());

    let receiver = Receiver::start();
    let bad = json!({ "url": receiver.url("/bad", &[Reply::Status(410)]) });
    let bad = format!("/endpoints/{}", id(&owner.send("POST", &endpoints, &bad).json()));
    let ping = portal.ask("POST", &format!("{bad}/ping"), &none, 201);
    let path = format!("/deliveries/{}", ping["deliveries"][0].as_str().unwrap());
    let attempts = || {
        let shown = portal.ask("GET", &path, &Value::Null, 200);
        shown["attempts"].as_array().unwrap().len()
    };
    eventually("an attempt", || (attempts() == 1).then_some(()));
    let words = "20 manual attempts of the delivery, and the limit is 20";
    let redelivered = owner.until_refused(409, words, |owner| {
        portal.ask("POST", &format!("{bad}/enable"), &none, 200);
        let made = attempts();
        let again = owner.send("POST", &format!("{path}/redeliver"), &none);
        if again.status == 202 {
            eventually("another attempt", || (attempts() > made).then_some(()));
        }
        again
    });
    assert_eq!(redelivered, 20);
    portal.ask("POST", &format!("{path}/redeliver"), &none, 202);

    // A count of what was missed is no edit.
    let count = json!({ "dry_run": true });
    assert_eq!(owner.send("POST", &format!("{bad}/recover"), &count).status, 200);
    let edit = json!({ "description": "x" });
    let words = "60 edits and pings in a minute, and the limit is 60; try again in ";
    let edited = owner.until_refused(429, words, |owner| owner.send("PATCH", &bad, &edit));
    assert_eq!(edited, 60);
    let often = owner.send("PATCH", &bad, &edit);
    let wait: u64 = often.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    // Each route by which an owner changes something is an edit, or makes what has a bound above.
    let bounded = [
        Action::CreateKey,
        Action::RevokeKey,
        Action::CreateEndpoint,
        Action::DeleteEndpoint,
        Action::Redeliver,
    ];
    for route in ROUTES.iter().filter(|route| route.who == Who::Owner) {
        if route.journal.is_empty() || bounded.contains(&route.action) {
            continue;
        }
        let (method, path) =
            (route.method.as_str(), format!("/{}", route.path.replace("{id}", "x")));
        let refused = owner.send(method, &path, &none);
        assert_eq!(refused.status, 429, "{method} {path}: {}", refused.text());
    }
    assert_eq!(owner.send("POST", &format!("{bad}/recover"), &count).status, 200);
    portal.ask("PATCH", &bad, &edit, 200);

    // All of that is nothing to another tenant.
    let theirs = format!("{other}/keys");
    assert_eq!(portal.ask("GET", &theirs, &Value::Null, 200), before);
    let neighbour = portal.owner("acct_harbour_hair");
    assert_eq!(portal.send(&neighbour, "POST", &theirs, &key).status, 201);
}

// Nothing that an account has is out of reach of its owner: the page has the beginning of each list, and says where it
// goes on.
#[test]
fn each_list_has_pages() {
    let owner = Owner::of(Portal::start(&["--max-endpoints", "210"]));
    let (portal, receiver, none) = (&owner.portal, Receiver::start(), json!({}));
    let of = |what: &str| format!("{ACCOUNT}/{what}");
    let add = |url: String| id(&portal.ask("POST", &of("endpoints"), &json!({ "url": url }), 201));
    let event = || portal.ask("POST", &of("events"), &json!({ "type": "x", "data": {} }), 201);

    for _ in 0..30 {
        portal.ask("POST", &of("calls"), &json!({ "started_at": "2026-01-01T00:00:00Z" }), 201);
    }
    // A recovery that rests is the oldest of all. More redeliveries than are sent at once wait for an answer.
    let slow = format!("/endpoints/{}", add(receiver.url("/slow", &[Reply::Held(204)])));
    portal.ask("POST", &format!("{slow}/pause"), &none, 200);
    (0..20).for_each(|_| drop(event()));
    portal.ask("POST", &format!("{slow}/enable"), &none, 200);
    let recovery = id(&portal.ask("POST", &format!("{slow}/recover"), &none, 202));
    portal.ask("POST", &format!("/recoveries/{recovery}/pause"), &none, 200);
    let gone = receiver.url("/gone", &[Reply::Status(410)]);
    for _ in 0..205 {
        let endpoint = add(gone.clone());
        let made = portal.ask("POST", &format!("/endpoints/{endpoint}/recover"), &none, 202);
        portal.ask("POST", &format!("/recoveries/{}/cancel", id(&made)), &none, 200);
    }
    event();
    eventually("an alert of each", || {
        let all = portal.ask("GET", &of("endpoints"), &Value::Null, 200);
        let rows = all["data"].as_array().unwrap().iter();
        (rows.filter(|row| row["reason"] == "gone").count() == 205).then_some(())
    });

    let overview = owner.send("GET", &of("overview"), &Value::Null).json();
    for (list, most, limit) in
        [("calls", 10, 10), ("endpoints", 200, 60), ("recoveries", 200, 60), ("alerts", 100, 40)]
    {
        let all = owner.in_pages(list, limit);
        let (shown, rest) = all.split_at(all.len().min(most));
        assert_eq!(ids(&overview[list]), shown, "{list}");
        assert_eq!(overview[format!("{list}_more")], json!(!rest.is_empty()), "{list}");
        let next = overview[format!("{list}_next")].as_str().map(|after| {
            let page = format!("{ACCOUNT}/{list}?after={after}");
            ids(&owner.send("GET", &page, &Value::Null).json()["data"])
        });
        assert_eq!(next.unwrap_or_default(), rest, "{list}");
        if list == "recoveries" {
            assert_eq!(all[0], recovery, "those that run come first");
        }
    }
    // An owner takes note of each alert, however old it is.
    let alerts = owner.in_pages("alerts", 40);
    let path = format!("/alerts/{}/acknowledge", alerts.last().unwrap());
    assert_eq!(owner.send("POST", &path, &none).status, 200);
}
