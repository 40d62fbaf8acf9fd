//! Endpoints.

use std::str::FromStr as _;
use std::sync::Arc;

use super::access::{Scene, Understood, of_route};
use super::pattern;
use super::upstream::Known;
use crate::config::file::{self, At, Field, Mode, RouteUpstreams};
use crate::config::model::Route;
use crate::config::problem::{Findings, Place};
use crate::names::{RouteName, UpstreamName};

/// What the route is called that there is without `routes`.
const DEFAULT: &str = "default";

/// A route and where its path stands.
struct Placed {
    route: Arc<Route>,
    place: Place,
}

/// Reads `routes`.
pub(super) fn routes(
    field: Field<Vec<At<file::Route>>>,
    scene: Scene<'_>,
    access: &Understood,
    findings: &Findings,
) -> Vec<Arc<Route>> {
    let upstreams = scene.upstreams;
    let Field::Written(list) = field else {
        let only = RouteName::from_str(DEFAULT).map(|name| whole(name, upstreams, access));
        return only.into_iter().collect();
    };
    if list.value.is_empty() {
        findings.error(&list.place, "names no route; without this key there is one at /mcp");
    }
    let mut routes: Vec<Placed> = Vec::new();
    for at in list.value {
        let Some(placed) = route(at, scene, access, findings) else { continue };
        if routes.iter().any(|earlier| earlier.route.name == placed.route.name) {
            let text = format!("another route has the name {} already", placed.route.name);
            findings.error(&placed.place, &text);
        }
        routes.push(placed);
    }
    compare_paths(&routes, findings);
    routes.into_iter().map(|placed| placed.route).collect()
}

/// The names that routes are given, for rules to name.
pub(super) fn names(field: &Field<Vec<At<file::Route>>>) -> Vec<String> {
    match field.written() {
        Some(list) => {
            list.value.iter().filter_map(|at| at.value.name.written()).map(|at| at.value.clone()).collect()
        }
        None => vec![DEFAULT.to_owned()],
    }
}

/// The one route that there is without `routes`.
fn whole(name: RouteName, upstreams: &[Known], access: &Understood) -> Arc<Route> {
    Arc::new(Route {
        name,
        path: "/mcp".to_owned(),
        upstreams: enabled(upstreams).collect(),
        read_only: false,
        allow: pattern::everything(),
        deny: globset::GlobSet::empty(),
        instructions: String::new(),
        policy: access.policy.clone(),
    })
}

fn enabled(upstreams: &[Known]) -> impl Iterator<Item = UpstreamName> {
    upstreams.iter().filter(|known| known.upstream.is_some()).map(|known| known.name.clone())
}

fn route(at: At<file::Route>, scene: Scene<'_>, access: &Understood, findings: &Findings) -> Option<Placed> {
    let block = at.value;
    if block.name.is_absent() {
        findings.error(&at.place.member("name"), "this key is missing; it names the route");
    }
    let tools = block.tools.or_default();
    let allow = pattern::allow(&tools.allow, findings);
    let deny = pattern::set(&tools.deny, findings);
    let policy = of_route(&block.access, access, scene, findings);
    let upstreams = shown(block.upstreams, scene.upstreams, findings);
    let written = block.path.written().and_then(|at| path(at, findings));
    let name = block.name.written().and_then(|at| name(at, findings))?;
    let place = block.path.place().or(block.name.place()).cloned().unwrap_or(at.place);
    let route = Arc::new(Route {
        path: written.unwrap_or_else(|| format!("/{name}")),
        name,
        upstreams,
        read_only: block.mode.written().is_some_and(|at| at.value == Mode::ReadOnly),
        allow,
        deny,
        instructions: block.instructions.or_default(),
        policy,
    });
    Some(Placed { route, place })
}

fn name(at: &At<String>, findings: &Findings) -> Option<RouteName> {
    at.value
        .parse()
        .inspect_err(|error| findings.error(&at.place, &format!("{} is not a name: {error}", at.shown())))
        .ok()
}

/// The upstreams of a route, in file order.
fn shown(field: Field<RouteUpstreams>, upstreams: &[Known], findings: &Findings) -> Vec<UpstreamName> {
    let Field::Written(At { place, value: RouteUpstreams::Some(list), .. }) = field else {
        return enabled(upstreams).collect();
    };
    if list.is_empty() {
        findings.warning(&place, "names no upstream, so this route shows nothing");
    }
    for at in &list {
        if !upstreams.iter().any(|known| known.name.as_str() == at.value) {
            let names: Vec<_> = upstreams.iter().map(|known| known.name.as_str()).collect();
            let text = format!("{} is not an upstream; accepted: {}", at.shown(), names.join(", "));
            findings.error(&at.place, &text);
        }
    }
    enabled(upstreams).filter(|name| list.iter().any(|at| at.value == name.as_str())).collect()
}

/// A path without a slash at its end; the root stays `/`.
fn path(at: &At<String>, findings: &Findings) -> Option<String> {
    let text = at.value.as_str();
    let problem = if !text.starts_with('/') {
        Some("must begin with /")
    } else if text.contains("//") {
        Some("must not hold //")
    } else if text.split('/').any(|segment| matches!(segment, "." | "..")) {
        Some("must not hold a . or .. segment")
    } else if !text.bytes().all(|c| c.is_ascii_graphic() && !matches!(c, b'%' | b'?' | b'#' | b'\\')) {
        Some("must not hold %, ?, #, \\, spaces or other than ASCII characters")
    } else if text == "/.well-known" || text.starts_with("/.well-known/") {
        Some("/.well-known is not for routes")
    } else {
        None
    };
    if let Some(problem) = problem {
        findings.error(&at.place, &format!("{} is not a path: {problem}", at.shown()));
        return None;
    }
    let bare = text.trim_end_matches('/');
    Some(if bare.is_empty() { "/" } else { bare }.to_owned())
}

/// No two routes may claim one address; HTTP+SSE clients use a route's path and `/sse`.
fn compare_paths(routes: &[Placed], findings: &Findings) {
    for (index, one) in routes.iter().enumerate() {
        for (earlier, other) in routes.iter().enumerate() {
            let (path, taken) = (&one.route.path, &other.route.path);
            if earlier < index && path == taken {
                let text = format!("the path {path} belongs to the route {} already", other.route.name);
                findings.error(&one.place, &text);
            }
            if earlier != index && *path == format!("{}/sse", taken.trim_end_matches('/')) {
                let text =
                    format!("the path {path} is kept for HTTP+SSE clients of the route {}", other.route.name);
                findings.error(&one.place, &text);
            }
        }
    }
}
