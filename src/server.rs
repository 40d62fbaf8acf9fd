//! Sockets and HTTP: binding, accepting, limits, the doors (Host, Origin, path, credential), bodies.
//!
//! Errors on one connection never end the accept loop. What passes the doors is handed to the endpoint; the one message
//! that is read in here is an `initialize` that may bring a token.

mod accept;
mod bind;
mod body;
mod doors;
mod entrance;
mod refuse;
mod stack;

pub use accept::{Answering, ConnectionLimits, Running, Service, accept};
pub use bind::{BindError, bind};
pub use doors::Gate;
pub use stack::{admin_service, mcp_service};
