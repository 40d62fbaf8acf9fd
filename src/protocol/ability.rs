//! What a client says that it can be asked, reduced to what Weir can carry.

use std::collections::BTreeSet;

use crate::jsonrpc::{Object, Text};

/// The client capabilities that Weir carries to upstreams (2025-11-25, basic/lifecycle; 2026-07-28, schema,
/// `ClientCapabilities`), each as yes or no; settings of extensions are not carried.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent capabilities, as the wire has them")]
pub struct Abilities {
    /// `roots`
    pub roots: bool,
    /// `roots.listChanged`
    pub roots_changed: bool,
    /// `sampling`
    pub sampling: bool,
    /// `sampling.tools`
    pub sampling_tools: bool,
    /// `sampling.context`
    pub sampling_context: bool,
    /// `elicitation.form`; also an `elicitation` without a mode
    pub elicitation_form: bool,
    /// `elicitation.url`
    pub elicitation_url: bool,
    /// The identifiers of `extensions`.
    pub extensions: BTreeSet<String>,
}

/// What an upstream can ask a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// `roots/list`
    Roots,
    /// `sampling/createMessage`
    Sampling,
    /// `elicitation/create`
    Elicitation,
}

impl Question {
    const NAMES: [(Self, &'static str); 3] = [
        (Self::Roots, "roots/list"),
        (Self::Sampling, "sampling/createMessage"),
        (Self::Elicitation, "elicitation/create"),
    ];

    /// The question with this method.
    #[must_use]
    pub fn parse(method: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == method).map(|(question, _)| *question)
    }

    /// The method on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(question, _)| *question == self).map_or("", |(_, name)| name)
    }
}

impl Abilities {
    /// Reads a raw `capabilities` object; what cannot be read counts as absent.
    #[must_use]
    pub fn read(capabilities: &str) -> Self {
        let Some(all) = Object::open(capabilities) else { return Self::default() };
        let roots = all.object("roots");
        let sampling = all.object("sampling");
        let elicitation = all.object("elicitation");
        let has = |object: &Option<Object<'_>>, key: &str| {
            object
                .as_ref()
                .is_some_and(|object| object.get(key).is_some_and(|raw| raw != "null" && raw != "false"))
        };
        let extensions = all.object("extensions").unwrap_or_default();
        let url = has(&elicitation, "url");
        Self {
            roots: roots.is_some(),
            roots_changed: roots.is_some_and(|roots| roots.get("listChanged") == Some("true")),
            sampling_tools: has(&sampling, "tools"),
            sampling_context: has(&sampling, "context"),
            sampling: sampling.is_some(),
            elicitation_form: elicitation.is_some() && (!url || has(&elicitation, "form")),
            elicitation_url: url,
            extensions: extensions.iter().map(|(name, _)| name.to_owned()).collect(),
        }
    }

    /// The raw `capabilities` object towards an upstream. Extensions are named without settings.
    #[must_use]
    pub fn to_json(&self) -> String {
        let object = |members: &[(bool, &str, &str)]| {
            let mut text = Text::object();
            for (_, key, value) in members.iter().filter(|(wanted, _, _)| *wanted) {
                text.member(key, value);
            }
            text.close()
        };
        let roots = object(&[(self.roots_changed, "listChanged", "true")]);
        let sampling =
            object(&[(self.sampling_tools, "tools", "{}"), (self.sampling_context, "context", "{}")]);
        let elicitation =
            object(&[(self.elicitation_form, "form", "{}"), (self.elicitation_url, "url", "{}")]);
        let mut extensions = Text::object();
        for name in &self.extensions {
            extensions.member(name, "{}");
        }
        object(&[
            (self.roots, "roots", &roots),
            (self.sampling, "sampling", &sampling),
            (self.elicitation_form || self.elicitation_url, "elicitation", &elicitation),
            (!self.extensions.is_empty(), "extensions", &extensions.close()),
        ])
    }

    /// What is missing for a question with these raw params; `None` where it can be asked.
    #[must_use]
    pub fn lacks(&self, question: Question, params: &str) -> Option<Self> {
        let needed = match question {
            Question::Roots => Self { roots: true, ..Self::default() },
            Question::Sampling => Self { sampling: true, ..Self::default() },
            Question::Elicitation if is_url(params) => Self { elicitation_url: true, ..Self::default() },
            Question::Elicitation => Self { elicitation_form: true, ..Self::default() },
        };
        let has = match question {
            Question::Roots => self.roots,
            Question::Sampling => self.sampling,
            Question::Elicitation if needed.elicitation_url => self.elicitation_url,
            Question::Elicitation => self.elicitation_form,
        };
        (!has).then_some(needed)
    }
}

/// Whether an elicitation is of URL mode.
fn is_url(params: &str) -> bool {
    Object::open(params).is_some_and(|params| params.text("mode").as_deref() == Some("url"))
}

#[cfg(test)]
mod tests {
    use super::{Abilities, Question};

    #[test]
    fn capabilities_are_reduced_to_yes_and_no() {
        let cases = [
            ("{}", "{}"),
            (r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#),
            (r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{"url":{}}}"#),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, r#"{"elicitation":{"form":{},"url":{}}}"#),
            (
                r#"{"roots":{"listChanged":true},"sampling":{"tools":{}}}"#,
                r#"{"roots":{"listChanged":true},"sampling":{"tools":{}}}"#,
            ),
            (
                r#"{"roots":{},"experimental":{"x":{}},"extensions":{"a/b":{"k":1}}}"#,
                r#"{"roots":{},"extensions":{"a/b":{}}}"#,
            ),
            ("[]", "{}"),
        ];
        for (given, reduced) in cases {
            assert_eq!(Abilities::read(given).to_json(), reduced, "{given}");
        }
    }

    #[test]
    fn c080_a_question_needs_its_capability() {
        let form = Abilities::read(r#"{"elicitation":{}}"#);
        assert_eq!(form.lacks(Question::Elicitation, r#"{"message":"x"}"#), None);
        assert!(form.lacks(Question::Elicitation, r#"{"mode":"url"}"#).is_some());
        assert!(form.lacks(Question::Sampling, "{}").is_some());
        assert!(form.lacks(Question::Roots, "{}").is_some());
    }
}
