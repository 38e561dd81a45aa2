//! Batches as a sink sees them, and what is made of what comes back.

use alloc::{boxed::Box, collections::VecDeque, string::String, sync::Arc, vec::Vec};
use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};
use std::sync::Mutex;

mod reading;

use super::*;
use crate::{
    assemble::{Assembler, Setup},
    binlog::FileReader,
    capture::CapturedSet,
    gtid::{Gtid, GtidSet},
    halt::Code,
    time::SourceTime,
};

const FILE: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-53.binlog");

/// The events of a captured file: one schema change, then six transactions.
fn events(stream_above: usize) -> Vec<Event> {
    let mut reader = FileReader::new(1 << 20);
    reader.feed(FILE);
    let mut assembler = Assembler::new(Setup {
        captured: CapturedSet::everything(),
        lower_case_table_names: 0,
        position: Position::new(GtidSet::new(), ""),
        verify: alloc::collections::BTreeMap::new(),
        until: None,
        checksum: true,
        stream_above,
        row_event_max: 1 << 20,
        offline: false,
    });
    let (mut next, mut out) = (Seq(1), Vec::new());
    while let Some((offset, event)) = reader.next_event().unwrap() {
        assembler.file_event(event, "bin.000001", offset).unwrap();
        while let Some(event) = assembler.next_emitted(&mut next) {
            out.push(event);
        }
    }
    out
}

/// Runs a future that never has to wait.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

fn no_feed() -> Box<dyn Feed> {
    panic!("nothing is streamed here")
}

fn start() -> Position {
    Position::new(GtidSet::new(), "").claimed(1)
}

/// A delivery whose claim is durable.
fn claimed(limits: BatchLimits) -> Delivery {
    let mut delivery = Delivery::new(limits, 1);
    assert_eq!(delivery.restart(None), Holds::Expected);
    let _ = delivery.push(Event::Claim { seq: Seq(0), position: Box::new(start()) });
    let mut state = delivery.next_batch(no_feed).unwrap();
    assert_eq!(state.batch().expected().position(), None);
    let ack = read_all(&mut state).unwrap();
    assert_eq!(ack.position(), &start());
    assert_eq!(delivery.accept(state, ack), Ok(Seq(0)));
    delivery
}

fn read_all(state: &mut BatchState) -> Result<Ack, Incomplete> {
    let mut batch = state.batch();
    while let Some(unit) = now(batch.next())? {
        if let Unit::Transaction(mut transaction) = unit {
            while now(transaction.next())?.is_some() {}
        }
    }
    batch.finish()
}

fn push_all(delivery: &mut Delivery, events: Vec<Event>) {
    for event in events {
        assert!(matches!(delivery.push(event), Push::Queued));
    }
}

#[test]
fn every_change_comes_once_in_order_and_the_position_grows_with_it() {
    let mut delivery = claimed(BatchLimits::default());
    push_all(&mut delivery, events(1 << 20));
    let mut seen = Vec::new();
    let mut count = 0;
    while let Some(mut state) = delivery.next_batch(no_feed) {
        assert!(delivery.next_batch(no_feed).is_none(), "one batch at a time");
        let mut batch = state.batch();
        while let Some(unit) = now(batch.next()).unwrap() {
            match unit {
                Unit::Transaction(mut transaction) => {
                    assert!(transaction.gtid().is_some() && !transaction.is_streamed());
                    while let Some(item) = now(transaction.next()).unwrap() {
                        let Item::Change(change) = item else { panic!("a change") };
                        assert_eq!(change.before.is_some(), change.op != Op::Insert);
                        assert_eq!(change.after.is_some(), change.op != Op::Delete);
                        seen.push(change.op.as_str());
                    }
                }
                Unit::SchemaChange(change) => {
                    assert!(change.statement.starts_with("CREATE TABLE"));
                    seen.push("ddl");
                }
                Unit::Progress(_) | Unit::SnapshotRows(_) => panic!("nothing was passed or copied"),
            }
        }
        let ack = batch.finish().unwrap();
        count += 1;
        assert_eq!(ack.position().gtid_set().count(), count);
        delivery.accept(state, ack).unwrap();
    }
    assert_eq!(seen.join(" "), "ddl insert insert update insert update delete update insert update");
}

