//! The same JSON in every style in which a library may write it.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::evidence::Evidence;
use super::explanation::Cause;
use crate::json::{Name, fields};

/// Finds the style in which this JSON was signed, and returns the style with the result of `is_signed`.
pub(super) fn find_style<T>(
    body: &[u8],
    is_signed: impl Fn(&[u8]) -> Option<T>,
) -> Option<(Cause, T)> {
    let mut json = Json::parse(core::str::from_utf8(body).ok()?, MAX_DEPTH)?;
    for (sort, order) in ORDERS {
        json.sort(sort);
        for style in styles() {
            let Some(mut text) = Writer::write(&json, style) else { continue };
            for line_end in ["", "\n"] {
                text.push_str(line_end);
                if let Some(found) = is_signed(text.as_bytes()) {
                    return Some((style.cause(order, line_end), found));
                }
            }
        }
    }
    None
}

#[derive(Clone, Copy)]
struct Style {
    layout: &'static Layout,
    escapes: &'static Escapes,
    /// Whether `/` is escaped, as in PHP.
    slashes: bool,
}

/// Returns every style, the likeliest first.
fn styles() -> impl Iterator<Item = Style> {
    LAYOUTS.iter().flat_map(|layout| {
        ESCAPES.iter().flat_map(move |escapes| {
            [false, true].into_iter().map(move |slashes| Style { layout, escapes, slashes })
        })
    })
}

impl Style {
    fn cause(self, order: &str, line_end: &str) -> Cause {
        let slashes = if self.slashes { r", \/ for /" } else { "" };
        let line_end = if line_end.is_empty() { "" } else { ", with a line end after it" };
        let (Layout(.., layout), Escapes(.., escapes)) = (self.layout, self.escapes);
        let sentence = alloc::format!(
            "the body was read as JSON and written again; the same JSON was signed, \
             {layout}{order}{escapes}{slashes}{line_end}"
        );
        Cause::with_details("body_rewritten", sentence)
    }
}

/// The text of a colon, the text of a comma, the indentation (if each value has its own line), and a
/// description.
struct Layout(&'static str, &'static str, Option<&'static str>, &'static str);

const LAYOUTS: [Layout; 5] = [
    Layout(":", ",", None, "written without spaces"),
    Layout(": ", ", ", None, "written with a space after each colon and comma"),
    Layout(": ", ",", Some("  "), "indented by two spaces"),
    Layout(": ", ",", Some("    "), "indented by four spaces"),
    Layout(": ", ",", Some("\t"), "indented by tabs"),
];

