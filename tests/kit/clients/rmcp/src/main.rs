// rmcp 3.x client with the same interface as the other kit clients (../README.md).
use std::{sync::{Arc, Mutex}, time::{Duration, Instant}};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt,
    model::*, service::NotificationContext, RoleClient,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct H { seen: Arc<Mutex<Vec<String>>> }
impl ClientHandler for H {
    fn get_info(&self) -> ClientInfo { ClientInfo::new(ClientCapabilities::default(), Implementation::new("kit-rmcp", "1")) }
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) { self.seen.lock().unwrap().push("tools".into()) }
    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) { self.seen.lock().unwrap().push("prompts".into()) }
    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) { self.seen.lock().unwrap().push("resources".into()) }
}
fn dflt(s: &Value) -> Value {
    let mut o = serde_json::Map::new();
    for k in s["required"].as_array().into_iter().flatten().filter_map(|k| k.as_str()) {
        let p = &s["properties"][k];
        let v = p["enum"].get(0).cloned().unwrap_or(match p["type"].as_str() { Some("number" | "integer") => json!(2), Some("boolean") => json!(true), Some("array") => json!([]), Some("object") => json!({}), _ => json!("hi") });
        o.insert(k.into(), v);
    }
    Value::Object(o)
}
fn pick(t: &[Value], want: Option<&str>) -> Option<(String, Value)> {
    let name = |x: &Value| x["name"].as_str().unwrap_or("").to_string();
    let f = match want {
        Some(w) => t.iter().find(|x| name(x) == w).or_else(|| t.iter().find(|x| name(x).ends_with(w))),
        None => ["echo", "get-sum", "add", "test_simple_text"].iter().find_map(|s| t.iter().find(|x| name(x).ends_with(s))).or_else(|| t.first()),
    }?;
    Some((name(f), dflt(&f["inputSchema"])))
}
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let opt = |k: &str| a.iter().position(|x| x == k).and_then(|i| a.get(i + 1)).cloned();
    let t0 = Instant::now(); let h = H::default();
    let mut d = json!({"client":"rmcp 3.x","protocol":null,"server":null,"tools":0,"names":[],"pages":null,"called":[],"resources":0,"templates":0,"read":null,"prompts":0,"got":null,"list_changed":[],"errors":[]});
    let mut errs: Vec<String> = vec![];
    let mut cfg = StreamableHttpClientTransportConfig::with_uri(a.first().cloned().unwrap_or_default());
    if let Some(b) = opt("--bearer") { cfg = cfg.auth_header(b) }
    let pv = vec![ProtocolVersion::V_2026_07_28];
    let mode = match opt("--mode").as_deref() {
        Some("legacy") => ClientLifecycleMode::Initialize,
        Some("modern") => ClientLifecycleMode::Discover { preferred_versions: pv },
        _ => ClientLifecycleMode::Auto { preferred_versions: pv, legacy_version: None },
    };
    match h.clone().serve_with_lifecycle(StreamableHttpClientTransport::from_config(cfg), mode).await {
        Err(e) => errs.push(format!("connect: {e}")),
        Ok(c) => {
            let info = c.peer_info().map(|i| serde_json::to_value(&*i).unwrap_or_default()).unwrap_or_default();
            d["protocol"] = info["protocolVersion"].clone(); d["server"] = info["serverInfo"]["name"].clone();
            let wait: f64 = opt("--wait").and_then(|w| w.parse().ok()).unwrap_or(0.0);
            let seen = h.seen.clone();
            let modern = d["protocol"].as_str().is_some_and(|p| p >= "2026-07-28");
            let mut sub = None;
            if wait > 0.0 && modern {
                match c.listen(SubscriptionFilter::builder().tools_list_changed().build()).await { Ok(s) => sub = Some(s), Err(e) => errs.push(format!("subscriptions/listen: {e}")) }
            }
            let mut tools: Vec<Value> = vec![];
            match c.list_all_tools().await {
                Ok(t) => { tools = t.iter().map(|x| serde_json::to_value(x).unwrap()).collect(); d["tools"] = json!(tools.len()); d["names"] = tools.iter().map(|x| x["name"].clone()).collect() }
                Err(e) => errs.push(format!("tools/list: {e}")),
            }
            // The nth --args belongs to the nth --tool; the trigger comes last and is not reported.
            let all = |k: &str| a.windows(2).filter(|w| w[0] == k).map(|w| w[1].clone()).collect::<Vec<_>>();
            let (wants, given) = (all("--tool"), all("--args"));
            let mut calls: Vec<(Option<String>, Option<String>, bool)> = wants.iter().enumerate().map(|(i, w)| (Some(w.clone()), given.get(i).cloned(), false)).collect();
            if calls.is_empty() { calls.push((None, None, false)) }
            if let Some(t) = opt("--trigger") { calls.push((Some(t), None, true)) }
            let mut called: Vec<Value> = vec![];
            for (want, given, trigger) in calls {
                let Some((n, mut ar)) = pick(&tools, want.as_deref()) else { errs.push(format!("no tool {want:?}")); continue };
                if let Some(j) = given { ar = serde_json::from_str(&j).unwrap() }
                match c.call_tool(CallToolRequestParams::new(n.clone()).with_arguments(ar.as_object().cloned().unwrap())).await {
                    Ok(r) => if !trigger { let r = serde_json::to_value(&r).unwrap(); called.push(json!({"name": n, "isError": r["isError"].as_bool().unwrap_or(false), "text": r["content"][0]["text"]})) },
                    Err(e) => errs.push(format!("tools/call: {e}")),
                }
            }
            d["called"] = json!(called);
            let caps = info["capabilities"].clone();
            if !caps["resources"].is_null() {
                match c.list_all_resources().await {
                    Ok(r) => { d["resources"] = json!(r.len()); d["templates"] = json!(c.list_all_resource_templates().await.map(|t| t.len()).unwrap_or(0));
                        if let Some(u) = r.first().map(|x| serde_json::to_value(x).unwrap()["uri"].as_str().unwrap_or("").to_string()) {
                            match c.read_resource(ReadResourceRequestParams::new(u.clone())).await { Ok(x) => d["read"] = json!({"uri": u, "contents": serde_json::to_value(&x).unwrap()["contents"].as_array().map(|v| v.len())}), Err(e) => errs.push(format!("resources: {e}")) } } }
                    Err(e) => errs.push(format!("resources: {e}")),
                }
            }
            if !caps["prompts"].is_null() {
                match c.list_all_prompts().await {
                    Ok(p) => { d["prompts"] = json!(p.len());
                        let q = p.iter().map(|x| serde_json::to_value(x).unwrap()).find(|x| !x["arguments"].as_array().into_iter().flatten().any(|g| g["required"] == json!(true)));
                        if let Some(n) = q.and_then(|x| x["name"].as_str().map(String::from)) {
                            match c.get_prompt(GetPromptRequestParams::new(n.clone())).await { Ok(x) => d["got"] = json!({"name": n, "messages": serde_json::to_value(&x).unwrap()["messages"].as_array().map(|v| v.len())}), Err(e) => errs.push(format!("prompts: {e}")) } } }
                    Err(e) => errs.push(format!("prompts: {e}")),
                }
            }
            let end = Instant::now() + Duration::from_secs_f64(wait);
            while Instant::now() < end {
                let left = end - Instant::now();
                match sub.as_mut() {
                    Some(s) => match tokio::time::timeout(left, s.next()).await { Ok(Ok(Some(n))) => seen.lock().unwrap().push(format!("{n:?}").chars().take(40).collect()), Ok(_) => sub = None, Err(_) => break },
                    None => tokio::time::sleep(left).await,
                }
            }
            d["list_changed"] = json!(*seen.lock().unwrap());
            if let Err(e) = c.cancel().await { errs.push(format!("close: {e}")) }
        }
    }
    d["errors"] = json!(errs); d["seconds"] = json!((t0.elapsed().as_millis() as f64) / 1000.0);
    println!("{d}");
    std::process::exit(if errs.is_empty() { 0 } else { 1 });
}
