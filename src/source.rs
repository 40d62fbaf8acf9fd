//! Where the configuration comes from while Weir runs.
//!
//! A [`FileSource`] reads `routes.yaml` with everything that it takes in. [`Reload`] reads it again when one of those
//! files changes, or when it is told to, and hands on what may follow the configuration in force. A configuration with
//! problems changes nothing: it is logged, counted, and shown by [`Loading`].

mod file;
mod metrics;
mod reload;
mod stamp;
mod watch;

pub use file::{FileSource, Read};
pub use metrics::Metrics;
pub use reload::{Loading, Reload};
