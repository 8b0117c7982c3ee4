//! Enums of strings that can grow: what this version does not know is kept, not refused.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;

/// Text of an open enum `E` that this version gives no variant.
///
/// It comes out of reading only, so a text that has a variant can never hide in here.
pub struct Unrecognized<E> {
    text: Box<str>,
    of: PhantomData<fn() -> E>,
}

impl<E> Unrecognized<E> {
    /// For `open_enum!`, once every known text has been tried.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into(), of: PhantomData }
    }

    /// The text as received.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<E> Clone for Unrecognized<E> {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), of: PhantomData }
    }
}

impl<E> PartialEq for Unrecognized<E> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<E> Eq for Unrecognized<E> {}

impl<E> PartialOrd for Unrecognized<E> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Unrecognized<E> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl<E> core::hash::Hash for Unrecognized<E> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl<E> fmt::Debug for Unrecognized<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl<E> fmt::Display for Unrecognized<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Defines an enum of strings with a last variant, `Other`, for text it does not know.
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
            /// A text that this version gives no variant, kept as it came.
            Other($crate::json::Unrecognized<$name>),
        }

        impl $name {
            /// Every variant that has a name of its own, in the specification's order.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// The text as it travels.
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
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E>(self, text: &str) -> Result<$name, E> {
                        Ok($name::from(text))
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

pub(crate) use open_enum;
