//! What is stored of an API key.

use std::time::Duration;

use call_assistant::id::{AccountId, CredentialId};
use call_assistant::rest::server::{KeyDigest, KeyState, StoredKey};
use call_assistant::rest::{ApiKey, Scope};
use call_assistant::{Product, Timestamp};

use crate::second;

const SECRET: &str = "service_live_00112233445566778899aabbccddeeff";
const DIGEST: &str = "24e7a291d8e1a0cc77683e2f337f2f3056901ce87100d2f31957ac0f23202cfc";

fn now() -> Timestamp {
    "2026-03-01T09:00:00Z".parse().unwrap()
}

fn key() -> ApiKey {
    ApiKey::parse_for(&Product::default(), SECRET).unwrap()
}

fn stored() -> StoredKey {
    let account = AccountId::parse("acct_1").unwrap();
    StoredKey::new(CredentialId::parse("cred_1").unwrap(), account, &key(), now())
}

/// KEY-2: the digest, as any other implementation computes it:
/// `printf %s service_live_00112233445566778899aabbccddeeff | sha256sum`.
#[test]
fn the_digest_is_the_sha_256_of_the_whole_key() {
    let digest = key().digest();
    assert_eq!(serde_json::to_value(digest).unwrap(), DIGEST);
    assert_eq!(digest, KeyDigest::compute(SECRET.as_bytes()));
    assert_eq!(digest, KeyDigest::from_bytes(*digest.as_bytes()));
    for bit in 0..256 {
        let mut bytes = *digest.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(KeyDigest::from_bytes(bytes), digest, "bit {bit}");
    }
    for wrong in ["\"\"", "\"00\"", "5", "\"zz\""] {
        assert!(serde_json::from_str::<KeyDigest>(wrong).unwrap_err().is_data(), "{wrong}");
    }
}

/// KEY-1, KEY-2, KEY-3: everything that is known of a key, its one account too, in storage's words.
#[test]
fn a_stored_key_is_stable_in_storage() {
    let mut stored = stored().with_name("Nightly sync").with_scopes([
        Scope::CallsRead,
        Scope::AccountRead,
        Scope::from("contacts:read"),
    ]);
    stored.expires_at = Some(now().saturating_add(Duration::from_secs(60)));
    stored.last_used_at = Some(now());
    stored.revoke(now());
    let json = serde_json::json!({
        "id": "cred_1",
        "account_id": "acct_1",
        "digest": DIGEST,
        "mode": "live",
        "name": "Nightly sync",
        "hint": "service_live_...eeff",
        "scopes": ["account:read", "calls:read", "contacts:read"],
        "created_at": "2026-03-01T09:00:00Z",
        "last_used_at": "2026-03-01T09:00:00Z",
        "expires_at": "2026-03-01T09:01:00Z",
        "revoked_at": "2026-03-01T09:00:00Z",
    });
    assert_eq!(serde_json::to_value(&stored).unwrap(), json);
    assert_eq!(serde_json::from_value::<StoredKey>(json.clone()).unwrap(), stored);

    // Without its ends it would be valid for ever. It has never been written without.
    for end in ["expires_at", "revoked_at", "last_used_at"] {
        let mut without = json.clone();
        without.as_object_mut().unwrap().remove(end);
        let error = serde_json::from_value::<StoredKey>(without).unwrap_err().to_string();
        assert_eq!(error, format!("missing field `{end}`"), "{end}");
        let mut never = json.clone();
        never[end] = serde_json::Value::Null;
        assert!(serde_json::from_value::<StoredKey>(never).is_ok(), "{end}");
    }
}

/// D-11: from `expires_at` on; KEY-4: revoked at once, whatever the clock does.
#[test]
fn a_key_is_valid_until_it_expires_or_is_revoked() {
    let nano = Duration::from_nanos(1);
    assert_eq!(stored().state(Timestamp::MAX), KeyState::Valid);

    let mut stored = StoredKey { expires_at: Some(now()), ..stored() };
    assert_eq!(stored.state(now().saturating_sub(nano)), KeyState::Valid);
    assert_eq!(stored.state(now()), KeyState::Expired);
    assert_eq!(stored.state(now().saturating_add(nano)), KeyState::Expired);

    stored.revoke(now());
    for at in [Timestamp::MIN, now().saturating_sub(nano), now(), Timestamp::MAX] {
        assert_eq!(stored.state(at), KeyState::Revoked, "{at}");
    }
    stored.revoke(now().saturating_add(nano));
    assert_eq!(stored.revoked_at, Some(now()), "the first revocation is the one that counts");
}

// At most one write per span, and never a use that is forgotten for longer than that.
#[test]
fn uses_are_written_now_and_then() {
    let mut key = stored();
    for (used_at, due) in [
        (1_000, true), // the first one
        (1_000, false),
        (1_059, false),
        (1_060, true),
        (1_119, false),
        (1_059, false), // a clock that is a little behind, which changes nothing
        (1_120, true),
        (1_060, false),
        (1_059, true), // what is stored is too far ahead to be right
        (1_119, true),
    ] {
        let before = key.last_used_at;
        assert_eq!(key.note_use(Duration::from_secs(60), second(used_at)), due, "{used_at}");
        let expected = if due { Some(second(used_at)) } else { before };
        assert_eq!(key.last_used_at, expected, "{used_at}");
    }
    // Without a span, each use is written.
    for used_at in [5, 5, 6, 4] {
        assert!(key.note_use(Duration::ZERO, second(used_at)), "{used_at}");
        assert_eq!(key.last_used_at, Some(second(used_at)));
    }
}
