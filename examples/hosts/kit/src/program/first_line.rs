//! The output of a host that is ready: one line for programs, and a few for people.

use call_assistant::Timestamp;
use serde_json::{Value, json};

use crate::store::NewAccount;
use crate::store::plan::key_state;

/// The accounts of the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// With the secrets of their keys.
    Secrets,
    /// With what their keys are called: whoever wrote them into a file has their secrets.
    Names,
}

/// Returns the first line, for programs: JSON with the addresses and the keys.
pub fn for_programs(
    api: &str,
    dashboard: &str,
    accounts: &[NewAccount],
    shown: Shown,
    now: Timestamp,
) -> Value {
    let account = |new: &NewAccount| {
        let keys = new.keys.iter().map(|(stored, key)| {
            let mut row = json!({ "name": stored.name, "state": key_state(stored, now) });
            if shown == Shown::Secrets {
                row["secret"] = key.reveal().into();
            }
            row
        });
        json!({ "id": new.account.id, "keys": keys.collect::<Vec<_>>() })
    };
    let accounts: Vec<Value> = accounts.iter().map(account).collect();
    json!({ "api": api, "dashboard": dashboard, "accounts": accounts })
}

/// Returns the text for people: what to try.
pub fn for_people(api: &str, dashboard: &str, line: &Value) -> String {
    let accounts = line["accounts"].as_array().map_or(&[][..], Vec::as_slice);
    let key = match accounts {
        _ if accounts.iter().all(|account| account["keys"][0]["secret"].is_null()) => {
            return format!("\n  Public API   {api}\n  Dashboard    {dashboard}\n\n");
        }
        _ if accounts.iter().any(|account| account["id"] == "acct_fjord_dental") => {
            "the secret of the key `full` of acct_fjord_dental, in the line above"
        }
        _ => "a secret from the line above",
    };
    let account = accounts.first().and_then(|account| account["id"].as_str()).unwrap_or("ID");
    format!(
        "\n  Public API   {api}\n  Dashboard    {dashboard}   (open it in a browser)\n\n\
         Try, with {key}:\n\n  \
         KEY=service_live_...\n  \
         curl -i -H \"Authorization: Bearer $KEY\" {api}/v1/account\n  \
         curl -i -H \"Authorization: Bearer $KEY\" '{api}/v1/calls?limit=3'\n  \
         curl -s {dashboard}/accounts\n\n\
         An endpoint, and a call that sends it an event (--allow-loopback-endpoints accepts http and this\n\
         machine):\n\n  \
         curl -s {dashboard}/accounts/{account}/endpoints -d '{{\"url\":\"https://...\"}}'\n  \
         curl -s {dashboard}/accounts/{account}/calls -d '{{}}'\n\n\
         Ctrl-C stops it. Each request is logged below.\n\n"
    )
}
