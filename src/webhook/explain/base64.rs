//! Base64 in any form that some decoder takes.

use alloc::vec::Vec;

/// Decodes base64 of either alphabet, padded or not.
// Not the crate: it would come to everybody who only reads events.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if text.is_empty() || text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    for group in text.chunks(4) {
        let mut bits = 0;
        for at in 0..4 {
            bits = (bits << 6) | group.get(at).map_or(Some(0), |symbol| value(*symbol))?;
        }
        let [_, decoded @ ..] = u32::to_be_bytes(bits);
        // Each symbol but the first completes a byte.
        bytes.extend(decoded.iter().zip(group.iter().skip(1)).map(|(byte, _)| byte));
    }
    Some(bytes)
}

fn value(symbol: u8) -> Option<u32> {
    let value = match symbol {
        b'A'..=b'Z' => symbol.wrapping_sub(b'A'),
        b'a'..=b'z' => symbol.wrapping_sub(b'a').wrapping_add(26),
        b'0'..=b'9' => symbol.wrapping_sub(b'0').wrapping_add(52),
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}
