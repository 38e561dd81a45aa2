//! Places where a test can end the process, as a crash would.
//!
//! Compiled to nothing without the feature `fault-points`. With it, `CAPSTAN_FAULT=NAME:COUNT` ends the
//! process by SIGKILL when the place `NAME` is passed for the `COUNT`th time.

/// Ends the process here, if the environment says so.
macro_rules! fault_point {
    ($name:literal) => {
        #[cfg(feature = "fault-points")]
        $crate::fault::pass($name);
    };
}
pub(crate) use fault_point;

/// One passage of the place `name`.
#[cfg(feature = "fault-points")]
pub(crate) fn pass(name: &str) {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    };

    static WANTED: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
        let wanted = std::env::var("CAPSTAN_FAULT").ok()?;
        let (name, count) = wanted.rsplit_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    static PASSED: AtomicU64 = AtomicU64::new(0);

    let Some((wanted, count)) = &*WANTED else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count {
        // The test counts these, so that it knows its kills from other deaths.
        eprintln!("fault point {name}: SIGKILL");
        let own = std::process::id().to_string();
        let _ = std::process::Command::new("kill").args(["-9", &own]).status();
        // The signal may take a moment; nothing may happen after this place.
        loop {
            std::thread::park();
        }
    }
}
