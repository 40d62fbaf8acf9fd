//! `weir token`: makes a static token and the hash that the configuration holds of it.

use std::io::{self, Write};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::auth::new_token;

/// Prints a `token:` and a `hash:` line. Returns the exit code: 0, or 1 where there is no randomness or `out` cannot
/// be written to.
pub(super) fn run(out: &mut dyn Write) -> u8 {
    match print(out) {
        Ok(()) => 0,
        Err(_no_randomness_or_closed) => 1,
    }
}

fn print(out: &mut dyn Write) -> io::Result<()> {
    let token = new_token()?;
    let hash = HEXLOWER.encode(&Sha256::digest(token.as_bytes()));
    write!(out, "token: {token}\nhash: sha256:{hash}\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::run;

    #[test]
    fn the_hash_is_that_of_the_token() {
        let mut out = Vec::new();
        assert_eq!(run(&mut out), 0);
        let text = String::from_utf8(out).unwrap();
        let (token, hash) = text.split_once('\n').unwrap();
        let token = token.strip_prefix("token: ").unwrap();
        assert!(token.starts_with("weir_") && token.len() == 48, "{token}");
        let digits: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, format!("hash: sha256:{digits}\n"));
    }
}
