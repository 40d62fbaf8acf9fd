//! Lists are whole: every cursor of an upstream is followed, and the gateway's own cursors lead to an end.

use crate::support::{Ask, Fake, Pair, Proxy, Side, eras, eventually, json, pairs, tool};

pairs! { c056_every_page_of_an_upstream_is_read, c058_a_cursor_that_repeats_ends }

eras! { c057_the_gateways_cursors_lead_to_an_end, an_endless_list_is_cut }

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| tool(&format!("t{number}"))).collect()
}

fn c056_every_page_of_an_upstream_is_read(pair: Pair) {
    let alpha = pair.fake().tools(numbered(2500)).page(1000).start();
    let beta = pair.fake().tools(numbered(3)).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = pair.client(&weir);
    let expected =
        |name: &str, count: usize| (0..count).map(move |n| format!("{name}__t{n}")).collect::<Vec<_>>();
    let all = [expected("alpha", 2500), expected("beta", 3)].concat();
    assert!(client.names() == all, "2503 tools in their order");
    let lists = alpha.seen("tools/list").len();
    assert!(client.names() == all, "the same again");
    assert_eq!(alpha.seen("tools/list").len(), lists, "from memory");
}

fn c057_the_gateways_cursors_lead_to_an_end(side: Side) {
    let alpha = Fake::of(side).tools(numbered(25)).start();
    let weir = Proxy::before(&alpha).listen("page: { items: 10 }").run();
    let client = weir.client(side);
    let first = client.ask(Ask::new("tools/list"));
    assert_eq!(first.result()["tools"].as_array().map(Vec::len), Some(10));
    let cursor = first.raw(&["result", "nextCursor"]).expect("a cursor").to_owned();
    assert_eq!(client.names().len(), 25, "each once, and the last page has no cursor");
    let page = |cursor: &str| client.ask(Ask::new("tools/list").params(&format!("{{\"cursor\":{cursor}}}")));
    let second = page(&cursor);
    assert_eq!(second.result()["tools"][0]["name"], "alpha__t10");
    assert_eq!(
        page(&cursor).raw(&["result", "tools"]),
        second.raw(&["result", "tools"]),
        "an old one still works"
    );
    for unknown in ["\"10\"", "\"w1.AAAA\"", "\"\""] {
        assert_eq!(page(unknown).code(), -32602, "{unknown}");
    }
}

#[test]
fn c057_a_list_in_one_page_has_no_cursor() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let answer = weir.modern().ask(Ask::new("tools/list"));
    assert_eq!(answer.raw(&["result", "nextCursor"]), None);
    let strange = Ask::new("tools/list").params("{\"cursor\":\"never given\"}");
    assert_eq!(weir.modern().ask(strange).code(), -32602);
}

fn c058_a_cursor_that_repeats_ends(pair: Pair) {
    let page = format!(
        "{{\"tools\":[{}],\"nextCursor\":\"8\",\"ttlMs\":0,\"cacheScope\":\"public\"}}",
        numbered(8).join(",")
    );
    let alpha = pair.fake().script("tools/list", move |_, wire| wire.result(&page)).start();
    let beta = pair.fake().tools(numbered(2)).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let names = pair.client(&weir).names();
    assert_eq!(names.len(), 10, "{names:?}");
    let asked = alpha.seen("tools/list").len();
    assert!(asked <= 3, "{asked} requests for one list");
    eventually!(weir.log().contains("cursor"), "a warning tells");
}

fn an_endless_list_is_cut(side: Side) {
    let alpha = Fake::of(side)
        .script("tools/list", |request, wire| {
            let number: u64 = json::text(&request.body, &["params", "cursor"])
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            let tools = tool(&format!("t{number}"));
            let next = number + 1;
            wire.result(&format!(
                "{{\"tools\":[{tools}],\"nextCursor\":\"{next}\",\"ttlMs\":0,\"cacheScope\":\"public\"}}"
            ));
        })
        .start();
    let beta = Fake::of(side).tools(numbered(2)).start();
    let weir =
        Proxy::new().upstream_with("alpha", &alpha, "limits: { pages: 5 }").upstream("beta", &beta).run();
    let client = weir.client(side);
    eventually!(client.names().contains(&"beta__t1".to_owned()));
    eventually!(alpha.seen("tools/list").len() >= 5);
    let missing = client.ask(Ask::new("tools/list")).result()["_meta"]["dev.weir/missing"].clone();
    let entry = missing.as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
    assert_eq!(entry["upstream"], "alpha", "the list says what is missing: {missing}");
}
