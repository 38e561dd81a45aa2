//! A run of the simulator whose choices are the fuzzer's bytes.

use sim::{choices::Choices, plan::Wishes, run};

/// Every oracle of the simulator holds.
pub fn check(data: &[u8]) {
    let report = run::run(Choices::of_bytes(data), Wishes::default(), false);
    if report.result.is_err() {
        panic!("{}", run::tell(None, &report, Wishes::default()));
    }
}
