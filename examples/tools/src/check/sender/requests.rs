//! The bytes of a request: headers, signature, envelope.

use call_assistant::Timestamp;
use call_assistant::webhook::{SigningSecret, Verifier};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use testing::receiver::{Got, Reply};

use super::Sender;
use crate::check::case::{Case, Not, Seen, case, ensure};

const GOOD: &[Reply] = &[Reply::Status(204)];

pub(super) const CASES: &[Case<Sender>] = &[
    // DEL-1
    case("headers.five", "Deliveries", "A receiver cannot identify a request.", |sender| {
        let (got, _, body) = one(sender)?;
        for (name, expected) in [
            ("content-type", "application/json"),
            ("user-agent", "Service-Webhooks/1.0"),
            ("x-service-event", body["type"].as_str().unwrap_or_default()),
            ("x-service-delivery", body["id"].as_str().unwrap_or_default()),
        ] {
            let values: Vec<_> = got.headers.get_all(name).iter().collect();
            ensure(values == [expected], || format!("{name}: {values:?}, expected {expected}"))?;
        }
        Ok(())
    }),
    // SIG-1
    case("signature.form", "Signatures", "A strict receiver refuses each event.", |sender| {
        let (got, ..) = one(sender)?;
        let signature = signature_of(&got)?;
        let (t, digest) = signature
            .strip_prefix("t=")
            .and_then(|rest| rest.split_once(",v1="))
            .unwrap_or_default();
        let is_t = t.len() == 10 && t.bytes().all(|byte| byte.is_ascii_digit());
        let is_digest = digest.len() == 64
            && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        ensure(is_t && is_digest, || "not t=SECONDS,v1= and 64 lower-case digits".to_owned())
    }),
    // SIG-2, SIG-5
    case("signature.bytes", "Signatures", "A receiver refuses genuine events.", |sender| {
        let (got, secret, _) = one(sender)?;
        let signature = signature_of(&got)?;
        let (t, digest) = signature
            .strip_prefix("t=")
            .and_then(|rest| rest.split_once(",v1="))
            .unwrap_or_default();
        let mac =
            Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?;
        let mac = mac.chain_update(t).chain_update(".").chain_update(&got.body);
        let is_good = hex::encode(mac.finalize().into_bytes()) == digest.to_lowercase();
        ensure(is_good, || {
            "the digest is not that of t, a period and the body under the whole secret".to_owned()
        })
    }),
    // SIG-4
    case("signature.time", "Signatures", "A receiver refuses each event as a replay.", |sender| {
        let (got, ..) = one(sender)?;
        let signature = signature_of(&got)?;
        let t = signature
            .trim_start_matches("t=")
            .split(',')
            .next()
            .and_then(|t| t.parse::<i64>().ok());
        let away = t.map(|t| got.at.unix_seconds().saturating_sub(t).abs());
        ensure(away.is_some_and(|away| away <= 5), || format!("t is {away:?} s away"))
    }),
    // DEL-11
    case(
        "signature.secret",
        "Signatures",
        "A receiver in another language cannot use the secret.",
        |sender| {
            let hook = sender.with_hook(GOOD)?;
            let is_good = SigningSecret::parse(&hook.secret).map(Verifier::new).is_ok();
            ensure(is_good, || "a secret is whsec_ and visible ASCII, 255 bytes at most".to_owned())
        },
    ),
    // EVT-1, D-63
    case(
        "envelope.fields",
        "Events",
        "A receiver cannot identify an event or its account.",
        |sender| {
            let (_, _, body) = one(sender)?;
            let text = |field: &str| body[field].as_str().unwrap_or_default();
            let created_at = text("created_at");
            for (field, is_good) in [
                ("id", text("id").starts_with("evt_")),
                ("type", text("type") == "contact.updated"),
                (
                    "created_at",
                    Timestamp::parse(created_at).is_ok() && created_at.ends_with("+00:00"),
                ),
                ("api_version", text("api_version").len() == 10),
                ("account_id", !text("account_id").is_empty()),
                (
                    "origin",
                    body.get("origin")
                        .is_some_and(|origin| origin.is_null() || origin["source"].is_string()),
                ),
                ("data", body["data"]["object"]["id"] == "cont_1"),
            ] {
                ensure(is_good, || format!("{field}: {}", body[field]))?;
            }
            Ok(())
        },
    ),
    // D-60
    case("envelope.id_shared", "Events", "A receiver with two endpoints acts twice.", |sender| {
        let (first, second) = (sender.with_hook(GOOD)?, sender.hook(GOOD)?);
        let event = sender.emit()?;
        for hook in [first, second] {
            let got = sender.came(&hook, 1)?;
            let ids: Vec<_> =
                got.iter().map(|got| got.header("x-service-delivery").to_owned()).collect();
            ensure(ids == [event.as_str()], || format!("{ids:?}, emitted was {event}"))?;
        }
        Ok(())
    }),
    // DEL-13
    case(
        "envelope.same_bytes",
        "Deliveries",
        "A repeated event looks like another event.",
        |sender| {
            let hook =
                sender.with_hook(&[Reply::Status(500), Reply::Status(500), Reply::Status(204)])?;
            sender.emit()?;
            let got = sender.came(&hook, 3)?;
            ensure(
                got.iter().all(|one| Some(&one.body) == got.first().map(|first| &first.body)),
                || "two attempts of one delivery have other bytes".to_owned(),
            )
        },
    ),
];

/// Has one event sent. Returns the request, the secret and the body.
fn one(sender: &Sender) -> Seen<(Got, String, Value)> {
    let hook = sender.with_hook(GOOD)?;
    sender.emit()?;
    let got = sender.came(&hook, 1)?.into_iter().next();
    let got = got.ok_or_else(|| Not::Broken("no request came".to_owned()))?;
    let body = serde_json::from_slice(&got.body).map_err(|error| format!("the body: {error}"))?;
    Ok((got, hook.secret, body))
}

pub(super) fn signature_of(got: &Got) -> Seen<String> {
    let values: Vec<_> = got.headers.get_all("x-service-signature").iter().collect();
    let [value] = values.as_slice() else {
        return Err(Not::Broken(format!("X-Service-Signature comes {} times", values.len())));
    };
    Ok(value.to_str().unwrap_or_default().to_owned())
}
