use crate::{args::Demo, failure::Failure};
pub fn run(_: &Demo) -> Result<u8, Failure> {
    Err(Failure::other("to be written", 3))
}
