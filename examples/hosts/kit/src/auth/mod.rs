//! Logins of the dashboard: tokens of operators, cookies, and links of owners.

pub mod access;
pub(crate) mod counts;
pub mod login;
