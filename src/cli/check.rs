//! `weir check`: reads a configuration and prints every problem, without touching the network.

use std::io::{self, Write};
use std::path::Path;

use crate::config::{Loaded, Problems, load};

/// The file that is meant where none is named.
const DEFAULT: &str = "routes.yaml";

/// Checks the file at `path`, else `./routes.yaml`, and prints its problems, one a line or as one JSON object.
///
/// Returns the exit code: 2 with an error among them, else 0; 1 where `out` cannot be written to.
pub(super) fn run(path: Option<&Path>, json: bool, out: &mut dyn Write) -> u8 {
    let path = path.unwrap_or(Path::new(DEFAULT));
    let (problems, code) = match load(path) {
        Ok(Loaded { warnings, .. }) => (warnings, 0),
        Err(problems) => (problems, 2),
    };
    match print(&problems, json, out) {
        Ok(()) => code,
        Err(_closed) => 1,
    }
}

/// Prints problems the way that `weir check` does.
///
/// # Errors
/// Whatever keeps `out` from being written to.
pub(super) fn print(problems: &Problems, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        serde_json::to_writer_pretty(&mut *out, problems)?;
        writeln!(out)?;
    } else {
        write!(out, "{problems}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::run;

    fn check(text: &str, json: bool, code: u8, wanted: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("routes.yaml");
        std::fs::write(&path, text).unwrap();
        let mut out = Vec::new();
        assert_eq!(run(Some(&path), json, &mut out), code);
        let printed = String::from_utf8(out).unwrap().replace(path.to_str().unwrap(), "PATH");
        assert_eq!(printed, wanted);
    }

    #[test]
    fn a_good_file_prints_nothing_and_is_0() {
        check("upstreams: { clock: { builtin: clock } }\n", false, 0, "");
        check("upstreams: { clock: { builtin: clock } }\n", true, 0, "{\n  \"problems\": []\n}\n");
    }

    #[test]
    fn a_problem_is_a_line_with_its_position_and_is_2() {
        check(
            "upstreams:\n  clock: { builtin: clok }\n",
            false,
            2,
            "PATH:2:21: error: upstreams.clock.builtin: \"clok\" is not known; did you mean \"clock\"? \
             accepted: clock, notes\n",
        );
        check(
            "upstreams: 1\n",
            true,
            2,
            r#"{
  "problems": [
    {
      "path": "PATH",
      "line": 1,
      "column": 12,
      "severity": "error",
      "key": "upstreams",
      "message": "upstreams: expected a block of keys, found a number"
    }
  ]
}
"#,
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_2() {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        assert_eq!(run(Some(&folder.path().join("none.yaml")), false, &mut out), 2);
        assert!(
            String::from_utf8(out)
                .unwrap()
                .ends_with("none.yaml: error: the file cannot be read: there is no such file\n")
        );
    }
}
