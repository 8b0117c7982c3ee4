//! What no type of the surface shows.

use std::fmt::{Debug, Display};

use call_assistant::id::{AccountId, CallId, CredentialId, EventId, RequestId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::client::{Client, ClientError, ResponseHead};
use call_assistant::rest::server::{
    AccountStatus, Authorized, CursorKeys, KeyDigest, RateWindows, Received, RejectionReason,
    RequestHead, StoredKey,
};
use call_assistant::rest::{ApiKey, BaseUrl, GetAccount, ListCalls, Mode, Scope};
use call_assistant::webhook::event::{ApiVersion, Event};
use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::sender as delivery;
use call_assistant::webhook::sender::{EndedAttempt, EndpointUrl, Excerpt, LogEntry, Outcome};
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier};
use call_assistant::{Product, Timestamp};
use http::StatusCode;

use crate::ping;

fn debug(value: &(impl Debug + ?Sized)) -> String {
    format!("{value:?} {value:#?}")
}

/// An error ends up in logs both ways.
fn error<T: Display + Debug>(value: &T) -> String {
    format!("{} {value}", debug(value))
}

const KEY: &str = "service_live_s3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3t";
const SIGNING: &str = "whsec_s3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3ts3cr3t";
const RANDOM: [u8; 32] = [0xa7; 32];

