//! What holds for every type of the surface.

use std::fmt::Debug;

use call_assistant::api::{BaseAddress, GetAccount};
use call_assistant::client::Client;
use call_assistant::credential::{ApiKey, KeyDigest, Mode, StoredKey};
use call_assistant::id::{AccountId, CredentialId, RequestId};
use call_assistant::service::cursor::{CursorKey, CursorKeys};
use call_assistant::service::exchange::{Received, RequestHead};
use call_assistant::time::Timestamp;
use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier};
use call_assistant::{Product, delivery, service};

/// A host may keep any of them in a task, behind an `Arc`, in a static.
#[test]
fn values_may_go_anywhere() {
    fn anywhere<T: Send + Sync + Unpin + 'static>() {}
    fn sendable<T: Send + Sync>() {}

    anywhere::<Product>();
    anywhere::<Timestamp>();
    anywhere::<ApiKey>();
    anywhere::<StoredKey>();
    anywhere::<call_assistant::error::ApiError>();
    anywhere::<call_assistant::json::ParseError>();
    anywhere::<call_assistant::model::CallList>();
    anywhere::<call_assistant::model::TransferredCall>();
    anywhere::<call_assistant::webhook::event::Event>();
    anywhere::<call_assistant::webhook::event::EventBody>();
    anywhere::<call_assistant::webhook::VerifyError>();
    anywhere::<call_assistant::webhook::explain::Explanation>();
    anywhere::<Signer>();
    anywhere::<Verifier>();
    sendable::<call_assistant::webhook::Verified<'_>>();
    anywhere::<Client>();
    anywhere::<call_assistant::client::ClientError>();
    anywhere::<call_assistant::client::sync::CallSync>();
    anywhere::<call_assistant::client::inbox::Inbox>();
    anywhere::<CursorKeys>();
    anywhere::<service::rate::RateWindows>();
    anywhere::<service::refusal::Refusal>();
    anywhere::<Received>();
    anywhere::<service::exchange::Identified>();
    anywhere::<service::exchange::Admitted>();
    anywhere::<service::exchange::Authorized>();
    anywhere::<delivery::Delivery>();
    anywhere::<delivery::Endpoint>();
    anywhere::<delivery::Attempt>();
    anywhere::<delivery::Planner>();
}

/// KEY-7: a secret shows nowhere but where it is asked for by name, neither as text nor as bytes.
#[test]
fn no_secret_shows_in_debug() {
    let secret = "service_live_s3cr3ts3cr3ts3cr3ts3cr3t";
    let signing = "whsec_s3cr3ts3cr3ts3cr3ts3cr3t";
    let digits = "115, 51, 99"; // how `[u8]` would show it
    let bytes = [0xa7; 32];
    let now = Timestamp::UNIX_EPOCH;

    let key = ApiKey::parse(&Product::default(), secret).unwrap();
    let base = BaseAddress::parse("https://api.example.com").unwrap();
    let bearer = format!("Bearer {secret}");
    let head = RequestHead::new("GET", "/v1/account", None).authorization(bearer.as_bytes());
    let received = Received::new(&head, RequestId::parse("req_1").unwrap()).unwrap();
    let refusal = Received::new(&head, RequestId::parse("req_1").unwrap())
        .unwrap()
        .identify(None, now)
        .unwrap_err();
    let account = AccountId::parse("acct_1").unwrap();
    let stored = StoredKey::new(CredentialId::parse("cred_1").unwrap(), account, &key, now);
    let signer = Signer::new(SigningSecret::parse(signing).unwrap());
    let signature = signer.sign(b"{}", now);
    let cursor_key = CursorKey::new(1, bytes);

    let shown: [&dyn Debug; 15] = [
        &key,
        &key.digest(),
        &KeyDigest::of(secret.as_bytes()),
        &stored,
        &Client::new(base.clone(), key.clone()),
        &Client::new(base.clone(), key.clone()).request(&GetAccount).unwrap(),
        &head,
        &received,
        &refusal,
        &SigningSecret::parse(signing),
        &signer,
        &Verifier::new(SigningSecret::parse(signing).unwrap()),
        &Evidence::new(
            DeliveryHeaders::new().signature(signature.as_str().as_bytes()),
            b"{}",
            signing,
        ),
        &cursor_key,
        &CursorKeys::new(cursor_key.clone()),
    ];
    for value in shown {
        for text in [format!("{value:?}"), format!("{value:#?}")] {
            for leak in ["s3cr3ts", digits, "167, 167", "a7a7", "A7A7"] {
                assert!(!text.contains(leak), "{text}");
            }
            // A signature that verifies can be replayed for five minutes.
            let (_, digest) = signature.as_str().split_once("v1=").unwrap();
            assert!(!text.contains(digest), "{text}");
        }
    }
    // Errors about secrets, which often end up in logs.
    for wrong in [format!("{secret}\n"), secret.replace("live", "prod"), secret.repeat(9)] {
        let error = ApiKey::parse(&Product::default(), &wrong).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cr3t"));
    }
    for wrong in [format!("{signing}\n"), signing.replace("whsec_", ""), signing.repeat(12)] {
        let error = SigningSecret::parse(&wrong).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cr3t"));
    }
    assert_eq!(Mode::Live, key.mode());
}
