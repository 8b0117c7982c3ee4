//! The result of the search: causes, each with a code and a sentence.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::webhook::grammar::MalformedReason;
use crate::webhook::verify_error::VerifyError;

/// The causes of a signature mismatch.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::DeliveryHeaders;
/// use call_assistant::webhook::explain::{Cause, Evidence};
///
/// let evidence = Evidence::new(DeliveryHeaders::new(), b"{}", "whsec_test");
/// let explanation = evidence.explain(Timestamp::UNIX_EPOCH);
/// assert!(explanation.is_proven());
/// let codes: Vec<_> = explanation.causes().iter().map(Cause::as_str).collect();
/// assert_eq!(codes, ["signature_missing"]);
/// assert_eq!(explanation.to_string(), "proven: the signature header is missing");
/// ```
///
/// `Display` writes one line for a log. `Display` and `Debug` show no secret, no digest and no
/// body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    causes: Vec<Cause>,
    proven: bool,
    work: usize,
}

impl Explanation {
    pub(super) fn new(causes: Vec<Cause>, proven: bool, work: usize) -> Self {
        Self { causes, proven, work }
    }

    /// Returns whether the causes together are proven. Causes are proven if undoing all these
    /// causes gave the received digest, or if the header alone shows the causes. If the causes are
    /// not proven, each cause is a separate guess, and a guess about the secret is first.
    ///
    /// A proof shows the signed bytes and the key, but not who changed a body. Anybody who has seen
    /// a delivery can send its header again with another body.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.proven
    }

    /// Returns the causes. If the list of causes is empty, [`is_proven`](Self::is_proven) shows the
    /// reason: true means that the signature is right, and false means that the search found no
    /// cause.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// Returns the number of bytes that the search hashed and compared. This number is at most 64
    /// times the length of the evidence (headers and bodies). Evidence of less than 2 MiB counts as
    /// 2 MiB.
    #[must_use]
    pub const fn work(&self) -> usize {
        self.work
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, separator) = match (self.proven, self.causes.is_empty()) {
            (true, true) => return f.write_str("proven: nothing is wrong with the signature"),
            (false, true) => {
                return f.write_str(
                    "no cause found: forged, signed with a secret that is not known here, or \
                     changed in a way that cannot be undone",
                );
            }
            (true, false) => ("proven: ", ", and "),
            (false, false) => ("a guess: ", ", or "),
        };
        f.write_str(found)?;
        for (index, cause) in self.causes.iter().enumerate() {
            if index > 0 {
                f.write_str(separator)?;
            }
            write!(f, "{cause}")?;
        }
        Ok(())
    }
}

