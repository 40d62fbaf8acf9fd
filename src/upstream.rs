//! The client side: everything between a [`Call`](crate::exchange::Call) and a real MCP server.
//!
//! A [`Set`] holds one [`Link`] per upstream. Behind a link one task (`link/keeper.rs`) settles which revision the
//! upstream speaks (`connect.rs`), lists everything it offers (`listing.rs`), hears of its changes
//! (`legacy/stream.rs`, `modern/listen.rs`) and publishes its [`Presence`](crate::catalog::Presence). Calls do not
//! pass through that task: they go from the link through its limits (`link/calling.rs`) to the peer, which is either
//! `legacy.rs` (sessions) or `modern.rs` (stateless); the two do not know each other. What clients want to hear
//! outside of their calls is kept in `wishes.rs`, and one more task of the link has it made true
//! (`legacy/attend.rs`, `modern/updates.rs`).
//!
//! Invariants: an upstream is never waited for except by its own calls. A call is sent at most twice, by the rules
//! in `fault.rs`. Dropping a reply cancels the call. What clients send to Weir does not reach an upstream unless a
//! call carries it: requests are built from nothing (`http.rs`). Children
//! (`stdio.rs`) are spoken to as if over HTTP (`wire.rs`).

mod announce;
mod backoff;
mod builtin;
mod capabilities;
mod chores;
mod connect;
mod conversation;
mod credential;
mod fault;
mod gate;
mod http;
mod ids;
mod legacy;
mod link;
mod listeners;
mod listing;
mod messages;
mod metrics;
mod modern;
mod pace;
mod peer;
mod quota;
mod reading;
mod set;
mod status;
mod stdio;
mod way;
mod wire;
mod wishes;

pub use link::Link;
pub use metrics::Metrics;
pub use peer::TaskNews;
pub use set::{Next, Set, StartError};
pub use status::{LastError, Status};
pub use wishes::{Standing, Watching};

#[cfg(test)]
mod tests;
