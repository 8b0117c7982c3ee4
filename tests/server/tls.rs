//! Webhooks over real TLS, to a receiver whose certificate was made here.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use std::sync::Arc;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::receiver::{Receiver, Reply};
use super::running::{File, Service, eventually};

/// A receiver at `https://localhost`, and the authority that says so.
fn receiver(name: &str) -> (Receiver, File) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&authority_key).unwrap();
    let file = File::new(&format!("authority-{name}.pem"), &certificate.pem());

    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_params(&authority, authority_key);
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (Receiver::with(Some(config)), file)
}

// DEL-11: delivered over TLS to who is trusted, and not to who is not, or has another name.
#[test]
fn only_to_whom_the_certificate_names() {
    let (trusted, authority) = receiver("trusted");
    let (stranger, _) = receiver("stranger");
    let service = Service::start(&["--allow-loopback-endpoints", "--trust-ca", authority.path()]);
    let good = trusted.url("/hook", &[Reply::Status(204)]);
    let named_otherwise = good.replace("localhost", "127.0.0.1");
    let kinds = [
        (good, "204"),
        (named_otherwise, "tls"),
        (stranger.url("/hook", &[Reply::Status(204)]), "tls"),
    ];
    for (url, expected) in kinds {
        let endpoints = "/accounts/acct_fjord_dental/endpoints";
        let endpoint = service.ask("POST", endpoints, &json!({ "url": url }), 201);
        let ping = format!("/endpoints/{}/ping", endpoint["id"].as_str().unwrap());
        let sent = service.ask("POST", &ping, &json!({}), 201);
        let delivery = format!("/deliveries/{}", sent["deliveries"][0].as_str().unwrap());
        let outcome = eventually("an attempt", || {
            let attempts = service.ask("GET", &delivery, &json!({}), 200)["attempts"].clone();
            attempts.as_array().unwrap().first().map(|attempt| attempt["outcome"].clone())
        });
        assert_eq!(outcome, expected, "{url}");
    }
    assert_eq!(trusted.got("/hook").len(), 1);
    assert!(stranger.got("/hook").is_empty());
}
