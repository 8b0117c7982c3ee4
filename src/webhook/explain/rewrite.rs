//! The same JSON in every form in which a library may write it.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde_json::value::RawValue;

use super::Evidence;
use crate::json::{Name, fields};

/// A form in which JSON is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonForm {
    /// What stands between its values.
    pub blanks: Blanks,
    /// In which order the keys of an object come.
    pub order: KeyOrder,
    /// Which characters are escaped.
    pub escapes: Escapes,
    /// Whether `/` is escaped, as PHP does.
    pub slashes: bool,
    /// Whether a line end follows.
    pub line_end: bool,
}

/// What stands between the values of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blanks {
    /// Nothing.
    None,
    /// A blank after each colon and comma, as in Python.
    AfterPunctuation,
    /// A line for each value, indented by two blanks.
    TwoBlanks,
    /// A line for each value, indented by four blanks.
    FourBlanks,
    /// A line for each value, indented by tabs.
    Tabs,
}

/// In which order the keys of an object come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyOrder {
    /// As in the body at hand.
    AsIs,
    /// As the specification lists them, unknown ones last.
    Specified,
    /// Sorted.
    Sorted,
}

/// Which characters of a string are escaped, beyond those that must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Escapes {
    /// None.
    Least,
    /// All that are not ASCII, as `\u00e9`: Python, PHP, Ruby on Rails.
    NonAscii,
    /// All that are not ASCII, as `\u00E9`: Java.
    NonAsciiUppercase,
    /// `<`, `>`, `&`, U+2028 and U+2029, as `\u003c`: Go.
    Html,
    /// All that are not ASCII, and `"`, `&`, `'`, `+`, `<`, `>`, `` ` ``, as `\u003C`: .NET.
    HtmlAndNonAscii,
}

impl JsonForm {
    /// Every form, the likeliest first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        use self::{Blanks as B, Escapes as E, KeyOrder as O};
        let orders = [O::AsIs, O::Specified, O::Sorted];
        let blanks = [B::None, B::AfterPunctuation, B::TwoBlanks, B::FourBlanks, B::Tabs];
        let escapes = [E::Least, E::NonAscii, E::NonAsciiUppercase, E::Html, E::HtmlAndNonAscii];
        let forms = orders.into_iter().flat_map(move |order| {
            blanks.into_iter().flat_map(move |blanks| {
                escapes.into_iter().flat_map(move |escapes| {
                    [false, true].into_iter().map(move |slashes| Self {
                        blanks,
                        order,
                        escapes,
                        slashes,
                        line_end: false,
                    })
                })
            })
        });
        let with_line_end = forms.clone().map(|form| Self { line_end: true, ..form });
        forms.chain(with_line_end)
    }
}

impl fmt::Display for JsonForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blanks = match self.blanks {
            Blanks::None => "written without blanks",
            Blanks::AfterPunctuation => "written with a blank after each colon and comma",
            Blanks::TwoBlanks => "indented by two blanks",
            Blanks::FourBlanks => "indented by four blanks",
            Blanks::Tabs => "indented by tabs",
        };
        let order = match self.order {
            KeyOrder::AsIs => "",
            KeyOrder::Specified => ", its keys in the specification's order",
            KeyOrder::Sorted => ", its keys sorted",
        };
        let escapes = match self.escapes {
            Escapes::Least => "",
            Escapes::NonAscii => r", \u00e9 for what is not ASCII",
            Escapes::NonAsciiUppercase => r", \u00E9 for what is not ASCII",
            Escapes::Html => r", \u003c for <",
            Escapes::HtmlAndNonAscii => r", \u003C for < and \u00E9 for what is not ASCII",
        };
        let slashes = if self.slashes { r", \/ for /" } else { "" };
        let line_end = if self.line_end { ", with a line end after it" } else { "" };
        write!(f, "{blanks}{order}{escapes}{slashes}{line_end}")
    }
}

/// A JSON text taken apart, with its numbers as they were written.
pub(super) enum Json<'a> {
    Object(Vec<(Cow<'a, str>, Self)>),
    Array(Vec<Self>),
    String(String),
    Plain(&'a str),
}

/// Deeper texts are left alone: taking one apart reads it once for each level.
const MAX_DEPTH: usize = 32;

impl<'a> Json<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        Self::parse_at(text, MAX_DEPTH)
    }

    fn parse_at(text: &'a str, depth: usize) -> Option<Self> {
        let below = depth.checked_sub(1)?;
        let text = serde_json::from_str::<&RawValue>(text).ok()?.get();
        Some(match text.bytes().next()? {
            b'{' => {
                let parse = |(key, value): (&'a RawValue, &'a RawValue)| {
                    let Name(key) = serde_json::from_str(key.get()).ok()?;
                    Some((key, Self::parse_at(value.get(), below)?))
                };
                Self::Object(fields(text).into_iter().map(parse).collect::<Option<_>>()?)
            }
            b'[' => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
                let parse = |item: &'a RawValue| Self::parse_at(item.get(), below);
                Self::Array(items.into_iter().map(parse).collect::<Option<_>>()?)
            }
            b'"' => Self::String(serde_json::from_str(text).ok()?),
            _ => Self::Plain(text),
        })
    }

    /// `None` if it grows too long: what is nested deep can be sixty times as long, indented.
    pub(super) fn write(&self, form: JsonForm) -> Option<String> {
        let mut writer = Writer { text: String::new(), form, depth: 0 };
        writer.value(self);
        if form.line_end {
            writer.text.push('\n');
        }
        (!writer.is_full()).then_some(writer.text)
    }
}

