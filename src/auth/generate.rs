//! The token that Weir makes for itself at its first start, for an operator who has none yet.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::sha256;
use crate::config::Token;
use crate::principal::{GENERATED, Principal, Scope};

/// The longest token that is read, and the shortest that is taken, in bytes.
const LONGEST: u64 = 4096;
const SHORTEST: usize = 32;

/// A new token: `weir_` and 43 characters, base64url of 32 random bytes.
///
/// # Errors
/// When the system has no randomness.
pub fn new_token() -> io::Result<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|why| io::Error::other(why.to_string()))?;
    Ok(format!("weir_{}", URL_SAFE_NO_PAD.encode(random)))
}

/// Makes the file with a token where there is none: exclusively, for its owner alone, never over another one. Whether it
/// was made now.
///
/// # Errors
/// When the file cannot be made.
pub(super) fn make(path: &Path) -> io::Result<bool> {
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            file.write_all(format!("{}\n", new_token()?).as_bytes())?;
            file.sync_all()?;
            Ok(true)
        }
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(why) => Err(why),
    }
}

/// The token in a file, for everything; `None` where there is no such file.
///
/// # Errors
/// When the file cannot be read, holds no token, or is one that somebody else may have written.
pub(super) fn read(path: &Path) -> io::Result<Option<Token>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why),
    };
    if let Some(problem) = mistrusted(&file.metadata()?) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    let token = text.trim_end();
    if token.len() < SHORTEST || token.contains(char::is_whitespace) {
        let problem = "it holds no token: one of 32 or more characters without spaces";
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(Some(of(token)))
}

/// Why a file may hold somebody else's token, or show it to others.
fn mistrusted(file: &Metadata) -> Option<&'static str> {
    // Where the system does not say who we are, the mode has to do.
    let own = std::fs::metadata("/proc/self").map(|own| own.uid()).unwrap_or(file.uid());
    if file.uid() != own && file.uid() != 0 {
        return Some("it belongs to another user");
    }
    // The group of a volume may have rights of its own (Kubernetes, `fsGroup`).
    (file.permissions().mode() & 0o007 != 0)
        .then_some("everybody may read or write it; its mode should be 0600")
}

fn of(token: &str) -> Token {
    Token {
        hash: sha256(token),
        principal: Principal::fixed(GENERATED, [Scope::new("mcp:admin")].into(), [].into()),
        not_after: None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{make, read};

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(read(&path).unwrap().is_none());
        assert!(make(&path).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("weir_") && text.len() == 49, "{text}");
        let first = read(&path).unwrap().unwrap();
        assert!(!make(&path).unwrap());
        assert_eq!(read(&path).unwrap().unwrap().hash, first.hash);
        for bad in ["\n", "short\n", "a token that is made of several words is none\n"] {
            std::fs::write(&path, bad).unwrap();
            assert!(
                !make(&path).unwrap() && read(&path).is_err(),
                "{bad:?} is no token, and is not written over"
            );
        }
        std::fs::write(&path, text).unwrap();
        for (mode, is_good) in [(0o644, false), (0o602, false), (0o660, true), (0o400, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_ok(), is_good, "{mode:o}");
        }
        assert!(make(&folder.path().join("none/token")).is_err());
    }
}
