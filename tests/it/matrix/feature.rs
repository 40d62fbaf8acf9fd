//! The features, and how each is tried: with a client, a gateway and an upstream of its own for each pair.

mod change;
mod question;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::{Pair, side};
use crate::support::client::Running;
use crate::support::{
    Ask, Client, Fake, Proxy, Side, Upstream, Weir, eventually, json, prompt, resource, template, tool,
};

/// What a client wants of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    List,
    Call,
    Error,
    Progress,
    Log,
    Cancel,
    ElicitForm,
    ElicitUrl,
    Sampling,
    Roots,
    ResourceRead,
    TemplateRead,
    Subscribe,
    Prompt,
    Completion,
    ToolsChanged,
    PromptsChanged,
    ResourcesChanged,
    Task,
    Cursor,
}

impl Feature {
    /// All of them, in the order of the page.
    pub(super) const ALL: [Self; 20] = [
        Self::List,
        Self::Call,
        Self::Error,
        Self::Progress,
        Self::Log,
        Self::Cancel,
        Self::ElicitForm,
        Self::ElicitUrl,
        Self::Sampling,
        Self::Roots,
        Self::ResourceRead,
        Self::TemplateRead,
        Self::Subscribe,
        Self::Prompt,
        Self::Completion,
        Self::ToolsChanged,
        Self::PromptsChanged,
        Self::ResourcesChanged,
        Self::Task,
        Self::Cursor,
    ];

    /// What the page calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::List => "lists",
            Self::Call => "call of a tool",
            Self::Error => "errors",
            Self::Progress => "progress",
            Self::Log => "log messages",
            Self::Cancel => "cancellation",
            Self::ElicitForm => "elicitation, form",
            Self::ElicitUrl => "elicitation, URL",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
            Self::ResourceRead => "resource",
            Self::TemplateRead => "resource of a template",
            Self::Subscribe => "subscription to a resource",
            Self::Prompt => "prompt",
            Self::Completion => "completion",
            Self::ToolsChanged => "change of the tools",
            Self::PromptsChanged => "change of the prompts",
            Self::ResourcesChanged => "change of the resources",
            Self::Task => "tasks",
            Self::Cursor => "pages of lists",
        }
    }
}

/// What a trial comes to: nothing, or what went wrong.
type Trial = Result<(), String>;

/// What every pair is tried with.
pub(super) struct Bench {
    pair: Pair,
    alpha: Upstream,
    weir: Weir,
    /// Nobody where the gateway does not speak the client's transport.
    client: Option<Client>,
}

fn fake(revision: &'static str) -> Fake {
    let fake = match (revision, side(revision)) {
        ("2024-11-05", _) => Fake::legacy().over_sse(),
        (_, Side::Modern) => Fake::modern(),
        (_, Side::Legacy) => Fake::legacy().revisions(&[revision]),
    };
    let fake = if revision >= "2025-11-25" { fake.with_tasks() } else { fake };
    fake.label("alpha")
        .asking()
        .with("tools", ["refuse", "task"].map(tool))
        .with("prompts", [prompt("review")])
        .with("resources", [resource("file:///a.txt")])
        .with("templates", [template("db://{table}/{id}")])
        .completing()
        .subscribable()
        .page(2)
        .script("tools/call refuse", |_, wire| wire.error(REFUSAL))
}

const REFUSAL: &str = "{\"code\":-31999,\"message\":\"not today\",\"data\":{\"until\":1.50}}";

/// What a client of a revision can say that it can be asked.
fn capabilities(revision: &str) -> &'static str {
    match revision {
        "2024-11-05" | "2025-03-26" => "{\"roots\":{},\"sampling\":{}}",
        "2025-06-18" => "{\"roots\":{},\"sampling\":{},\"elicitation\":{}}",
        _ => {
            "{\"roots\":{},\"sampling\":{\"tools\":{}},\"elicitation\":{\"form\":{},\"url\":{}},\
             \"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"
        }
    }
}

impl Bench {
    pub(super) fn new(pair: Pair) -> Self {
        let alpha = fake(pair.upstream).start();
        let weir = Proxy::before(&alpha).listen("page: { items: 3 }").run();
        let client = client(pair, &weir);
        Self { pair, alpha, weir, client }
    }

    /// What the upstream saw that breaks its revision.
    pub(super) fn violations(&self) -> Vec<String> {
        self.alpha.violations()
    }

    /// Why a feature does not work; `None` where it does.
    pub(super) fn fault(&self, feature: Feature) -> Option<String> {
        let Some(client) = &self.client else {
            return Some("the gateway does not take this client".to_owned());
        };
        let trial = catch_unwind(AssertUnwindSafe(|| self.attempt(feature, client)));
        trial.unwrap_or_else(|why| Err(panicked(why.as_ref()))).err()
    }

