//! Decodes base64 leniently.

use alloc::vec::Vec;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);

const ENGINES: [GeneralPurpose; 2] =
    [GeneralPurpose::new(&STANDARD, LENIENT), GeneralPurpose::new(&URL_SAFE, LENIENT)];

/// Decodes base64 of the standard or the URL-safe alphabet, with or without padding.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let decoded = ENGINES.iter().find_map(|engine| engine.decode(text).ok());
    decoded.filter(|bytes| !bytes.is_empty())
}
