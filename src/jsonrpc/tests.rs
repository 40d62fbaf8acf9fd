//! Reading untrusted envelopes: threats T019 to T026.

use proptest::collection::vec;
use proptest::sample::select;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::scan::scan_members;
use super::{Edit, Error, Id, MAX_DEPTH, Message, Object, scan};

fn read(text: &str) -> Result<String, (i64, Option<String>)> {
    let refuse = |error: Error| (error.code(), error.id().map(|id| id.as_json().to_owned()));
    let again = scan(text.as_bytes()).and_then(Message::read).map(|message| format!("{message:?}"));
    assert_eq!(Message::of(text.as_bytes()).map(|message| format!("{message:?}")), again, "{text}");
    let message = Message::of(text.as_bytes()).map_err(refuse)?;
    Ok(match message {
        Message::Request { id, method, .. } => format!("request {} {method}", id.as_json()),
        Message::Notification { method, .. } => format!("notification {method}"),
        Message::Result { id, .. } => format!("result {}", id.as_json()),
        Message::Error { id, .. } => format!("error {id:?}"),
    })
}

fn refused(text: &str, code: i64, id: Option<&str>) {
    assert_eq!(read(text), Err((code, id.map(str::to_owned))), "{text}");
}

#[test]
fn good_messages_are_read() {
    let good = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
        (r#"{"jsonrpc":"2.0","id":"1","method":"ping","params":{}}"#, "request \"1\" ping"),
        (r#"{"jsonrpc":"2.0","method":"x"}"#, "notification x"),
        (r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, "result 0"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#, "error None"),
    ];
    for (text, wanted) in good {
        assert_eq!(read(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn t019_duplicate_members_are_refused() {
    refused(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, -32600, None);
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"a","name":"b"}}"#, -32600, Some("1"));
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"k":1,"k":1}}}"#, -32600, Some("1"));
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"n\u0061me":1,"name":1}}"#, -32600, Some("1"));
}

#[test]
fn t020_variants_of_decision_keys_are_refused() {
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","METHOD":"b"}"#, -32600, Some("1"));
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"Name":"a"}}"#, -32600, Some("1"));
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","paramſ":{}}"#, -32600, Some("1"));
}

#[test]
fn t021_what_is_not_json_is_refused() {
    for text in ["{", "", "{} {}", "\u{feff}{}", r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#] {
        refused(text, -32700, None);
    }
    assert_eq!(scan(b"{\"a\":\"\xff\"}"), Err(Error::Parse));
    assert!(scan(br#"{"a":"\ud83d\ude00"}"#).is_ok());
}

#[test]
fn t022_deep_nesting_is_refused() {
    let deep = |n: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{}{}}}}}"#,
            "[".repeat(n),
            "]".repeat(n)
        )
    };
    assert!(read(&deep(62)).is_ok());
    refused(&deep(63), -32600, None);
    refused(&deep(100_000), -32600, None);
}

#[test]
fn t023_batches_and_scalars_are_refused() {
    for text in ["[]", r#"[{"jsonrpc":"2.0","method":"a"}]"#, "1", "null", "\"x\""] {
        refused(text, -32600, None);
    }
}