    fn attempt(&self, feature: Feature, client: &Client) -> Trial {
        match feature {
            Feature::List => lists(client),
            Feature::Call => call(client),
            Feature::Error => error(client),
            Feature::Progress => progress(client),
            Feature::Log => log(client),
            Feature::Cancel => self.cancel(client),
            Feature::ElicitForm => question::asked(client, "form", "elicitation/create"),
            Feature::ElicitUrl => question::asked(client, "url", "elicitation/create"),
            Feature::Sampling => question::asked(client, "sampling", "sampling/createMessage"),
            Feature::Roots => question::asked(client, "roots", "roots/list"),
            Feature::ResourceRead => read(client, "file:///a.txt"),
            Feature::TemplateRead => read(client, "db://users/7"),
            Feature::Subscribe => change::subscribe(client, &self.alpha),
            Feature::Prompt => prompted(client),
            Feature::Completion => completed(client),
            Feature::ToolsChanged => change::heard(client, &self.alpha, "tools", &tool("new")),
            Feature::PromptsChanged => change::heard(client, &self.alpha, "prompts", &prompt("new")),
            Feature::ResourcesChanged => {
                change::heard(client, &self.alpha, "resources", &resource("file:///new"))
            }
            Feature::Task => self.task(),
            Feature::Cursor => cursor(client),
        }
    }

    fn cancel(&self, client: &Client) -> Trial {
        let sent = client.request(&Ask::call("alpha__slow", "{\"ms\":30000}").id("\"c\"")).send_only();
        let soon = Duration::from_secs(8);
        let begun = eventually::holds(soon, || self.alpha.calls("slow").len() == 1);
        check(begun, || "the call does not arrive".to_owned())?;
        match client.side() {
            Side::Legacy => drop(client.cancel("\"c\"")),
            Side::Modern => drop(sent),
        }
        let given_up =
            || self.alpha.calls("slow").first().is_some_and(|call| self.alpha.gone(call).is_some());
        check(eventually::holds(soon, given_up), || "the upstream goes on".to_owned())
    }

    /// A client of its own: the schemas of the core do not hold the results.
    fn task(&self) -> Trial {
        let client = client(self.pair, &self.weir).ok_or("no client")?.unchecked();
        let (name, member) = match client.side() {
            Side::Legacy => ("alpha__echo", ",\"task\":{\"ttl\":60000}"),
            Side::Modern => ("alpha__task", ""),
        };
        let answer = client.ask(
            Ask::new("tools/call").params(&format!("{{\"name\":\"{name}\",\"arguments\":{{}}{member}}}")),
        );
        let id = answer.raw(&["result", "task", "taskId"]).or_else(|| answer.raw(&["result", "taskId"]));
        let id = id.ok_or_else(|| format!("no task: {}", answer.body()))?;
        let state = client.ask(Ask::new("tasks/get").params(&format!("{{\"taskId\":{id}}}")));
        same("state of the task", state.raw(&["result", "status"]), Some("\"working\""))
    }
}

fn client(pair: Pair, weir: &Weir) -> Option<Client> {
    let client = Client::new(weir.address, side(pair.client)).capable(capabilities(pair.client));
    match (pair.client, side(pair.client)) {
        ("2024-11-05", _) => Some(client.over_sse()?.opened()),
        (revision, Side::Legacy) => Some(client.revision(revision).opened()),
        (_, Side::Modern) => Some(client),
    }
}

