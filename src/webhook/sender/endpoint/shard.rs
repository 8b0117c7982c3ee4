//! The shards, which divide endpoints among processes.

use core::num::{NonZeroU32, NonZeroU64};

use sha2::{Digest, Sha256};

/// Returns the shard of an endpoint, from 0 to `shards - 1`. The first eight bytes of the SHA-256 of the
/// endpoint's id are a big-endian number. The shard is this number modulo `shards`.
///
/// ```
/// use core::num::NonZeroU32;
/// use call_assistant::webhook::sender::shard_of;
///
/// let shards = NonZeroU32::new(64).unwrap();
/// assert_eq!(shard_of("whep_1", shards), 54);
/// ```
///
/// For one value of `shards`, the shard of an id never changes. Therefore, a host may store the shard
/// in a column. If `shards` changes, the shards of endpoints change. Choose `shards` only once, well
/// above the largest future number of processes. See [owners](crate::guide::storing#owners).
#[must_use]
#[expect(clippy::expect_used, reason = "a remainder is less than its divisor")]
pub fn shard_of(endpoint: impl AsRef<[u8]>, shards: NonZeroU32) -> u32 {
    let digest: [u8; 32] = Sha256::digest(endpoint.as_ref()).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    let number = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    u32::try_from(number % NonZeroU64::from(shards)).expect("less than a u32")
}
