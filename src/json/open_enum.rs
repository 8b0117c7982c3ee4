//! Enums of strings, to which a later version can add variants. An unknown text is kept, not
//! refused.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;

use crate::secret::one_line;

/// A text for which the open enum `E` has no variant.
///
/// Only a reader creates an `Unrecognized`, and only for a text without a variant.
///
/// ```
/// use call_assistant::model::AppointmentStatus;
///
/// let status = AppointmentStatus::from("rescheduled");
/// let AppointmentStatus::Other(text) = &status else { unreachable!() };
/// assert_eq!(text.as_str(), "rescheduled");
/// assert_eq!(AppointmentStatus::from("cancelled"), AppointmentStatus::Cancelled);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unrecognized<E> {
    text: Box<str>,
    of: PhantomData<fn() -> E>,
}

impl<E> Unrecognized<E> {
    /// Creates a value for `open_enum!`, after every known text has been tried.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into(), of: PhantomData }
    }

    /// Returns the text as received.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The longest part of a text that is shown: 64 bytes.
const SHOWN: usize = 64;

/// Shows the text in one line, shortened, without parts that look like a secret.
impl<E> fmt::Debug for Unrecognized<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Shows the text in one line, shortened, without parts that look like a secret.
impl<E> fmt::Display for Unrecognized<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&one_line(&self.text, SHOWN))
    }
}

/// Defines an enum of strings with a last variant, `Other`, for texts that the enum does not know.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* #[doc = concat!("\n\n`", $text, "`")] $variant,)+
            /// A text without its own variant, kept as received.
            Other($crate::json::Unrecognized<$name>),
        }

        impl $name {
            /// All variants except `Other`, in the protocol's order.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the text as it is sent.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text.as_str(),
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    _ => Self::Other($crate::json::Unrecognized::new(text)),
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    Self::Other(text) => core::fmt::Display::fmt(text, f),
                    known => f.pad(known.as_str()),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        $crate::json::deserialize!($name, "a string", |text| {
            Ok::<_, core::convert::Infallible>($name::from(text))
        });
    };
}

pub(crate) use open_enum;
