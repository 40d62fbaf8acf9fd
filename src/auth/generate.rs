//! The token that Weir makes for itself at its first start, for an operator who has none yet.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::config::Token;
use crate::principal::{Principal, Scope};

/// What its holder is called.
const NAME: &str = "generated";
/// The longest token that is read.
const LONGEST: u64 = 4096;

/// A new token: `weir_` and 43 characters, base64url of 32 random bytes.
///
/// # Errors
/// When the system has no randomness.
pub fn new_token() -> io::Result<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|why| io::Error::other(why.to_string()))?;
    Ok(format!("weir_{}", URL_SAFE_NO_PAD.encode(random)))
}

/// The token in a file, for everything; made where there is no such file, exclusively and for its owner alone, and
/// never written over. Whether it was made now.
///
/// # Errors
/// When the file can be neither made nor read, or holds no token.
pub(super) fn generated(path: &Path) -> io::Result<(Token, bool)> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(mut file) => {
            let token = new_token()?;
            file.write_all(format!("{token}\n").as_bytes())?;
            file.sync_all()?;
            Ok((of(&token), true))
        }
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
            let mut text = String::new();
            std::fs::File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
            let token = text.trim_end();
            if token.is_empty() || token.contains(char::is_whitespace) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it holds no token"));
            }
            Ok((of(token), false))
        }
        Err(why) => Err(why),
    }
}

fn of(token: &str) -> Token {
    Token {
        hash: Sha256::digest(token.as_bytes()).into(),
        principal: Principal::fixed(NAME, [Scope::new("mcp:admin")].into(), [].into()),
        not_after: None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::generated;

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let (first, is_new) = generated(&path).unwrap();
        assert!(is_new);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("weir_") && text.len() == 49, "{text}");
        let (second, is_new) = generated(&path).unwrap();
        assert!(!is_new && first.hash == second.hash);
        std::fs::write(&path, "\n").unwrap();
        assert!(generated(&path).is_err(), "an empty file is no token, and is not written over");
        assert!(generated(&folder.path().join("none/token")).is_err());
    }
}
