//! What a client says that it can be asked, reduced to what Weir can carry.

use std::collections::BTreeMap;

use super::capability::{Offer, TASKS, Tasking, extensions};
use crate::jsonrpc::{Object, Text};

/// The client capabilities that Weir carries to upstreams (2025-11-25, basic/lifecycle; 2026-07-28, schema,
/// `ClientCapabilities`), each as yes or no; extensions with their settings.
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
    /// `extensions`: their identifiers and raw settings.
    pub extensions: BTreeMap<String, String>,
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
        let url = has(&elicitation, "url");
        Self {
            roots: roots.is_some(),
            roots_changed: roots.is_some_and(|roots| roots.get("listChanged") == Some("true")),
            sampling_tools: has(&sampling, "tools"),
            sampling_context: has(&sampling, "context"),
            sampling: sampling.is_some(),
            elicitation_form: elicitation.is_some() && (!url || has(&elicitation, "form")),
            elicitation_url: url,
            extensions: extensions(&all),
        }
    }

    /// The raw `capabilities` object towards an upstream.
    #[must_use]
    pub fn to_json(&self) -> String {
        if *self == Self::default() {
            return "{}".to_owned();
        }
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
        self.extensions.iter().for_each(|(name, settings)| extensions.member(name, settings));
        object(&[
            (self.roots, "roots", &roots),
            (self.sampling, "sampling", &sampling),
            (self.elicitation_form || self.elicitation_url, "elicitation", &elicitation),
            (!self.extensions.is_empty(), "extensions", &extensions.close()),
        ])
    }

    /// What is left of it towards an upstream: of the extensions those that it has. Their settings pass where both
    /// are of one kind, with sessions or without; tasks mean different things to the two.
    #[must_use]
    pub fn toward(&self, offer: &Offer, is_alike: bool) -> Self {
        let mut reduced = self.clone();
        reduced
            .extensions
            .retain(|name, _| offer.extensions.contains_key(name) && (is_alike || name != TASKS));
        if !is_alike {
            reduced.extensions.values_mut().for_each(|settings| "{}".clone_into(settings));
        }
        reduced
    }

    /// Whether its client can be asked anything.
    #[must_use]
    pub fn has_questions(&self) -> bool {
        self.roots || self.sampling || self.elicitation_form || self.elicitation_url
    }

    /// How a stateless client with these takes tasks, if it does.
    #[must_use]
    pub fn tasking(&self) -> Option<Tasking> {
        self.extensions.contains_key(TASKS).then_some(Tasking::Directed)
    }

    /// What a stateless client must declare to take tasks.
    #[must_use]
    pub fn of_tasks() -> Self {
        let extensions = [(TASKS.to_owned(), "{}".to_owned())].into();
        Self { extensions, ..Self::default() }
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
    use super::{Abilities, Offer, Question};

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
                r#"{"roots":{},"extensions":{"a/b":{"k":1}}}"#,
            ),
            ("[]", "{}"),
        ];
        for (given, reduced) in cases {
            assert_eq!(Abilities::read(given).to_json(), reduced, "{given}");
        }
    }

    #[test]
    fn settings_of_extensions_stay_among_their_kind() {
        let own =
            Abilities::read(r#"{"extensions":{"a/b":{"k":1},"c/d":{},"io.modelcontextprotocol/tasks":{}}}"#);
        let offer = Offer::of_stateless(r#"{"extensions":{"a/b":{},"io.modelcontextprotocol/tasks":{}}}"#);
        let alike = r#"{"extensions":{"a/b":{"k":1},"io.modelcontextprotocol/tasks":{}}}"#;
        assert_eq!(own.toward(&offer, true).to_json(), alike);
        assert_eq!(own.toward(&offer, false).to_json(), r#"{"extensions":{"a/b":{}}}"#);
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
