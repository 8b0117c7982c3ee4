//! The blocks of special-purpose addresses, which are not public, as data.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct AddressBlock {
    /// The purpose of the block, similar to its name in the registry.
    name: &'static str,
    first: IpAddr,
    prefix: u8,
}

/// The reason why an address must not be called. If a special-purpose block contains the address, the
/// error's text names this block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(Reason);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
enum Reason {
    #[error("address is in {0}")]
    Special(AddressBlock),
    #[error("address is in {outer}, and the address within it in {inner}")]
    Within { outer: AddressBlock, inner: AddressBlock },
    #[error("address is outside 2000::/3, where public IPv6 addresses are")]
    Unassigned,
    #[error("address is not loopback, as its host is")]
    NotLoopback,
}

/// The error for an address that is not loopback, although the URL's host is loopback.
pub(super) const NOT_LOOPBACK: AddressError = AddressError(Reason::NotLoopback);

/// Checks with the IANA registries of special-purpose addresses that an address is public.
///
/// The check refuses every block of the registries, including the blocks of anycast services. Webhooks
/// are not sent through translators or tunnels. Therefore, the check refuses every IPv6 address that
/// contains an IPv4 address, even a public IPv4 address. The check cannot recognize a translator with a
/// network's own prefix. Prevent such a translator in the service's network from reaching private
/// addresses. The check also refuses an IPv6 address outside `2000::/3`.
pub(super) fn check_public(address: IpAddr) -> Result<(), AddressError> {
    let block = special(address);
    let IpAddr::V6(v6) = address else {
        return block.map_or(Ok(()), |block| Err(AddressError(Reason::Special(block))));
    };
    match block.or_else(|| is_isatap(v6).then_some(ISATAP)) {
        None if !PUBLIC_V6.contains(address) => Err(AddressError(Reason::Unassigned)),
        None => Ok(()),
        Some(outer) => {
            let inner = embedded(v6).and_then(|v4| special(v4.into()));
            let reason = inner.map(|inner| Reason::Within { outer, inner });
            Err(AddressError(reason.unwrap_or(Reason::Special(outer))))
        }
    }
}

fn special(address: IpAddr) -> Option<AddressBlock> {
    SPECIAL.into_iter().find(|block| block.contains(address))
}

/// Returns the IPv4 address inside an IPv6 address, or `None` if there is none.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        // `::` and `::1` are not IPv4-compatible addresses.
        (0, 0, 0, 0, 0, 0) if g == 0 && h <= 1 => None,
        // IPv4-compatible, IPv4-mapped, IPv4-translated, NAT64.
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => {
            v4(g, h)
        }
        // NAT64 with a local prefix of 48 bits: the address goes around bits 64 to 71, which are 0.
        (0x64, 0xff9b, 1, ..) => {
            let ([_, third], [fourth, _]) = (e.to_be_bytes(), f.to_be_bytes());
            v4(d, u16::from_be_bytes([third, fourth]))
        }
        // Teredo contains the client's address with every bit inverted.
        (0x2001, 0, ..) => v4(!g, !h),
        // 6to4.
        (0x2002, ..) => v4(b, c),
        _ if is_isatap(address) => v4(g, h),
        _ => None,
    }
}

/// Returns whether an address is ISATAP. Only the lower 64 bits decide, because ISATAP may have any
/// prefix.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, e, f, _, _] = address.segments();
    (e == 0 || e == 0x200) && f == 0x5efe
}

