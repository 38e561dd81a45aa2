//! Where a simulator looks in: rare branches that were taken, and mistakes that can be made on purpose.
//!
//! The state machines have a type parameter that is [`Quiet`] unless said otherwise, and `Quiet` compiles
//! to nothing. It is no feature of the package: features unify, and a mistake would leak into a product.

/// Hears of rare branches, and may ask for a mistake.
pub trait Probe: 'static {
    /// A rare branch was taken.
    #[inline(always)]
    fn mark(_: Mark) {}

    /// Whether this mistake is to be made.
    #[inline(always)]
    #[must_use]
    fn mutant(_: Mutant) -> bool {
        false
    }
}

/// Hears nothing, asks for nothing: what production runs.
#[derive(Clone, Copy, Debug)]
pub enum Quiet {}

impl Probe for Quiet {}

/// An enum whose variants know all of them, their names and what they mean.
macro_rules! told {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }

            /// What it means.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+),)+
                }
            }
        }
    };
}

told! {
    /// A rare branch, in the order of its module.
    Mark {
        /// The machine had slept: counts of patience go on from where they stood.
        Slept,
        /// The sink has as much as it may have, so nothing is read.
        CreditSpent,
        /// The sink has read all there is of a transaction that is still being read: it waits for us.
        SinkWaits,
        /// Dial, login or gates took too long.
        LinkTooSlow,
        /// The link was silent for too long.
        Silent,
        /// A batch was not answered in time.
        Overdue,
        /// The position was not answered in time.
        QuestionOverdue,
        /// The sink failed too often for too long.
        SinkFailedTooLong,
        /// A question was open when the link had to start over.
        QuestionLetBeAnswered,
        /// The position could not be read for now.
        LoadFailed,
        /// The position could not be read for too long.
        LoadFailedTooLong,
        /// After a failure: the batch is there though its answer was lost.
        ReadBackCommitted,
        /// After a failure: an earlier attempt of ours has landed, or the former owner went on.
        ReadBackMoved,
        /// After a failure: another owner has written.
        ReadBackForeign,
        /// A batch goes to the sink again from memory.
        Reapplied,
        /// A transaction that was handed over while it was read failed: it comes again over a new link.
        StreamComesAgain,
        /// A transaction that its source took back is settled without a write.
        AbortPassed,
        /// Our claim is stored though its answer was lost.
        ClaimLanded,
        /// Our claim is not stored: it is made again.
        ClaimLost,
        /// Before a dial: the batch is there though its answer was lost.
        RestartCommitted,
        /// Before a dial: an earlier attempt of ours has landed, or the former owner went on.
        RestartMoved,
        /// Before a dial: another owner has written.
        RestartForeign,
        /// Units that were not durable were forgotten before a dial.
        UnitsForgotten,
        /// The server spoke of another replica of our name, and no other owner was found.
        ConflictStands,
        /// A start position was given although one is stored.
        StartConflict,
        /// A drain was called off, for what it had waited for was not durable after all.
        DrainForgotten,
        /// The sink moved past rows of a transaction that is still being read.
        Released,
        /// The sink took back what its source had aborted.
        SinkAborted,
        /// The sink failed while the position was being asked for anyway.
        FailedWhileAsked,
        /// A drain was asked for with units out.
        DrainWithUnits,
        /// What cannot be delivered had units in front of it.
        HaltBehindUnits,
        /// The wait before a retry is the longest there is.
        BackoffLongest,
        /// Something was said of an earlier dial.
        OldDial,
        /// Trouble lasted for too long.
        TroubleTooLong,
        /// Trouble came while a question was open.
        TroubleWhileAsked,
        /// The link was lost inside a transaction that was being emitted.
        AbortedByLink,
        /// The link was lost inside a transaction of which nothing had been emitted.
        GroupDroppedByLink,
        /// A gate is closed for now.
        GateRetry,
        /// The server lacks the newest transactions for now.
        SourceBehind,
        /// The server lacks transactions for good, or has purged some we need.
        HistoryHalt,
        /// The server lacks what it has itself sent a moment ago.
        NotCountedYet,
        /// The link goes on from a position that was claimed before.
        Resumed,
        /// The claim became durable after its link was lost.
        ClaimedWithoutLink,
        /// The last transaction of a source is asked for once more.
        VerifyAsked,
        /// The last transaction of a source is purged, so its history cannot be verified.
        HistoryUnverified,
        /// The position has gaps.
        PositionHasGaps,
        /// The position has tags.
        PositionHasTags,
        /// The server refused the dump for a lack that the gates had not seen: tried once more.
        RefusedForLack,
        /// The server said that a replica of our name took over.
        ServerIdConflict,
        /// The server ended the stream with an error.
        StreamError,
        /// A large payload is read in pieces.
        InPieces,
        /// The next piece is not there yet.
        PieceAwaited,
        /// Rows that nobody wants were passed by while they were read.
        RowsPassedBy,
        /// Passed transactions are told because it is time.
        ProgressByTime,
        /// Passed transactions are told because they are many, or nothing else will tell them.
        ProgressBeforeTime,
        /// A transaction comes again that is processed already, and is read past.
        Skipped,
        /// One in a payload event.
        SkippedPayload,
        /// The last transaction of a source came again as it was.
        Verified,
        /// It came again as another one.
        HistoryChanged,
        /// The server had ended inside a group.
        ServerEndedInGroup,
        /// Another file began inside a group.
        RotateInGroup,
        /// A heartbeat came inside a group.
        HeartbeatInGroup,
        /// An unknown event said that it may be ignored.
        UnknownIgnored,
        /// A transaction is emitted while it is read from here on.
        StreamingBegins,
        /// A terminator waits for the checksum behind it.
        CommitHeld,
        /// It held.
        HeldCommitReleased,
        /// A transaction ended in ROLLBACK.
        RolledBack,
        /// One that was being emitted did.
        StreamedRolledBack,
        /// Rows were taken back by ROLLBACK TO SAVEPOINT.
        SavepointRolledBack,
        /// A transaction without captured rows was passed.
        Passed,
        /// Passed transactions are told with the next one delivered.
        PassedWithCommit,
        /// A change logged as a statement concerns nothing captured.
        StatementElsewhere,
        /// An XA transaction without captured rows is prepared.
        XaPrepared,
        /// It is resolved.
        XaResolved,
        /// What still came of a transaction the sink gave back was thrown away.
        Discarded,
        /// A batch is full by its bytes.
        FullByBytes,
        /// A batch is full by its units.
        FullByUnits,
        /// A batch ends before a schema change.
        EndsBeforeSchemaChange,
        /// A batch ends before a transaction that is handed over while it is read.
        EndsBeforeStreamed,
        /// A streamed transaction was complete before the sink was free.
        StreamedWhole,
        /// A batch was given up without an answer.
        GivenUp,
        /// A streamed batch failed.
        StreamedFailed,
        /// Nothing may overtake a streamed transaction that failed.
        OvertakingRefused,
        /// An earlier attempt of ours has landed late.
        LateAttempt,
        /// The former owner went on before we had claimed.
        FormerOwnerWentOn,
        /// What is stored is less than it was.
        Regressed,
        /// What is stored is another owner's.
        Fenced,
        /// Events that waited were forgotten before a dial.
        QueueForgotten,
        /// A change of a table that is being copied was judged by its key.
        CopyJudged,
        /// One waits for the chunk that is on its way.
        CopyWaits,
        /// A chunk was given up: its cut is of no use any more.
        CutGivenUp,
        /// A cut lacked what the stream had shown already.
        CutTooOld,
        /// A cut had been read from for long enough.
        CutAged,
        /// The lock of a cut was asked for to write.
        LockToWrite,
        /// It was not granted either, and others are left alone for a while.
        LockPaused,
        /// The lock was not granted for too long.
        LockTooLong,
        /// A view was given up because somebody waits for it.
        ViewWaitedFor,
        /// A statement that reads a chunk failed.
        ChunkFailed,
        /// A range of a table is read beside another.
        ReadAhead,
        /// Where it ends was guessed.
        RangeGuessed,
        /// A table was what it had been before it was locked.
        LookedBefore,
        /// It was described while it was locked.
        DescribedLocked,
        /// A connection of the copy was lost.
        CopyLost,
        /// A connection of the copy came to another server than the stream's.
        CopyElsewhere,
    }
}

