//! `--data FILE.json`: accounts to begin with. `README.md` beside this file has the format.

use std::collections::BTreeSet;
use std::path::Path;

use call_assistant::Product;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CredentialId, EndpointId};
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::{ApiKey, Mode, Scope};
use call_assistant::webhook::SigningSecret;
use call_assistant::webhook::sender::Target;
use serde_json::{Map, Value, json};

use crate::input::{self, Bad, Fields};
use crate::store::{AccountRow, Plan, Refused, Tables};
use crate::support::random;

/// A key whose secret is known, for the first line that the program prints.
#[derive(Clone, Debug)]
pub(crate) struct KnownKey {
    pub(crate) account_id: AccountId,
    pub(crate) name: String,
    pub(crate) secret: ApiKey,
}

/// Why a file is not loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is not JSON.
    #[error("is not JSON at line {line} column {column}")]
    Syntax { line: usize, column: usize },
    /// A field is wrong.
    #[error(transparent)]
    Field(#[from] Bad),
}

/// Loads a file into empty tables.
///
/// # Errors
/// [`DataError`] says what is wrong with it, with the path of the field.
pub(crate) fn load(
    file: &Path,
    tables: &mut Tables,
    allow_loopback: bool,
    now: Timestamp,
) -> Result<Vec<KnownKey>, DataError> {
    let text = std::fs::read(file)?;
    let value: Value = serde_json::from_slice(&text)
        .map_err(|error| DataError::Syntax { line: error.line(), column: error.column() })?;
    Ok(fill(&value, tables, allow_loopback, now)?)
}

/// Fills empty tables with what a file says.
///
/// # Errors
/// The path of the field that is wrong, and what is.
pub(crate) fn fill(
    value: &Value,
    tables: &mut Tables,
    allow_loopback: bool,
    now: Timestamp,
) -> Result<Vec<KnownKey>, Bad> {
    let file = Fields::of("", value, &["accounts"])?;
    file.required("accounts", file.value("accounts"))?;
    let mut known = Vec::new();
    for (path, value) in file.items("accounts")? {
        account(&path, value, tables, allow_loopback, now, &mut known)?;
    }
    Ok(known)
}

fn account(
    path: &str,
    value: &Value,
    tables: &mut Tables,
    allow_loopback: bool,
    now: Timestamp,
    known: &mut Vec<KnownKey>,
) -> Result<(), Bad> {
    let fields = Fields::of(
        path,
        value,
        &[
            "id",
            "business_name",
            "timezone",
            "plan",
            "subscription_active",
            "closing",
            "keys",
            "endpoints",
            "calls",
            "test_calls",
        ],
    )?;
    let id = fields.read("id", AccountId::parse)?;
    let id = fields.required("id", id)?;
    let timezone = fields.read("timezone", timezone)?;
    let mut row = AccountRow::new(id.clone(), fields.required("timezone", timezone)?);
    row.business_name = fields.text("business_name")?.map(str::to_owned);
    if fields.has("plan") {
        row.plan = plan(&fields)?;
    }
    row.subscription_active = fields.flag("subscription_active")?.unwrap_or(true);
    row.closing = fields.flag("closing")?.unwrap_or(false);
    for (name, mode) in [("calls", Mode::Live), ("test_calls", Mode::Test)] {
        for (path, value) in fields.items(name)? {
            let call = input::call(&path, value, &Map::new())?;
            if row.calls(Mode::Live).find(&call.id).is_some() {
                return Err(Bad::new(format!("{path}.id"), "another call of the account has it"));
            }
            row.calls_mut(mode).add(call).map_err(|error| bad(format!("{path}.id"), error))?;
        }
    }
    tables.add_account(row).map_err(|error| bad(fields.path("id"), error))?;
    for (path, value) in fields.items("keys")? {
        let (stored, key) = read_key(&path, value, &id, now)?;
        known.push(KnownKey { account_id: id.clone(), name: stored.name.clone(), secret: key });
        tables.add_key(stored).map_err(|error| bad(format!("{path}.secret"), error))?;
    }
    for (path, value) in fields.items("endpoints")? {
        let fields = Fields::of(&path, value, &["id", "url", "secret"])?;
        let endpoint = fields.read("id", EndpointId::parse)?;
        let endpoint = endpoint.unwrap_or_else(|| EndpointId::from_random(random::bytes()));
        let (target, secret) = self::endpoint(&fields, allow_loopback)?;
        tables
            .add_endpoint(&id, endpoint, target, secret, now)
            .map_err(|error| bad(path.clone(), error))?;
    }
    Ok(())
}

