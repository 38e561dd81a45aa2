//! What a sink can ask of what it reads, and where batches end.

use super::*;
use crate::binlog::rows::{RowImage, RowsEvent, VisitRows};
use crate::value::{Value, ValueError, ValueFault, Visit};

/// The transactions of the file as the core begins them.
fn begins(streamed: bool) -> Vec<TxBegin> {
    let all = events(if streamed { 0 } else { 1 << 20 });
    let begins = all.into_iter().filter_map(|event| {
        let Event::TxBegin(begin) = event else { return None };
        (!begin.schema_change).then_some(begin)
    });
    begins.collect()
}

/// A delivery in front of the transactions; what is streamed comes from the queue.
fn behind_the_schema_change(stream_above: usize, limits: BatchLimits) -> (Delivery, VecDeque<Event>) {
    let mut delivery = claimed(limits);
    let mut all: VecDeque<Event> = events(stream_above).into();
    loop {
        let event = all.pop_front().unwrap();
        let commit = matches!(event, Event::TxCommit(_));
        let _ = delivery.push(event);
        if commit {
            break;
        }
    }
    let mut ddl = delivery.next_batch(no_feed).unwrap();
    let ack = read_all(&mut ddl).unwrap();
    delivery.accept(ddl, ack).unwrap();
    (delivery, all)
}

/// A streamed transaction at the sink, its items waiting in the feed.
fn streamed() -> BatchState {
    let (mut delivery, mut all) = behind_the_schema_change(0, BatchLimits::default());
    let _ = delivery.push(all.pop_front().unwrap());
    let queue = Queue::default();
    let feed = queue.clone();
    let state = delivery.next_batch(move || Box::new(feed)).unwrap();
    for event in all {
        let end = matches!(event, Event::TxCommit(_));
        let Push::Feed(event) = delivery.push(event) else { panic!("it belongs to the open transaction") };
        queue.0.lock().unwrap().0.push_back(Some(event));
        if end {
            break;
        }
    }
    state
}

#[test]
fn a_transaction_says_the_same_of_itself_however_it_is_read_and_however_far() {
    for is_streamed in [false, true] {
        let want = begins(is_streamed).remove(0);
        assert!(want.committed_at.is_some_and(|at| at > SourceTime(0)) && want.streamed == is_streamed);
        let fresh = || {
            if is_streamed {
                return streamed();
            }
            let (mut delivery, all) = behind_the_schema_change(1 << 20, BatchLimits::default());
            push_all(&mut delivery, all.into());
            delivery.next_batch(no_feed).unwrap()
        };
        let mut state = fresh();
        assert_eq!(state.is_streamed(), is_streamed);
        let mut batch = state.batch();
        let Some(Unit::Transaction(mut read)) = now(batch.next()).unwrap() else { panic!("a transaction") };
        let mut items = 0;
        loop {
            assert_eq!((read.gtid(), read.committed_at()), (want.gtid.as_ref(), want.committed_at));
            assert_eq!(read.is_streamed(), is_streamed);
            if now(read.next()).unwrap().is_none() {
                break;
            }
            items += 1;
        }
        let mut state = fresh();
        let mut batch = state.blocking();
        let Some(BlockingUnit::Transaction(mut read)) = batch.next().unwrap() else {
            panic!("a transaction")
        };
        loop {
            assert_eq!((read.gtid(), read.committed_at()), (want.gtid.as_ref(), want.committed_at));
            assert_eq!(read.is_streamed(), is_streamed);
            if read.next().unwrap().is_none() {
                break;
            }
            items -= 1;
        }
        assert_eq!(items, 0, "as many of them");
        assert!(batch.next().unwrap().is_none());
        assert!(batch.finish().is_ok());
    }
}

