//! The side that answers the REST API.

mod cursors;
mod form;
mod hostile;
mod keys;
mod list;
mod quotas;
mod resources;

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use call_assistant::Timestamp;
use serde_json::Value;

use super::case::{Case, Not, Seen, ensure};
use super::http::{Answer, Place, escaped};

/// All cases of a service. Those of the form look at the answers of all others, so they come last.
pub const CASES: &[&[Case<Api>]] = &[
    resources::CASES,
    list::CASES,
    list::FILTERS,
    cursors::CASES,
    keys::CASES,
    keys::ORDER,
    quotas::CASES,
    hostile::CASES,
    form::CASES,
];

/// Records a call that has just ended, of the first account.
pub type AddCall = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A service, and what it was given to serve.
pub struct Api {
    place: Place,
    accounts: Vec<Value>,
    add_call: Option<AddCall>,
    /// Each request's first line with its answer.
    answers: Mutex<Vec<(String, Answer)>>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Api {
    /// Reads the address of a service, and the text of the file with its accounts.
    ///
    /// # Errors
    /// The address, the certificates or the file cannot be read.
    pub fn new(url: &str, trust: Option<&Path>, keys: &str) -> Result<Self, String> {
        let file: Value = serde_json::from_str(keys).map_err(|error| format!("--keys: {error}"))?;
        let accounts = file["accounts"].as_array().filter(|accounts| !accounts.is_empty());
        let accounts = accounts.ok_or("--keys: accounts: expected an array of accounts")?.clone();
        let place = Place::new(url, trust)?;
        Ok(Self { place, accounts, add_call: None, answers: Mutex::default() })
    }

    /// Connects once, so that a service that is not there is one error.
    ///
    /// # Errors
    /// There is no connection.
    pub fn reach(&self) -> Result<(), String> {
        self.place.connect().map(drop)
    }

    /// Returns the same with a way to record a call.
    pub fn with_add_call(self, add_call: AddCall) -> Self {
        Self { add_call: Some(add_call), ..self }
    }

    /// Returns an account: `main`, `other`, `closing`, `inactive` or `no plan`.
    fn account(&self, role: &str) -> Seen<&Value> {
        let is = |account: &Value, field: &str, value: bool| account[field] == value;
        let role_of = |(place, account): &(usize, &Value)| match account {
            _ if *place == 0 => "main",
            account if is(account, "closing", true) => "closing",
            account if is(account, "subscription_active", false) => "inactive",
            account if account["plan"] == "none" => "no plan",
            _ => "other",
        };
        let found = self.accounts.iter().enumerate().find(|one| role_of(one) == role);
        let lacks = || Not::Unseen(format!("--keys has no account of the kind: {role}"));
        found.map(|(_, account)| account).ok_or_else(lacks)
    }

    /// Returns the secret of a key, by its name or its state.
    fn key(&self, role: &str, name: &str) -> Seen<&str> {
        let keys = self.account(role)?["keys"].as_array().map_or(&[][..], Vec::as_slice);
        let named = keys.iter().find(|key| key["name"] == name);
        let found = named.or_else(|| keys.iter().find(|key| key["state"] == name));
        let secret = found.and_then(|key| key["secret"].as_str());
        secret.ok_or_else(|| Not::Unseen(format!("--keys: the account {role} has no key: {name}")))
    }

    /// Returns the calls of an account as they were given, newest first.
    fn calls(&self, role: &str, field: &str) -> Seen<Vec<Value>> {
        let lacks = || Not::Unseen(format!("--keys: the account {role} has no {field}"));
        let mut calls = self.account(role)?[field].as_array().ok_or_else(lacks)?.clone();
        calls.sort_by_key(|call| std::cmp::Reverse(position(call)));
        Ok(calls)
    }

    /// Returns a call of the first account, and its `created_at` as a query writes it.
    fn one_call(&self) -> Seen<(Value, String)> {
        let calls = self.calls("main", "calls")?;
        let lacks = || Not::Unseen("--keys: the account main has too few calls".to_owned());
        let call = calls.get(calls.len() / 2).ok_or_else(lacks)?;
        Ok((call.clone(), escaped(text(call, "created_at"))))
    }

    /// Sends a request with these fields.
    fn send(&self, method: &str, target: &str, fields: &str) -> Seen<Answer> {
        self.bytes(&self.place.request(method, target, fields, b""))
    }

    /// Sends bytes, and keeps the answer.
    fn bytes(&self, bytes: &[u8]) -> Seen<Answer> {
        let first = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let first = String::from_utf8_lossy(first.get(..200).unwrap_or(first)).into_owned();
        let first = self.secrets().fold(first, |first, secret| first.replace(secret, "KEY"));
        let answer = self.place.exchange(bytes).map_err(|error| format!("{first}: {error}"))?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push((first, answer.clone()));
        Ok(answer)
    }

    /// Returns the secrets of all keys, which no output shows.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let keys = self.accounts.iter().filter_map(|account| account["keys"].as_array()).flatten();
        keys.map(|key| text(key, "secret")).filter(|secret| secret.len() > 8)
    }

