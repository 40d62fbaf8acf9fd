//! Sealed values: what Weir gives out and later takes back without having kept it.
//!
//! A sealed value is `w1.` and base64url of key id, nonce and ciphertext. Each purpose has a key of its own, so a
//! value never opens as another kind. [`Keyring`] is the cryptography, the `…Seal` types say what is inside. Nobody
//! outside this module builds or reads the bytes. A value that opens was made by a holder of the key; whether it is
//! still good, and for whom, the types check as well.

mod key;
mod state;
mod task;
mod value;

pub use key::{Keyring, Purpose, random_bytes};
pub use state::{QuestionSeal, StateSeal, Thread};
pub use task::TaskSeal;
pub use value::{CursorSeal, Owner, Refused, SessionSeal};

#[cfg(test)]
mod tests;
