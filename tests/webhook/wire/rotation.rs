//! Several secrets at either end (D-43).

use call_assistant::webhook::{Signer, Verifier, VerifyError};

use super::{NOW, at, secret};

#[test]
fn a_verifier_tells_which_secret_matched() {
    let verifier = ["whsec_1", "whsec_2"]
        .into_iter()
        .fold(Verifier::new(secret("whsec_0")), |verifier, text| verifier.and(secret(text)));
    for index in 0..3 {
        let signer = Signer::new(secret(&format!("whsec_{index}")));
        let headers = signer.headers("ping", "evt_1", b"{}", at(NOW)).unwrap();
        assert_eq!(verifier.verify(&headers, b"{}", at(NOW)).unwrap().secret(), index);
    }
    let headers = Signer::new(secret("whsec_3")).headers("ping", "evt_1", b"{}", at(NOW)).unwrap();
    assert_eq!(verifier.verify(&headers, b"{}", at(NOW)).unwrap_err(), VerifyError::Mismatch);
}

// No step of a rotation, in whatever order the two ends take them, loses a delivery.
#[test]
fn a_rotation_never_fails_a_delivery() {
    let old = || secret("whsec_old");
    let new = || secret("whsec_new");
    let both = || Signer::newest_first([new(), old()]).unwrap();
    let steps = [
        (Signer::new(old()), Verifier::new(old())),
        (both(), Verifier::new(old())),
        (both(), Verifier::new(new()).and(old())),
        (both(), Verifier::new(new())),
        (Signer::new(new()), Verifier::new(new())),
        (Signer::new(new()), Verifier::new(new()).and(old())),
    ];
    for (step, (signer, verifier)) in steps.into_iter().enumerate() {
        let headers = signer.headers("ping", "evt_1", b"{}", at(NOW)).unwrap();
        assert_eq!(verifier.verify(&headers, b"{}", at(NOW)).map(drop), Ok(()), "step {step}");
    }
}