#[test]
fn t024_t025_t026_bad_envelopes_are_refused() {
    refused(r#"{"id":5,"method":"a"}"#, -32600, Some("5"));
    refused(r#"{"jsonrpc":"1.0","id":5,"method":"a"}"#, -32600, Some("5"));
    for id in ["null", "true", "{}", "[1]", "1.5", "1e3"] {
        refused(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#), -32600, None);
    }
    refused(&format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"a"}}"#, "x".repeat(10_240)), -32600, None);
    refused(r#"{"jsonrpc":"2.0","id":5}"#, -32600, Some("5"));
    refused(r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, Some("5"));
    refused(r#"{"jsonrpc":"2.0","id":5,"method":"a","params":[]}"#, -32602, Some("5"));
    refused(r#"{"jsonrpc":"2.0","id":5,"method":"a","params":"x"}"#, -32602, Some("5"));
}

#[test]
fn c067_c068_ids_come_back_as_they_were_written() {
    for raw in
        ["1", "\"1\"", "\"01\"", "0", "-1", "\"\"", "9223372036854775807", "123456789012345678901234567890"]
    {
        assert_eq!(Id::read(raw).map(|id| id.as_json().to_owned()).as_deref(), Ok(raw));
    }
    assert_eq!(Id::own(7).as_json().len(), Id::own(u64::MAX).as_json().len());
}

#[test]
fn an_edit_leaves_other_members_byte_for_byte() {
    let object = Object::open(r#"{"a": 1.0e5 ,"name":"x","z":{"k" : [ 1 ]}}"#).expect("an object");
    let edited = Edit::new().set("name", "\"y\"").set("new", "true").remove("a").apply(&object);
    assert_eq!(edited, r#"{"name":"y","z":{"k" : [ 1 ]},"new":true}"#);
    assert_eq!(Edit::new().first("z", "0").apply(&object), r#"{"z":0,"a":1.0e5,"name":"x"}"#);
}

/// What [`scan`] promises, found by the parser and by a look at each byte.
fn is_sound(text: &str) -> bool {
    let (mut depth, mut is_string, mut high, mut deepest) = (0_usize, false, false, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut unit = None;
        match byte {
            b'"' if high => return false,
            b'"' => is_string = !is_string,
            b'\\' if is_string && bytes.next() == Some(b'u') => {
                let digits: String = bytes.by_ref().take(4).map(char::from).collect();
                unit = u32::from_str_radix(&digits, 16).ok();
            }
            b'[' | b'{' if !is_string => depth += 1,
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        let is_low = unit.is_some_and(|unit| (0xDC00..=0xDFFF).contains(&unit));
        if high != is_low {
            return false;
        }
        high = unit.is_some_and(|unit| (0xD800..=0xDBFF).contains(&unit));
    }
    deepest <= MAX_DEPTH && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// Pieces of JSON, of which some come together as a document.
fn pieces(most: usize) -> impl proptest::strategy::Strategy<Value = Vec<&'static str>> {
    let all = vec![
        "\"",
        "\"",
        "\"a\"",
        "\"key\":",
        "\\",
        "\\\"",
        "\\u",
        "\\ud83d",
        "\\ude00",
        "\\uD83D\\uDE00",
        "\\u0041",
        "\\n",
        "\\x",
        "{",
        "}",
        "[",
        "]",
        "[]",
        "{}",
        ",",
        ":",
        "true",
        "false",
        "null",
        "nul",
        "0",
        "-1",
        "1.5e3",
        "01",
        "1.",
        "-",
        "e1",
        "é",
        "a",
        " ",
        "\n",
        "\t",
        "\u{0}",
    ];
    vec(select(all), 0..most)
}

/// A document, with white space and escapes where they may be.
fn document() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::strategy::{Just, Strategy as _};
    let text = select(vec!["\"\"", "\"x\"", "\"{\\\"[\"", "\"\\\\\"", "\"\\u00e9é\"", "\"a,b:c\""]);
    let leaf = proptest::prop_oneof![text, select(vec!["0", "-1.5e3", "true", "null", "[ ]", "{ }"])];
    let leaf = leaf.prop_map(str::to_owned).boxed();
    leaf.prop_recursive(4, 48, 16, |inner| {
        let key = select(vec!["\"a\"", "\"b\"", "\"n\\u0061me\"", "\"name\"", "\"x:y\"", "\"\"", "\"é\""]);
        let space = select(vec!["", " ", "\n\t"]);
        let member = (key, space.clone(), inner.clone())
            .prop_map(|(key, space, value)| format!("{key}{space}:{space}{value}{space}"));
        let object = (vec(member, 0..16), space)
            .prop_map(|(members, space)| format!("{{{space}{}}}", members.join(",")));
        proptest::prop_oneof![
            object,
            vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            Just("7".to_owned())
        ]
    })
}

fn members(object: Option<Object<'_>>) -> Option<Vec<(String, String)>> {
    Some(object?.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

proptest! {
    #[test]
    fn what_is_scanned_is_what_the_parser_reads(pieces in pieces(24)) {
        let text = pieces.concat();
        prop_assert_eq!(scan(text.as_bytes()).is_ok(), is_sound(&text), "{}", text);
    }

    #[test]
    fn documents_are_scanned_and_taken_apart_as_the_parser_does(text in document(), cut in 0..64_usize) {
        prop_assert!(scan(text.as_bytes()).is_ok(), "{}", text);
        prop_assert_eq!(members(Object::reopen(&text)), members(Object::open(&text)), "{}", text);
        let (_, noted) = scan_members(text.as_bytes()).expect("a document");
        prop_assert_eq!(members(Object::of_members(&text, &noted).ok()), members(Object::open(&text)), "{}", text);
        let part: String = text.chars().take(cut).collect();
        prop_assert_eq!(scan(part.as_bytes()).is_ok(), is_sound(&part), "{}", part);
    }
}

#[test]
fn long_strings_are_scanned_in_blocks() {
    for length in (0..70).chain([4159, 4160, 4161, 12_288]) {
        for (end, is_sound) in [
            ("\"", true),
            ("\\n\"", true),
            ("\\ud83d\\ude00\"", true),
            ("\\ud83d\"", false),
            ("", false),
            ("\n\"", false),
        ] {
            let text = format!("\"{}{end}", "x".repeat(length));
            assert_eq!(scan(text.as_bytes()).is_ok(), is_sound, "{length} {end:?}");
        }
    }
}

#[test]
fn an_object_that_was_read_before_opens_as_it_did() {
    let texts = [
        "{}",
        " { } ",
        r#"{"a":1}"#,
        r#" { "a" : [ 1 , {"b":"}"} ] , "c" : "x\"y\\" , "d" : -1.5e3 , "e":null, "f":{} } "#,
        r#"{"a\u0062":true}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":"[\"","b":"{\\"}"#,
        r#"{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0}"#,
        "[1]",
        "\"x\"",
        "{\"a\":1} x",
        "{\"a\" 1}",
        "{\"a\":1,}",
        "{\"a\":}",
        "{",
        "",
    ];
    for text in texts {
        assert_eq!(members(Object::reopen(text)), members(Object::open(text)), "{text}");
    }
}