#[test]
fn what_is_skipped_counts_as_read_and_what_is_not_does_not() {
    let mut state = streamed();
    let mut batch = state.blocking();
    let Some(BlockingUnit::Transaction(read)) = batch.next().unwrap() else { panic!("a transaction") };
    read.skip().unwrap();
    assert!(batch.finish().is_ok());

    let mut state = streamed();
    let mut batch = state.blocking();
    assert!(batch.next().unwrap().is_some());
    assert_eq!(batch.next().unwrap_err(), Incomplete::Unread);
    assert_eq!(batch.finish().unwrap_err(), Incomplete::Unread, "once refused, always");

    let mut state = streamed();
    let mut batch = state.batch();
    let Some(Unit::Transaction(mut read)) = now(batch.next()).unwrap() else { panic!("a transaction") };
    let mut tables = Vec::new();
    while let Some(rows) = now(read.rows()).unwrap() {
        let table = rows.table().unwrap();
        tables.push(alloc::format!("{}.{}", table.schema(), table.table()));
        rows.skip();
    }
    assert!(!tables.is_empty() && tables.iter().all(|table| table == &tables[0]), "{tables:?}");
    assert!(batch.finish().is_ok());
}

/// A chunk is read when its last row was, whether anybody asked for one behind it or not.
#[test]
fn a_chunk_left_half_read_cannot_be_acknowledged() {
    let rows = events(0).into_iter().find_map(|event| event.rows().cloned()).expect("rows");
    let table = Arc::clone(rows.table());
    let count = rows.changes();
    for read in 0..=count {
        let mut delivery = claimed(BatchLimits::default());
        let chunk = SnapshotChunk {
            seq: Seq(1),
            table: Arc::clone(&table),
            rows: Some(rows.clone()),
            number: 0,
            gtid_set: GtidSet::new(),
            last: true,
            advance: Box::default(),
        };
        let _ = delivery.push(Event::SnapshotRows(Box::new(chunk)));
        let mut state = delivery.next_batch(no_feed).unwrap();
        let mut batch = state.batch();
        let Some(Unit::SnapshotRows(mut chunk)) = now(batch.next()).unwrap() else { panic!("a chunk") };
        for _ in 0..read {
            assert!(chunk.next().unwrap().is_some());
        }
        let next = now(batch.next());
        if read == count {
            assert!(next.unwrap().is_none());
            assert!(batch.finish().is_ok());
        } else {
            assert_eq!(next.unwrap_err(), Incomplete::Unread, "{read} of {count}");
            assert_eq!(batch.finish().unwrap_err(), Incomplete::Unread);
        }
    }
}

#[test]
fn an_acknowledgement_of_another_pipeline_is_refused_and_takes_nothing_away() {
    let one = || {
        let (mut delivery, all) = behind_the_schema_change(1 << 20, BatchLimits::default());
        push_all(&mut delivery, all.into());
        delivery
    };
    let (mut ours, mut theirs) = (one(), one());
    // The same numbers in another pipeline, which `claimed` gives the same name: one attempt further on.
    let failed = theirs.next_batch(no_feed).unwrap();
    theirs.failed(failed);
    let durable = theirs.durable().cloned();
    assert_eq!(theirs.read_back(durable.as_ref()), Holds::Expected);
    let mut foreign = theirs.reapply().unwrap();
    let foreign_ack = read_all(&mut foreign).unwrap();

    assert!(!ours.is_out());
    let mut state = ours.next_batch(no_feed).unwrap();
    assert!(ours.is_out());
    let ack = read_all(&mut state).unwrap();
    assert_eq!(ours.check(&state, &ack), Ok(()));
    for (state, ack) in [(&foreign, &foreign_ack), (&foreign, &ack), (&state, &foreign_ack)] {
        assert_eq!(ours.check(state, ack), Err(AckRefused::OtherAttempt));
    }
    assert_eq!(ours.accept(foreign, foreign_ack), Err(AckRefused::OtherAttempt));
    assert!(ours.is_out(), "a refused one settles nothing");
    assert_eq!(ours.accept(state, ack), Ok(Seq(2)));
    assert!(!ours.is_out());
}

