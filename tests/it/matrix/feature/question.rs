//! Questions of an upstream while a call runs.

use super::{Trial, check, same};
use crate::support::{Ask, Client};

/// The upstream asks, the client answers, and the upstream has that answer.
pub(super) fn asked(client: &Client, what: &str, method: &str) -> Trial {
    let arguments = format!("{{\"ask\":\"{what}\",\"marker\":\"m-1\"}}");
    let talk = client.converse(Ask::call("alpha__ask", &arguments));
    let methods: Vec<&str> = talk.asked.iter().map(|question| question.method.as_str()).collect();
    let result = talk.answer.raw(&["result"]).is_some();
    check(result, || format!("no result: {}", talk.answer.body()))?;
    same("questions", methods, vec![method]).map_err(|fault| format!("{fault}; {}", talk.answer.said()))?;
    let answers: Vec<String> = talk.asked.iter().map(|question| question.accept()).collect();
    same("answers", talk.answer.said(), format!("[{}]", answers.join(",")))
}
