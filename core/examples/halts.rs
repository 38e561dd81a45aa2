//! Prints the table of halts: `cargo run -q -p capstan-core --example halts > HALTS.md`.

fn main() {
    print!("{}", capstan_core::halt::table());
}
