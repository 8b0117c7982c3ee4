//! Random bytes from the operating system, fit for secrets and ids.

/// Returns `N` random bytes.
///
/// # Panics
/// The operating system has no random bytes. Without them a secret could be guessed, so the program
/// ends.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes,
        #[allow(clippy::panic)]
        Err(error) => panic!("the operating system gave no random bytes: {error}"),
    }
}
