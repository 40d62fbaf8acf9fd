//! `InputRequiredResult` and the retry that answers it (2026-07-28, basic/patterns/mrtr).

use super::Question;
use crate::jsonrpc::{Edit, Object, Text};

/// The member that answers stand in.
pub const RESPONSES: &str = "inputResponses";
/// The member that an upstream's state comes back in.
pub const STATE: &str = "requestState";
/// The member that holds the questions.
pub const REQUESTS: &str = "inputRequests";

/// One question of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The upstream's key for it.
    pub key: String,
    /// What is asked.
    pub question: Question,
    /// The raw params, `{}` where there are none.
    pub params: String,
}

/// A result that asks for input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequired {
    /// The questions in their order.
    pub requests: Vec<Request>,
    /// The raw state, where the upstream gave one.
    pub state: Option<String>,
}

impl InputRequired {
    /// Reads a raw result. `None` when it holds neither questions nor a state, or a question of no known kind.
    #[must_use]
    pub fn read(result: &str) -> Option<Self> {
        let result = Object::open(result)?;
        let state = result.get(STATE).filter(|raw| *raw != "null").map(str::to_owned);
        let mut requests = Vec::new();
        if let Some(raw) = result.get(REQUESTS).filter(|raw| *raw != "null") {
            for (key, request) in Object::open(raw)?.iter() {
                let request = Object::open(request)?;
                let question = Question::parse(&request.text("method")?)?;
                let params = request.get("params").unwrap_or("{}").to_owned();
                requests.push(Request { key: key.to_owned(), question, params });
            }
        }
        (!requests.is_empty() || state.is_some()).then_some(Self { requests, state })
    }

    /// A raw result that asks these questions.
    #[must_use]
    pub fn write(requests: &[Request], state: Option<&str>) -> String {
        let mut asked = Text::object();
        for request in requests {
            let mut one = Text::object();
            one.text("method", request.question.as_str());
            one.member("params", &request.params);
            asked.member(&request.key, &one.close());
        }
        let mut result = Text::object();
        result.text("resultType", "input_required");
        result.member(REQUESTS, &asked.close());
        if let Some(state) = state {
            result.text(STATE, state);
        }
        result.close()
    }
}

/// The raw params of a call once more, with answers (key and raw result) and the upstream's own state, or without
/// what an earlier round put there.
#[must_use]
pub fn retried(params: &Object<'_>, answers: &[(String, String)], state: Option<&str>) -> String {
    let mut edit = Edit::new();
    edit = if answers.is_empty() {
        edit.remove(RESPONSES)
    } else {
        let mut responses = Text::object();
        for (key, answer) in answers {
            responses.member(key, answer);
        }
        edit.set(RESPONSES, responses.close())
    };
    edit = match state {
        Some(state) => edit.set(STATE, state),
        None => edit.remove(STATE),
    };
    edit.apply(params)
}
