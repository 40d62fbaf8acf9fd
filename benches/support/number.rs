//! Numbers of a benchmark.

/// How large something is: what the environment says, or this.
pub(crate) fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A count to reckon with.
pub(crate) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("a small number"))
}
