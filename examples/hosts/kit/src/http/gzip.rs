//! Answers compressed with gzip, for clients that accept it.

use std::io::Write as _;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::Full;
use hyper::body::Bytes;

use super::answer::{Answer, large};

/// The shortest body that is compressed, in bytes: a shorter one fits into one packet.
const SHORTEST: usize = 1_400;

/// A text that is the same in each answer. It is compressed once.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) text: String,
    packed: OnceLock<Bytes>,
}

impl Constant {
    pub(crate) const fn new(text: String) -> Self {
        Self { text, packed: OnceLock::new() }
    }

    fn packed(&self) -> Bytes {
        self.packed.get_or_init(|| packed(self.text.as_bytes(), Compression::best())).clone()
    }
}

/// Compresses the answer to a request, if the client accepts that.
///
/// Only answers to `GET` and `HEAD` are compressed. An answer to `POST` may have a secret, and the length of a compressed
/// text says something about its content.
pub(crate) fn encoded(head: &Parts, answer: Answer) -> Answer {
    if head.method != Method::GET && head.method != Method::HEAD {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    parts.headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    let constant = parts.extensions.remove::<&'static Constant>();
    let mut bytes = body.into_inner().unwrap_or_default();
    if bytes.len() >= SHORTEST && is_accepted(&head.headers) {
        bytes = large(|| match constant {
            Some(constant) => constant.packed(),
            None => packed(&bytes, Compression::fast()),
        });
        parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Response::from_parts(parts, Full::new(bytes))
}

fn packed(text: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let packed = encoder.write_all(text).and_then(|()| encoder.finish());
    #[expect(clippy::expect_used, reason = "writing to memory does not fail")]
    packed.expect("a vector takes all bytes").into()
}

/// Tells whether a client accepts gzip: by its name, or else by `*`, with a weight above 0.
fn is_accepted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|it| it.to_str().ok());
    let codings: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
    let weight = |name: &str| {
        codings.iter().find_map(|coding| {
            let (coding, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
            let is_it = coding.trim().eq_ignore_ascii_case(name);
            is_it.then(|| weight.trim().to_ascii_lowercase().strip_prefix("q=")?.parse().ok())
        })
    };
    let weight: Option<f32> = weight("gzip").or_else(|| weight("*")).flatten();
    weight.is_some_and(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT_ENCODING;
    use http::{HeaderMap, HeaderValue};

    use super::is_accepted;

    #[test]
    fn gzip_is_accepted_by_its_name_or_by_a_star() {
        for (values, expected) in [
            (&[][..], false),
            (&[""], false),
            (&["gzip"], true),
            (&["deflate, GZIP;q=0.5"], true),
            (&["gzip;q=0"], false),
            (&["gzip;q=0.000, *"], false),
            (&["*"], true),
            (&["*;q=0"], false),
            (&["br, *; Q=0.1"], true),
            (&["identity"], false),
            (&["gzipped"], false),
            (&["gzip;q=most"], false),
            (&["gzip;level=9"], false),
            (&["br", "gzip"], true),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(is_accepted(&headers), expected, "{values:?}");
        }
    }
}
