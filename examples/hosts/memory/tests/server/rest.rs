//! Keys of the public API that the dashboard makes and revokes. What every service has to answer is in `check.rs`.

use serde_json::{Value, json};

use testing::running::Service;

const FJORD: &str = "acct_fjord_dental";

// KEY-2, KEY-4, KEY-6, D-11
#[test]
fn keys_live_and_end() {
    let service = Service::start(&[]);
    let path = format!("/accounts/{FJORD}/keys");
    let new = |name: &str, expires_at: Value| {
        let scopes = ["account:read", "calls:read"];
        let asked =
            json!({ "name": name, "mode": "live", "scopes": scopes, "expires_at": expires_at });
        service.ask("POST", &path, &asked, 201)
    };
    let (old, next) = (new("old", Value::Null), new("next", Value::Null));
    let status = |key: &Value| service.get("/v1/account", key["secret"].as_str().unwrap()).status;
    assert_eq!((status(&old), status(&next)), (200, 200));
    let id = old["id"].as_str().unwrap();
    let revoked = service.ask("POST", &format!("/keys/{id}/revoke"), &json!({}), 200);
    assert!(revoked["revoked_at"].is_string() && revoked.get("secret").is_none());
    assert_eq!((status(&old), status(&next)), (401, 200));
    assert_eq!(status(&new("past", json!("2020-01-01T00:00:00Z"))), 401);

    let listed = service.show(&path);
    assert!(!listed.to_string().contains(next["secret"].as_str().unwrap()));
    let used = listed["data"].as_array().unwrap().iter().find(|key| key["id"] == next["id"]);
    assert!(used.unwrap()["last_used_at"].is_string());
}
