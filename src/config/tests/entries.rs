//! The ways in: a file, the command line, an address.

use secrecy::ExposeSecret as _;

use super::fixtures::Known;
use crate::config::{Allowed, Config, Credential, Kind, for_url, load, overridden, read_text};
use crate::names::Characters;

fn load_bytes(content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("routes.yaml");
    std::fs::write(&path, content).unwrap();
    let problems = load(&path).map_or_else(|problems| problems, |loaded| loaded.warnings);
    problems.to_string().replace(path.to_str().unwrap(), "PATH")
}

#[test]
fn t098_a_file_that_is_no_text_is_refused_with_its_position() {
    assert_eq!(load_bytes(b"a:\n  \xc3\xa4\xff\n"), "PATH:2:4: error: the text is not UTF-8\n");
    assert_eq!(load_bytes(b"\xff"), "PATH:1:1: error: the text is not UTF-8\n");
}

#[test]
fn t098_a_large_file_is_refused() {
    let comment = vec![b'#'; 4 * 1024 * 1024];
    assert_eq!(
        load_bytes(&[comment.as_slice(), b"#"].concat()),
        "PATH: error: the file is larger than 4 MiB\n"
    );
    assert_eq!(
        load_bytes(&comment),
        "PATH:1:4194305: error: the file holds no configuration; at least \"upstreams\" is needed\n"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem() {
    let folder = tempfile::tempdir().unwrap();
    let problems = load(folder.path()).unwrap_err();
    assert!(
        problems.to_string().ends_with(": error: the file cannot be read: is a directory\n"),
        "{problems}"
    );
}

#[test]
fn files_are_relative_to_the_one_they_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "abc\n").unwrap();
    let path = folder.path().join("routes.yaml");
    let text = "upstreams: { a: { url: \"http://h/\", credential: { bearer: \"${file:token}\" } } }";
    std::fs::write(&path, text).unwrap();
    let config = load(&path).unwrap().config;
    let Credential::Bearer(secret) = &config.upstreams[0].credential else { panic!() };
    assert_eq!(secret.expose_secret(), "abc");
    assert_eq!(config.path, Some(path));
}

fn read(text: &str) -> Config {
    read_text(text, None, &Known::new()).unwrap().config
}

#[test]
fn t127_an_address_of_the_command_line_is_checked_too() {
    let check = |text: &str, address: &str, wanted: &str| {
        let got = overridden(read(text), Some(address.parse().unwrap()), None);
        let got =
            got.map_or_else(|problems| problems.to_string(), |config| config.listen.address.to_string());
        assert!(got.starts_with(wanted), "{text} {address}: {got}");
    };
    let closed = "upstreams: { a: { builtin: clock } }";
    let open = "upstreams: { a: { builtin: clock } }\naccess: open";
    check(closed, "127.0.0.2:0", "127.0.0.2:0");
    check(closed, "0.0.0.0:0", "--listen: error: listen.address: this address can be reached");
    check(closed, "[::ffff:10.0.0.1]:0", "--listen: error: listen.address: this address can be reached");
    check(open, "0.0.0.0:0", "0.0.0.0:0");
    let plain = "upstreams: { a: { builtin: clock } }\naccess: { generate: t, initialize_token: true }";
    check(plain, "127.0.0.2:0", "127.0.0.2:0");
    check(plain, "0.0.0.0:0", "--listen: error: access.initialize_token: true is for a listener on loopback");
    check(closed, "127.0.0.1:8090", "--listen: error: listen.address: the two listeners");
}

#[test]
fn hosts_follow_an_address_of_the_command_line() {
    let open = "upstreams: { a: { builtin: clock } }\naccess: open\n";
    let moved = |text: &str, address: &str| {
        overridden(read(text), Some(address.parse().unwrap()), None).unwrap().listen
    };
    let listen = moved(open, "0.0.0.0:0");
    assert_eq!((listen.allowed_hosts, listen.allowed_origins), (Allowed::Any, Allowed::These(Vec::new())));
    let listen = moved(&format!("{open}listen: {{ address: 0.0.0.0:1 }}"), "127.0.0.1:0");
    assert_eq!((listen.allowed_hosts, listen.allowed_origins), (Allowed::Loopback, Allowed::Loopback));
    let listen = moved(&format!("{open}listen: {{ allowed_hosts: [a.example] }}"), "0.0.0.0:0");
    assert_eq!(listen.allowed_hosts, Allowed::These(vec!["a.example".to_owned()]));
}

#[test]
fn an_address_alone_makes_a_configuration() {
    let config = for_url("http://h:1/mcp?key=canary", Some("abc".into())).unwrap();
    let [upstream] = config.upstreams.as_slice() else { panic!() };
    assert_eq!((upstream.name.as_str(), upstream.namespace.as_str()), ("url", ""));
    assert!(matches!(&upstream.kind, Kind::Http { urls } if urls[0].query() == Some("key=canary")));
    assert!(matches!(&upstream.credential, Credential::Bearer(token) if token.expose_secret() == "abc"));
    assert_eq!(config.names.characters, Characters::Any);
    assert_eq!(config.routes.len(), 1);
    for (url, token) in
        [("h:1/mcp?canary", None), ("http://h/${canary}?${env:X}", None), ("http://h/", Some("can\nary"))]
    {
        match for_url(url, token.map(Into::into)) {
            Ok(_) => assert!(url.contains('$'), "{url}"),
            Err(problems) => {
                assert!(!problems.to_string().contains("canary") && problems.has_errors(), "{problems}")
            }
        }
    }
}
