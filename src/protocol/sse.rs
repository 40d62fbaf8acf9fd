//! Server-sent events, in and out.
/// placeholder
#[derive(Debug)]
pub struct Decoder;
/// placeholder
#[derive(Debug)]
pub struct SseEvent;
/// placeholder
pub fn comment() {}
/// placeholder
pub fn encode_event() {}
