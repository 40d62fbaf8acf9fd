//! Sockets and HTTP: binding, accepting, limits, the doors (Host, Origin, path, credential), bodies.
//!
//! Errors on one connection never end the accept loop. What passes the doors is handed to the endpoint; nothing in
//! here reads a message.

mod accept;
mod bind;
mod body;
mod doors;
mod entrance;
mod stack;

pub use accept::{Running, accept};
pub use bind::{BindError, bind};
pub use stack::{Gate, McpService, admin_service, mcp_service};
