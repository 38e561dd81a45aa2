//! Resident memory and processor time of this process.

/// Forgets the peak so far (`/proc/self/clear_refs`, proc(5)).
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak resident memory since then, in MiB.
pub fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// Seconds of processor time that this thread has had, from `/proc/thread-self/schedstat` (proc(5)): what a
/// shared machine does beside it counts less than on the clock. `None` where the kernel does not say.
pub fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// Seconds of processor time that a process has had, with all of its threads and with its children that have ended
/// (`/proc/PID/stat`, proc(5), in hundredths).
pub fn process_seconds(pid: &str) -> Result<f64, crate::Error> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_whitespace().skip(11).take(4).filter_map(|n| n.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / 100.0)
}