/// A proven or possible cause, with a stable code for programs and a sentence for people.
///
/// ```
/// # use call_assistant::webhook::explain::Explanation;
/// fn count_in_metrics(explanation: &Explanation, mut count: impl FnMut(&'static str)) {
///     explanation.causes().iter().for_each(|cause| count(cause.as_str()));
/// }
/// ```
///
/// Later versions may add codes, but the meaning of a code does not change. `Display` writes the
/// sentence, whose wording may change.
///
/// | code | the header |
/// |---|---|
/// | `signature_missing` | the signature header is missing |
/// | `signature_repeated` | the signature header is present more than once |
/// | `signature_malformed` | the signature header is not `t=UNIX_SECONDS,v1=HEX` |
/// | `signature_digest_malformed` | no `v1` is 64 lowercase hex digits |
/// | `signature_label` | the value begins with the header's name |
/// | `signature_quoted` | quotes or brackets surround the value, such as those of a printed list |
/// | `digest_uppercase` | the digest is in uppercase hex |
/// | `digest_base64` | the digest is in base64 |
/// | `digest_surrounded` | quotes, `0x` or other text surround the digest |
/// | `digest_cut` | the digest was cut off |
/// | `time_milliseconds` | `t` is in milliseconds |
/// | `time_too_old` | the signature is too old |
/// | `time_too_new` | the signature was made too far in the future |
/// | `signed_milliseconds` | `t` is in seconds, but milliseconds were signed |
/// | `signed_without_time` | the body was signed without the time |
/// | `signed_without_period` | time and body were signed without the period between them |
/// | `signed_with_id` | the event's id was signed too, as Standard Webhooks does |
/// | `delivery_other` | the header and the body are from two deliveries, one of which is a known delivery |
/// | `delivery_id_differs` | the delivery header is not the body's id; always a guess |
///
/// | code | the secret |
/// |---|---|
/// | `secret_space` | the secret given has spaces, line ends, other control characters or zero-width characters around it |
/// | `secret_quotes` | the secret given is in quotes |
/// | `secret_punctuation` | the secret given has a comma, a semicolon or a bracket after it |
/// | `secret_literal_line_end` | the secret given ends in `\n`, written as two characters |
/// | `secret_space_inside` | the secret given has a space, a line break, another control character or a zero-width character inside |
/// | `secret_base64` | the secret given is the base64 of the whole secret, as in a manifest of Kubernetes |
/// | `secret_prefix_missing` | the secret given lacks its prefix `whsec_` |
/// | `secret_label` | the secret given has text before `whsec_`: a variable's name, a label |
/// | `secret_other` | another [known secret](super::Evidence::with_known_secret) signed the body |
/// | `secret_unusable` | the text given as the secret is the key, but no [`SigningSecret`](crate::webhook::SigningSecret) accepts this text; anybody who guesses the text can sign |
/// | `secret_empty` | the secret given is empty; a guess |
/// | `secret_not_expanded` | the secret given is a variable's name, such as `${WEBHOOK_SECRET}`; a guess |
/// | `secret_api_key` | the secret given is an API key; a guess |
/// | `secret_shortened` | the secret given was shortened or masked to be shown; a guess |
/// | `secret_uppercase` | the secret given was put into uppercase; a guess |
/// | `secret_placeholder` | the secret given is a placeholder; a guess |
/// | `secret_invalid` | no [`SigningSecret`](crate::webhook::SigningSecret) accepts the secret given, for another reason; a guess |
/// | `signer_prefix_dropped` | the signer drops the prefix `whsec_` |
/// | `signer_base64_decoded` | the signer base64-decodes the secret, as libraries for Standard Webhooks do |
/// | `signer_line_end` | the signer's secret ends in a line end |
/// | `signer_quotes` | the signer's secret is in quotes |
///
/// | code | the body |
/// |---|---|
/// | `body_line_end_added` | a line end was added to the end |
/// | `body_line_end_removed` | the line end at the end was removed |
/// | `body_space_added` | spaces or line ends were added around it |
/// | `body_line_ends_to_crlf` | line ends were changed from LF to CR LF |
/// | `body_line_ends_to_lf` | line ends were changed from CR LF to LF |
/// | `body_byte_order_mark_added` | a byte order mark was added |
/// | `body_byte_order_mark_removed` | a byte order mark was removed |
/// | `body_read_as_latin1` | UTF-8 was read as Latin-1 and written as UTF-8 again |
/// | `body_read_as_windows1252` | UTF-8 was read as Windows-1252 and written as UTF-8 again |
/// | `body_written_as_latin1` | it was written in Latin-1 instead of UTF-8 |
/// | `body_written_as_windows1252` | it was written in Windows-1252 instead of UTF-8 |
/// | `body_written_as_utf16` | it was written in UTF-16 instead of UTF-8 |
/// | `body_quoted` | it was put into a JSON string |
/// | `body_base64` | it was encoded in base64, as some gateways do |
/// | `body_bytes_literal` | it was printed as a Python bytes literal, `b'...'` |
/// | `body_byte_list` | it was written as a list of its bytes, as `JSON.stringify` does to a `Buffer` |
/// | `body_hex` | it was written in hex |
/// | `body_form_encoded` | it was encoded as a form, or is a field of a form |
/// | `body_html_escaped` | it was escaped for HTML |
/// | `body_chunked` | the chunk sizes of the HTTP connection are in it |
/// | `body_request` | the head of the request is in it |
/// | `body_wrapped` | it is inside a larger text, such as an envelope or a log line |
/// | `body_time_prepended` | the time and a period were put in front of it, as for signing |
/// | `body_period_prepended` | a period was put in front of it |
/// | `body_rewritten` | it was read as JSON and written again in another style. If the members were reordered, the search tries the protocol's order and the sorted keys. If the object is not defined in the protocol, only a known delivery shows the order |
/// | `body_numbers_rewritten` | its numbers were written in another form: `750` for `750.0` |
/// | `body_changed` | it is not the signed body, which is the body of a [known delivery](super::Evidence::with_known_delivery) of the same event |
/// | `body_empty` | it is empty, perhaps because other code has read it before; a guess unless the signed body is known |
/// | `body_cut_off` | it is JSON that ends too soon; a guess unless the signed body is known |
/// | `body_gzip` | it is compressed with gzip; a guess, because the crate does not decompress it |
/// | `body_replacement_characters` | it was decoded with the wrong charset, which lost bytes; a guess |
/// | `body_not_json` | it is not JSON; a guess |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    code: &'static str,
    sentence: Cow<'static, str>,
    number: Option<usize>,
}

impl Cause {
    pub(super) const fn new(code: &'static str, sentence: &'static str) -> Self {
        Self { code, sentence: Cow::Borrowed(sentence), number: None }
    }

    pub(super) const fn with_details(code: &'static str, sentence: String) -> Self {
        Self { code, sentence: Cow::Owned(sentence), number: None }
    }

    pub(super) const fn with_number(mut self, number: usize) -> Self {
        self.number = Some(number);
        self
    }

    /// Creates the cause from the error that a verifier reports.
    pub(super) fn refused(error: VerifyError) -> Self {
        let code = match error {
            VerifyError::Missing => "signature_missing",
            VerifyError::Repeated => "signature_repeated",
            VerifyError::Malformed(
                MalformedReason::DigestLength { .. } | MalformedReason::DigestCharacter { .. },
            ) => "signature_digest_malformed",
            VerifyError::Malformed(_) => "signature_malformed",
            VerifyError::UppercaseDigest { .. } => "digest_uppercase",
            VerifyError::Mismatch => "signature_mismatch",
            VerifyError::TooOld { .. } => "time_too_old",
            VerifyError::TooNew { .. } => "time_too_new",
        };
        Self::with_details(code, alloc::format!("the {error}"))
    }

    /// Returns the code, which is listed in the tables of [`Cause`].
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.code
    }

    /// Returns the number of the known secret or delivery that the cause is about, if any. For
    /// `secret_other`, the result 2 means the secret of the second call of
    /// [`with_known_secret`](super::Evidence::with_known_secret). For any other code, the result 2
    /// means the delivery of the second call of
    /// [`with_known_delivery`](super::Evidence::with_known_delivery).
    #[must_use]
    pub const fn number(&self) -> Option<usize> {
        self.number
    }

    /// Returns whether the right digest was written in another notation.
    pub(super) fn is_notation(&self) -> bool {
        self.code.starts_with("digest_")
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
