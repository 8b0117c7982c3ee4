//! Several secrets at either end (D-43).

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, Signer, Verifier, VerifyError};

use super::{NOW, at, secret};

/// The secret of the verifier that matches what the signer signs.
fn matched(verifier: &Verifier, signer: &Signer) -> Result<usize, VerifyError> {
    let signature = signer.sign(b"{}", at(NOW));
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    verifier.verify_parts(headers, b"{}", at(NOW)).map(|verified| verified.secret_index())
}

// No step of a rotation, in whatever order the two ends take them, loses a delivery.
#[test]
fn a_rotation_never_fails_a_delivery() {
    let old = || secret("whsec_old");
    let new = || secret("whsec_new");
    let both = || Signer::new(new()).with_previous(old(), Timestamp::MAX, at(NOW)).unwrap();
    let steps = [
        (Signer::new(old()), Verifier::new(old())),
        (both(), Verifier::new(old())),
        (both(), Verifier::new(new()).with_secret(old())),
        (both(), Verifier::new(new())),
        (Signer::new(new()), Verifier::new(new())),
        (Signer::new(new()), Verifier::new(new()).with_secret(old())),
    ];
    for (step, (signer, verifier)) in steps.into_iter().enumerate() {
        assert!(matched(&verifier, &signer).is_ok(), "step {step}");
    }
}