#[test]
fn what_is_left_unread_cannot_be_acknowledged() {
    let limits = BatchLimits { max_transactions: 100, max_bytes: 1 << 20 };
    let fresh = || {
        let mut delivery = claimed(limits);
        push_all(&mut delivery, events(1 << 20));
        let mut ddl = delivery.next_batch(no_feed).unwrap();
        let ack = read_all(&mut ddl).unwrap();
        delivery.accept(ddl, ack).unwrap();
        delivery.next_batch(no_feed).unwrap()
    };
    let mut nothing = fresh();
    assert_eq!(nothing.batch().finish().unwrap_err(), Incomplete::Unread);

    let mut half = fresh();
    let mut batch = half.batch();
    if let Some(Unit::Transaction(mut transaction)) = now(batch.next()).unwrap() {
        assert!(now(transaction.next()).unwrap().is_some());
    }
    assert_eq!(now(batch.next()).unwrap_err(), Incomplete::Unread);
    assert_eq!(batch.finish().unwrap_err(), Incomplete::Unread);

    let mut rows = fresh();
    let mut batch = rows.batch();
    if let Some(Unit::Transaction(mut transaction)) = now(batch.next()).unwrap() {
        let mut event = now(transaction.rows()).unwrap().unwrap();
        assert_eq!(event.op(), Some(Op::Insert));
        assert!(event.next().unwrap().is_some());
    }
    assert_eq!(batch.finish().unwrap_err(), Incomplete::Unread);

    let mut skipped = fresh();
    let mut batch = skipped.batch();
    while let Some(unit) = now(batch.next()).unwrap() {
        if let Unit::Transaction(transaction) = unit {
            now(transaction.skip()).unwrap();
        }
    }
    assert_eq!(batch.finish().unwrap().position().gtid_set().count(), 7);
}

#[test]
fn an_acknowledgement_is_of_use_for_its_own_attempt_only() {
    let mut delivery = claimed(BatchLimits::default());
    let mut other = claimed(BatchLimits::default());
    push_all(&mut delivery, events(1 << 20));
    push_all(&mut other, events(1 << 20));
    let mut state = delivery.next_batch(no_feed).unwrap();
    let early = read_all(&mut state).unwrap();
    delivery.failed(state);
    assert_eq!(delivery.read_back(Some(&start())), Holds::Expected);
    let mut again = delivery.reapply().unwrap();
    let ack = read_all(&mut again).unwrap();
    assert_eq!(ack.position(), early.position(), "the same batch folds to the same position");
    assert_eq!(delivery.check(&again, &early), Err(AckRefused::OtherAttempt));
    assert_eq!(delivery.accept(again, early), Err(AckRefused::OtherAttempt));
}

fn gtid(n: u64) -> Gtid {
    alloc::format!("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:{n}").parse().unwrap()
}

#[test]
fn what_is_read_back_settles_a_lost_answer() {
    let committed = |from: &Position| {
        let mut position = from.clone();
        let first = events(1 << 20).into_iter().find_map(|event| {
            let Event::TxCommit(commit) = event else { return None };
            Some((commit.gtid.unwrap(), commit.original_commit))
        });
        let (gtid, at) = first.unwrap();
        position.add(&gtid, at);
        position
    };
    let mut more = committed(&start());
    more.add(&gtid(1), SourceTime(1));
    let cases: [(&str, Option<Position>, Holds); 7] = [
        ("nothing happened", Some(start()), Holds::Expected),
        ("it was committed", Some(committed(&start())), Holds::Committed { upto: Seq(1) }),
        ("an older attempt landed", Some(more), Holds::Moved),
        ("another owner", Some(start().claimed(2)), Holds::Foreign(Code::Fenced)),
        (
            "another owner with the same epoch",
            Some(Position::new(GtidSet::new(), "").claimed(2)),
            Holds::Foreign(Code::Fenced),
        ),
        ("an old backup", Some(Position::new(GtidSet::new(), "")), Holds::Foreign(Code::PositionRegressed)),
        ("all is gone", None, Holds::Foreign(Code::PositionRegressed)),
    ];
    for (name, stored, want) in cases {
        let mut delivery = claimed(BatchLimits::default());
        push_all(&mut delivery, events(1 << 20));
        let mut state = delivery.next_batch(no_feed).unwrap();
        let _lost = read_all(&mut state);
        delivery.failed(state);
        assert_eq!(delivery.read_back(stored.as_ref()), want, "{name}");
        assert_eq!(delivery.reapply().is_some(), want == Holds::Expected, "{name}");
    }
}

