//! A ledger in PostgreSQL: from a first attempt to exactly once, in four steps.

use capstan_conformance::Faults;
use capstan_core::{
    deliver::{Ack, Batch, Change, FailureClass, Item, Position, Sink, SinkError, SinkResultExt as _, Unit},
    text::{TextOptions, write_image},
};
use tokio_postgres::{Client, Error, GenericClient};

/// How far the sink has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Each change is written as it comes, then the position.
    EachChange,
    /// Changes and position are one transaction.
    OneTransaction,
    /// The transaction is conditional on what is stored.
    Conditional,
    /// Images are text and not `jsonb`.
    Text,
}

impl Step {
    pub const ALL: [Self; 4] = [Self::EachChange, Self::OneTransaction, Self::Conditional, Self::Text];

    /// The type of the column that holds images.
    pub fn image_type(self) -> &'static str {
        if self >= Self::Text { "text" } else { "jsonb" }
    }
}

/// The sink.
pub struct PgSink {
    pub client: Client,
    pub step: Step,
    pub faults: Faults,
}

impl Sink for PgSink {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        stored(&self.client).await
    }

    async fn apply(&mut self, batch: Batch<'_>) -> Result<Ack, SinkError> {
        if self.step == Step::EachChange {
            let ack = write(&self.client, self.step, batch).await?;
            self.faults.pass("before_commit");
            self.faults.pass("after_commit");
            return Ok(ack);
        }
        let transaction = self.client.transaction().await.map_err(|why| failed(why, "begin"))?;
        if self.step >= Step::Conditional {
            // Also where nothing is stored yet, so that there is no row to lock.
            let lock = "LOCK TABLE position IN EXCLUSIVE MODE";
            transaction.batch_execute(lock).await.map_err(|why| failed(why, "lock"))?;
            batch.expected().check(stored(&transaction).await?.as_ref())?;
        }
        let ack = write(&transaction, self.step, batch).await?;
        self.faults.pass("before_commit");
        transaction.commit().await.unknown("commit")?;
        self.faults.pass("after_commit");
        Ok(ack)
    }
}

/// What is stored.
async fn stored(client: &impl GenericClient) -> Result<Option<Position>, SinkError> {
    let row = client.query_opt("SELECT position FROM position", &[]).await;
    let row = row.map_err(|why| failed(why, "position"))?;
    Ok(row.map(|row| Position::decode(row.get(0))).transpose()?)
}

/// Writes the changes of a batch and its position.
async fn write(client: &impl GenericClient, step: Step, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
    let insert = format!(
        "INSERT INTO changes (op, tbl, key, image) VALUES ($1, $2, $3, CAST($4::text AS {}))",
        step.image_type()
    );
    let insert = client.prepare(&insert).await.map_err(|why| failed(why, "prepare"))?;
    while let Some(unit) = batch.next().await? {
        match unit {
            Unit::Transaction(mut transaction) => {
                while let Some(item) = transaction.next().await? {
                    let [op, table, key, image] = match item {
                        Item::Change(change) => row(&change)?,
                        Item::SchemaChange(_) => continue,
                    };
                    let written = client.execute(&insert, &[&op, &table, &key, &image]).await;
                    written.map_err(|why| failed(why, "insert"))?;
                }
            }
            Unit::SnapshotRows(mut rows) => {
                let begins = rows.chunk().filter(|chunk| chunk.number == 0);
                if let Some(chunk) = begins {
                    // What is above this row of that table is void.
                    let table = format!("{}.{}", chunk.table.schema(), chunk.table.table());
                    let written = client.execute(&insert, &[&"begins", &table, &"", &"null"]).await;
                    written.map_err(|why| failed(why, "insert"))?;
                }
                while let Some([op, table, key, image]) =
                    rows.next()?.map(|change| row(&change)).transpose()?
                {
                    let written = client.execute(&insert, &[&op, &table, &key, &image]).await;
                    written.map_err(|why| failed(why, "insert"))?;
                }
            }
            Unit::SchemaChange(_) | Unit::Progress(_) => {}
        }
    }
    let ack = batch.finish()?;
    let upsert = "INSERT INTO position (position) VALUES ($1)
                  ON CONFLICT (one) DO UPDATE SET position = excluded.position";
    client.execute(upsert, &[&ack.position().encode()]).await.map_err(|why| failed(why, "write"))?;
    Ok(ack)
}

/// Operation, table, key and image of a change.
fn row(change: &Change<'_>) -> Result<[String; 4], SinkError> {
    let (mut key, mut image) = (String::new(), String::new());
    if let Some(row) = change.after.or(change.before) {
        write_image(&mut image, row.values(), TextOptions::default())?;
        if let Some(Ok((_, value))) = row.values().next()
            && let capstan_core::value::Value::Int(id) = value
        {
            key = id.to_string();
        }
    }
    let table = format!("{}.{}", change.table.schema(), change.table.table());
    Ok([change.op.as_str().to_owned(), table, key, image])
}

/// What the server refuses it will refuse the next time too; what the connection does may pass.
fn failed(why: Error, step: &'static str) -> SinkError {
    let class = if why.as_db_error().is_some() { FailureClass::Permanent } else { FailureClass::Transient };
    SinkError::new(class, step, None).caused_by(why)
}
