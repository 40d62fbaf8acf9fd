//! The commands beside `serve`. Each is a free function that writes its result to what it is given and says with
//! which code the process is to end.

pub mod check;
pub mod schema;
pub mod token;
