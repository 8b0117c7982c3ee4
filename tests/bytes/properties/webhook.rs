//! Signatures: their text, what they prove, and why they do not.

use call_assistant::time::Timestamp;
use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::{
    DeliveryHeader, DeliveryHeaders, Signer, SigningSecret, Verifier, VerifyError,
};

const SECRET: &str = "whsec_correct-horse-battery-staple";
const NOW: i64 = 1_767_225_600;

fn now() -> Timestamp {
    Timestamp::from_unix(NOW).unwrap()
}

fn secret(text: &str) -> SigningSecret {
    SigningSecret::parse(text).unwrap()
}

/// Whatever a header says, without the secret nobody gets further than its form, and the parts it
/// was refused for exist.
pub fn signature_header(bytes: &[u8]) {
    let headers = DeliveryHeaders::new().signature(bytes);
    let refused = Verifier::new(secret(SECRET)).verify_parts(headers, b"{}", now()).unwrap_err();
    assert!(!refused.to_string().is_empty() && refused.status() == 400);
    match refused {
        VerifyError::Missing
        | VerifyError::Repeated { .. }
        | VerifyError::UppercaseDigest { .. }
        | VerifyError::TooOld { .. }
        | VerifyError::TooNew { .. } => panic!("a forged header got as far as {refused:?}"),
        VerifyError::IllFormedDigest { part, .. } => {
            let text = bytes.split(|byte| *byte == b',').nth(part - 1).unwrap();
            assert!(text.trim_ascii().starts_with(b"v1="));
        }
        VerifyError::Mismatch => {
            // It was read, so reading it part by part, in this naive way, gives a time and a digest.
            let text = core::str::from_utf8(bytes).unwrap();
            let pairs = || text.split(',').map(|part| part.trim().split_once('=').unwrap());
            assert_eq!(pairs().filter(|(name, _)| *name == "t").count(), 1);
            let hex =
                |value: &str| value.len() == 64 && value.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(pairs().any(|(name, value)| name == "v1" && hex(value)));
            assert!(bytes.len() <= 1024 && pairs().count() <= 16);
        }
        _ => {}
    }
}

/// What was signed verifies, and no longer does once any bit of body, time or digest has changed.
/// The first four bytes say which bit, and how old the signature is.
pub fn verify(bytes: &[u8]) {
    let Some((head, body)) = bytes.split_first_chunk::<4>() else { return };
    let [bit, skew] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_le_bytes);
    let skew = i64::from(skew) - 32_768;
    let verifier = Verifier::new(secret("whsec_another")).and(secret(SECRET));
    let signer = Signer::newest_first([secret(SECRET), secret("whsec_third")]).unwrap();
    let signed_at = Timestamp::from_unix(NOW + skew).unwrap();
    let signature = signer.sign(body, signed_at).as_str().to_owned();
    let judge = |signature: &[u8], body: &[u8]| {
        let headers = DeliveryHeaders::new().signature(signature);
        verifier.verify_parts(headers, body, now()).map(|v| (v.secret(), v.age_seconds()))
    };

    match judge(signature.as_bytes(), body) {
        Ok(proven) => assert!(skew.abs() <= 300 && proven == (1, -skew)),
        Err(VerifyError::TooOld { age, .. }) => {
            assert!(skew < -300 && age.as_secs() == skew.unsigned_abs());
        }
        Err(VerifyError::TooNew { ahead, .. }) => {
            assert!(skew > 300 && ahead.as_secs() == skew.unsigned_abs());
        }
        Err(error) => panic!("{error}"),
    }

    let bit = usize::from(bit);
    let flip = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let at = bit / 8 % bytes.len();
        bytes[at] ^= 1 << (bit % 8);
        bytes
    };
    if !body.is_empty() {
        assert_eq!(judge(signature.as_bytes(), &flip(body)), Err(VerifyError::Mismatch));
    }
    // Without the second digest, so that every bit counts: not those of case in `v1` and `t`, for
    // then there is another name, but those are refused as well.
    let (one, _) = signature.rsplit_once(",v1=").unwrap();
    let flipped = judge(&flip(one.as_bytes()), body);
    assert!(flipped.is_err(), "{flipped:?}");
    assert!(!matches!(flipped, Err(VerifyError::TooOld { .. } | VerifyError::TooNew { .. })));
}

/// An explanation never panics, never shows a secret or a digest, and never calls anything proven
/// of a body that somebody else signed, or genuine what does not verify.
pub fn explain(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let cut = usize::from(choice >> 2).min(rest.len());
    let (head, body) = rest.split_at(cut);
    let others = Signer::new(secret("whsec_somebody-else")).sign(body, now());
    let ours = Signer::new(secret(SECRET)).sign(head, now());

    // 0: any header; 1: forged; 2: ours over other bytes; 3: ours over these, with anything before it.
    let good = Signer::new(secret(SECRET)).sign(body, now());
    let good = good.as_str().as_bytes();
    let beside = [head, b",", good].concat();
    let header = match choice & 3 {
        0 => head,
        1 => others.as_str().as_bytes(),
        2 => ours.as_str().as_bytes(),
        _ if head.is_empty() => good,
        _ => &beside,
    };
    let headers = DeliveryHeaders::new().signature(header).delivery(head);
    let explanation = Evidence::new(headers, body, SECRET).explain(now());
    let verified = Verifier::new(secret(SECRET)).verify_parts(headers, body, now());

    let genuine = explanation.is_proven() && explanation.causes().is_empty();
    assert_eq!(genuine, verified.is_ok(), "{explanation}");
    match choice & 3 {
        1 => assert!(!explanation.is_proven(), "{explanation}"),
        3 => assert!(genuine || !head.is_empty(), "{explanation}"),
        _ => {}
    }
    let shown = format!("{explanation} {explanation:?}");
    assert!(!shown.contains("horse"), "{shown}");
    for header in [others.as_str().as_bytes(), ours.as_str().as_bytes(), good] {
        let digest = core::str::from_utf8(&header[header.len() - 64..]).unwrap();
        assert!(!shown.contains(&digest[..16]), "{shown}");
    }
    assert_eq!(headers.value(DeliveryHeader::Delivery), Some(head));
}
