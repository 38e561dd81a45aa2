//! How the kit opens the sink and sees what it stored.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use capstan_conformance::{Applied, Artifact, Async, Faults, Stored, Target, Trouble};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

use crate::sink::{PgSink, Step};

/// A schema of its own in a running server.
pub struct PgTarget {
    runtime: Arc<Runtime>,
    config: Config,
    step: Step,
    faults: Faults,
    /// Looks at what is stored.
    reader: Client,
}

impl PgTarget {
    pub fn fresh(runtime: &Arc<Runtime>, server: &Config, step: Step) -> Result<Self, Trouble> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let schema = format!("kit_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut config = server.clone();
        config.options(format!("-c search_path={schema}"));
        let reader = connect(runtime, &config)?;
        let tables = format!(
            "CREATE SCHEMA {schema};
             CREATE TABLE changes (seq bigserial PRIMARY KEY, op text, tbl text, key text, image {});
             CREATE TABLE position (one bool PRIMARY KEY DEFAULT true CHECK (one), position text NOT NULL);",
            step.image_type()
        );
        runtime.block_on(reader.batch_execute(&tables))?;
        Ok(Self { runtime: runtime.clone(), config, step, faults: Faults::default(), reader })
    }

    fn run(&self, statements: &str) -> Result<(), Trouble> {
        Ok(self.runtime.block_on(self.reader.batch_execute(statements))?)
    }
}

fn connect(runtime: &Runtime, config: &Config) -> Result<Client, Trouble> {
    let (client, connection) = runtime.block_on(config.connect(NoTls))?;
    runtime.spawn(connection);
    Ok(client)
}

impl Target for PgTarget {
    type Sink = Async<PgSink>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        let client = connect(&self.runtime, &self.config)?;
        Ok(Async(PgSink { client, step: self.step, faults: self.faults.clone() }))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        let changes = "SELECT op, tbl, key FROM changes ORDER BY seq";
        let changes = self.runtime.block_on(self.reader.query(changes, &[]))?;
        let position = self.runtime.block_on(self.reader.query_opt("SELECT position FROM position", &[]))?;
        let text = |row: &tokio_postgres::Row, at: usize| row.get::<_, String>(at);
        let applied = changes.iter().map(|row| Applied::named(text(row, 0), text(row, 1), text(row, 2)));
        Ok(Stored { applied: applied.collect(), position: position.map(|row| row.get(0)) })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let select = "SELECT image::text FROM changes WHERE tbl = $1 AND key = $2 ORDER BY seq DESC LIMIT 1";
        let row = self.runtime.block_on(self.reader.query_opt(select, &[&table, &key]))?;
        Ok(row.map(|row| row.get(0)))
    }

    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        let update = "UPDATE position SET position = $1";
        self.runtime.block_on(self.reader.execute(update, &[&position]))?;
        Ok(())
    }

    fn backup(&mut self) -> Result<(), Trouble> {
        self.run(
            "CREATE TABLE changes_aside AS TABLE changes;
             CREATE TABLE position_aside AS TABLE position;",
        )
    }

    fn restore(&mut self) -> Result<(), Trouble> {
        self.run(
            "TRUNCATE changes, position;
             INSERT INTO changes TABLE changes_aside;
             INSERT INTO position TABLE position_aside;",
        )
    }

    fn fault_points(&self) -> &[&str] {
        &["before_commit", "after_commit"]
    }

    fn arm(&mut self, point: &str, count: u64) -> Result<(), Trouble> {
        self.faults.arm(point, count);
        Ok(())
    }

    fn artifact(&self) -> Option<Artifact> {
        Some(capstan_conformance::artifact!())
    }

    fn name(&self) -> String {
        format!("PgSink at step {:?}", self.step)
    }
}
