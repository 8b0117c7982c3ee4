//! What the tools share with each other and with their tests.
//!
//! | | |
//! |---|---|
//! | [`client`] | an HTTP client |
//! | [`secrets`] | signing secrets from a file or the environment |
//! | [`files`] | files that one process at a time writes |
//! | [`simulate`] | the day of the program `simulate` |

use call_assistant::Product;
use host::flags::Flags;

pub mod check;
pub mod client;
pub mod files;
pub mod secrets;
pub mod simulate;

/// Returns the product of `--product`, whose header names and keys are used.
///
/// # Errors
/// The name is not valid.
pub fn product(flags: &Flags) -> Result<Product, String> {
    match flags.text("--product") {
        Some(name) => Product::new(name).map_err(|error| format!("--product: {error}")),
        None => Ok(Product::default()),
    }
}
