//! A cursor of an instant, a 27-character id and both filters, beside what others put one in: a
//! JSON web token, a signed cookie, and JSON in base64 without any authentication.
//!
//! All but the last bind it to an account, which the others have to carry to do so.

#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::rest::CallFilter;
use call_assistant::rest::Mode;
use call_assistant::rest::server::{Cursor, CursorKeys};
use cookie::{Cookie, CookieJar, Key};
use divan::{AllocProfiler, Bencher, black_box};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    for (name, text) in [
        ("ours", ours().2),
        ("json in base64", to_base64(&claims())),
        ("cookie", in_cookie(&cookie_key())),
        ("jsonwebtoken", in_token(&EncodingKey::from_secret(&[7; 32]))),
    ] {
        println!("{name}: {} characters", text.len());
    }
    divan::main();
}

const ACCOUNT: &str = "acct_01J9ZK5T7Q3W8XN4R6V2Y";
const CALL: &str = "call_01J9ZK5T7Q3W8XN4R6V2YB";

#[derive(Serialize, Deserialize)]
struct Claims {
    account: String,
    live: bool,
    started_at: Timestamp,
    id: String,
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
}

fn now() -> Timestamp {
    Timestamp::from_parts(1_767_225_600, 123_456_000).unwrap()
}

fn claims() -> Claims {
    Claims {
        account: ACCOUNT.into(),
        live: true,
        started_at: now(),
        id: CALL.into(),
        created_after: Some(now()),
        created_before: Some(now()),
    }
}

fn ours() -> (CursorKeys, AccountId, String, Cursor) {
    let keys = CursorKeys::new(1, [7; 32]);
    let account = AccountId::parse(ACCOUNT).unwrap();
    let cursor = Cursor::new(now(), CallId::parse(CALL).unwrap())
        .with_filter(CallFilter::new().with_created_after(now()).with_created_before(now()));
    let text = keys.seal(&account, Mode::Live, &cursor);
    (keys, account, text, cursor)
}

fn to_base64(claims: &Claims) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims).unwrap())
}

fn in_token(key: &EncodingKey) -> String {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims(), key).unwrap()
}

fn cookie_key() -> Key {
    Key::from(&[7; 64])
}

fn in_cookie(key: &Key) -> String {
    let mut jar = CookieJar::new();
    jar.signed_mut(key).add(Cookie::new("cursor", to_base64(&claims())));
    jar.get("cursor").unwrap().value().to_owned()
}

#[divan::bench]
fn seal(bencher: Bencher<'_, '_>) {
    let (keys, account, _, cursor) = ours();
    bencher.bench(|| keys.seal(black_box(&account), Mode::Live, black_box(&cursor)));
}

#[divan::bench]
fn seal_json_in_base64(bencher: Bencher<'_, '_>) {
    let claims = claims();
    bencher.bench(|| to_base64(black_box(&claims)));
}

#[divan::bench]
fn seal_cookie(bencher: Bencher<'_, '_>) {
    let key = cookie_key();
    bencher.bench(|| in_cookie(black_box(&key)));
}

#[divan::bench]
fn seal_jsonwebtoken(bencher: Bencher<'_, '_>) {
    let key = EncodingKey::from_secret(&[7; 32]);
    bencher.bench(|| in_token(black_box(&key)));
}

#[divan::bench]
fn open(bencher: Bencher<'_, '_>) {
    let (keys, account, text, _) = ours();
    bencher.bench(|| keys.open(black_box(&account), Mode::Live, black_box(&text)).unwrap());
}

fn from_base64(text: &str) -> Claims {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
}

#[divan::bench]
fn open_json_in_base64(bencher: Bencher<'_, '_>) {
    let text = to_base64(&claims());
    bencher.bench(|| from_base64(black_box(&text)));
}

#[divan::bench]
fn open_cookie(bencher: Bencher<'_, '_>) {
    let key = cookie_key();
    let text = in_cookie(&key);
    bencher.bench(|| {
        let mut jar = CookieJar::new();
        jar.add_original(Cookie::new("cursor", black_box(text.as_str()).to_owned()));
        from_base64(jar.signed(&key).get("cursor").unwrap().value())
    });
}

#[divan::bench]
fn open_jsonwebtoken(bencher: Bencher<'_, '_>) {
    let text = in_token(&EncodingKey::from_secret(&[7; 32]));
    let key = DecodingKey::from_secret(&[7; 32]);
    let mut validation = Validation::new(Algorithm::HS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    bencher.bench(|| {
        jsonwebtoken::decode::<Claims>(black_box(&text), &key, &validation).unwrap().claims
    });
}
