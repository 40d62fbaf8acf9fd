//! Weir: one endpoint in front of many MCP servers.
//!
//! The modules in layer order; each may use those above it, as `ARCHITECTURE.md` and `tests/it/tidy.rs` say.

pub mod jsonrpc;
pub mod names;
pub mod task;

pub mod principal;
pub mod protocol;

pub mod config;
pub mod exchange;
pub mod seal;
pub mod telemetry;

pub mod auth;
pub mod catalog;
pub mod policy;
pub mod source;

pub mod upstream;
pub mod view;

pub mod notify;
pub mod relay;

pub mod downstream;

pub mod admin;
pub mod cli;
pub mod server;

pub mod app;
