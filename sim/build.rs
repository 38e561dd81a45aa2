//! Tells the tests how they are compiled: what takes a second in the simulator's profile takes a minute
//! without optimisation.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=OPT_LEVEL={}", std::env::var("OPT_LEVEL").unwrap_or_default());
}
