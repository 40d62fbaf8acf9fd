//! Durations, sizes and counts.

use std::time::Duration;

use crate::config::file::{At, DurationText, Field, SizeText};
use crate::config::problem::{Findings, Place};

/// The longest duration; longer ones are slips, and sums of times stay far from overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A duration that may be zero.
pub(super) fn duration(field: &Field<DurationText>, default: Duration, findings: &Findings) -> Duration {
    field.written().and_then(|at| read_duration(at, findings)).unwrap_or(default)
}

/// A duration above zero.
pub(super) fn positive(field: &Field<DurationText>, default: Duration, findings: &Findings) -> Duration {
    let value = duration(field, default, findings);
    if let Some(place) = field.place().filter(|_| value.is_zero()) {
        findings.error(place, "must be more than 0");
    }
    value
}

/// One duration; `None` when it is none, which is noted.
pub(super) fn read_duration(at: &At<DurationText>, findings: &Findings) -> Option<Duration> {
    let text = &at.value.0;
    let value = parse_duration(text);
    match value {
        Some(value) if value <= LONGEST => Some(value),
        Some(_) => {
            findings.error(&at.place, "longer than a year; accepted is at most 8760h");
            None
        }
        None => {
            let shown = at.show(text);
            let hint =
                format!("{shown} is not a duration; accepted: a whole number and ms, s, m or h, as in 30s");
            findings.error(&at.place, &hint);
            None
        }
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    }
}

/// A size above zero, in bytes.
pub(super) fn size(field: &Field<SizeText>, default: usize, findings: &Findings) -> usize {
    let Some(at) = field.written() else { return default };
    match parse_size(&at.value.0) {
        Some(0) => {
            findings.error(&at.place, "must be more than 0");
            default
        }
        Some(bytes) => bytes,
        None => {
            let shown = at.show(&at.value.0);
            let hint = format!(
                "{shown} is not a size; accepted: a whole number and B, KiB, MiB or GiB, as in 16MiB"
            );
            findings.error(&at.place, &hint);
            default
        }
    }
}

fn parse_size(text: &str) -> Option<usize> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    usize::try_from(number.checked_mul(factor)?).ok()
}

/// A number without sign and what follows it.
fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit))
}

/// A count from 1 on.
pub(super) fn count(field: &Field<u64>, default: usize, findings: &Findings) -> usize {
    let value = number(field, default, findings);
    if let Some(place) = field.place().filter(|_| value == 0) {
        findings.error(place, "must be 1 or more");
    }
    value
}

/// A count from 0 on.
pub(super) fn number(field: &Field<u64>, default: usize, findings: &Findings) -> usize {
    let Some(at) = field.written() else { return default };
    usize::try_from(at.value).unwrap_or_else(|error| {
        findings.error(&at.place, &error.to_string());
        default
    })
}

/// Warns where one time is cut by another.
pub(super) fn warn_if_cut(place: Option<&Place>, cut: bool, text: &str, findings: &Findings) {
    if let Some(place) = place.filter(|_| cut) {
        findings.warning(place, text);
    }
}

/// So many seconds.
pub(super) const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// So many minutes.
pub(super) const fn minutes(number: u64) -> Duration {
    Duration::from_secs(60 * number)
}

/// So many times 1024 bytes.
pub(super) const fn kib(number: usize) -> usize {
    number << 10
}

/// So many times 1024 KiB.
pub(super) const fn mib(number: usize) -> usize {
    number << 20
}

/// The SHA-256 of a token: `sha256:` and 64 lower-case hexadecimal digits.
pub(super) fn token_hash(at: &At<String>, findings: &Findings) -> Option<[u8; 32]> {
    let hash = at.value.strip_prefix("sha256:").and_then(unhex);
    if hash.is_none() {
        findings.error(&at.place, "not a hash; accepted: sha256: and 64 lower-case hexadecimal digits");
    }
    hash
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().map(digit).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    if rest.is_empty() { bytes.try_into().ok() } else { None }
}
