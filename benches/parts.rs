//! The parts of a call and of a change, each by itself: reading a message, from a call to its request, building a catalog,
//! building a view.
//!
//! `cargo bench --bench parts`. The catalog is that of 100 upstreams with 100 tools each, 11 MB of definitions.
#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use serde_json::value::RawValue;
use weir::catalog::{Builder, Entry, Inventories, Inventory, Presence, Snapshot, build};
use weir::config::{Config, Process, read_text};
use weir::exchange::{Call, Caller};
use weir::jsonrpc::Message;
use weir::names::LocalName;
use weir::principal::{Principal, Rights};
use weir::protocol::{Method, Offer, Revision};
use weir::relay::{self, Relay};
use weir::seal::Keyring;
use weir::task::TaskGroup;
use weir::telemetry::Registry;
use weir::upstream::{self, Set};
use weir::view::Views;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const UPSTREAMS: usize = 100;
const TOOLS: usize = 100;

fn main() {
    divan::main();
}

/// A call of a stateless client.
fn request() -> String {
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up1__record_action_007","arguments":{"project":"weir","record":"a-17","locale":"en"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#
        .to_owned()
}

/// An answer with a text of so many bytes, of which one in a hundred is an escape.
fn answer(bytes: usize) -> String {
    let text = format!("{}\\n", "x".repeat(98)).repeat(bytes.div_ceil(100));
    format!(
        r#"{{"jsonrpc":"2.0","id":1000000000000007,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// Reading a message as Weir does.
#[divan::bench(args = [0, 100, 65_536, 8_388_608])]
fn message(bencher: Bencher<'_, '_>, bytes: usize) {
    let text = if bytes == 0 { request() } else { answer(bytes) };
    bencher
        .counter(BytesCount::of_str(text.as_str()))
        .bench_local(|| black_box(Message::of(black_box(text.as_bytes())).is_ok()));
}

/// The same text read by a parser that keeps nothing: what the syntax alone costs there.
#[divan::bench(args = [0, 100, 65_536, 8_388_608])]
fn message_by_serde_json(bencher: Bencher<'_, '_>, bytes: usize) {
    let text = if bytes == 0 { request() } else { answer(bytes) };
    bencher
        .counter(BytesCount::of_str(text.as_str()))
        .bench_local(|| black_box(serde_json::from_slice::<&RawValue>(black_box(text.as_bytes())).is_ok()));
}

fn tool(number: usize) -> Arc<Entry> {
    let name = format!("record_action_{number:03}");
    let describe =
        "Looks the record up, checks that the caller may see it, and returns it with its history. ".repeat(3);
    let mut arguments = String::new();
    for argument in ["project", "record", "revision", "locale", "format"] {
        write!(
            arguments,
            r#""{argument}":{{"type":"string","description":"The {argument} of the record, as the list of records names it.","maxLength":120}},"#
        )
        .expect("written");
    }
    let raw = format!(
        r#"{{"name":"{name}","title":"Record action","description":"{describe}","inputSchema":{{"type":"object","properties":{{{}}},"required":["project"]}},"annotations":{{"readOnlyHint":true}}}}"#,
        arguments.trim_end_matches(',')
    );
    Arc::new(Entry {
        local: LocalName::new(&name),
        raw: raw.into(),
        mirrored: Vec::new(),
        read_only_hint: Some(true),
        destructive_hint: None,
        idempotent_hint: None,
    })
}

/// An upstream that is up with some tools.
fn up(first: usize) -> Presence {
    let tools = (first..first + TOOLS).map(tool).collect();
    let offer = Offer { tools: true, ..Offer::default() };
    Presence::Up { inventory: Arc::new(Inventory { tools, ..Inventory::empty(Revision::NEWEST, offer) }) }
}

/// 100 upstreams, nobody of whom is asked.
struct World {
    config: Arc<Config>,
    inventories: Inventories,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let mut text = "upstreams:\n".to_owned();
    for number in 0..UPSTREAMS {
        writeln!(text, "  up{number}: {{ url: \"http://127.0.0.1:1/{number}\" }}").expect("written");
    }
    let config = read_text(&text, None, &Process).expect("a configuration").config;
    let name = |number: usize| format!("up{number}").parse().expect("a name");
    let inventories = (0..UPSTREAMS).map(|number| (name(number), up(0))).collect();
    World { config: Arc::new(config), inventories }
});

/// A snapshot in which the first upstream offers tools with numbers from here on.
fn changed(first: usize) -> Inventories {
    let mut inventories = WORLD.inventories.clone();
    inventories.insert("up0".parse().expect("a name"), up(first));
    inventories
}

fn snapshot(generation: u64) -> Snapshot {
    let catalog = Arc::new(build(&WORLD.config, &WORLD.inventories));
    let inventories = Arc::new(WORLD.inventories.clone());
    Snapshot { generation, config: Arc::clone(&WORLD.config), catalog, inventories }
}

/// The catalog from nothing.
#[divan::bench]
fn catalog(bencher: Bencher<'_, '_>) {
    LazyLock::force(&WORLD);
    bencher.bench_local(|| build(&WORLD.config, &WORLD.inventories));
}

/// The catalog after one of the upstreams has changed.
#[divan::bench]
fn catalog_after_a_change(bencher: Bencher<'_, '_>) {
    let mut builder = Builder::default();
    let mut first = 0;
    drop(builder.build(&WORLD.config, &WORLD.inventories));
    bencher
        .with_inputs(|| {
            first += 1;
            changed(first)
        })
        .bench_local_refs(|inventories| builder.build(&WORLD.config, inventories));
}

/// What everybody sees of it, from nothing.
#[divan::bench]
fn view(bencher: Bencher<'_, '_>) {
    let views = Views::default();
    let mut snapshot = snapshot(1);
    let route = Arc::clone(WORLD.config.routes.first().expect("a route"));
    bencher.bench_local(|| {
        snapshot.generation += 1;
        views.of(&snapshot, &route, &Rights::All)
    });
}

/// The same, when it was looked at before.
#[divan::bench]
fn view_again(bencher: Bencher<'_, '_>) {
    let views = Views::default();
    let snapshot = snapshot(1);
    let route = Arc::clone(WORLD.config.routes.first().expect("a route"));
    bencher.bench_local(|| views.of(&snapshot, &route, &Rights::All));
}

/// From a call to its reply, before anything is sent: where it goes, in which words, under which limits.
#[divan::bench]
fn plan(bencher: Bencher<'_, '_>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let entered = runtime.enter();
    let tasks = TaskGroup::new("benchmark");
    let mut registry = Registry::new();
    let metrics = upstream::Metrics::register(registry.plain());
    let upstreams = Set::start(&WORLD.config, &tasks, metrics).expect("upstreams");
    let views = Arc::new(Views::default());
    let kept = (None, relay::Metrics::register(registry.plain()));
    let relay = Relay::new(Arc::clone(&views), upstreams, Arc::new(Keyring::random()), kept);
    let route = Arc::clone(WORLD.config.routes.first().expect("a route"));
    let snapshot = Arc::new(snapshot(1));
    let seat = relay.seat(snapshot, route, &Principal::open());
    let params = r#"{"name":"up1__record_action_007","arguments":{"project":"weir","record":"a-17"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let call = || {
        let caller = Caller::local(Principal::open());
        Call {
            mirrors: true,
            ..Call::plain(Method::ToolsCall, "up1__record_action_007", params.to_owned(), caller)
        }
    };
    bencher.with_inputs(call).bench_local_values(|call| drop(relay.call(&seat, call)));
    drop((seat, entered));
}