/// KEY-7: a secret shows nowhere but where it is asked for by name, neither as text nor as bytes.
#[test]
fn no_secret_shows_in_debug_or_display() {
    let mut printed = keys_and_clients();
    printed.extend(exchanges());
    printed.extend(webhooks());
    printed.extend(answers_that_echo());
    printed.extend(errors_of_a_secret());
    for text in &printed {
        // "115, 51, 99" is how bytes of the text would be shown, and the rest is of the random ones.
        for leak in ["s3cr3ts", "115, 51, 99", "167, 167", "a7a7a7", "A7A7A7"] {
            assert!(!text.contains(leak), "{text}");
        }
    }
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn key() -> ApiKey {
    ApiKey::parse_for(&Product::default(), KEY).unwrap()
}

fn base() -> BaseUrl {
    BaseUrl::parse("https://api.example.com").unwrap()
}

fn account_id() -> AccountId {
    AccountId::parse("acct_1").unwrap()
}

fn stored() -> StoredKey {
    StoredKey::new(CredentialId::parse("cred_1").unwrap(), account_id(), &key(), now())
        .with_scopes([Scope::AccountRead, Scope::CallsRead])
}

fn status() -> AccountStatus {
    let account_id = account_id();
    AccountStatus { account_id, closing: false, subscribed: true, api_in_plan: true }
}

/// Why a request with a good key is refused.
fn refused(path: &str, query: Option<&str>) -> RejectionReason {
    let bearer = format!("Bearer {KEY}");
    let head =
        RequestHead::new("GET", path, query).with_host(b"h").with_authorization(bearer.as_bytes());
    let received = Received::new(&head, RequestId::parse("req_1").unwrap()).unwrap();
    let identified = received.identify(Some(&stored()), now()).unwrap();
    let admitted = identified.admit_decided(Ok(())).unwrap();
    let keys = CursorKeys::new(1, RANDOM);
    admitted.authorize(&status(), &keys).unwrap_err().reason().clone()
}

fn keys_and_clients() -> Vec<String> {
    let key = key();
    let random = ApiKey::from_random(&Product::default(), Mode::Test, RANDOM);
    let digests = [key.digest(), KeyDigest::compute(KEY.as_bytes())];
    let client = Client::from_parts(base(), key.clone());
    let request = client.request(&GetAccount).unwrap();
    let shown: [&dyn Debug; 6] = [&key, &random, &digests, &stored(), &client, &request];
    shown.map(debug).into()
}

/// Each state of an exchange that a key has led into.
fn exchanges() -> Vec<String> {
    let cursors = CursorKeys::new(1, RANDOM).with_key(2, RANDOM).unwrap();
    let bearer = format!("Bearer {KEY}");
    let request_id = || RequestId::parse("req_1").unwrap();
    let mut printed = vec![debug(&cursors), debug(&RateWindows::new(10))];
    printed.push(error(&cursors.open(&account_id(), Mode::Live, KEY).unwrap_err()));
    for path in ["/v1/account", "/v1/calls", "/v1/calls/call_1", "/v1/calls/%"] {
        let head = RequestHead::new("GET", path, None).with_host(b"h");
        let head = head.with_authorization(bearer.as_bytes());
        let received = || Received::new(&head, request_id()).unwrap();
        let unknown = received().identify(None, now()).unwrap_err();
        printed.extend([debug(&head), debug(&received()), error(&unknown)]);
        printed.push(debug(unknown.reason()));
        let identified = || received().identify(Some(&stored()), now()).unwrap();
        printed.extend([debug(&identified()), debug(identified().credential_id())]);
        let admitted = || identified().admit(&mut RateWindows::new(1), now()).unwrap();
        printed.push(debug(&admitted()));
        let authorized = admitted().authorize(&status(), &cursors);
        printed.extend(authorized.as_ref().err().map(error));
        let Ok(authorized) = authorized else { continue };
        printed.push(debug(&authorized));
        printed.push(match &authorized {
            Authorized::Account(query) => debug(query),
            Authorized::Calls(query) => debug(query),
            Authorized::Call(query) => debug(query),
            other => panic!("{other:?}"),
        });
    }
    printed
}

/// What is made of a signing secret. A signature that verifies can be replayed for five minutes,
/// so it is a secret as well.
fn webhooks() -> Vec<String> {
    let secret = SigningSecret::parse(SIGNING).unwrap();
    let random = SigningSecret::from_random(RANDOM);
    let signer =
        Signer::new(secret.clone()).with_previous(random.clone(), Timestamp::MAX, now()).unwrap();
    let signature = signer.sign(b"{}", now());
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    let verifier = Verifier::new(secret.clone()).with_secret(random.clone());
    let evidence = Evidence::new(headers, b"{}", SIGNING).with_known_secret(SIGNING);
    let url = format!("https://hooks.example.com/{KEY}?token={KEY}");
    let target = EndpointUrl::parse(&url).unwrap();
    let endpoint = delivery::EndpointHealth::new(1, now());
    let mut delivery = delivery::Delivery::accept(&ping(now()), &endpoint, now());
    let attempt = delivery.begin(&endpoint, now()).unwrap();
    let destination = delivery::SignedDestination::new(&endpoint, target.clone(), signer.clone());
    let request = attempt.request(&destination, &ping(now()), now()).unwrap();
    let (value, evidence_told) = (signature.to_header_value(), evidence.explain(now()));
    let verified = verifier.verify_parts(headers, b"{}", now()).unwrap();
    let mut printed = vec![
        error(&verifier.verify_parts(headers, b"{ }", now()).unwrap_err()),
        error(&evidence_told),
        // Its address is `http`'s to show.
        debug(request.headers()),
    ];
    let shown: [&dyn Debug; 6] = [&secret, &random, &signer, &destination, &signature, &headers];
    printed.extend(shown.map(debug));
    let shown: [&dyn Debug; 5] = [&verifier, &verified, &evidence, &target, &value];
    printed.extend(shown.map(debug));
    let (_, digests) = signature.as_str().split_once("v1=").unwrap();
    for digest in digests.split(",v1=") {
        assert!(printed.iter().all(|one| !one.contains(&digest[..8])));
    }
    // Each way in which a header or a secret can be wrong is named, and not shown.
    let text = signature.as_str();
    for wrong in [
        format!("t=0,v1={KEY}"),
        format!("t={SIGNING},v1=00"),
        KEY.to_owned(),
        text.to_uppercase(),
        text.replace("v1=", "v1=0x"),
        format!("{text}\u{e9}"),
    ] {
        let headers = DeliveryHeaders::new().signature(wrong.as_bytes());
        let refused = verifier.verify_parts(headers, b"{}", now()).unwrap_err();
        printed.push(error(&refused));
        let secret = format!(" {SIGNING}\n");
        let explanation = Evidence::new(headers, b"{}", &secret).explain(now());
        printed.extend(explanation.causes().iter().map(error));
        printed.push(error(&explanation));
    }
    printed
}

/// Somebody else answers, and says what was sent.
fn answers_that_echo() -> Vec<String> {
    let mut printed = Vec::new();
    for body in [
        format!("<pre>GET /v1/calls\nAuthorization: Bearer {KEY}\nX: {SIGNING}</pre>"),
        format!(r#"{{"headers":{{"authorization":"Bearer {KEY}"}},"secret":"{SIGNING}"}}"#),
        // Where it is cut off in the middle.
        format!("{}{KEY}", "x".repeat(ClientError::MAX_EXCERPT_LEN - 30)),
        format!("[{KEY}"),
        format!(r#""{KEY}""#),
    ] {
        let bytes = body.as_bytes();
        for status in [StatusCode::OK, StatusCode::BAD_REQUEST, StatusCode::BAD_GATEWAY] {
            let client = Client::from_parts(base(), key());
            let head = ResponseHead::new(status.as_u16());
            let failed = client.read(&ListCalls::new(), head, bytes).unwrap_err();
            printed.push(failed.excerpt().to_owned());
            printed.extend([debug(&failed.reason), error(&failed)]);
        }
        let endpoint = delivery::EndpointHealth::new(1, now());
        let mut delivery = delivery::Delivery::accept(&ping(now()), &endpoint, now());
        let attempt = delivery.begin(&endpoint, now()).unwrap();
        let outcome = Outcome::Answered(StatusCode::BAD_GATEWAY);
        let report = delivery.finish(&attempt, outcome, now()).unwrap();
        let (at, response) = (now(), Some(bytes));
        let ended = EndedAttempt { delivery: (), endpoint: (), attempt, outcome, at, response };
        let entry = LogEntry::new(&ended, &report, &delivery);
        printed.extend([debug(&Excerpt::new(bytes)), debug(&entry)]);
    }
    printed
}

/// A secret where something else was expected: whatever reads it refuses it, and does not say it.
fn errors_of_a_secret() -> Vec<String> {
    let mut printed = Vec::new();
    let product = Product::default();
    for secret in [KEY, SIGNING] {
        for wrong in [
            format!("{secret}\n"),
            secret.replace("live", "prod").replace("whsec", "secret"),
            secret.repeat(12),
        ] {
            printed.push(error(&ApiKey::parse_for(&product, &wrong).unwrap_err()));
            printed.push(error(&SigningSecret::parse(&wrong).unwrap_err()));
            printed.push(error(&Product::new(&wrong).unwrap_err()));
            printed.push(error(&BaseUrl::parse(&wrong).unwrap_err()));
            printed.push(error(&Timestamp::parse(&wrong).unwrap_err()));
            printed.push(error(&ApiVersion::parse(&wrong).unwrap_err()));
            printed.push(error(&EventId::parse(&wrong).unwrap_err()));
            printed.push(error(&RequestId::parse(&wrong).unwrap_err()));
            printed.push(error(&EndpointUrl::parse(&wrong).unwrap_err()));
        }
        printed.push(error(&CallId::parse(&format!("{secret}\n")).unwrap_err()));
        for url in [
            format!("https://user:{secret}@example.com"),
            format!("https://example.com/?{secret}"),
            format!("https://example.com/#{secret}"),
            format!("https://{secret}/"),
            format!("{secret}://example.com"),
        ] {
            printed.extend(BaseUrl::parse(&url).err().iter().map(error));
            printed.push(match EndpointUrl::parse(&url) {
                Ok(target) => debug(&target),
                Err(wrong) => error(&wrong),
            });
        }
        for query in [
            format!("{secret}=1"),
            format!("limit={secret}"),
            format!("created_after={secret}"),
            format!("limit=1&limit={secret}"),
            format!("created_after=%{secret}"),
        ] {
            printed.push(error(&ListCalls::from_query(&query).unwrap_err()));
            printed.push(error(&refused("/v1/calls", Some(&query))));
        }
        let path = format!("/v1/calls/%{secret}");
        printed.push(error(&refused(&path, None)));
        let head = RequestHead::new("GET", "/v1/account", Some(secret));
        printed.push(debug(&head.with_authorization(secret.as_bytes())));
        for json in [
            format!(r#"{{"id":{{"{secret}":1}}}}"#),
            format!(r#"{{"{secret}":1,"id":7}}"#),
            format!(r#"{{"id":"acct_1","timezone":"UTC","livemode":"{secret}"}}"#),
            format!(r#"{{"id":"evt_1","type":"ping","created_at":"{secret}"}}"#),
            format!(r#"{{"data":[{{"id":"call_1","started_at":"{secret}"}}]}}"#),
            format!(r#""{secret}""#),
            secret.to_owned(),
        ] {
            let bytes = json.as_bytes();
            let list = CallList::from_json(bytes);
            let item = |page: CallList| page.unreadable().next().unwrap().error().clone();
            let wrong = [
                Account::from_json(bytes).unwrap_err(),
                Call::from_json(bytes).unwrap_err(),
                list.map_or_else(|error| error, item),
                Event::from_bytes_verified_earlier(bytes).unwrap_err(),
            ];
            printed.extend(wrong.iter().map(error));
            printed.extend(wrong.iter().map(|wrong| debug(&wrong.kind())));
            let of_ours = SigningSecret::parse(SIGNING).unwrap();
            let signature = Signer::new(of_ours.clone()).sign(bytes, now());
            let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
            let verifier = Verifier::new(of_ours);
            let verified = verifier.verify_parts(headers, bytes, now()).unwrap();
            printed.push(error(&verified.event().unwrap_err()));
        }
        let text = format!(r#"{{"digest":"{secret}"}}"#);
        printed.push(error(&serde_json::from_str::<StoredKey>(&text).unwrap_err()));
    }
    printed
}
