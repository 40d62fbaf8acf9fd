//! What the operating system says of a process.

/// Processor time of processes so far, in seconds.
pub(crate) fn cpu(processes: &[u32]) -> f64 {
    let nanoseconds: f64 = processes
        .iter()
        .filter_map(|process| std::fs::read_dir(format!("/proc/{process}/task")).ok())
        .flat_map(Iterator::flatten)
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<f64>().ok())
        .sum();
    nanoseconds / 1e9
}
