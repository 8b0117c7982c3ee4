//! A captured request: its headers, and its body byte for byte.

use call_assistant::Product;
use call_assistant::webhook::DeliveryHeaders;

/// What was captured of one delivery.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// Names and values, in the order received.
    pub lines: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Capture {
    /// Takes a whole request apart: a head, an empty line, the body. `None` if there is no header
    /// or no empty line.
    pub fn of_request(bytes: &[u8]) -> Option<Self> {
        let ends = [b"\r\n\r\n".as_slice(), b"\n\n"];
        let end = |separator: &[u8]| {
            let at = bytes.windows(separator.len()).position(|window| window == separator)?;
            Some((at, bytes.get(at..)?.strip_prefix(separator)?))
        };
        let (at, body) = ends.into_iter().filter_map(end).min_by_key(|(at, _)| *at)?;
        let lines = header_lines(bytes.get(..at)?);
        (!lines.is_empty()).then(|| Self { lines, body: body.to_vec() })
    }

    pub fn headers(&self, product: &Product) -> DeliveryHeaders<'_> {
        let pairs = self.lines.iter().map(|(name, value)| (name.as_str(), value));
        DeliveryHeaders::from_pairs(product, pairs)
    }
}

/// Returns the headers among these lines. A line of another form, such as the request's first one, is none.
pub fn header_lines(text: &[u8]) -> Vec<(String, Vec<u8>)> {
    text.split(|byte| *byte == b'\n').filter_map(header).collect()
}

/// Reads a header as a client sends or prints it.
fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    // With -v, curl puts a sign in front of what it sends and of what it gets.
    let line = line.strip_prefix(b"> ").or_else(|| line.strip_prefix(b"< ")).unwrap_or(line);
    let at = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(at)?;
    let is_name =
        |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    let name = std::str::from_utf8(name).ok().filter(is_name)?;
    // In HTTP, spaces around a value are not part of the value.
    Some((name.to_owned(), value.strip_prefix(b":")?.trim_ascii().to_vec()))
}
