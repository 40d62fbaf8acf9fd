//! The upstream side against scripted servers on loopback sockets.

mod connecting;
mod legacy;
mod listing;
mod lost;
mod modern;
mod rules;
mod server;
mod set;
mod sse;
mod stalled;
mod support;
mod transport;
mod wishes;
