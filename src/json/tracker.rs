//! Tracks the position of a reader in its text.

use alloc::string::{String, ToString};
use core::cell::{Cell, RefCell};
use core::fmt::Display;
use core::marker::PhantomData;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess};

use super::{FromJson, ParseErrorKind};

/// The position of a reader, the value that it expects there, and the fault that it found.
pub(crate) struct Tracker<'de> {
    steps: [Cell<Step<'de>>; MAX_STEPS],
    depth: Cell<usize>,
    expected: Cell<&'static str>,
    fault: RefCell<Option<(ParseErrorKind, String)>>,
}

/// The maximum number of levels of a path: 5. The bodies that this crate reads have four levels.
const MAX_STEPS: usize = 5;

#[derive(Clone, Copy)]
enum Step<'de> {
    Start,
    Field(&'de str),
    Item(usize),
}

impl<'de> Tracker<'de> {
    pub(crate) fn new() -> Self {
        Self {
            steps: [const { Cell::new(Step::Start) }; MAX_STEPS],
            depth: Cell::new(0),
            expected: Cell::new("something else"),
            fault: RefCell::new(None),
        }
    }

    /// Records the kind of value that is read next.
    pub(crate) fn expect(&self, what: &'static str) {
        self.expected.set(what);
    }

    /// Returns the kind of value that is read next.
    pub(super) fn expected(&self) -> &'static str {
        self.expected.get()
    }

    /// Records that the values of an object or an array follow. A reader that fails does not call
    /// [`leave`](Self::leave), so that the path stays at the fault.
    pub(crate) fn enter(&self) {
        self.depth.set(self.depth.get().saturating_add(1));
        self.step(Step::Start);
    }

    pub(crate) fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }

    /// Records which field is read next.
    pub(crate) fn field(&self, name: &'de str) {
        self.step(Step::Field(name));
    }

    /// Records which item of an array is read next.
    pub(crate) fn item(&self, index: usize) {
        self.step(Step::Item(index));
    }

    fn step(&self, step: Step<'de>) {
        if let Some(slot) = self.depth.get().checked_sub(1).and_then(|at| self.steps.get(at)) {
            slot.set(step);
        }
    }

    /// Creates a seed that reads a `T`.
    pub(crate) fn seed<T: FromJson<'de>>(&self) -> Tracked<'_, 'de, T> {
        Tracked(self, PhantomData)
    }

    /// Reads the value of a field that may be given only once.
    pub(crate) fn once<S: DeserializeSeed<'de>, A: MapAccess<'de>>(
        &self,
        slot: &mut Option<S::Value>,
        map: &mut A,
        seed: S,
    ) -> Result<(), A::Error> {
        if slot.is_some() {
            return Err(self.reject(ParseErrorKind::Duplicate, "given twice"));
        }
        *slot = Some(map.next_value_seed(seed)?);
        Ok(())
    }

    /// After the whole object was read, returns the value of a required field.
    pub(crate) fn required<T, E: Error>(
        &self,
        slot: Option<T>,
        name: &'static str,
    ) -> Result<T, E> {
        slot.ok_or_else(|| {
            self.field(name);
            self.reject(ParseErrorKind::Missing, "required but missing")
        })
    }

    /// Records a fault at the reader's position. The reason must not quote a value.
    pub(crate) fn reject<E: Error>(&self, kind: ParseErrorKind, reason: impl Display) -> E {
        let error = E::custom(&reason);
        self.fault.replace(Some((kind, reason.to_string())));
        error
    }

    /// Returns the recorded fault. If no fault was recorded, serde has found a value of an
    /// unexpected kind.
    pub(super) fn fault(&self) -> (ParseErrorKind, String) {
        let expected = || alloc::format!("expected {}", self.expected());
        self.fault.take().unwrap_or_else(|| (ParseErrorKind::Value, expected()))
    }

    /// Returns the path of the reader's position, such as `data[3].caller.phone_number`.
    pub(super) fn path(&self) -> Option<String> {
        let mut path = String::new();
        for step in self.steps.iter().take(self.depth.get()) {
            match step.get() {
                Step::Start => {}
                Step::Field(name) if path.is_empty() => path.push_str(shown(name)),
                Step::Field(name) => path.extend([".", shown(name)]),
                Step::Item(index) => path.push_str(&alloc::format!("[{index}]")),
            }
        }
        (!path.is_empty()).then_some(path)
    }
}

/// Returns a name in the form of this API's names. For any other name, which may be data, returns a
/// question mark.
fn shown(name: &str) -> &str {
    let ours = name.len() <= 40
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if ours { name } else { "?" }
}

/// A seed that reads a `T`.
pub(crate) struct Tracked<'t, 'de, T>(
    pub(super) &'t Tracker<'de>,
    pub(super) PhantomData<fn() -> T>,
);

impl<'de, T: FromJson<'de>> DeserializeSeed<'de> for Tracked<'_, 'de, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        T::read(from, self.0)
    }
}
