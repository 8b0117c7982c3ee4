//! Webhooks over real TLS, to a receiver whose certificate was made here.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::json;

use testing::receiver::{Receiver, Reply};
use testing::running::{File, Service};

/// A receiver at `https://localhost` whose certificate is valid between these years, and the
/// authority that says so.
fn receiver(name: &str, from: i32, to: i32) -> (Receiver, File) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&authority_key).unwrap();
    let file = File::new(&format!("authority-{name}.pem"), &certificate.pem());

    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_params(&authority, authority_key);
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (leaf.not_before, leaf.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    (Receiver::over_tls(leaf.der().clone(), key.serialize_der()), file)
}

// DEL-10, DEL-11: delivered over TLS to who is trusted, and not to who is not, or has another name,
// or another time; and the log says which.
#[test]
fn only_to_whom_the_certificate_names() {
    let ok = [Reply::Status(204)];
    let (trusted, authority) = receiver("trusted", 2020, 3000);
    let (expired, authority_expired) = receiver("expired", 2020, 2021);
    let (future, authority_future) = receiver("future", 3000, 3001);
    let (stranger, _) = receiver("stranger", 2020, 3000);
    let read = |file: &File| std::fs::read_to_string(file.path()).unwrap();
    let all = [&authority, &authority_expired, &authority_future].map(read).concat();
    let all = File::new("authorities.pem", &all);
    let service = Service::start(&["--allow-loopback-endpoints", "--trust-ca", all.path()]);
    let good = trusted.url("/hook", &ok);
    let kinds = [
        (good.clone(), "204", json!(null)),
        (good.replace("localhost", "127.0.0.1"), "tls", json!("certificate_wrong_host")),
        (stranger.url("/hook", &ok), "tls", json!("certificate_unknown_issuer")),
        (expired.url("/hook", &ok), "tls", json!("certificate_expired")),
        (future.url("/hook", &ok), "tls", json!("certificate_not_yet_valid")),
        // What answers there speaks HTTP without TLS.
        (format!("https://{}/", service.api()), "tls", json!("not_tls")),
    ];
    for (url, expected, reason) in kinds {
        let delivery = service.ping(&service.hook(&url));
        let attempt = &service.after_attempts(&delivery, 1)["attempts"][0];
        assert_eq!((&attempt["outcome"], &attempt["reason"]), (&json!(expected), &reason), "{url}");
    }
    assert_eq!(trusted.got("/hook").len(), 1);
    assert!(stranger.got("/hook").is_empty());
}
