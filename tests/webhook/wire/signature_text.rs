//! What no table of signatures can list: pairs of changes. `vectors.rs` has the grammar of the header (D-40, D-41).

use call_assistant::webhook::{DeliveryHeaders, VerifyError};

use super::{NOW, at, signer, verifier};

fn verdict(text: &[u8]) -> Result<(), VerifyError> {
    let headers = DeliveryHeaders::new().signature(text);
    verifier().verify_parts(headers, b"{}", at(NOW)).map(drop)
}

fn digest() -> String {
    signer().sign(b"{}", at(NOW)).as_str().split_once("v1=").unwrap().1.to_owned()
}

// SIG-3: two differences are not one that cancels out, wherever the digest is folded.
#[test]
fn two_changes_to_a_digest_do_not_make_up_for_each_other() {
    let v1 = digest();
    let changed = |at: &[usize]| {
        let mut digits = v1.clone().into_bytes();
        for at in at {
            let value = char::from(digits[*at]).to_digit(16).unwrap() ^ 1;
            digits[*at] = char::from_digit(value, 16).unwrap().try_into().unwrap();
        }
        format!("t={NOW},v1={}", String::from_utf8(digits).unwrap())
    };
    for first in 0..64 {
        for second in 0..first {
            let text = changed(&[first, second]);
            assert_eq!(verdict(text.as_bytes()), Err(VerifyError::Mismatch), "{first}, {second}");
        }
    }
    assert_eq!(verdict(changed(&[]).as_bytes()), Ok(()));
}
