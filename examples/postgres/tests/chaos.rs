//! Kills whatever can be killed, and counts what is lost.

fn main() {}
