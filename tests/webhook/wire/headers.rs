use call_assistant::Product;
use call_assistant::webhook::{DeliveryHeader, DeliveryHeaders, VerifyError, testing};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{NOW, at, signed, signer, verifier};

// DEL-1
#[test]
fn a_delivery_has_five_headers() {
    let request = testing::signed_request(&signer(), "call.ended", "evt_1", b"{}", at(NOW));
    let request = request.unwrap();
    let headers = request.headers();
    let signature = signer().sign(b"{}", at(NOW));
    let expected = [
        ("Content-Type", "application/json"),
        ("User-Agent", "Service-Webhooks/1.0"),
        ("X-Service-Signature", signature.as_str()),
        ("X-Service-Event", "call.ended"),
        ("X-Service-Delivery", "evt_1"),
    ];
    assert_eq!((request.method(), headers.len()), (&http::Method::POST, expected.len()));
    for (name, value) in expected {
        assert_eq!(headers[name].to_str().unwrap(), value, "{name}");
    }
}

#[test]
fn their_names_come_from_the_product() {
    let product = Product::new("Acme").unwrap();
    let signer = signer().with_product(product.clone());
    let request = testing::signed_request(&signer, "ping", "evt_1", b"{}", at(NOW)).unwrap();
    let headers = request.headers();
    assert_eq!(headers["user-agent"], "Acme-Webhooks/1.0");
    assert_eq!(headers["x-acme-event"], "ping");
    assert_eq!(verifier().verify(headers, b"{}", at(NOW)).unwrap_err(), VerifyError::Missing);
    let verifier = verifier().with_product(product);
    assert_eq!(verifier.verify(headers, b"{}", at(NOW)).unwrap().secret_index(), 0);
}

#[test]
fn texts_that_no_header_carries_are_named() {
    let refused = |event_type, event_id| {
        testing::signed_request(&signer(), event_type, event_id, b"", at(NOW)).unwrap_err()
    };
    for (text, fault) in [
        ("", "is empty"),
        ("a b", "has a byte at 1 that is not visible ASCII"),
        ("a\n", "has a byte at 1 that is not visible ASCII"),
        ("\u{e9}", "has a byte at 0 that is not visible ASCII"),
    ] {
        assert_eq!(refused(text, "evt_1").to_string(), format!("event type {fault}"), "{text:?}");
        assert_eq!(refused("ping", text).to_string(), format!("event id {fault}"), "{text:?}");
    }
}

// DEL-2: names are compared without regard to case, whatever hands them out.
#[test]
fn names_are_read_case_insensitively() {
    let signature = signer().sign(b"{}", at(NOW));
    for name in ["x-service-signature", "X-Service-Signature", "X-SERVICE-SIGNATURE"] {
        let mut map = HeaderMap::new();
        map.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), signature.to_header_value());
        assert_eq!(verifier().verify(&map, b"{}", at(NOW)).unwrap().age_seconds(), 0, "{name}");

        let pairs = [(name, signature.as_str())];
        let headers = DeliveryHeaders::from_pairs(&Product::default(), pairs);
        let verified = verifier();
        let verified = verified.verify_parts(headers, b"{}", at(NOW)).unwrap();
        assert_eq!(verified.headers().value(DeliveryHeader::Event), None, "{name}");
    }
}

// D-40, D-75: a repeated signature header is refused; what is not signed makes no difference here.
#[test]
fn a_repeated_header_is_refused() {
    let product = Product::default();
    let good = signed("ping", "evt_1", b"{}");
    for (header, expected) in [
        (DeliveryHeader::Signature, Err(VerifyError::Repeated)),
        (DeliveryHeader::Event, Ok(())),
        (DeliveryHeader::Delivery, Ok(())),
    ] {
        let name = header.name(&product);
        let mut map = good.headers().clone();
        // Three of them are no better than two, nor is one that is empty.
        for again in [good.headers()[name].clone(), HeaderValue::from_static("")] {
            map.append(name, again);
            let verdict = verifier().verify(&map, b"{}", at(NOW)).map(drop);
            assert_eq!(verdict, expected, "{header}");

            let pairs = map.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            for headers in [
                DeliveryHeaders::from_pairs(&product, pairs),
                DeliveryHeaders::from_map(&product, &map),
            ] {
                assert_eq!(headers.repeated(), Some(header), "{header}");
                assert_eq!(headers.value(header), None, "{header}");
                let verdict = verifier().verify_parts(headers, b"{}", at(NOW)).map(drop);
                assert_eq!(verdict, expected, "{header}");
            }
        }
    }
}

// D-45: absent claims are tolerated, present ones are handed on.
#[test]
fn the_unsigned_headers_are_claims() {
    let mut map = HeaderMap::new();
    map.insert("x-service-signature", signer().sign(b"{}", at(NOW)).to_header_value());
    let verifier = verifier();
    let verified = verifier.verify(&map, b"{}", at(NOW)).unwrap();
    assert_eq!(verified.headers().value(DeliveryHeader::Event), None);
    assert_eq!(verified.headers().value(DeliveryHeader::Delivery), None);

    map.insert("x-service-event", HeaderValue::from_bytes(b"\xff").unwrap());
    let verified = verifier.verify(&map, b"{}", at(NOW)).unwrap();
    assert_eq!(verified.headers().value(DeliveryHeader::Event), Some(&b"\xff"[..]));
}

#[test]
fn debug_shows_no_signature() {
    let signature = signer().sign(b"body", at(NOW));
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes()).event(b"a");
    let headers = headers.event(b"b");
    assert_eq!(
        format!("{headers:?}"),
        r#"DeliveryHeaders { signature: "present", event: "repeated", delivery: "absent" }"#
    );
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    let verifier = verifier();
    let verified = verifier.verify_parts(headers, b"body", at(NOW)).unwrap();
    assert_eq!(
        format!("{verified:?}"),
        format!("Verified {{ len: 4, headers: {headers:?}, secret_index: 0, age_seconds: 0 }}")
    );
}
