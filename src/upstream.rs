//! The client side: everything that is behind Weir.

pub mod builtin;
