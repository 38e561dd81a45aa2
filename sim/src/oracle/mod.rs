//! What must hold, one file each, independent of the core.

pub mod account;
pub mod bounds;
pub mod copy;
pub mod fencing;
pub mod grammar;
pub mod halts;
pub mod monotone;
pub mod patience;
pub mod prefix;
pub mod progress;
pub mod seam;
pub mod start;
pub mod window;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which oracle saw it.
    pub oracle: &'static str,
    /// What it saw.
    pub message: String,
}

impl Failure {
    /// A failure seen by `oracle`.
    pub fn new(oracle: &'static str, message: impl Into<String>) -> Self {
        Self { oracle, message: message.into() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.oracle, self.message)
    }
}
