//! How each rule is checked. A rule asserts its own precondition: what did not happen proves nothing.

pub(crate) mod order;
pub(crate) mod owner;
pub(crate) mod position;
pub(crate) mod values;
pub(crate) mod whole;