    /// Asks with a key.
    fn get(&self, target: &str, key: &str) -> Seen<Answer> {
        self.send("GET", target, &bearer(key))
    }

    /// Asks with the full key of the first account, and expects 200.
    fn good(&self, target: &str) -> Seen<Value> {
        self.good_with(target, self.key("main", "full")?)
    }

    fn good_with(&self, target: &str, key: &str) -> Seen<Value> {
        let answer = self.get(target, key)?;
        ensure(answer.status == 200, || format!("{target}: {}", answer.in_words()))?;
        Ok(answer.json())
    }

    /// Expects this code, with a message that has this word.
    fn refuses(&self, target: &str, key: &str, code: &str, word: &str) -> Seen {
        refused(target, &self.get(target, key)?, code, word)
    }

    /// The same with the full key of the first account, for each of these.
    fn refuses_all(&self, targets: &[&str], code: &str, word: &str) -> Seen {
        let key = self.key("main", "full")?;
        targets.iter().try_for_each(|target| self.refuses(target, key, code, word))
    }

    /// Walks through a list, with these limits in turn. Returns the calls of all pages.
    fn walk(&self, query: &str, limits: &[u32], between: impl Fn() -> Seen) -> Seen<Vec<Value>> {
        let (mut calls, mut cursor, mut seen) = (Vec::new(), String::new(), Vec::new());
        for limit in limits.iter().cycle() {
            let target = format!("/v1/calls?limit={limit}{query}{cursor}");
            let page = self.good(&target)?;
            calls.extend(rows(&page));
            let Some(next) = page["next_cursor"].as_str() else { break };
            ensure(!seen.contains(&next.to_owned()) && seen.len() < 5000, || {
                format!("{target}: the walk does not end")
            })?;
            seen.push(next.to_owned());
            cursor = format!("&cursor={next}");
            between()?;
        }
        Ok(calls)
    }

    /// Returns the cursor of a first page of this list.
    fn cursor(&self, query: &str) -> Seen<String> {
        let page = self.good(&format!("/v1/calls?limit=2{query}"))?;
        let lacks = || Not::Broken(format!("/v1/calls?limit=2{query}: no next_cursor"));
        page["next_cursor"].as_str().map(str::to_owned).ok_or_else(lacks)
    }
}

/// Requires this code of an answer, and this word in its message.
fn refused(what: &str, answer: &Answer, code: &str, word: &str) -> Seen {
    let what = what.get(..120).unwrap_or(what);
    let came = || format!("{what}: expected {code}, came {}", answer.in_words());
    ensure(answer.status >= 400 && answer.code() == code, came)?;
    let message = answer.json()["error"]["message"].to_string();
    ensure(message.contains(word), || {
        format!("{what}: the message does not name {word}: {message}")
    })
}

/// Returns the path of a call.
fn path_of(call: &Value) -> String {
    format!("/v1/calls/{}", escaped(text(call, "id")))
}

/// Returns the header of a key.
fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

/// Returns the rows of a page.
fn rows(page: &Value) -> Vec<Value> {
    page["data"].as_array().cloned().unwrap_or_default()
}

/// Returns the ids of calls.
fn ids(calls: &[Value]) -> Vec<&str> {
    calls.iter().map(|call| text(call, "id")).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Returns an instant of a call; `None` where it is no RFC 3339.
fn instant(call: &Value, field: &str) -> Option<Timestamp> {
    Timestamp::parse(text(call, field)).ok()
}

/// Returns the place of a call in a list: the later one comes first.
fn position(call: &Value) -> (Option<Timestamp>, String) {
    (instant(call, "started_at"), text(call, "id").to_owned())
}
