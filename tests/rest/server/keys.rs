//! Stored keys: when a use of a key is written.

use std::time::Duration;

use call_assistant::id::{AccountId, CredentialId};
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::{ApiKey, Mode};
use call_assistant::{Product, Timestamp};

use crate::second;

fn key() -> StoredKey {
    let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    let id = CredentialId::parse("cred_1").unwrap();
    StoredKey::new(id, AccountId::parse("acct_1").unwrap(), &key, Timestamp::UNIX_EPOCH)
}

// At most one write per span, and never a use that is forgotten for longer than that.
#[test]
fn uses_are_written_now_and_then() {
    let mut key = key();
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
}

#[test]
fn without_a_span_each_use_is_written() {
    let mut key = key();
    for used_at in [5, 5, 6, 4] {
        assert!(key.note_use(Duration::ZERO, second(used_at)), "{used_at}");
        assert_eq!(key.last_used_at, Some(second(used_at)));
    }
}
