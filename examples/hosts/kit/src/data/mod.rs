//! `--data FILE.json`: the initial accounts. `examples/hosts/memory/README.md` has the format.

pub mod demo;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use call_assistant::id::{AccountId, CallId, CredentialId, EndpointId};
use call_assistant::model::Call;
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::{ApiKey, Mode, Scope};
use call_assistant::webhook::SigningSecret;
use call_assistant::webhook::sender::EndpointUrl;
use call_assistant::{Product, Timestamp};
use serde_json::{Map, Value, json};

use crate::input::{self, Bad, Fields};
use crate::random;
use crate::store::plan::{PLANS, Plan};
use crate::store::{Account, NewAccount, NewEndpoint};

/// Reads a file.
///
/// # Errors
/// The text says what is wrong with it, with the path of the field.
pub fn load(file: &Path, allow_loopback: bool, now: Timestamp) -> Result<Vec<NewAccount>, String> {
    let text = std::fs::read(file).map_err(|error| format!("cannot be read: {error}"))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| {
        format!("is not JSON at line {} column {}", error.line(), error.column())
    })?;
    read(&value, allow_loopback, now).map_err(|error| error.to_string())
}

/// Reads the content of a file.
///
/// # Errors
/// The path of the wrong field, and the reason.
pub fn read(value: &Value, allow_loopback: bool, now: Timestamp) -> Result<Vec<NewAccount>, Bad> {
    input::storable(value)?;
    let file = Fields::of("", value, "accounts")?;
    file.required("accounts", file.value("accounts"))?;
    let mut reader = Reader::new(allow_loopback, now);
    file.items("accounts")?.iter().map(|(path, value)| reader.account(path, value)).collect()
}

/// Reads one account, without anything in it.
///
/// # Errors
/// The wrong field, and the reason.
pub fn account(value: &Value, now: Timestamp) -> Result<Account, Bad> {
    Ok(Reader::new(false, now).account("", value)?.account)
}

/// Ids and secrets read so far, to find repeats.
struct Reader {
    allow_loopback: bool,
    now: Timestamp,
    accounts: HashSet<AccountId>,
    keys: HashSet<CredentialId>,
    digests: HashSet<[u8; 32]>,
    endpoints: HashSet<EndpointId>,
}

impl Reader {
    fn new(allow_loopback: bool, now: Timestamp) -> Self {
        Self {
            allow_loopback,
            now,
            accounts: HashSet::new(),
            keys: HashSet::new(),
            digests: HashSet::new(),
            endpoints: HashSet::new(),
        }
    }

    fn account(&mut self, path: &str, value: &Value) -> Result<NewAccount, Bad> {
        let known = "id, business_name, timezone, plan, subscription_active, closing, \
                     keys, endpoints, calls, test_calls";
        let fields = Fields::of(path, value, known)?;
        let id = fields.need("id", AccountId::parse)?;
        let account = Account {
            id: id.clone(),
            business_name: fields.read("business_name", business_name)?,
            timezone: fields.need("timezone", timezone)?,
            plan: if fields.has("plan") { plan(&fields)? } else { Plan::LARGEST },
            subscription_active: fields.flag("subscription_active")?.unwrap_or(true),
            closing: fields.flag("closing")?.unwrap_or(false),
            calls: 0,
        };
        let mut ids = HashSet::new();
        let live = calls(&fields, "calls", &mut ids)?;
        let test_calls = calls(&fields, "test_calls", &mut ids)?;
        if !self.accounts.insert(id.clone()) {
            return Err(Bad::new(fields.path("id"), "an account with this id already exists"));
        }
        let keys = fields.items("keys")?;
        let keys = keys.iter().map(|(path, value)| self.key(path, value, &id));
        let keys = keys.collect::<Result<_, Bad>>()?;
        let endpoints = fields.items("endpoints")?;
        let endpoints = endpoints.iter().map(|(path, value)| self.endpoint(path, value, &account));
        let endpoints = endpoints.collect::<Result<_, Bad>>()?;
        Ok(NewAccount { account, keys, endpoints, calls: live, test_calls })
    }

    fn key(
        &mut self,
        path: &str,
        value: &Value,
        account: &AccountId,
    ) -> Result<(StoredKey, ApiKey), Bad> {
        let (stored, key) = read_key(path, value, account, self.now)?;
        let new = self.keys.insert(stored.id.clone());
        if !(self.digests.insert(*stored.digest.as_bytes()) && new) {
            let message = "a key with this id or secret already exists";
            return Err(Bad::new(format!("{path}.secret"), message));
        }
        Ok((stored, key))
    }

    fn endpoint(
        &mut self,
        path: &str,
        value: &Value,
        account: &Account,
    ) -> Result<NewEndpoint, Bad> {
        let fields = Fields::of(path, value, "id, url, secret, description")?;
        let id = fields.read("id", EndpointId::parse)?;
        let id = id.unwrap_or_else(|| EndpointId::from_random(random::bytes()));
        let (target, secret) = (target(&fields, self.allow_loopback)?, secret(&fields)?);
        account.plan.webhooks.check_webhooks().map_err(|error| Bad::new(path, error))?;
        if !self.endpoints.insert(id.clone()) {
            return Err(Bad::new(path, "an endpoint with this id already exists"));
        }
        let description = description(&fields)?;
        Ok(NewEndpoint { id, account_id: account.id.clone(), target, secret, description })
    }
}

fn calls(fields: &Fields<'_>, name: &str, ids: &mut HashSet<CallId>) -> Result<Vec<Call>, Bad> {
    let mut calls = Vec::new();
    for (path, value) in fields.items(name)? {
        let call = input::call(&path, value, &Map::new())?;
        if !ids.insert(call.id.clone()) {
            return Err(Bad::new(format!("{path}.id"), "another call of the account has this id"));
        }
        calls.push(call);
    }
    Ok(calls)
}

