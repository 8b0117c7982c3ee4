//! D-46, D-47, D-60, D-75: from a delivery to its acknowledgement.

use call_assistant::Product;
use call_assistant::webhook::receiver::{ActiveClaim, EventKey, ReceiptError};
use call_assistant::webhook::{
    DeliveryHeader, DeliveryHeaders, VerifyError, WebhookResponse, testing,
};

use super::{SECRET, SIGNER, VERIFIER, delivery, ping, receipt, taken};
use crate::dice::at;

#[test]
fn an_event_is_stored_under_its_account_and_id() {
    let receipt = receipt("acct_1", "1");
    assert_eq!((receipt.key().account(), receipt.key().id()), ("acct_1", "evt_1"));
    assert_eq!(receipt.event().unwrap().id.as_str(), "evt_1");
    let text = serde_json::to_string(receipt.key()).unwrap();
    assert_eq!(text, r#"{"account":"acct_1","id":"evt_1"}"#);
    assert_eq!(serde_json::from_str::<EventKey>(&text).unwrap(), *receipt.key());
    assert_eq!(receipt.stored().into_status(), 204);
}

/// D-47: sent again, it would be the same. It is acknowledged once it is stored, and not before.
#[test]
fn a_body_that_is_no_event_is_stored_under_its_digest() {
    let request = delivery("evt_1", "{}");
    let receipt = VERIFIER.receive(request.headers(), request.body(), at(0)).unwrap();
    let digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"; // of {}
    assert_eq!(receipt.key().account(), "");
    assert_eq!(receipt.key().id(), format!("sha256:{digest}"));
    let text = serde_json::to_string(receipt.key()).unwrap();
    assert_eq!(text, format!(r#"{{"account":null,"id":"sha256:{digest}"}}"#));
    assert_eq!(receipt.event().unwrap_err().field(), Some("id"));
    // It can be claimed as well.
    let claimed = taken(receipt.claim(None, ActiveClaim::LEASE, at(0)));
    assert!(claimed.receipt().event().is_err());
    assert_eq!(claimed.done(at(0)).1.into_status(), 204);
}

/// D-75, D-46: what is not proven is an empty 400, whatever it is that is wrong.
#[test]
fn what_is_not_genuine_gives_no_receipt() {
    let body = ping("acct_1", "evt_1");
    let good = delivery("evt_1", &body);
    let mut tampered = good.clone();
    tampered.body_mut().push(b' ');
    let other_id = delivery("evt_2", &body);
    let mut repeated = good.clone();
    let name = DeliveryHeader::Event.name(&Product::default()).clone();
    repeated.headers_mut().append(name, "ping".parse().unwrap());
    for (what, request, expected) in [
        ("tampered", tampered, "Verify(Mismatch)"),
        ("contradicted", other_id, "Event(Contradiction { header: Delivery })"),
        ("repeated", repeated, "Event(Repeated { header: Event })"),
    ] {
        let error = VERIFIER.receive(request.headers(), request.body(), at(0)).unwrap_err();
        assert_eq!(format!("{error:?}"), expected, "{what}");
        assert_eq!(error.response(), WebhookResponse::Rejected, "{what}");
        let response = error.into_response::<Vec<u8>>();
        assert_eq!(response.status(), 400, "{what}");
        assert!(response.body().is_empty() && response.headers().is_empty(), "{what}");
    }
}

/// Headers of any framework, and the secret that has matched.
#[test]
fn headers_may_come_in_parts() {
    let body = ping("acct_1", "evt_1");
    let request = delivery("evt_1", &body);
    let new = call_assistant::webhook::SigningSecret::parse("whsec_new").unwrap();
    let verifier = call_assistant::webhook::Verifier::new(new).with_secret(SECRET.clone());
    let pairs = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let headers = DeliveryHeaders::from_pairs(&Product::default(), pairs);
    let receipt = verifier.receive_parts(headers, body.as_bytes(), at(0)).unwrap();
    assert_eq!((receipt.key().id(), receipt.secret_index()), ("evt_1", 1));
    let forged = verifier.receive_parts(headers, b"{}", at(0)).unwrap_err();
    assert_eq!(forged, ReceiptError::Verify(VerifyError::Mismatch));
}

/// What a body says about people shows in no message.
#[test]
fn an_error_holds_nothing_of_the_body() {
    let request = testing::signed_request(
        &SIGNER,
        "ping",
        "evt_1",
        br#"{"id":"evt_1","type":"ping","account_id":7,"said":"private"}"#,
        at(0),
    )
    .unwrap();
    let receipt = VERIFIER.receive(request.headers(), request.body(), at(0)).unwrap();
    assert!(!receipt.event().unwrap_err().to_string().contains("private"));
    assert!(!format!("{receipt:?}").contains("private"));
}
