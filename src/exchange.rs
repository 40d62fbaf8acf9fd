//! The era-neutral conversation between the two sides.
//!
//! A [`Call`] goes from a client towards an upstream; its [`Reply`] is a stream of [`Event`]s that ends with exactly
//! one that [`Event::is_last`]. [`Failure`] is the only error that crosses from upstream through relay to downstream.
//! Dropping a `Reply` cancels the call upstream: that is the one cancellation path.

mod call;
mod emit;
mod failure;
mod inquiry;
mod reply;

pub use call::{Call, Caller, SessionKey};
pub use emit::{Emitter, Running, reply, running};
pub use failure::{Failure, Lost, Reason};
pub use inquiry::{Answerer, Inquiry, Reaction};
pub use reply::{Answer, Event, Reply, failed};
