//! What opens, and above all what does not: threats T051 and T052.

use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use secrecy::SecretString;

use super::{CursorSeal, Keyring, Owner, Purpose, Refused, SessionSeal};
use crate::principal::Subject;
use crate::protocol::{ListKind, Revision};

const PURPOSES: [Purpose; 5] =
    [Purpose::Session, Purpose::State, Purpose::Question, Purpose::Task, Purpose::Cursor];
const NOW: i64 = 1_800_000_000;

fn ring(secrets: &[&str]) -> Keyring {
    let secrets: Vec<SecretString> = secrets.iter().map(|text| SecretString::from(*text)).collect();
    Keyring::new(&secrets)
}

fn owner(route: &str, subject: &str) -> Owner {
    let subject = Subject { issuer: "static".into(), subject: subject.into() };
    Owner::new(&route.parse().expect("a name"), &subject)
}

fn session() -> SessionSeal {
    SessionSeal {
        key: [7; 16],
        revision: Revision::V2025_06_18,
        issued: NOW,
        expires: NOW + 60,
        owner: owner("default", "ci"),
    }
}

#[test]
fn keys_can_be_rotated() {
    let (old, both, new) = (ring(&["old"]), ring(&["new", "old"]), ring(&["new"]));
    let sealed = old.seal(Purpose::State, b"x");
    assert_eq!(both.open(Purpose::State, &sealed).as_deref(), Some(b"x".as_slice()));
    assert_eq!(new.open(Purpose::State, &sealed), None);
    let sealed = both.seal(Purpose::State, b"x");
    assert_eq!(new.open(Purpose::State, &sealed).as_deref(), Some(b"x".as_slice()));
    assert_eq!(old.open(Purpose::State, &sealed), None);
}

#[test]
fn a_ring_without_secrets_is_random_and_shows_nothing() {
    let (one, other) = (ring(&[]), Keyring::random());
    let sealed = one.seal(Purpose::Task, b"");
    assert_eq!(one.open(Purpose::Task, &sealed), Some(Vec::new()));
    assert_eq!(other.open(Purpose::Task, &sealed), None);
    assert_ne!(one.seal(Purpose::Task, b""), sealed);
    assert_eq!(format!("{:?}", ring(&["secret", "b"])), "Keyring(2 keys)");
}

#[test]
fn t051_what_was_never_sealed_does_not_open() {
    let ring = ring(&["a"]);
    for text in ["", "w1.", "w1.AAAA", "w2.AAAA", "hello", "w1.\u{e9}", "w1.====", "W1."] {
        assert_eq!(ring.open(Purpose::Session, text), None, "{text}");
    }
    assert_eq!(ring.open(Purpose::Session, &format!("w1.{}", "A".repeat(1 << 20))), None);
}

#[test]
fn a_session_id_comes_back_as_it_was() {
    let ring = ring(&["a"]);
    for revision in Revision::ALL {
        let seal = SessionSeal { revision, ..session() };
        let id = seal.seal(&ring);
        assert!(id.len() <= 512 && id.bytes().all(|c| c.is_ascii_graphic()), "{id}");
        assert_eq!(SessionSeal::open(&ring, &id, seal.owner, NOW), Ok(seal));
    }
}

#[test]
fn t051_t052_a_session_id_is_good_for_its_time_and_owner_only() {
    let ring = ring(&["a"]);
    let id = session().seal(&ring);
    let open = |owner, now| SessionSeal::open(&ring, &id, owner, now).map(|_| ());
    assert_eq!(open(owner("default", "ci"), NOW + 59), Ok(()));
    assert_eq!(open(owner("default", "ci"), NOW + 60), Err(Refused::Expired));
    assert_eq!(open(owner("default", "other"), NOW), Err(Refused::Foreign));
    assert_eq!(open(owner("other", "ci"), NOW), Err(Refused::Foreign));
    assert_ne!(owner("ab", "c"), owner("a", "bc"));
    let cursor = CursorSeal { list: ListKind::Tools, view: 1, position: 2, owner: owner("default", "ci") };
    let outcome = SessionSeal::open(&ring, &cursor.seal(&ring), cursor.owner, NOW);
    assert_eq!(outcome, Err(Refused::Unreadable));
}

#[test]
fn a_cursor_comes_back_as_it_was_and_to_its_owner_only() {
    let ring = ring(&["a"]);
    for list in ListKind::ALL {
        let seal = CursorSeal { list, view: u64::MAX, position: 2_000, owner: owner("default", "ci") };
        let sealed = seal.seal(&ring);
        assert_eq!(CursorSeal::open(&ring, &sealed, seal.owner), Ok(seal));
        assert_eq!(CursorSeal::open(&ring, &sealed, owner("default", "b")), Err(Refused::Foreign));
    }
    assert_eq!(CursorSeal::open(&ring, "5", owner("default", "ci")), Err(Refused::Unreadable));
}

#[test]
fn payloads_of_another_form_or_length_are_not_read() {
    let ring = ring(&["a"]);
    let owner = owner("default", "ci");
    for payload in [&[][..], &[1], &[2; 50], &[1; 49], &[1; 51], &[1, 9]] {
        let sealed = ring.seal(Purpose::Session, payload);
        assert_eq!(SessionSeal::open(&ring, &sealed, owner, 0), Err(Refused::Unreadable));
        let sealed = ring.seal(Purpose::Cursor, payload);
        assert_eq!(CursorSeal::open(&ring, &sealed, owner), Err(Refused::Unreadable));
    }
}

proptest! {
    #[test]
    fn what_was_sealed_opens_for_its_purpose_and_key_only(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let (one, other) = (ring(&["one"]), ring(&["other"]));
        for purpose in PURPOSES {
            let sealed = one.seal(purpose, &payload);
            prop_assert!(sealed.is_ascii());
            for asked in PURPOSES {
                let wanted = (asked == purpose).then(|| payload.clone());
                prop_assert_eq!(one.open(asked, &sealed), wanted);
            }
            prop_assert_eq!(other.open(purpose, &sealed), None);
        }
    }

    #[test]
    fn t051_no_changed_text_opens(at in any::<prop::sample::Index>(), bit in 0_u32..7, payload in "[a-z]{0,40}") {
        let ring = ring(&["a"]);
        let sealed = ring.seal(Purpose::Session, payload.as_bytes());
        let mut bytes = sealed.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let changed = String::from_utf8(bytes).expect("still ASCII");
        prop_assert_eq!(ring.open(Purpose::Session, &changed), None);
        prop_assert_eq!(ring.open(Purpose::Session, sealed.split_at(at).0), None);
        prop_assert_eq!(ring.open(Purpose::Session, &format!("{sealed}A")), None);
    }
}