impl AddressBlock {
    const fn v4(name: &'static str, first: [u8; 4], prefix: u8) -> Self {
        let [a, b, c, d] = first;
        Self { name, first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    const fn v6(name: &'static str, first: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = first;
        Self { name, first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
    }

    fn contains(&self, address: IpAddr) -> bool {
        let prefix = u32::from(self.prefix);
        // The addresses differ in no bit of the prefix: what differs is shifted out.
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differ = first.to_bits() ^ address.to_bits();
                differ.checked_shr(32_u32.saturating_sub(prefix)).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differ = first.to_bits() ^ address.to_bits();
                differ.checked_shr(128_u32.saturating_sub(prefix)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// The text of a block, for example `127.0.0.0/8 (loopback)`.
impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ({})", self.first, self.prefix, self.name)
    }
}

impl fmt::Debug for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const PUBLIC_V6: AddressBlock =
    AddressBlock::v6("global unicast", [0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The block of ISATAP. Its prefix has 0 bits, because ISATAP has no prefix of its own.
const ISATAP: AddressBlock = AddressBlock::v6("ISATAP", [0, 0, 0, 0, 0, 0x5efe, 0, 0], 0);

/// The blocks of the IANA registries of IPv4 and IPv6 special-purpose addresses, and the multicast
/// blocks of another registry. If one block contains another block, the narrower block is first.
const SPECIAL: [AddressBlock; 48] = [
    AddressBlock::v4("this host", [0, 0, 0, 0], 32),
    AddressBlock::v4("this network", [0, 0, 0, 0], 8),
    AddressBlock::v4("private use", [10, 0, 0, 0], 8),
    AddressBlock::v4("shared address space, CGNAT", [100, 64, 0, 0], 10),
    AddressBlock::v4("loopback", [127, 0, 0, 0], 8),
    AddressBlock::v4("link local", [169, 254, 0, 0], 16),
    AddressBlock::v4("private use", [172, 16, 0, 0], 12),
    AddressBlock::v4("IETF protocol assignments", [192, 0, 0, 0], 24),
    AddressBlock::v4("documentation", [192, 0, 2, 0], 24),
    AddressBlock::v4("AS112", [192, 31, 196, 0], 24),
    AddressBlock::v4("AMT", [192, 52, 193, 0], 24),
    AddressBlock::v4("6to4 relay anycast", [192, 88, 99, 0], 24),
    AddressBlock::v4("private use", [192, 168, 0, 0], 16),
    AddressBlock::v4("AS112", [192, 175, 48, 0], 24),
    AddressBlock::v4("benchmarking", [198, 18, 0, 0], 15),
    AddressBlock::v4("documentation", [198, 51, 100, 0], 24),
    AddressBlock::v4("documentation", [203, 0, 113, 0], 24),
    AddressBlock::v4("multicast", [224, 0, 0, 0], 4),
    AddressBlock::v4("limited broadcast", [255, 255, 255, 255], 32),
    AddressBlock::v4("reserved", [240, 0, 0, 0], 4),
    AddressBlock::v6("unspecified", [0, 0, 0, 0, 0, 0, 0, 0], 128),
    AddressBlock::v6("loopback", [0, 0, 0, 0, 0, 0, 0, 1], 128),
    AddressBlock::v6("IPv4-compatible", [0, 0, 0, 0, 0, 0, 0, 0], 96),
    AddressBlock::v6("IPv4-mapped", [0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    AddressBlock::v6("IPv4-translated", [0, 0, 0, 0, 0xffff, 0, 0, 0], 96),
    AddressBlock::v6("NAT64", [0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
    AddressBlock::v6("local NAT64", [0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
    AddressBlock::v6("discard only", [0x100, 0, 0, 0, 0, 0, 0, 0], 64),
    AddressBlock::v6("dummy", [0x100, 0, 0, 1, 0, 0, 0, 0], 64),
    AddressBlock::v6("Teredo", [0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
    AddressBlock::v6("port control protocol anycast", [0x2001, 1, 0, 0, 0, 0, 0, 1], 128),
    AddressBlock::v6("TURN anycast", [0x2001, 1, 0, 0, 0, 0, 0, 2], 128),
    AddressBlock::v6("DNS-SD registration anycast", [0x2001, 1, 0, 0, 0, 0, 0, 3], 128),
    AddressBlock::v6("benchmarking", [0x2001, 2, 0, 0, 0, 0, 0, 0], 48),
    AddressBlock::v6("AMT", [0x2001, 3, 0, 0, 0, 0, 0, 0], 32),
    AddressBlock::v6("AS112", [0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48),
    AddressBlock::v6("ORCHID", [0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28),
    AddressBlock::v6("ORCHIDv2", [0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28),
    AddressBlock::v6("drone remote identification", [0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28),
    AddressBlock::v6("IETF protocol assignments", [0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    AddressBlock::v6("documentation", [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    AddressBlock::v6("6to4", [0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    AddressBlock::v6("AS112", [0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48),
    AddressBlock::v6("documentation", [0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    AddressBlock::v6("segment routing", [0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
    AddressBlock::v6("unique local", [0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    AddressBlock::v6("link local, site local", [0xfe80, 0, 0, 0, 0, 0, 0, 0], 9),
    AddressBlock::v6("multicast", [0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];
