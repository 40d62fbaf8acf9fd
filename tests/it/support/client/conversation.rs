//! A client that is asked while its call runs, and answers: with responses on the stream of the call (legacy), or by
//! making the call again (modern).

use super::{Answer, Ask, Client, Message};
use crate::support::{Side, json};

/// A question to a client.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The raw id of the request, or the key of the input request.
    pub(crate) key: String,
    /// Its method.
    pub(crate) method: String,
    /// Its raw params.
    pub(crate) params: String,
    /// The round in which it came, from 0.
    pub(crate) round: usize,
}

impl Question {
    /// What it asks: the marker of the call that caused it; empty for roots.
    pub(crate) fn marker(&self) -> String {
        let params = json::value(&self.params);
        let text = params["message"].as_str().or_else(|| params["messages"][0]["content"]["text"].as_str());
        text.unwrap_or_default().to_owned()
    }

    /// A legal answer that repeats the marker where its kind can.
    pub(crate) fn accept(&self) -> String {
        let marker = json::quote(&self.marker());
        match (self.method.as_str(), json::text(&self.params, &["mode"]).as_deref()) {
            ("elicitation/create", Some("url")) => "{\"action\":\"accept\"}".to_owned(),
            ("elicitation/create", _) => {
                format!("{{\"action\":\"accept\",\"content\":{{\"name\":{marker}}}}}")
            }
            ("sampling/createMessage", _) => format!(
                "{{\"role\":\"assistant\",\"content\":{{\"type\":\"text\",\"text\":{marker}}},\"model\":\"m\"}}"
            ),
            _ => "{\"roots\":[{\"uri\":\"file:///home/it\"}]}".to_owned(),
        }
    }
}

/// What a client does with a question.
#[derive(Debug, Clone)]
pub(crate) enum Reaction {
    /// It answers with this raw result.
    Result(String),
    /// It answers with this raw error (legacy only; a modern client leaves the answer out).
    Error(String),
}

/// A call with its questions.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The questions in the order in which they came.
    pub(crate) asked: Vec<Question>,
    /// The answer to the call.
    pub(crate) answer: Answer,
    /// The raw states that came with questions (modern).
    pub(crate) states: Vec<String>,
}

impl Client {
    /// Asks, and accepts every question.
    pub(crate) fn converse(&self, ask: Ask) -> Conversation {
        self.converse_with(ask, |question| Reaction::Result(question.accept()))
    }

    /// Asks, and reacts to questions. At most 20 rounds.
    pub(crate) fn converse_with(&self, ask: Ask, react: impl FnMut(&Question) -> Reaction) -> Conversation {
        match self.side {
            Side::Legacy => self.on_stream(ask, react),
            Side::Modern => self.by_retries(&ask, react),
        }
    }

    fn on_stream(&self, ask: Ask, mut react: impl FnMut(&Question) -> Reaction) -> Conversation {
        let mut asked: Vec<Question> = Vec::new();
        let answer = self.start(ask).answer_with(|message| {
            let Some(question) = question_of(message, asked.len()) else { return };
            match react(&question) {
                Reaction::Result(raw) => assert_eq!(self.respond(&question.key, "result", &raw), 202),
                Reaction::Error(raw) => assert_eq!(self.respond(&question.key, "error", &raw), 202),
            }
            asked.push(question);
        });
        Conversation { asked, answer, states: Vec::new() }
    }

    /// Posts a response to a question: its member and that one's raw value. The status.
    pub(crate) fn respond(&self, id: &str, member: &str, raw: &str) -> u16 {
        self.post(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{raw}}}")).send().status()
    }

    fn by_retries(&self, ask: &Ask, mut react: impl FnMut(&Question) -> Reaction) -> Conversation {
        let mut conversation =
            Conversation { asked: Vec::new(), answer: self.ask(ask.clone()), states: Vec::new() };
        for round in 0..20 {
            let answer = &conversation.answer;
            let Some((questions, state)) = asks(answer, round) else { break };
            let answers: Vec<String> = questions
                .iter()
                .filter_map(|question| match react(question) {
                    Reaction::Result(raw) => Some(format!("{}:{raw}", json::quote(&question.key))),
                    Reaction::Error(_) => None,
                })
                .collect();
            conversation.asked.extend(questions);
            conversation.states.extend(state.clone());
            let id =
                ask.id.as_ref().map(|id| json::quote(&format!("{} again {round}", id.trim_matches('"'))));
            let mut retry = ask.clone().again(&format!("{{{}}}", answers.join(",")), state.as_deref());
            retry.id = id;
            conversation.answer = self.ask(retry);
        }
        conversation
    }
}

/// The questions of a result that asks, and its raw state.
pub(crate) fn asks(answer: &Answer, round: usize) -> Option<(Vec<Question>, Option<String>)> {
    if answer.raw(&["result", "resultType"]) != Some("\"input_required\"") {
        return None;
    }
    let raw = answer.raw(&["result", "inputRequests"]).unwrap_or("{}");
    let all = json::value(raw);
    let keys = all.as_object().into_iter().flat_map(serde_json::Map::keys);
    let questions = keys.map(|key| {
        let member = |name: &str| json::raw(raw, &[key, name]).unwrap_or("{}").to_owned();
        let method = json::text(raw, &[key, "method"]).unwrap_or_default();
        Question { key: key.clone(), method, params: member("params"), round }
    });
    Some((questions.collect(), answer.raw(&["result", "requestState"]).map(str::to_owned)))
}

/// The question that a message on a stream is, if it is one.
pub(crate) fn question_of(message: &Message, round: usize) -> Option<Question> {
    let key = message.raw(&["id"])?.to_owned();
    let params = message.raw(&["params"]).unwrap_or("{}").to_owned();
    Some(Question { key, method: message.method(), params, round })
}
