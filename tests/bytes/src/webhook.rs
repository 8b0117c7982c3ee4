//! Signatures: their text, what they prove, and why they do not.

use std::sync::LazyLock;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::{
    DeliveryHeader, DeliveryHeaders, MalformedReason, Signer, SigningSecret, Verifier, VerifyError,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const SECRET: &str = "whsec_correct-horse-battery-staple";
const NOW: i64 = 1_767_225_600;

fn now() -> Timestamp {
    Timestamp::from_unix(NOW).unwrap()
}

fn secret(text: &str) -> SigningSecret {
    SigningSecret::parse(text).unwrap()
}

static BOTH: LazyLock<Verifier> =
    LazyLock::new(|| Verifier::new(secret("whsec_another")).with_secret(secret(SECRET)));
static SIGNER: LazyLock<Signer> = LazyLock::new(|| {
    Signer::new(secret(SECRET)).with_previous(secret("whsec_third"), Timestamp::MAX, now()).unwrap()
});

/// What was signed verifies, and no longer does once any bit of body, time or digest has changed.
/// The first four bytes say which bit, and how old the signature is.
pub fn verify(bytes: &[u8]) {
    let Some((head, body)) = bytes.split_first_chunk::<4>() else { return };
    let [bit, skew] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_le_bytes);
    let skew = i64::from(skew) - 32_768;
    let signed_at = Timestamp::from_unix(NOW + skew).unwrap();
    let signature = SIGNER.sign(body, signed_at).as_str().to_owned();
    let judge = |signature: &[u8], body: &[u8]| {
        let headers = DeliveryHeaders::new().signature(signature);
        BOTH.verify_parts(headers, body, now()).map(|v| (v.secret_index(), v.age_seconds()))
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

/// Verifying agrees with a second reading of the header, one that is plain instead of fast.
///
/// Three bytes for the clock and for how old the signature is; then the header, in which a few
/// control characters stand for the time and for digests of the body; a line end, and the body.
pub fn verdict(bytes: &[u8]) {
    let Some((&[clock, skew @ ..], rest)) = bytes.split_first_chunk::<3>() else { return };
    let half = Timestamp::from_unix(NOW).unwrap().saturating_add(Duration::from_millis(500));
    let now = match clock % 8 {
        0 => Timestamp::MIN,
        1 => Timestamp::MAX,
        2 => Timestamp::UNIX_EPOCH,
        3 => half,
        _ => now(),
    };
    let split = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (template, body) = (&rest[..split], rest.get(split + 1..).unwrap_or_default());
    let signed_at = (now.unix_seconds() + i64::from(u16::from_le_bytes(skew)) - 32_768).max(0);
    let header = filled(template, body, &signed_at.to_string());

    let headers = DeliveryHeaders::new().signature(&header);
    let seen = match BOTH.verify_parts(headers, body, now) {
        Ok(verified) => {
            assert_eq!(verified.bytes(), body);
            Plain::Genuine { secret: verified.secret_index(), age: verified.age_seconds() }
        }
        Err(VerifyError::Malformed(
            MalformedReason::DigestLength { .. } | MalformedReason::DigestCharacter { .. },
        )) => Plain::IllFormed,
        Err(VerifyError::Malformed(_)) => Plain::Malformed,
        Err(VerifyError::UppercaseDigest { .. }) => Plain::Uppercase,
        Err(VerifyError::Mismatch) => Plain::Mismatch,
        Err(VerifyError::TooOld { .. }) => Plain::TooOld,
        Err(VerifyError::TooNew { .. }) => Plain::TooNew,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(seen, plainly(&header, body, now), "{:?}", String::from_utf8_lossy(&header));
}

#[derive(Debug, PartialEq)]
enum Plain {
    Malformed,
    IllFormed,
    Uppercase,
    Mismatch,
    TooOld,
    TooNew,
    Genuine { secret: usize, age: i64 },
}

/// D-40 to D-43, in the order in which they are written.
fn plainly(header: &[u8], body: &[u8], now: Timestamp) -> Plain {
    let Ok(header) = core::str::from_utf8(header) else { return Plain::Malformed };
    let parts: Vec<&str> = header.split(',').map(|part| part.trim_matches([' ', '\t'])).collect();
    if header.len() > 1024 || parts.len() > 16 {
        return Plain::Malformed;
    }
    let mut times = Vec::new();
    let mut digests = Vec::new();
    for part in parts {
        match part.split_once('=') {
            _ if !part.bytes().all(|byte| byte.is_ascii_graphic()) => return Plain::Malformed,
            None | Some(("", _)) => return Plain::Malformed,
            Some(("t", value)) => times.push(value),
            Some(("v1", value)) => digests.push(value),
            Some(_) => {}
        }
    }
    let [time] = times[..] else { return Plain::Malformed };
    let digits = time.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || !(1..=19).contains(&time.len()) || time.starts_with('0') && time != "0" {
        return Plain::Malformed;
    }
    if digests.is_empty() {
        return Plain::Malformed;
    }
    digests.retain(|text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if digests.is_empty() {
        return Plain::IllFormed;
    }
    let ours = [&MACS[1], &MACS[0]].map(|key| hex_mac(key, time, body));
    let Some(secret) = ours.iter().position(|ours| digests.contains(&&**ours)) else {
        let shouted = digests.iter().any(|text| ours.contains(&text.to_ascii_lowercase()));
        return if shouted { Plain::Uppercase } else { Plain::Mismatch };
    };
    let second = 1_000_000_000_i128;
    let now = i128::from(now.unix_seconds()) * second + i128::from(now.subsec_nanos());
    let age = now - time.parse::<i128>().unwrap() * second;
    match age {
        _ if age > 300 * second => Plain::TooOld,
        _ if age < -300 * second => Plain::TooNew,
        _ => Plain::Genuine { secret, age: (age / second) as i64 },
    }
}

/// Keys of another implementation: of our secret, of another of the verifier's, and of nobody's.
static MACS: LazyLock<[Hmac<Sha256>; 3]> = LazyLock::new(|| {
    [SECRET, "whsec_another", "whsec_somebody-else"]
        .map(|secret| Hmac::new_from_slice(secret.as_bytes()).unwrap())
});

fn hex_mac(key: &Hmac<Sha256>, time: &str, body: &[u8]) -> String {
    let mac = key.clone().chain_update(time).chain_update(".").chain_update(body);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The header with the time in place of 1, and for 2 to 7 the digests that belong to it: right
/// ones of both secrets, uppercase ones, one in both cases, and one that is nobody's.
fn filled(template: &[u8], body: &[u8], signed_at: &str) -> Vec<u8> {
    let with_time =
        template.split(|byte| *byte == 1).collect::<Vec<_>>().join(signed_at.as_bytes());
    // What is signed is the time as it is written.
    let time = with_time.split(|byte| *byte == b',').find_map(|part| {
        core::str::from_utf8(part).ok()?.trim_matches([' ', '\t']).strip_prefix("t=")
    });
    let time = time.unwrap_or(signed_at).to_owned();
    let mut header = Vec::with_capacity(with_time.len() + 128);
    for byte in with_time {
        let digest = |which: usize| hex_mac(&MACS[which], &time, body);
        match byte {
            2 => header.extend(digest(0).bytes()),
            3 => header.extend(digest(1).bytes()),
            4 => header.extend(digest(0).to_ascii_uppercase().bytes()),
            5 => header.extend(digest(1).to_ascii_uppercase().bytes()),
            6 => {
                let digest = digest(0);
                header.extend(digest[..32].to_ascii_uppercase().bytes());
                header.extend(digest[32..].bytes());
            }
            7 => header.extend(digest(2).bytes()),
            other => header.push(other),
        }
    }
    header
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
