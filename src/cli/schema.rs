//! `weir schema`: the JSON Schema of `routes.yaml`, for editors.

use std::io::{self, Write};

use crate::config::schema;

/// Prints the schema. Returns the exit code: 0, or 1 where `out` cannot be written to.
pub(super) fn run(out: &mut dyn Write) -> u8 {
    match print(out) {
        Ok(()) => 0,
        Err(_closed) => 1,
    }
}

fn print(out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &schema())?;
    writeln!(out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn the_schema_names_what_it_describes() {
        let mut out = Vec::new();
        assert_eq!(run(&mut out), 0);
        let schema: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(schema["title"], "routes.yaml");
        assert_eq!(schema["required"][0], "upstreams");
        assert_eq!(schema["additionalProperties"], false);
    }
}
