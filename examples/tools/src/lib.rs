//! What the tools share with each other and with their tests.
//!
//! | | |
//! |---|---|
//! | [`secrets`] | signing secrets from a file or the environment |
//! | [`files`] | files that one process at a time writes |
//! | [`simulate`] | the day of the program `simulate` |

pub mod files;
pub mod secrets;
pub mod simulate;
