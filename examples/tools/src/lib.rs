//! What the tools share with each other and with their tests.
//!
//! | | |
//! |---|---|
//! | [`client`] | an HTTP client |
//! | [`secrets`] | signing secrets from a file or the environment |
//! | [`files`] | files that one process at a time writes |
//! | [`simulate`] | the day of the program `simulate` |

use call_assistant::{Product, Timestamp};

pub mod check;
pub mod client;
pub mod files;
pub mod secrets;
pub mod simulate;

/// The flag of programs that know header names or keys.
#[derive(Clone, Debug, clap::Args)]
pub struct ProductFlag {
    /// The product whose header names and keys are used [Service].
    #[arg(long, value_name = "NAME", value_parser = |name: &str| Product::new(name))]
    product: Option<Product>,
}

impl ProductFlag {
    /// Returns the product, or the default one.
    pub fn get(&self) -> Product {
        self.product.clone().unwrap_or_default()
    }
}

/// Reads an instant: seconds since 1970, or RFC 3339.
///
/// # Errors
/// It is neither.
pub fn instant(text: &str) -> Result<Timestamp, String> {
    match text.parse() {
        Ok(seconds) => {
            Timestamp::from_unix(seconds).ok_or_else(|| "outside the years 0000 to 9999".to_owned())
        }
        Err(_) => text.parse().map_err(|error| format!("{error}")),
    }
}