/// Reads an endpoint's `url` and `secret`. A secret that is not given is made.
pub(crate) fn endpoint(
    fields: &Fields<'_>,
    allow_loopback: bool,
) -> Result<(Target, SigningSecret), Bad> {
    let parse = if allow_loopback { Target::parse_allowing_loopback } else { Target::parse };
    let target = fields.read("url", parse)?;
    let secret = fields.read("secret", SigningSecret::parse)?;
    let secret = secret.unwrap_or_else(|| SigningSecret::from_random(random::bytes()));
    Ok((fields.required("url", target)?, secret))
}

/// Reads a `plan`: the name of one, or null for none.
pub(crate) fn plan(fields: &Fields<'_>) -> Result<Plan, Bad> {
    let named = |text: &str| {
        let names = crate::store::PLANS.map(|plan| plan.name).join(", ");
        Plan::named(text).ok_or_else(|| format!("not a plan; there are {names}"))
    };
    let plan = fields.read("plan", named)?;
    Ok(plan.or(Plan::named("none")).unwrap_or(Plan::LARGEST))
}

/// Reads `scopes`. Reserved ones may be granted, and grant nothing.
pub(crate) fn scopes(fields: &Fields<'_>) -> Result<BTreeSet<Scope>, Bad> {
    let mut scopes = BTreeSet::new();
    for (path, value) in fields.items("scopes")? {
        let text = value.as_str().ok_or_else(|| Bad::new(&path, "expected a string"))?;
        let fits = |text: &str| {
            (1..=64).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_lowercase() || b":_-.".contains(&b))
        };
        if !fits(text) {
            return Err(Bad::new(path, "not a scope, which looks like account:read"));
        }
        scopes.insert(Scope::from(text));
    }
    Ok(scopes)
}

/// Reads a `mode`.
pub(crate) fn mode(fields: &Fields<'_>) -> Result<Option<Mode>, Bad> {
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
    let known = [
        "id",
        "name",
        "secret",
        "mode",
        "scopes",
        "state",
        "created_at",
        "expires_at",
        "revoked_at",
    ];
    let fields = Fields::of(path, value, &known)?;
    let product = Product::default();
    let key = fields.read("secret", |text| ApiKey::parse_for(&product, text))?;
    let key = fields.required("secret", key)?;
    let id = fields.read("id", CredentialId::parse)?;
    let id = id.unwrap_or_else(|| CredentialId::from_random(random::bytes()));
    let name = fields.text("name")?.unwrap_or_default();
    let state = fields.text("state")?.unwrap_or("full");
    let created_at = fields.read("created_at", Timestamp::parse)?.unwrap_or(now);

    let mut stored = StoredKey::new(id, account.clone(), &key, created_at).named(name);
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
        stored.scopes = scopes(&Fields::of(path, &default, &["scopes"])?)?;
    }
    let expired = ended.filter(|_| state == "expired");
    let revoked = ended.filter(|_| state == "revoked");
    stored.expires_at = fields.read("expires_at", Timestamp::parse)?.or(expired);
    stored.revoked_at = fields.read("revoked_at", Timestamp::parse)?.or(revoked);
    Ok((stored, key))
}

/// An IANA name by its form: which of them exist, changes several times a year.
fn timezone(text: &str) -> Result<String, &'static str> {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+-".contains(&b))
    };
    if text.len() <= 64 && text.split('/').all(part) {
        return Ok(text.to_owned());
    }
    Err("not an IANA timezone, such as Europe/Oslo")
}

fn bad(path: String, refused: Refused) -> Bad {
    Bad::new(
        path,
        match refused {
            Refused::NotFound(what) => format!("there is no such {what}"),
            Refused::Conflict(message) => message,
            Refused::Plan(error) => error.to_string(),
        },
    )
}
