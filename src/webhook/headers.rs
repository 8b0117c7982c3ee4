//! The delivery headers that are named after the product.

use core::fmt;

use http::{HeaderMap, HeaderName};

use crate::Product;
use crate::text::Occurs;

/// The three delivery headers that are named after the product, as received.
///
/// ```
/// use call_assistant::Product;
/// use call_assistant::webhook::DeliveryHeaders;
///
/// // From any framework that gives names and values.
/// let pairs = [("X-SERVICE-EVENT", "ping"), ("x-service-signature", "t=1,v1=00"), ("Host", "h")];
/// let headers = DeliveryHeaders::from_pairs(&Product::default(), pairs);
///
/// // From a framework that is asked by name.
/// let same = DeliveryHeaders::new().signature(b"t=1,v1=00").event(b"ping");
/// assert_eq!(headers, same);
/// ```
///
/// Names of headers are compared without regard to case. If the signature header is repeated,
/// verification fails. If the event or delivery header is repeated, reading the event fails.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryHeaders<'a> {
    signature: Occurs<&'a [u8]>,
    event: Occurs<&'a [u8]>,
    delivery: Occurs<&'a [u8]>,
}

impl<'a> DeliveryHeaders<'a> {
    /// Creates an empty set of headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the three headers in a map.
    #[must_use]
    pub fn from_map(product: &Product, map: &'a HeaderMap) -> Self {
        Self::from_pairs(product, map.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
    }

    /// Finds the three headers in pairs of name and value from any framework.
    ///
    /// If a framework joins repeated headers with commas, a repeated signature header is still
    /// refused, because a second `t` makes the joined header malformed.
    #[must_use]
    pub fn from_pairs<'n, V>(
        product: &Product,
        pairs: impl IntoIterator<Item = (&'n str, &'a V)>,
    ) -> Self
    where
        V: AsRef<[u8]> + ?Sized + 'a,
    {
        pairs.into_iter().fold(Self::new(), |headers, (name, value)| {
            let is =
                |header: &DeliveryHeader| name.eq_ignore_ascii_case(header.name(product).as_str());
            match DeliveryHeader::ALL.into_iter().find(is) {
                Some(DeliveryHeader::Signature) => headers.signature(value.as_ref()),
                Some(DeliveryHeader::Event) => headers.event(value.as_ref()),
                Some(DeliveryHeader::Delivery) => headers.delivery(value.as_ref()),
                None => headers,
            }
        })
    }

    /// Adds a received signature header. Add repeated headers, too.
    #[must_use]
    pub fn signature(self, value: &'a [u8]) -> Self {
        Self { signature: self.signature.and(value), ..self }
    }

    /// Adds a received event header. Add repeated headers, too.
    #[must_use]
    pub fn event(self, value: &'a [u8]) -> Self {
        Self { event: self.event.and(value), ..self }
    }

    /// Adds a received delivery header. Add repeated headers, too.
    #[must_use]
    pub fn delivery(self, value: &'a [u8]) -> Self {
        Self { delivery: self.delivery.and(value), ..self }
    }

    /// Returns the value of a header, or `None` if the header is absent or repeated.
    #[must_use]
    pub fn value(&self, header: DeliveryHeader) -> Option<&'a [u8]> {
        self.field(header).only()
    }

    /// Returns the first repeated header, in the order of signature, event and delivery.
    #[must_use]
    pub fn repeated(&self) -> Option<DeliveryHeader> {
        DeliveryHeader::ALL.into_iter().find(|header| self.field(*header) == Occurs::Repeated)
    }

    pub(super) fn field(&self, header: DeliveryHeader) -> Occurs<&'a [u8]> {
        match header {
            DeliveryHeader::Signature => self.signature,
            DeliveryHeader::Event => self.event,
            DeliveryHeader::Delivery => self.delivery,
        }
    }
}

/// Shows which headers are present, but not their values, because a valid signature in a log could
/// be replayed for five minutes.
impl fmt::Debug for DeliveryHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("DeliveryHeaders");
        for header in DeliveryHeader::ALL {
            shown.field(
                header.word(),
                match self.field(header) {
                    Occurs::Absent => &"absent",
                    Occurs::Once(_) => &"present",
                    Occurs::Repeated => &"repeated",
                },
            );
        }
        shown.finish()
    }
}

/// One of the three delivery headers that are named after the product.
///
/// Open: later versions may send more headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeliveryHeader {
    /// `X-Service-Signature`.
    Signature,
    /// `X-Service-Event`: the event's type. The signature does not cover this header.
    Event,
    /// `X-Service-Delivery`: the event's id. The signature does not cover this header.
    Delivery,
}

impl DeliveryHeader {
    const ALL: [Self; 3] = [Self::Signature, Self::Event, Self::Delivery];

    /// Returns the name of the header for a product.
    #[must_use]
    pub fn name(self, product: &Product) -> &HeaderName {
        match self {
            Self::Signature => product.signature_header(),
            Self::Event => product.event_header(),
            Self::Delivery => product.delivery_header(),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Event => "event",
            Self::Delivery => "delivery",
        }
    }
}

impl fmt::Display for DeliveryHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
