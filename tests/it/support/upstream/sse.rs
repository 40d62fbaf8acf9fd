//! How a server of 2024-11-05 answers: HTTP+SSE. `GET /sse` opens the stream and names the address for messages; all
//! answers come on that stream. What wants no answer is taken before it is accepted, so that the order is kept.

use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use super::server::{Session, Shared};
use super::{Request, Wire, legacy};

/// Answers one HTTP request. Answers to JSON-RPC requests are written by a thread of their own: the connection is free
/// at once.
pub(super) fn serve(shared: &Arc<Shared>, socket: &TcpStream, request: &Request, wire: &mut Wire<'_>) {
    let place = request.place();
    match (request.verb(), place) {
        ("GET", "/sse") => stand(shared, socket, wire),
        ("POST", "/messages") => {
            let key = request.session().unwrap_or_default();
            if !shared.state().sessions.contains_key(key) {
                return wire.page(404, "text/plain", "no such session");
            }
            if request.id().is_none() || request.method().is_empty() {
                legacy::post(shared, request, &mut Wire::apart(socket, request, shared));
                return wire.accepted();
            }
            let Ok(socket) = socket.try_clone() else { return };
            wire.accepted();
            let (shared, request) = (Arc::clone(shared), request.clone());
            thread::spawn(move || {
                let mut wire = Wire::apart(&socket, &request, &shared);
                legacy::post(&shared, &request, &mut wire);
            });
        }
        ("POST" | "DELETE", "/sse") => wire.page(405, "text/plain", "POST to the announced address"),
        _ => wire.page(404, "text/plain", "not here"),
    }
}

fn stand(shared: &Shared, socket: &TcpStream, wire: &mut Wire<'_>) {
    let mut state = shared.state();
    state.issued += 1;
    let key = format!("{}-line-{}", shared.fake.label, state.issued);
    state.sessions.insert(key.clone(), Session { revision: "2024-11-05".to_owned(), ..Session::default() });
    drop(state);
    // Registered first: whoever reads the event may post at once, and the answer needs its way.
    let told = shared.standing(&key, None);
    wire.stream().bytes(format!("event: endpoint\ndata: /messages?session={key}\n\n").as_bytes());
    shared.follow(wire, socket, &told, None);
    let mut state = shared.state();
    state.sessions.remove(&key);
    state.standing.retain(|stream| stream.session != key);
}