struct Writer {
    text: String,
    form: JsonForm,
    depth: usize,
}

/// No longer text is written, for it is written hundreds of times.
const MAX_WRITTEN: usize = 4 * Evidence::MAX_SEARCHED;

impl Writer {
    fn is_full(&self) -> bool {
        self.text.len() > MAX_WRITTEN
    }

    fn value(&mut self, value: &Json<'_>) {
        match value {
            Json::Plain(text) => self.text.push_str(text),
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                self.items(['[', ']'], items.iter(), |writer, item| writer.value(item));
            }
            Json::Object(members) => {
                let mut members: Vec<&(Cow<'_, str>, Json<'_>)> = members.iter().collect();
                sort(&mut members, self.form.order);
                self.items(['{', '}'], members.into_iter(), |writer, (key, value)| {
                    writer.string(key);
                    writer.text.push(':');
                    if writer.form.blanks != Blanks::None {
                        writer.text.push(' ');
                    }
                    writer.value(value);
                });
            }
        }
    }

    fn items<T>(
        &mut self,
        [open, close]: [char; 2],
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.text.push(open);
        let empty = items.len() == 0;
        self.depth = self.depth.saturating_add(1);
        for (index, item) in items.enumerate() {
            if self.is_full() {
                return;
            }
            if index > 0 {
                self.text.push(',');
                if self.form.blanks == Blanks::AfterPunctuation {
                    self.text.push(' ');
                }
            }
            self.line();
            write(self, item);
        }
        self.depth = self.depth.saturating_sub(1);
        if !empty {
            self.line();
        }
        self.text.push(close);
    }

    fn line(&mut self) {
        let indent = match self.form.blanks {
            Blanks::None | Blanks::AfterPunctuation => return,
            Blanks::TwoBlanks => "  ",
            Blanks::FourBlanks => "    ",
            Blanks::Tabs => "\t",
        };
        self.text.push('\n');
        for _ in 0..self.depth {
            self.text.push_str(indent);
        }
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            self.char(c);
        }
        self.text.push('"');
    }

    fn char(&mut self, c: char) {
        let escapes = self.form.escapes;
        let escaped = match escapes {
            Escapes::Least => false,
            Escapes::NonAscii | Escapes::NonAsciiUppercase => !c.is_ascii(),
            Escapes::Html => matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
            Escapes::HtmlAndNonAscii => {
                !c.is_ascii() || matches!(c, '"' | '&' | '\'' | '+' | '<' | '>' | '`')
            }
        };
        if escaped {
            return self.unit_escapes(c);
        }
        match c {
            '"' => self.text.push_str("\\\""),
            '\\' => self.text.push_str("\\\\"),
            '/' if self.form.slashes => self.text.push_str("\\/"),
            '\n' => self.text.push_str("\\n"),
            '\r' => self.text.push_str("\\r"),
            '\t' => self.text.push_str("\\t"),
            '\u{8}' => self.text.push_str("\\b"),
            '\u{c}' => self.text.push_str("\\f"),
            '\0'..='\u{1f}' => self.unit_escapes(c),
            _ => self.text.push(c),
        }
    }

    fn unit_escapes(&mut self, c: char) {
        let uppercase =
            matches!(self.form.escapes, Escapes::NonAsciiUppercase | Escapes::HtmlAndNonAscii);
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            // Writing to a string does not fail.
            let _ = if uppercase {
                fmt::Write::write_fmt(&mut self.text, format_args!("\\u{unit:04X}"))
            } else {
                fmt::Write::write_fmt(&mut self.text, format_args!("\\u{unit:04x}"))
            };
        }
    }
}

fn sort(members: &mut [&(Cow<'_, str>, Json<'_>)], order: KeyOrder) {
    match order {
        KeyOrder::AsIs => {}
        KeyOrder::Sorted => members.sort_by(|(one, _), (other, _)| one.cmp(other)),
        KeyOrder::Specified => {
            let specified = ORDERS
                .iter()
                .find(|(mark, _)| members.iter().any(|(key, _)| key == mark))
                .map(|(_, keys)| *keys)
                .unwrap_or_default();
            // Those it does not list come last, as they stand.
            members.sort_by_key(|(key, _)| {
                specified.iter().position(|listed| listed == key).unwrap_or(usize::MAX)
            });
        }
    }
}

/// The key by which an object is known, and its keys in the order of the specification.
const ORDERS: &[(&str, &[&str])] = &[
    ("api_version", &["id", "type", "created_at", "api_version", "account_id", "origin", "data"]),
    ("idempotency_key", &["source", "credential_id", "idempotency_key"]),
    (
        "caller",
        &[
            "id",
            "caller",
            "started_at",
            "answered_at",
            "ended_at",
            "duration_seconds",
            "summary",
            "appointment_ids",
            "created_at",
            "target_label",
            "transferred_at",
        ],
    ),
    ("contact_id", &["contact_id", "phone_number", "display_name"]),
];
