//! How much memory a process has.

/// Resident memory now (`VmRSS`) or at its highest (`VmHWM`), in KiB.
pub(crate) fn resident(process: u32, what: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
    let line = status.lines().find(|line| line.starts_with(what)).expect("a line");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}

/// Lets the highest mark begin again at what is used now.
pub(crate) fn forget_highest(process: u32) {
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").expect("cleared");
}
