//! One test for each rule, of the reference sink: what a user's own test target looks like.

use capstan_conformance::{
    Blocking, Stored, Target, Trouble,
    reference::{Disk, Memory},
};

struct Mine(Disk);

impl Target for Mine {
    type Sink = Blocking<Memory>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Memory::open(&self.0)))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(self.0.stored())
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        Ok(self.0.row(table, key))
    }

    fn declines(&self) -> &[(&str, &str)] {
        &[
            ("dies_at_fault_points", "it has none"),
            ("newer_format_is_refused", "nobody writes positions here but the sink"),
            ("backup_goes_on", "there is nothing to back up"),
        ]
    }
}

capstan_conformance::main!(|| Ok(Mine(Disk::default())));
