//! The durable host over a database server of its own: its processes from outside, its store from
//! inside, and its SQL against the library.
#![allow(clippy::restriction, clippy::disallowed_methods)]
#![deny(clippy::dbg_macro, clippy::todo, clippy::unimplemented, clippy::unreachable)]

mod accepting;
mod agreement;
mod alerts;
mod clocks;
mod commands;
mod day;
mod history;
mod hosts;
mod input;
mod isolation;
mod journal;
mod late;
mod levers;
mod logs;
mod loops;
mod migrating;
mod monitoring;
mod owner;
mod personal_data;
mod predicates;
mod processes;
mod recovery;
mod requests;
mod retention;
mod rotation;
mod schema;
mod sending;
mod standby;
mod store;
mod support;
mod tls;