#[test]
fn a_position_that_lost_transactions_under_our_own_mark_has_regressed() {
    let mut delivery = claimed(BatchLimits::default());
    push_all(&mut delivery, events(1 << 20));
    let mut state = delivery.next_batch(no_feed).unwrap();
    let ack = read_all(&mut state).unwrap();
    delivery.accept(state, ack).unwrap();
    assert_eq!(delivery.restart(Some(&start())), Holds::Foreign(Code::PositionRegressed));
}

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<(VecDeque<Option<Event>>, usize)>>);

impl Feed for Queue {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Event>> {
        match self.0.lock().unwrap().0.pop_front() {
            Some(event) => Poll::Ready(event),
            None => Poll::Pending,
        }
    }

    fn wait_next(&mut self) -> Option<Event> {
        self.0.lock().unwrap().0.pop_front().flatten()
    }

    fn released(&mut self, bytes: usize) {
        self.0.lock().unwrap().1 += bytes;
    }
}

#[test]
fn a_streamed_transaction_is_alone_in_its_batch_and_gives_its_bytes_back() {
    let mut delivery = claimed(BatchLimits { max_transactions: 100, max_bytes: 1 << 20 });
    let queue = Queue::default();
    let mut words: Vec<String> = Vec::new();
    let mut events: VecDeque<Event> = events(0).into();
    loop {
        while let Some(event) = events.pop_front() {
            let commit = matches!(event, Event::TxCommit(_));
            if let Push::Feed(event) = delivery.push(event) {
                queue.0.lock().unwrap().0.push_back(Some(event));
            }
            if commit {
                break;
            }
        }
        let feed = queue.clone();
        let Some(mut state) = delivery.next_batch(move || Box::new(feed)) else { break };
        let streamed = state.is_streamed();
        let ack = read_all(&mut state).unwrap();
        words.push(alloc::format!(
            "{}{}",
            if streamed { "s" } else { "w" },
            ack.position().gtid_set().count()
        ));
        delivery.accept(state, ack).unwrap();
    }
    assert_eq!(words.join(" "), "w1 s2 s3 s4 s5 s6 s7");
    assert!(queue.0.lock().unwrap().1 > 0, "rows were released while the transaction went on");
}

#[test]
fn an_aborted_transaction_says_whether_it_comes_again() {
    for comes_again in [true, false] {
        let mut delivery = claimed(BatchLimits::default());
        let mut all: VecDeque<Event> = events(0).into();
        while !matches!(all.front(), Some(Event::TxBegin(begin)) if begin.streamed) {
            let event = all.pop_front().unwrap();
            let _ = delivery.push(event);
        }
        let mut ddl = delivery.next_batch(no_feed).unwrap();
        let ack = read_all(&mut ddl).unwrap();
        delivery.accept(ddl, ack).unwrap();
        for event in all.drain(..3) {
            let _ = delivery.push(event);
        }
        let queue = Queue::default();
        let feed = queue.clone();
        let mut state = delivery.next_batch(move || Box::new(feed)).unwrap();
        let Push::Feed(abort) = delivery.push(Event::TxAbort { seq: Seq(2), comes_again }) else {
            panic!("it belongs to the open transaction")
        };
        queue.0.lock().unwrap().0.push_back(Some(abort));
        assert_eq!(read_all(&mut state).unwrap_err(), Incomplete::Aborted { comes_again });
        // The reason stays, however often it is asked.
        assert_eq!(now(state.batch().next()).unwrap_err(), Incomplete::Aborted { comes_again });
        assert_eq!(state.batch().finish().unwrap_err(), Incomplete::Aborted { comes_again });
        delivery.failed(state);
        let durable = delivery.durable().cloned();
        assert_eq!(delivery.read_back(durable.as_ref()), Holds::Expected);
        assert!(delivery.reapply().is_none(), "it can only come again over the link");
    }
}