told! {
    /// A mistake, each against one promise.
    Mutant {
        /// Two waiting transactions change places.
        SwapUnits,
        /// A transaction is not aborted when its link is lost.
        DropAbort,
        /// A transaction is committed when its link is lost.
        CommitPart,
        /// A transaction goes on where another server process begins.
        KeepGroup,
        /// A transaction that ended in ROLLBACK is delivered.
        DeliverRolledBack,
        /// ROLLBACK TO SAVEPOINT takes nothing back.
        KeepSavepointRows,
        /// A terminator does not wait for the checksum behind it.
        CommitUnchecked,
        /// A transaction that is processed already is delivered again.
        DeliverAgain,
        /// What waits is kept over a restart of the link.
        KeepQueue,
        /// What comes behind a streamed transaction that failed overtakes it.
        Overtake,
        /// A batch that failed is forgotten.
        LoseFailed,
        /// A unit counts as durable once it is emitted.
        AckOnEmit,
        /// The link resumes from memory instead of asking what is stored.
        ResumeFromMemory,
        /// A lost answer is taken for a failure without asking what is stored.
        TrustMemory,
        /// A write that landed late is taken for none.
        IgnoreLateCommit,
        /// A drain does not wait for the sink.
        StopWithUnits,
        /// What stands before something undeliverable is not delivered.
        HaltDropsUnits,
        /// A start from what is stored begins anew.
        ClaimForgets,
        /// A start from what is stored begins at the present.
        StoredIsCurrent,
        /// The earliest start begins at the present.
        EarliestIsCurrent,
        /// A start at the present begins with the earliest.
        CurrentIsEarliest,
        /// An explicit start begins with the earliest.
        AtIsEarliest,
        /// An older checkpoint than expected is refused.
        RefuseOlder,
        /// A new owner takes no epoch and mark of its own.
        ClaimNothing,
        /// Another owner's position is taken for ours.
        IgnoreFence,
        /// A gap is stepped over.
        SkipGap,
        /// Any source will do.
        TrustAnySource,
        /// The source's history is not verified.
        NoVerify,
        /// The dump request asks for one more than is processed to be left out.
        AskPastEnd,
        /// What the server has sent itself is forgotten with the link.
        ForgetSent,
        /// The history is verified where a transaction begins.
        VerifyAtBegin,
        /// What the server refuses for good is tried again.
        RetryRefused,
        /// What speaks another protocol is tried again.
        RetryNonsense,
        /// A packet over the limit is tried again.
        RetryTooLarge,
        /// Any start fits what is stored.
        AnyStart,
        /// That the goal is reached is not seen before the stream begins.
        GoalUnseen,
        /// Silence ends no link.
        WaitForEver,
        /// Checksums are not compared.
        IgnoreChecksum,
        /// Unknown events are stepped over.
        SkipUnknown,
        /// INCIDENT is stepped over.
        PassIncident,
        /// Partial row images are taken.
        PassPartialImage,
        /// Changes logged as statements are stepped over.
        PassStatement,
        /// Transactions without GTID are delivered.
        PassAnonymous,
        /// A prepared XA transaction is taken for a committed one.
        PassXa,
        /// Table maps outlive their statement, group and file.
        KeepTableMaps,
        /// The GTID of a transaction that was rolled back is not counted.
        ForgetRolledBack,
        /// The GTID of a transaction without captured rows is not counted.
        ForgetFiltered,
        /// Passed transactions are never told by themselves.
        NeverTell,
        /// A lost link is the end.
        HaltOnDrop,
        /// A gate that is closed for now is the end.
        HaltOnGateRetry,
        /// Trouble that is over still counts.
        NeverForgive,
        /// A sink that has failed for long is given up before what is stored is read.
        HaltUnread,
        /// Sleep counts as patience.
        SleepCounts,
        /// Silence counts while nothing is read.
        SilenceWhilePaused,
        /// The sink's patience runs out while it waits for us.
        ImpatientWithWaiting,
        /// There is no wait between two dials.
        NoBackoff,
        /// What is said of an earlier dial is believed.
        AnyDial,
        /// There is no limit to what the sink has not taken.
        NoCredit,
        /// Every transaction is kept until it is complete.
        NeverStream,
        /// A view of the initial copy is begun without the lock.
        CutWithoutLock,
        /// What a view is exact for is read when its lock is given up.
        GtidsAfterUnlock,
        /// A chunk does not wait for the transactions of its cut.
        ChunkEarly,
        /// A cut is used although a change was dropped that it lacks.
        UseSpoiledCut,
        /// An update of a key is judged by one of its keys.
        JudgeUpdateAsOne,
        /// How far the copy is does not become part of the position.
        ForgetProgress,
        /// The first chunk of a copy does not say that it is.
        ChunkNotFirst,
        /// Ranges of a table are handed over in another order than that of their keys.
        RangesOutOfOrder,
        /// The range behind one whose end was guessed begins a key too late.
        RangeBegunLate,
        /// The end of the table at an earlier cut bounds the copy.
        KeepEnd,
        /// The copy waits for the stream's server at an address that is another's now.
        StayElsewhere,
        /// A lock to read that is not granted is never asked for as one to write.
        ReadLockOnly,
        /// The statement that waits for a lock is not killed.
        NeverKill,
        /// The pauses between two tries to lock a table do not grow.
        EagerLock,
        /// Nobody is told that the copy waits for a lock.
        WaitUntold,
        /// Prepared transactions beside a lock that is not granted are not looked for.
        XaUnseen,
        /// A source that is busy, or late, is copied from all the same.
        IgnoreLoad,
        /// A server without room for all views is asked for all of them again.
        AllViews,
        /// One that had no room once is read through fewer views for good.
        FewForEver,
        /// A table is taken for what it was before it was locked.
        OldDescription,
        /// A range without rows is a chunk.
        EmptyRange,
        /// A cut outlives the connections that it was made by.
        KeepLost,
    }
}
