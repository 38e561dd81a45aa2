//! How each rule is checked. A rule asserts its own precondition: what did not happen proves nothing.

pub(crate) mod batch;
pub(crate) mod crash;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod owner;
pub(crate) mod position;
pub(crate) mod schema;
pub(crate) mod snapshot;
pub(crate) mod target;
pub(crate) mod values;
pub(crate) mod whole;

use crate::bench::Script;

/// What a process does that dies of it, by name: a child process is told the name.
pub(crate) fn script(name: &str) -> Option<Script> {
    SCRIPTS.iter().find(|(known, _)| *known == name).map(|(_, script)| *script)
}

const SCRIPTS: &[(&str, Script)] = &[
    ("inside", whole::dies_inside),
    ("at_step", crash::dies_at_step),
    ("after_the_write", crash::dies_after_the_write),
    ("at_a_point", crash::passes_points),
    ("large", memory::reads_large),
    ("writes_on", crash::writes_on),
];