#[test]
fn what_still_comes_of_a_streamed_transaction_that_failed_is_no_unit() {
    let mut delivery = claimed(BatchLimits::default());
    let mut all: VecDeque<Event> = events(0).into();
    while !matches!(all.front(), Some(Event::TxBegin(begin)) if begin.streamed) {
        let event = all.pop_front().unwrap();
        let _ = delivery.push(event);
    }
    let mut ddl = delivery.next_batch(no_feed).unwrap();
    let ack = read_all(&mut ddl).unwrap();
    delivery.accept(ddl, ack).unwrap();
    let begin = all.pop_front().unwrap();
    let _ = delivery.push(begin);
    let state = delivery.next_batch(|| Box::new(Queue::default())).unwrap();
    // The sink gives it back with a transient failure, while the link goes on reading it.
    delivery.failed(state);
    let rows = all.drain(..2).collect::<Vec<_>>();
    assert!(rows.iter().any(|event| matches!(event, Event::Rows(_))));
    push_all(&mut delivery, rows);
    let durable = delivery.durable().cloned();
    assert_eq!(delivery.read_back(durable.as_ref()), Holds::Expected);
    push_all(&mut delivery, alloc::vec![Event::TxAbort { seq: Seq(2), comes_again: true }]);
    assert!(delivery.next_batch(no_feed).is_none(), "its rest was taken for a unit");
    // Nor may what follows overtake it: it comes again over a new link, and after that all is well.
    let progress = || alloc::vec![Event::Progress { seq: Seq(3), advance: Box::default() }];
    push_all(&mut delivery, progress());
    assert!(delivery.next_batch(no_feed).is_none(), "a later unit overtook it");
    assert_eq!(delivery.restart(durable.as_ref()), Holds::Expected);
    assert!(delivery.next_batch(no_feed).is_none(), "a unit of the old link");
    push_all(&mut delivery, progress());
    let mut state = delivery.next_batch(no_feed).unwrap();
    assert!(read_all(&mut state).is_ok());
}

#[test]
fn a_streamed_transaction_that_its_source_took_back_holds_nothing_up() {
    for late in [false, true] {
        let mut delivery = claimed(BatchLimits::default());
        let begin = TxBegin {
            seq: Seq(1),
            gtid: Some(gtid(1)),
            committed_at: None,
            streamed: true,
            schema_change: false,
        };
        let abort = || Event::TxAbort { seq: Seq(1), comes_again: false };
        let _ = delivery.push(Event::TxBegin(begin));
        if !late {
            let _ = delivery.push(abort());
        }
        let state = delivery.next_batch(|| Box::new(Queue::default())).unwrap();
        delivery.failed(state);
        if late {
            let _ = delivery.push(abort());
        }
        push_all(&mut delivery, alloc::vec![Event::Progress { seq: Seq(2), advance: Box::default() }]);
        assert_eq!(delivery.read_back(Some(&start())), Holds::Expected);
        assert!(delivery.next_batch(no_feed).is_some(), "late: {late}");
    }
}

#[test]
fn nothing_overtakes_a_batch_whose_position_has_moved() {
    let mut delivery = claimed(BatchLimits::default());
    push_all(&mut delivery, events(1 << 20));
    let state = delivery.next_batch(no_feed).unwrap();
    delivery.failed(state);
    let mut moved = start();
    moved.add(&gtid(1), SourceTime(1));
    assert_eq!(delivery.read_back(Some(&moved)), Holds::Moved);
    assert!(delivery.next_batch(no_feed).is_none());
}

#[test]
fn a_blocking_sink_reads_the_same() {
    let mut delivery = claimed(BatchLimits { max_transactions: 100, max_bytes: 1 << 20 });
    push_all(&mut delivery, events(1 << 20));
    let mut changes = 0;
    while let Some(mut state) = delivery.next_batch(no_feed) {
        let mut batch = state.blocking();
        while let Some(unit) = batch.next().unwrap() {
            if let BlockingUnit::Transaction(mut transaction) = unit {
                while transaction.next().unwrap().is_some() {
                    changes += 1;
                }
            }
        }
        let ack = batch.finish().unwrap();
        delivery.accept(state, ack).unwrap();
    }
    assert_eq!(changes, 9);
}