#[test]
fn a_batch_ends_where_its_limits_are_and_before_what_goes_alone() {
    let units = |limits: BatchLimits, change: fn(&mut Vec<Event>)| {
        let (mut delivery, all) = behind_the_schema_change(1 << 20, limits);
        let mut all: Vec<Event> = all.into();
        change(&mut all);
        push_all(&mut delivery, all);
        let mut sizes = Vec::new();
        while let Some(mut state) = delivery.next_batch(|| Box::new(Queue::default())) {
            if state.is_streamed() {
                sizes.push(-1);
                break;
            }
            let ack = read_all(&mut state).unwrap();
            let before = delivery.durable().unwrap().gtid_set().count();
            sizes.push((ack.position().gtid_set().count() - before).try_into().unwrap());
            delivery.accept(state, ack).unwrap();
        }
        sizes
    };
    let limits = |max_transactions, max_bytes| BatchLimits { max_transactions, max_bytes };
    let as_it_is = |_: &mut Vec<Event>| {};
    assert_eq!(units(limits(100, 1 << 20), as_it_is), [6_i64]);
    assert_eq!(units(limits(4, 1 << 20), as_it_is), [4_i64, 2]);
    assert_eq!(units(limits(0, 1 << 20), as_it_is), [1_i64; 6], "one goes in any case");
    assert_eq!(units(limits(100, 0), as_it_is), [1_i64; 6], "one goes however large it is");
    // Exactly what the first two take is not too much.
    let rows = |event: &Event| if let Event::Rows(rows) = event { rows.retained() } else { 0 };
    let (_, all) = behind_the_schema_change(1 << 20, limits(1, 0));
    let second =
        all.iter().enumerate().filter(|(_, event)| matches!(event, Event::TxCommit(_))).nth(1).unwrap().0;
    let two = all.iter().take(second).map(rows).sum();
    assert_eq!(units(limits(100, two), as_it_is)[0], 2);
    assert_eq!(units(limits(100, two - 1), as_it_is)[0], 1);
    // What is read while it is streamed, or changes a schema, has a batch of its own.
    assert_eq!(units(limits(100, 1 << 20), |all| third_begin(all).streamed = true), [2_i64, -1]);
    // The file's own schema change once more, behind two transactions; its GTID adds nothing.
    let with_schema_change = |all: &mut Vec<Event>| {
        let commit = |event: &Event| matches!(event, Event::TxCommit(_));
        let second = all.iter().enumerate().filter(|(_, event)| commit(event)).nth(1).unwrap().0;
        let mut file = events(1 << 20);
        file.truncate(file.iter().position(commit).unwrap() + 1);
        all.splice(second + 1..second + 1, file);
    };
    assert_eq!(units(limits(100, 1 << 20), with_schema_change), [2_i64, 0, 4]);
}

fn third_begin(all: &mut [Event]) -> &mut TxBegin {
    let mut begins = all.iter_mut().filter_map(|event| {
        let Event::TxBegin(begin) = event else { return None };
        Some(begin)
    });
    begins.nth(2).unwrap()
}

#[test]
fn what_still_comes_of_a_streamed_transaction_that_was_given_up_is_no_unit() {
    let (mut delivery, mut all) = behind_the_schema_change(0, BatchLimits::default());
    let _ = delivery.push(all.pop_front().unwrap());
    let _ = delivery.push(all.pop_front().unwrap());
    drop(delivery.next_batch(|| Box::new(Queue::default())).unwrap());
    delivery.dropped();
    let rest: Vec<Event> = all.drain(..2).collect();
    push_all(&mut delivery, rest);
    let durable = delivery.durable().cloned();
    assert_eq!(delivery.restart(durable.as_ref()), Holds::Expected);
    assert!(delivery.next_batch(no_feed).is_none(), "its rest was taken for a unit");
}