/// The additional characters of a string that are escaped, whether the escapes have uppercase hex
/// digits, and a description.
struct Escapes(fn(char) -> bool, bool, &'static str);

const ESCAPES: [Escapes; 5] = [
    Escapes(|_| false, false, ""),
    // Python, PHP, Ruby on Rails.
    Escapes(|c| !c.is_ascii(), false, r", \u00e9 for what is not ASCII"),
    // Java.
    Escapes(|c| !c.is_ascii(), true, r", \u00E9 for what is not ASCII"),
    // Go.
    Escapes(|c| "<>&\u{2028}\u{2029}".contains(c), false, r", \u003c for <"),
    // .NET.
    Escapes(
        |c| !c.is_ascii() || "\"&'+<>`".contains(c),
        true,
        r", \u003C for < and \u00E9 for what is not ASCII",
    ),
];

/// An order of an object's keys, and its description.
type Order = (fn(&mut [Member<'_>]), &'static str);

const ORDERS: [Order; 3] = [
    (|_| {}, ""),
    (sort_as_listed, ", its keys in the protocol's order"),
    (|members| members.sort_by(|(one, _), (other, _)| one.cmp(other)), ", its keys sorted"),
];

/// A parsed JSON text, with its numbers as they were written.
enum Json<'a> {
    Object(Vec<Member<'a>>),
    Array(Vec<Self>),
    String(String),
    Plain(&'a str),
}

type Member<'a> = (Cow<'a, str>, Json<'a>);

/// The deepest nesting of JSON that is read: 32 levels. For each level, the text is read once more.
const MAX_DEPTH: usize = 32;

impl<'a> Json<'a> {
    fn parse(text: &'a str, depth: usize) -> Option<Self> {
        let below = depth.checked_sub(1)?;
        let text = serde_json::from_str::<&RawValue>(text).ok()?.get();
        Some(match text.bytes().next()? {
            b'{' => {
                let parse = |(key, value): (&'a RawValue, &'a RawValue)| {
                    let Name(key) = serde_json::from_str(key.get()).ok()?;
                    Some((key, Self::parse(value.get(), below)?))
                };
                Self::Object(fields(text).into_iter().map(parse).collect::<Option<_>>()?)
            }
            b'[' => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
                let parse = |item: &'a RawValue| Self::parse(item.get(), below);
                Self::Array(items.into_iter().map(parse).collect::<Option<_>>()?)
            }
            b'"' => Self::String(serde_json::from_str(text).ok()?),
            _ => Self::Plain(text),
        })
    }

    fn sort(&mut self, sort: fn(&mut [Member<'_>])) {
        match self {
            Self::Object(members) => {
                sort(members);
                members.iter_mut().for_each(|(_, value)| value.sort(sort));
            }
            Self::Array(items) => items.iter_mut().for_each(|item| item.sort(sort)),
            Self::String(_) | Self::Plain(_) => {}
        }
    }
}

fn sort_as_listed(members: &mut [Member<'_>]) {
    let is_member = |name: &str| members.iter().any(|(key, _)| key == name);
    let Some((_, listed)) = KEYS.iter().find(|(mark, _)| is_member(mark)) else { return };
    // Keys that are not listed come last, in the order received.
    let place = |key: &str| listed.split(' ').position(|name| name == key).unwrap_or(usize::MAX);
    members.sort_by_key(|(key, _)| place(key));
}

/// A key that identifies an object, and the object's keys in the protocol's order.
const KEYS: [(&str, &str); 4] = [
    ("api_version", "id type created_at api_version account_id origin data"),
    ("idempotency_key", "source credential_id idempotency_key"),
    (
        "caller",
        "id caller started_at answered_at ended_at duration_seconds summary appointment_ids \
         created_at target_label transferred_at",
    ),
    ("contact_id", "contact_id phone_number display_name"),
];

/// The writer of one JSON text. (`serde_json`'s `Formatter` cannot be implemented without the feature
/// `std` of `serde_json`.)
struct Writer {
    text: String,
    style: Style,
    depth: usize,
}

/// The longest text that is written: 1 MiB. Indentation can make deeply nested JSON sixty times as
/// long.
const MAX_WRITTEN: usize = 4 * Evidence::MAX_SEARCHED;

impl Writer {
    /// Writes the text, or returns `None` if it becomes too long.
    fn write(json: &Json<'_>, style: Style) -> Option<String> {
        let mut writer = Self { text: String::new(), style, depth: 0 };
        writer.value(json);
        (!writer.is_full()).then_some(writer.text)
    }

    fn is_full(&self) -> bool {
        self.text.len() > MAX_WRITTEN
    }

    fn value(&mut self, json: &Json<'_>) {
        match json {
            Json::Plain(text) => self.text.push_str(text),
            Json::String(text) => self.string(text),
            Json::Array(items) => self.items(['[', ']'], items, Self::value),
            Json::Object(members) => self.items(['{', '}'], members, |writer, (key, value)| {
                writer.string(key);
                writer.text.push_str(writer.style.layout.0);
                writer.value(value);
            }),
        }
    }

    fn items<T>(&mut self, [open, close]: [char; 2], items: &[T], write: fn(&mut Self, &T)) {
        self.text.push(open);
        self.depth = self.depth.saturating_add(1);
        for (index, item) in items.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if index > 0 {
                self.text.push_str(self.style.layout.1);
            }
            self.new_line();
            write(self, item);
        }
        self.depth = self.depth.saturating_sub(1);
        if !items.is_empty() {
            self.new_line();
        }
        self.text.push(close);
    }

    fn new_line(&mut self) {
        if let Some(indent) = self.style.layout.2 {
            self.text.push('\n');
            (0..self.depth).for_each(|_| self.text.push_str(indent));
        }
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            let short = "\"\\\n\r\t\u{8}\u{c}".find(c).and_then(|at| r#""\nrtbf"#.get(at..=at));
            match short {
                _ if (self.style.escapes.0)(c) => self.code_units(c),
                Some(letter) => self.text.extend(["\\", letter]),
                None if c == '/' && self.style.slashes => self.text.push_str("\\/"),
                None if c < ' ' => self.code_units(c),
                None => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    fn code_units(&mut self, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let bytes = unit.to_be_bytes();
            let digits = match self.style.escapes.1 {
                true => hex::encode_upper(bytes),
                false => hex::encode(bytes),
            };
            self.text.push_str("\\u");
            self.text.push_str(&digits);
        }
    }
}
