//! Rotates a signing secret, an API key and cursor keys. No request fails meanwhile.
//!
//! `cargo run --example rotate_secrets --features service`

use std::error::Error;
use std::time::SystemTime;

use call_assistant::id::{AccountId, CredentialId};
use call_assistant::rest::server::{CursorKeys, StoredKey};
use call_assistant::rest::{ApiKey, Mode, client::Client};
use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
use call_assistant::{Product, Timestamp};

/// The customer accepts both secrets, and the service signs with both. Then each side removes the
/// old secret.
pub(crate) fn signing_secret(now: Timestamp) -> Result<usize, Box<dyn Error>> {
    let [old, new] = [random(), random()].map(SigningSecret::from_random);
    let mut signer = Signer::new(old.clone()); // the service
    signer.rotate(new.clone(), Signer::OVERLAP, now)?;
    let verifier = Verifier::new(new).with_secret(old); // the customer
    let request = testing::signed_request(&signer, "ping", "evt_1", b"{}", now)?;
    Ok(verifier.verify(request.headers(), request.body(), now)?.secret_index()) // 0: the new one
}

/// The service creates a new key. The customer changes to the new key, and the service then revokes
/// the old key.
pub(crate) fn api_key(
    client: Client,
    old: &mut StoredKey,
    now: Timestamp,
) -> Result<(Client, StoredKey), Box<dyn Error>> {
    let key = ApiKey::from_random(&Product::default(), old.mode, random());
    let id = CredentialId::from_random(random());
    let new = StoredKey::new(id, old.account_id.clone(), &key, now).with_scopes(old.scopes.clone());
    let client = client.with_key(key); // the customer, once `new` is stored
    old.revoke(now); // the service, once `old.last_used_at` stays as it is
    Ok((client, new))
}

/// Complete each step on all hosts before the next step.
pub(crate) fn cursor_keys(old: [u8; 32], new: [u8; 32]) -> Result<[CursorKeys; 3], Box<dyn Error>> {
    Ok([
        CursorKeys::new(1, old).with_key(2, new)?, // verifies
        CursorKeys::new(2, new).with_key(1, old)?, // signs
        CursorKeys::new(2, new),                   // once no walk uses the old key
    ])
}

fn main() -> Result<(), Box<dyn Error>> {
    let now = now();
    println!("secret {} has matched", signing_secret(now)?);
    let key = ApiKey::from_random(&Product::default(), Mode::Test, random());
    let mut old =
        StoredKey::new(CredentialId::parse("cred_1")?, AccountId::parse("acct_1")?, &key, now);
    let client = Client::new("https://api.example.com", key.reveal())?;
    let (client, new) = api_key(client, &mut old, now)?;
    println!("{:?}: {:?}, the old one {:?}", client.key(), new.state(now), old.state(now));
    println!("{} rings", cursor_keys(random(), random())?.len());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a host has a clock")]
fn now() -> Timestamp {
    SystemTime::now().into()
}

#[expect(clippy::expect_used, reason = "nothing can be kept secret without them")]
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