fn panicked(why: &(dyn std::any::Any + Send)) -> String {
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn check(holds: bool, fault: impl FnOnce() -> String) -> Trial {
    if holds { Ok(()) } else { Err(fault()) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Trial {
    let equal = found == wanted;
    check(equal, move || format!("{what}: {found:?} instead of {wanted:?}"))
}

/// Every item of a list, all pages followed, and how many pages there were.
fn list(client: &Client, method: &str, member: &str) -> Result<(Vec<String>, usize), String> {
    let mut items = Vec::new();
    let mut cursor = None;
    for page in 1..50 {
        let params = cursor.map_or_else(|| "{}".to_owned(), |raw: String| format!("{{\"cursor\":{raw}}}"));
        let answer = client.ask(Ask::new(method).params(&params));
        let raw = answer.raw(&["result", member]).ok_or_else(|| format!("no {member}: {}", answer.body()))?;
        let all = json::value(raw);
        let named = all.as_array().into_iter().flatten().filter_map(|item| {
            ["uriTemplate", "uri", "name"].iter().find_map(|key| item[*key].as_str()).map(str::to_owned)
        });
        items.extend(named);
        cursor = answer.raw(&["result", "nextCursor"]).map(str::to_owned);
        if cursor.is_none() {
            return Ok((items, page));
        }
    }
    Err("the pages do not end".to_owned())
}

fn lists(client: &Client) -> Trial {
    let wanted = [
        ("tools/list", "tools", "alpha__echo"),
        ("prompts/list", "prompts", "alpha__review"),
        ("resources/list", "resources", "file:///a.txt"),
        ("resources/templates/list", "resourceTemplates", "db://{table}/{id}"),
    ];
    for (method, member, name) in wanted {
        let (items, _) = list(client, method, member)?;
        check(items.iter().any(|item| item == name), || format!("{name} is not in {items:?}"))?;
    }
    Ok(())
}

fn cursor(client: &Client) -> Trial {
    let (items, pages) = list(client, "tools/list", "tools")?;
    check(pages > 1, || "the list has one page".to_owned())?;
    let wanted = ["echo", "slow", "incr", "steps", "big", "fail", "chatty", "ask", "refuse", "task"];
    let missing: Vec<&&str> =
        wanted.iter().filter(|name| !items.contains(&format!("alpha__{name}"))).collect();
    check(missing.is_empty(), || format!("missing: {missing:?}"))
}

fn call(client: &Client) -> Trial {
    let arguments = "{\"b\": 1.50, \"a\":\"é\"}";
    let answer = client.call("alpha__echo", arguments);
    same("arguments", answer.raw(&["result", "structuredContent"]), Some(arguments))
}

fn error(client: &Client) -> Trial {
    let answer = client.call("alpha__fail", "{}");
    check(answer.is_failure(), || format!("not a failed tool: {}", answer.body()))?;
    let answer = client.call("alpha__refuse", "{}");
    same("error", answer.raw(&["error"]), Some(REFUSAL))
}

fn progress(client: &Client) -> Trial {
    let answer = client.ask(Ask::call("alpha__steps", "{}").progress("\"p\""));
    let told =
        answer.before.iter().filter(|message| message.raw(&["params", "progressToken"]) == Some("\"p\""));
    same("messages", told.count(), 3)
}

fn log(client: &Client) -> Trial {
    let mut ask = Ask::call("alpha__chatty", "{\"marker\":7}");
    match client.side() {
        Side::Modern => ask = ask.meta("io.modelcontextprotocol/logLevel", "\"warning\""),
        Side::Legacy => {
            let answer = client.ask(Ask::new("logging/setLevel").params("{\"level\":\"warning\"}"));
            same("answer to logging/setLevel", answer.raw(&["result"]), Some("{}"))?;
        }
    }
    let answer = client.ask(ask);
    let levels: Vec<_> = answer.before.iter().filter_map(|m| m.raw(&["params", "level"])).collect();
    same("levels", levels, vec!["\"warning\"", "\"error\""])
}

fn read(client: &Client, uri: &str) -> Trial {
    let answer = client.ask(Ask::new("resources/read").params(&format!("{{\"uri\":{}}}", json::quote(uri))));
    let result = json::value(answer.raw(&["result"]).ok_or_else(|| answer.body().to_owned())?);
    same("URI", result["contents"][0]["uri"].as_str(), Some(uri))?;
    same("text", result["contents"][0]["text"].as_str(), Some(format!("{uri} at alpha").as_str()))
}

fn prompted(client: &Client) -> Trial {
    let params = "{\"name\":\"alpha__review\",\"arguments\":{\"marker\":\"m\"}}";
    let answer = client.ask(Ask::new("prompts/get").params(params));
    let result = json::value(answer.raw(&["result"]).ok_or_else(|| answer.body().to_owned())?);
    let text = "review at alpha with {\"marker\":\"m\"}";
    same("text", result["messages"][0]["content"]["text"].as_str(), Some(text))
}

fn completed(client: &Client) -> Trial {
    let references = [
        ("{\"type\":\"ref/prompt\",\"name\":\"alpha__review\"}", "[\"review\",\"va\"]"),
        ("{\"type\":\"ref/resource\",\"uri\":\"db://{table}/{id}\"}", "[\"db://{table}/{id}\",\"va\"]"),
    ];
    for (reference, values) in references {
        let params = format!("{{\"ref\":{reference},\"argument\":{{\"name\":\"table\",\"value\":\"va\"}}}}");
        let answer = client.ask(Ask::new("completion/complete").params(&params));
        let found = answer.raw(&["result", "completion", "values"]);
        check(found == Some(values), || format!("values: {}", answer.body()))?;
    }
    Ok(())
}

/// Whether a message of this method comes soon.
fn comes(stream: &mut Running, method: &str) -> Option<String> {
    std::iter::from_fn(|| stream.next(Duration::from_secs(8)))
        .find(|message| message.method() == method)
        .map(|message| message.text)
}
