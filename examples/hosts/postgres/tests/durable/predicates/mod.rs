//! What a statement decides that the library decides, too: the same on random rows.

mod deliveries;
mod missed;
mod others;
mod rows;