#[test]
fn a_failure_says_its_code_and_where() {
    let of = |error: SinkError| (error.class(), error.code(), error.step());
    assert_eq!(of(SinkError::fenced()), (FailureClass::Fenced, Code::Fenced, "fence"));
    assert_eq!(of(SinkError::stale()), (FailureClass::Stale, Code::SinkFailed, "fence"));
    assert_eq!(
        of(SinkError::halt(Code::TargetFull, "write")),
        (FailureClass::Permanent, Code::TargetFull, "write")
    );
    assert_eq!(SinkError::stale().or_code(Code::TargetFull).code(), Code::TargetFull);
    assert_eq!(SinkError::fenced().or_code(Code::TargetFull).code(), Code::Fenced, "its own stays");
    let malformed = SinkError::from(ValueError { column: 0, reason: ValueFault::Length });
    assert_eq!(malformed.code(), Code::ValueMalformed);
    assert!(malformed.into_inner().is_some());
    let place = SinkError::stale().of_table("shop", "orders").failure().place.unwrap();
    assert_eq!(place.table, Some(("shop".into(), "orders".into())));
}

#[test]
fn a_position_says_what_it_was_made_of() {
    let mut position = Position::new(GtidSet::new(), "shop.*");
    position.add(&gtid(3), SourceTime(7));
    assert_eq!(position.captured(), "shop.*");
    let last: Vec<_> = position.last().values().map(|last| (last.gtid, last.original_commit)).collect();
    assert_eq!(last, [(gtid(3), SourceTime(7))]);
    let (one, other) = (XaDigest::new(1, b"one", b""), XaDigest::new(1, b"other", b""));
    let mut step = Advance::default();
    step.prepare(one);
    step.prepare(other);
    step.resolve(one);
    assert_eq!(step.prepared, [other]);
    position.advance(&step);
    assert!(position.is_prepared(&other) && !position.is_prepared(&one));
    // Bytes of a fingerprint are two hex digits each, and sixteen.
    let text = without_sum(&position);
    assert_eq!(Position::decode(&text), Ok(position.clone()), "a person may write one");
    let digest: String = other.0.iter().map(|byte| alloc::format!("{byte:02x}")).collect();
    for wrong in
        [&digest[..30], &alloc::format!("{digest}00"), &digest.replace('a', "ä"), &digest.replace('0', "x")]
    {
        if wrong != digest {
            assert_eq!(
                Position::decode(&text.replace(&digest, wrong)),
                Err(PositionError::Malformed),
                "{wrong}"
            );
        }
    }
}

fn without_sum(position: &Position) -> alloc::string::String {
    let text = position.encode();
    alloc::format!("{}}}", text.split(",\"crc32\"").next().unwrap())
}

#[test]
fn a_position_with_a_changed_byte_is_none() {
    let mut position = Position::new("01010101-0101-0101-0101-010101010101:1-12".parse().unwrap(), "shop.*");
    position.add(&gtid(3), SourceTime(7));
    let text = position.encode();
    assert_eq!(Position::decode(&text), Ok(position.clone()));
    let believed = |text: &str| Position::decode(text).is_ok();
    assert!(believed(&without_sum(&position).replace("1-12", "1-52")), "or nobody would notice");
    for at in 0..text.len() {
        for byte in [b'0', b'5', b'a', b' ', b'"'] {
            let mut bytes = text.clone().into_bytes();
            if bytes[at] != byte {
                bytes[at] = byte;
                assert!(!believed(core::str::from_utf8(&bytes).unwrap()), "byte {at} as {byte:x}");
            }
        }
    }
    // Set out by somebody else it says the same, and is held to the same sum.
    let (rest, sum) = text.strip_suffix('}').unwrap().rsplit_once(",\"crc32\":").unwrap();
    let moved = alloc::format!("{{\"crc32\":{sum},{}}}", rest.strip_prefix('{').unwrap());
    for text in [text.replace(",\"", ",\n  \""), text.replace("\":", "\": "), moved] {
        assert_eq!(Position::decode(&text), Ok(position.clone()), "{text}");
        assert!(!believed(&text.replace("1-12", "1-52")), "{text}");
    }
    let other = alloc::format!("{rest},\"crc32\":{}}}", crc32fast::hash(b""));
    assert!(!believed(&other));
}

