//! How fast the initial copy reads: an allowance that fills with time.

use std::time::Duration;

use capstan_core::{replica::Read, time::Now};

/// How much may be saved up: a tenth of a second's worth, so that a pause is not followed by a burst.
const SAVED: u64 = 10;

/// Bytes that may be read before time has passed: small rates would else read byte by byte.
const LEAST: u64 = 4 << 10;

/// An allowance of bytes; without a rate there is no bound.
#[derive(Debug)]
pub(super) struct Throttle {
    per_second: Option<u64>,
    allowance: u64,
    /// When it was filled last.
    at: Now,
    /// Reading was held back, so somebody has to come again.
    waiting: bool,
}

impl Throttle {
    pub(super) const fn new(per_second: Option<u64>, now: Now) -> Self {
        Self { per_second, allowance: 0, at: now, waiting: false }
    }

    /// What of `read` may be read now.
    pub(super) fn allowed(&mut self, now: Now, read: Read) -> Read {
        let Some(per_second) = self.per_second else { return read };
        let passed = u64::try_from(now.since(self.at).as_micros()).unwrap_or(u64::MAX);
        let gained = u128::from(passed) * u128::from(per_second) / 1_000_000;
        if gained > 0 {
            let most = (per_second / SAVED).max(LEAST);
            let gained = u64::try_from(gained).unwrap_or(u64::MAX);
            self.allowance = self.allowance.saturating_add(gained).min(most);
            self.at = now;
        }
        let Read::UpTo(most) = read else {
            self.waiting = false;
            return read;
        };
        self.waiting = self.missing(per_second) > 0;
        if self.waiting {
            return Read::Paused;
        }
        Read::UpTo(most.min(usize::try_from(self.allowance).unwrap_or(usize::MAX)))
    }

    /// So much was read.
    pub(super) fn took(&mut self, bytes: usize) {
        self.allowance = self.allowance.saturating_sub(bytes as u64);
    }

    /// When to ask again.
    pub(super) fn due(&self) -> Option<Now> {
        let per_second = self.per_second.filter(|_| self.waiting)?.max(1);
        let micros = self.missing(per_second).saturating_mul(1_000_000).div_ceil(per_second);
        Some(self.at.after(Duration::from_micros(micros)))
    }

    /// What the allowance lacks before anything is read.
    fn missing(&self, per_second: u64) -> u64 {
        LEAST.min(per_second.max(1)).saturating_sub(self.allowance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Read = Read::UpTo(1 << 20);

    #[test]
    fn no_more_is_read_than_the_rate_allows() {
        let (mut throttle, mut read) = (Throttle::new(Some(1_000_000), Now(0)), 0_usize);
        let mut now = Now(0);
        while now < Now(2_000_000) {
            match throttle.allowed(now, ALL) {
                Read::UpTo(bytes) => {
                    throttle.took(bytes);
                    read += bytes;
                }
                Read::Paused => now = throttle.due().expect("it is said when to come again"),
            }
        }
        assert!((1_900_000..=2_100_000).contains(&read), "{read}");
        // What was not used is not saved up.
        let Read::UpTo(bytes) = throttle.allowed(Now(60_000_000), ALL) else { panic!("paused") };
        assert!(bytes <= 100_000, "{bytes}");
    }

    #[test]
    fn without_a_rate_nothing_is_held_back_and_nobody_has_to_come_again() {
        let mut throttle = Throttle::new(None, Now(0));
        assert_eq!((throttle.allowed(Now(0), ALL), throttle.due()), (ALL, None));
        let mut slow = Throttle::new(Some(1), Now(0));
        assert_eq!((slow.allowed(Now(0), Read::Paused), slow.due()), (Read::Paused, None));
        assert_eq!(slow.allowed(Now(0), ALL), Read::Paused);
        assert!(slow.due().is_some());
        assert_eq!(slow.allowed(Now(1_000_000), ALL), Read::UpTo(1));
    }
}
