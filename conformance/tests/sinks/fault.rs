//! What can be wrong with a sink.

/// What is wrong with a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Nothing, but every third call finds it busy, before it has read or when it would write.
    IsBusy,
    /// Nothing, but it loses the answer of every other commit.
    LosesAnswers,

    /// Writes the changes of a transaction newest first.
    ReversesChanges,
    /// Writes the transactions of a batch newest first.
    ReversesTransactions,
    /// Has room for six transactions of a batch.
    HoldsSix,
    /// Takes the first thousand changes of a transaction and skips the rest.
    SkipsTheRest,
    /// Writes the rows of a large transaction that is handed over while it is read by the thousand.
    LosesTheRemainder,
    /// Skips transactions that are handed over while they are read.
    SkipsStreamed,
    /// Commits what it has when the source rolls a transaction back.
    KeepsRolledBack,
    /// Stores a position of its own making when the source rolls a transaction back.
    PassesRolledBack,
    /// Reports an aborted transaction as a permanent failure.
    FailsOnAbort,
    /// Keeps what it has read of a transaction whose link dropped for when it goes on.
    KeepsForLater,
    /// Writes row by row, and tidies up where it is told that the transaction is aborted.
    WritesThrough,
    /// The same for every fifty rows.
    WritesParts,
    /// Writes each transaction of a batch at its end, and the position at the batch's.
    WritesEachTransaction,
    /// Writes each batch and reports that it does not know whether it did.
    NeverAcknowledges,
    /// Writes two rows with the next call, or when it is closed.
    WritesBehind,
    /// Writes the last batch once more at its start, if nobody has asked for the position since.
    ReplaysItsJournal,
    /// Takes back the last transaction of a batch at its start, if nobody has asked for the position since.
    ForgetsTheLast,
    /// Writes rows and position one after the other.
    TwoWrites,

    /// Stores text as ASCII.
    AsciiPosition,
    /// Holds the position in memory and writes the first one only.
    PositionInMemory,
    /// Stores the largest number per source.
    Ordinal,
    /// Stores the numbers of one source.
    OneSource,
    /// Stores the first 65,535 bytes.
    CutsPosition,
    /// Stores the epoch as a floating-point number.
    EpochsAsDoubles,
    /// Stores the position without what it says of initial copies.
    DropsCopies,
    /// Stores GTIDs without their tags.
    DropsTags,
    /// Writes nothing for a batch without changes.
    DropsProgress,
    /// Writes nothing for the second batch without changes in a row.
    ThrottlesProgress,
    /// Takes a position that it cannot read for none.
    UnreadableIsNothing,
    /// Keeps the position beside the storage, where no backup reaches it.
    PositionElsewhere,

    /// Writes an owner's claim with its first data.
    LazyClaim,
    /// Writes every claim.
    ClaimsAlways,
    /// Writes what expects nothing over anything.
    NothingMeansAnything,
    /// Writes anything where nothing is.
    EmptyTakesAll,
    /// Looks at the set and not at whose it is.
    IgnoresOwner,
    /// Looks at the epoch and not at the owner's mark.
    IgnoresMark,
    /// Compares, and writes a moment later.
    ChecksThenWrites,
    /// Says stale where it is fenced.
    FencedIsStale,
    /// Compares with the position that it remembers and not with the stored one.
    TrustsItsMemory,
    /// Refuses what is stored already, and nothing else.
    OverwritesStale,
    /// Writes once more what is stored already with more behind it.
    OverwritesOlder,
    /// Writes whatever adds to what is stored or equals it.
    AcceptsSupersets,

    /// Writes the columns that a table had when it was first seen.
    CachesColumns,
    /// Writes nothing for the creation of a table.
    ForgetsCreation,
    /// Leaves the rows of a table that is emptied.
    ForgetsTruncate,
    /// Leaves the rows of a table that is gone.
    ForgetsDrop,
    /// Leaves the rows of all tables of a `DROP TABLE` but the first.
    DropsOneTable,
    /// Leaves the rows of a database that is dropped.
    KeepsDatabase,
    /// Leaves the rows of a table that takes another name under the old one.
    ForgetsRename,
    /// Knows no renames but those of `RENAME TABLE`.
    ForgetsAlterRename,
    /// Renames the tables of a statement one after the other.
    RenamesInTurn,
    /// Leaves the rows of a table that is renamed to where it is not captured.
    KeepsWhatLeft,
    /// Empties a table that a `CREATE TABLE IF NOT EXISTS` finds there.
    EmptiesExisting,
    /// Knows keys as floating-point numbers.
    KeysAsDoubles,
    /// Finds an updated row under its old key and leaves it there.
    KeysByBefore,
    /// Writes a row under its new key and leaves the one under the old key.
    LeavesTheOldKey,
    /// Knows tables by their name alone.
    IgnoresSchema,
    /// Knows tables by their name in lower case.
    FoldsCase,
    /// Reads a transaction up to a schema change in it.
    StopsAtSchemaChange,
    /// Writes the row as it was before an update.
    StoresBefore,
    /// Leaves what a column had where an update sets it to NULL.
    KeepsOldForNull,
    /// Reads no further in a transaction that changes a row which is not there.
    StopsAtAbsent,
    /// Takes two equal rows for one.
    DropsDuplicates,
    /// Updates every row that equals the one that was updated.
    UpdatesAllAlike,

    /// Takes the first chunk of a copy for all of it.
    FirstChunkOnly,
    /// Copies the table whose chunk comes first, and no other.
    CopiesOneTable,
    /// Writes nothing for a chunk without rows.
    IgnoresEmptyChunks,
    /// Leaves what a table has when its copy begins.
    KeepsBeforeCopy,
    /// Keeps changes, and does not say where a copy begins.
    HidesBeginnings,
    /// Keeps the rows of a copy until its last chunk.
    ChunksAtTheEnd,
    /// Compares GTID sets and not positions.
    ComparesSets,

    /// Reads BIGINT UNSIGNED as signed.
    Signed,
    /// Reads NULL as the empty string.
    NullIsEmpty,
    /// Stores the first 65,535 bytes of a text.
    CutsText,
    /// Puts a question mark where bytes are no text.
    LosesBytes,
    /// Reads DECIMAL as a floating-point number.
    FloatsDecimals,
    /// Reads zero dates as NULL.
    ZeroDateIsNull,
    /// Reads YEAR 0 as 1900.
    YearsAfter1900,
    /// Strips the zeros at the end of BINARY.
    StripsZeros,
    /// Reads the numbers of a document as floating-point numbers.
    FloatsDocuments,
}