/// `CREATE TABLE … SELECT`: the schema change is an item of its group, and only alone it is a unit.
#[test]
fn a_schema_change_inside_a_group_is_one_of_its_items_and_parts() {
    for whole in [false, true] {
        let mut delivery = claimed(BatchLimits::default());
        for mut event in events(1 << 20) {
            if let Event::TxBegin(begin) = &mut event {
                begin.schema_change = false;
            }
            let _ = delivery.push(event);
        }
        let mut state = delivery.next_batch(no_feed).unwrap();
        let mut batch = state.batch();
        let Some(Unit::Transaction(mut read)) = now(batch.next()).unwrap() else { panic!("a transaction") };
        let statement = if whole {
            let Some(Part::SchemaChange(change)) = now(read.next_part()).unwrap() else { panic!("no rows") };
            &change.statement
        } else {
            let Some(Item::SchemaChange(change)) = now(read.next()).unwrap() else { panic!("no row") };
            &change.statement
        };
        assert!(statement.starts_with("CREATE TABLE"));
        assert!(now(read.next_part()).unwrap().is_none());
        assert!(batch.finish().is_ok());
    }
}

#[test]
fn states_of_xa_transactions_have_the_names_that_are_documented() {
    let states = [XaState::Prepared, XaState::Committed, XaState::RolledBack];
    assert_eq!(states.map(XaState::as_str), ["prepared", "committed", "rolled_back"]);
}

/// Images and values of rows; one that fails takes no value.
#[derive(Default)]
struct Count {
    images: usize,
    values: usize,
    fails: bool,
}

impl VisitRows<'_> for Count {
    fn end(&mut self, _: RowImage) {
        self.images += 1;
    }
}

impl<'a> Visit<'a> for Count {
    fn value(&mut self, _: usize, _: Value<'a>) -> Result<(), ValueFault> {
        self.values += 1;
        if self.fails { Err(ValueFault::Length) } else { Ok(()) }
    }
}

#[test]
fn rows_visited_at_once_are_read_and_are_those_one_by_one() {
    let mut state = streamed();
    let mut batch = state.batch();
    let Some(Unit::Transaction(mut read)) = now(batch.next()).unwrap() else { panic!("a transaction") };
    let mut one_by_one = Count::default();
    while let Some(mut rows) = now(read.rows()).unwrap() {
        while let Some(change) = rows.next().unwrap() {
            for row in change.before.into_iter().chain(change.after) {
                row.visit(&mut one_by_one).unwrap();
                one_by_one.images += 1;
            }
        }
    }
    assert!(one_by_one.images > 0 && batch.finish().is_ok());

    let mut state = streamed();
    let mut batch = state.batch();
    let Some(Unit::Transaction(mut read)) = now(batch.next()).unwrap() else { panic!("a transaction") };
    let (mut at_once, mut changes) = (Count::default(), 0);
    while let Some(part) = now(read.next_part()).unwrap() {
        let Part::Rows(rows) = part else { panic!("rows") };
        let visit = |rows: &RowsEvent| {
            changes += rows.changes();
            rows.visit(&mut at_once)
        };
        rows.take(visit).unwrap();
    }
    assert!(changes > 0);
    assert_eq!((at_once.images, at_once.values), (one_by_one.images, one_by_one.values));
    assert!(batch.finish().is_ok());

    let mut state = streamed();
    let mut batch = state.batch();
    let Some(Unit::Transaction(mut read)) = now(batch.next()).unwrap() else { panic!("a transaction") };
    let rows = now(read.rows()).unwrap().unwrap();
    assert!(rows.visit(&mut Count { fails: true, ..Count::default() }).is_err());
    assert_eq!(batch.finish().unwrap_err(), Incomplete::Unread, "what was refused was not read");
}
