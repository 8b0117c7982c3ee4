//! Random bytes from the operating system, fit for secrets and ids.

/// So many random bytes.
///
/// # Panics
/// The operating system has none to give. Nothing good can be made without them, so the program
/// ends rather than hand out a secret that can be guessed.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes,
        #[allow(clippy::panic)]
        Err(error) => panic!("the operating system gave no random bytes: {error}"),
    }
}