/// Reads an endpoint's `url`.
pub fn target(fields: &Fields<'_>, allow_loopback: bool) -> Result<EndpointUrl, Bad> {
    if allow_loopback {
        return fields.need("url", EndpointUrl::parse_allowing_loopback);
    }
    // The library knows no flags.
    fields.need("url", |text| {
        EndpointUrl::parse(text).map_err(|error| match EndpointUrl::parse_allowing_loopback(text) {
            Ok(_) => format!("{error}; --allow-loopback-endpoints accepts it"),
            Err(_) => error.to_string(),
        })
    })
}

/// The longest name of a business: 1,000 bytes. PostgreSQL's index of names has a limit.
const LONGEST_NAME: usize = 1000;

fn business_name(text: &str) -> Result<String, String> {
    match text.len() <= LONGEST_NAME && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected at most {LONGEST_NAME} bytes of one line")),
    }
}

/// The longest description of an endpoint: 200 characters.
const LONGEST_DESCRIPTION: usize = 200;

/// Reads an endpoint's `description`: none if it is absent, null or empty.
pub fn description(fields: &Fields<'_>) -> Result<Option<String>, Bad> {
    let read = fields.read("description", |text| {
        match text.chars().count() <= LONGEST_DESCRIPTION && !text.chars().any(char::is_control) {
            true => Ok(text.to_owned()),
            false => Err(format!("expected at most {LONGEST_DESCRIPTION} characters of one line")),
        }
    });
    Ok(read?.filter(|text| !text.is_empty()))
}

/// Reads an endpoint's `secret`, or creates one if it is absent.
pub fn secret(fields: &Fields<'_>) -> Result<SigningSecret, Bad> {
    let secret = fields.read("secret", SigningSecret::parse)?;
    Ok(secret.unwrap_or_else(|| SigningSecret::from_random(random::bytes())))
}

/// Reads a `plan`: the name of one, or null for none.
pub fn plan(fields: &Fields<'_>) -> Result<Plan, Bad> {
    let named = |text: &str| {
        let names = PLANS.map(|plan| plan.name).join(", ");
        Plan::named(text).ok_or_else(|| format!("unknown plan; the plans are {names}"))
    };
    let plan = fields.read("plan", named)?;
    Ok(plan.unwrap_or(Plan::NONE))
}

/// The most scopes of a key: 32. Two are defined, and a few are reserved.
const MOST_SCOPES: usize = 32;

/// Reads `scopes`. Reserved ones may be granted, and grant nothing.
pub fn scopes(fields: &Fields<'_>) -> Result<BTreeSet<Scope>, Bad> {
    let scopes = fields.texts("scopes", MOST_SCOPES, |text| {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b":_-.".contains(&b));
        if fits { Ok(Scope::from(text)) } else { Err("not a scope such as account:read") }
    })?;
    Ok(scopes.into_iter().collect())
}

/// Reads a `mode`.
pub fn mode(fields: &Fields<'_>) -> Result<Option<Mode>, Bad> {
    fields.read("mode", |text| match text {
        "live" => Ok(Mode::Live),
        "test" => Ok(Mode::Test),
        _ => Err("expected live or test"),
    })
}

fn read_key(
    path: &str,
    value: &Value,
    account: &AccountId,
    now: Timestamp,
) -> Result<(StoredKey, ApiKey), Bad> {
    let known = "id, name, secret, mode, scopes, state, created_at, expires_at, \
                 revoked_at";
    let fields = Fields::of(path, value, known)?;
    let product = Product::default();
    let key = fields.need("secret", |text| ApiKey::parse_for(&product, text))?;
    let id = fields.read("id", CredentialId::parse)?;
    let id = id.unwrap_or_else(|| CredentialId::from_random(random::bytes()));
    let name = fields.text("name")?.unwrap_or_default();
    let state = fields.text("state")?.unwrap_or("full");
    let created_at = fields.read("created_at", Timestamp::parse)?.unwrap_or(now);

    let mut stored = StoredKey::new(id, account.clone(), &key, created_at).with_name(name);
    let (scopes_of_state, ended) = match state {
        "full" | "test" | "valid" => (json!(["account:read", "calls:read"]), None),
        "account only" => (json!(["account:read"]), None),
        "calls only" => (json!(["calls:read"]), None),
        "none" => (json!([]), None),
        "expired" | "revoked" => (json!(["account:read", "calls:read"]), Some(created_at)),
        _ => {
            let words = "full, account only, calls only, none, test, expired or revoked";
            return Err(Bad::new(fields.path("state"), format!("expected {words}")));
        }
    };
    stored.mode = mode(&fields)?.unwrap_or(key.mode());
    stored.scopes = scopes(&fields)?;
    if !fields.has("scopes") {
        let default = json!({ "scopes": scopes_of_state });
        stored.scopes = scopes(&Fields::of(path, &default, "scopes")?)?;
    }
    let expired = ended.filter(|_| state == "expired");
    let revoked = ended.filter(|_| state == "revoked");
    stored.expires_at = fields.read("expires_at", Timestamp::parse)?.or(expired);
    stored.revoked_at = fields.read("revoked_at", Timestamp::parse)?.or(revoked);
    Ok((stored, key))
}

/// Checks an IANA name by its form: which of them exist changes several times a year.
pub fn timezone(text: &str) -> Result<String, &'static str> {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+-".contains(&b))
    };
    if text.len() <= 64 && text.split('/').all(part) {
        return Ok(text.to_owned());
    }
    Err("not an IANA timezone, such as Europe/Oslo")
}
