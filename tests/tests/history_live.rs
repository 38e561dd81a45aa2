//! Where a replica begins, and whether the server still has the history it goes on from.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test says what it expects by panicking"
)]

use std::time::{Duration, Instant};

use capstan::{Code, Detail, GtidSet, Halt, Limits, Position, Start, Until};
use capstan_mysql::Server;
use capstan_tests::live::{Memory, Running, from_now, hasty, replica_of, resume, run};

fn server() -> Server {
    let server = Server::start().expect("a server");
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)").unwrap();
    server
}

fn insert(server: &Server, ids: impl IntoIterator<Item = u32>) {
    let script: String = ids.into_iter().map(|id| format!("INSERT INTO d.t VALUES ({id});")).collect();
    server.sql(&script).unwrap();
}

fn inserts(ids: impl IntoIterator<Item = u32>) -> Vec<String> {
    ids.into_iter().map(|id| format!("insert d.t {{\"id\":{id}}}")).collect()
}

fn set(text: &str) -> GtidSet {
    text.trim().parse().expect("a set of GTIDs")
}

fn executed(server: &Server) -> GtidSet {
    set(&server.gtid_executed().unwrap())
}

fn purged(server: &Server) -> GtidSet {
    set(&server.sql("SELECT @@GLOBAL.gtid_purged").unwrap().replace('\n', ""))
}

/// Purges everything up to now. The server keeps a file that a stream still reads, and says so in a warning
/// only, so it is asked until it has done it.
fn purge(server: &Server) {
    let all = executed(server);
    let begun = Instant::now();
    while purged(server) != all {
        let newest = server
            .sql_rows("FLUSH BINARY LOGS; SHOW BINARY LOGS")
            .unwrap()
            .pop()
            .and_then(|row| row.into_iter().next().flatten())
            .unwrap();
        server.sql(&format!("PURGE BINARY LOGS TO '{newest}'")).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(60), "the log is not purged");
    }
}

fn halted(end: Result<capstan::Stopped, Halt>, code: Code) -> Halt {
    let halt = end.expect_err(code.as_str());
    assert_eq!(halt.code, code, "{halt}");
    halt
}

#[test]
fn starts() {
    let server = server();
    insert(&server, 1..=3);
    let all = inserts(1..=3);

    // Nothing stored, nothing said.
    let memory = Memory::new();
    let _ = halted(run(replica_of(&server), memory.clone()), Code::StartPositionRequired);
    assert!(memory.lock().position.is_none());

    // The oldest transaction there is.
    let end = run(replica_of(&server).start(Start::Earliest).until(Until::Now), memory.clone()).unwrap();
    assert_eq!(memory.items().split_off(2), all);
    assert_eq!(end.position.as_ref(), memory.lock().position.as_ref());
    assert_eq!(memory.position().gtid_set(), &executed(&server));
    let epoch = memory.position().epoch();

    // A start is no way around a stored position, unless that is said.
    for start in [Start::Earliest, Start::Current, Start::At(GtidSet::new())] {
        let _ = halted(run(replica_of(&server).start(start), memory.clone()), Code::StartPositionConflict);
    }
    memory.forget();
    let again = replica_of(&server).start(Start::Earliest).override_stored(true).until(Until::Now);
    run(again, memory.clone()).unwrap();
    assert_eq!(memory.items().split_off(2), all);
    assert!(memory.position().epoch() > epoch, "an older owner of this target is fenced");

    // What is stored.
    memory.forget();
    insert(&server, [4]);
    resume(&server, &memory).unwrap();
    assert_eq!(memory.items(), inserts([4]));
    assert_eq!(memory.position().gtid_set(), &executed(&server));

    // From now on: nothing that was.
    let current = from_now(&server);
    insert(&server, [5]);
    resume(&server, &current).unwrap();
    assert_eq!(current.items(), inserts([5]));

    // After these; the chosen start is stored before anything is read.
    let before = executed(&server);
    insert(&server, [6, 7]);
    let at = Memory::new();
    run(replica_of(&server).start(Start::At(before.clone())).until(Until::Now), at.clone()).unwrap();
    assert_eq!(at.items(), inserts([6, 7]));
    let first = at.lock().positions.first().cloned().unwrap();
    assert_eq!((first.gtid_set(), first.epoch()), (&before, 1));

    // The captured tables are part of what is stored.
    let other = replica_of(&server).tables(["d.t"]).until(Until::Now);
    let _ = halted(run(other, at.clone()), Code::CaptureSetChanged);
    resume(&server, &at).expect("the tables it was made with");

    // The oldest there is, when it is not the first there was.
    purge(&server);
    insert(&server, [8]);
    let late = Memory::new();
    run(replica_of(&server).start(Start::Earliest).until(Until::Now), late.clone()).unwrap();
    assert_eq!(late.items(), inserts([8]));
    assert_eq!(late.position().gtid_set(), &executed(&server));
}

#[test]
fn what_is_purged_unread_is_a_gap_and_what_was_read_is_a_warning() {
    let server = server();
    let memory = from_now(&server);
    insert(&server, [1]);
    resume(&server, &memory).unwrap();
    purge(&server);

    // Only what was processed is gone: that the history is the same cannot be seen any more.
    let _ = halted(
        run(replica_of(&server).strict(true).until(Until::Now), memory.copy()),
        Code::SourceHistoryUnverified,
    );
    insert(&server, [2]);
    let running = Running::start(replica_of(&server), memory.clone()).unwrap();
    running.catch_up(&server);
    assert!(running.status().history_unverified, "{:?}", running.status());
    running.stop().unwrap();
    assert_eq!(memory.items(), inserts([1, 2]));

    // What was not processed is gone.
    let before = executed(&server);
    insert(&server, [3, 4]);
    let missing = executed(&server).subtract(&before);
    purge(&server);
    insert(&server, [5]);
    let stored = memory.position();
    let halt = halted(resume(&server, &memory), Code::DataGap);
    assert_eq!(halt.detail.as_deref(), Some(&Detail::Missing(missing.clone())));
    assert!(halt.to_string().contains(&missing.to_string()), "{halt}");
    assert_eq!(memory.position().gtid_set(), stored.gtid_set());
    assert_eq!(memory.items(), inserts([1, 2]));
}

#[test]
fn a_source_that_is_behind_is_waited_for() {
    let source = server();
    let replica = Server::start().expect("a server");
    replica.replica_of(&source).unwrap();
    let memory = from_now(&source);
    let patience = Duration::from_secs(60);
    assert!(replica.wait_for_gtids(&source.gtid_executed().unwrap(), patience).unwrap());
    replica.sql("STOP REPLICA SQL_THREAD").unwrap();
    insert(&source, [1, 2]);
    resume(&source, &memory).unwrap();
    let missing = executed(&source).subtract(&executed(&replica));

    // For good: a halt that names what is missing.
    let halt = halted(run(replica_of(&replica).limits(hasty()), memory.clone()), Code::SourceBehind);
    assert_eq!(halt.detail.as_deref(), Some(&Detail::Missing(missing)));

    // For a while: it goes on by itself.
    let limits = Limits { backoff_max: Duration::from_millis(200), ..Limits::default() };
    let running = Running::start(replica_of(&replica).limits(limits), memory.clone()).unwrap();
    running.until("several tries", |status| status.dials >= 3 && status.trouble == Some("source_behind"));
    replica.sql("START REPLICA SQL_THREAD").unwrap();
    running.until("the stream", |status| status.state == "streaming" && status.trouble.is_none());
    insert(&source, [3]);
    assert!(replica.wait_for_gtids(&source.gtid_executed().unwrap(), patience).unwrap());
    // A transaction of the replica's own is one as any other.
    replica.sql("INSERT INTO d.t VALUES (99)").unwrap();
    running.catch_up(&replica);
    running.stop().unwrap();
    assert_eq!(memory.items(), inserts([1, 2, 3, 99]));

    // The first source has never had it.
    let _ = halted(resume(&source, &memory), Code::SourceIdentityMismatch);
}

#[test]
fn another_source_is_told() {
    let server = server();
    let memory = from_now(&server);
    let captured = memory.position().captured().to_owned();
    let foreign = "cccccccc-cccc-cccc-cccc-cccccccccccc:1-5";
    let known = executed(&server).to_string();
    for stored in [foreign.to_owned(), format!("{known},{foreign}")] {
        let sink = Memory::at(Position::new(set(&stored), captured.clone()));
        let halt = halted(resume(&server, &sink), Code::SourceIdentityMismatch);
        assert_eq!(halt.detail.as_deref(), Some(&Detail::Missing(set(foreign))));
        assert_eq!(sink.position().gtid_set(), &set(&stored));
    }
    let _ = halted(
        run(replica_of(&server).start(Start::At(set(foreign))), Memory::new()),
        Code::SourceIdentityMismatch,
    );
}

/// Case BL-37 (a): the server takes the stale set without a word and skips what it should send.
#[test]
fn a_history_that_was_reset_and_has_grown_again_is_told() {
    let server = server();
    server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    let memory = from_now(&server);
    insert(&server, 1..=50);
    resume(&server, &memory).unwrap();
    assert_eq!(memory.items(), inserts(1..=50));
    let stored = memory.position();
    resume(&server, &memory).expect("the history is as it was");

    server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    insert(&server, 101..=150);
    assert_eq!(stored.gtid_set(), &executed(&server), "there is nothing to come");
    let _ = halted(resume(&server, &memory), Code::SourceHistoryChanged);
    insert(&server, 151..=160);
    assert!(stored.gtid_set().is_subset(&executed(&server)), "nothing but the commit times tells them apart");
    let halt = halted(resume(&server, &memory), Code::SourceHistoryChanged);
    assert_eq!(halt.exit_status(), 3);
    assert_eq!(memory.position().gtid_set(), stored.gtid_set());
    assert_eq!(memory.items(), inserts(1..=50), "nothing of the other history was delivered");
}

#[test]
fn tagged_transactions_are_stored_and_gone_on_from() {
    let server = server();
    let memory = from_now(&server);
    let uuid = server.sql("SELECT @@server_uuid").unwrap().trim().to_owned();
    server
        .sql(
            "INSERT INTO d.t VALUES (1);
             SET GTID_NEXT = 'AUTOMATIC:billing'; INSERT INTO d.t VALUES (2); INSERT INTO d.t VALUES (3);
             SET GTID_NEXT = 'AUTOMATIC:audit_1'; INSERT INTO d.t VALUES (4);
             SET GTID_NEXT = 'AUTOMATIC'; INSERT INTO d.t VALUES (5)",
        )
        .unwrap();
    resume(&server, &memory).unwrap();
    assert_eq!(memory.items(), inserts(1..=5));
    let gtids: Vec<String> = memory.lock().seen.iter().map(|seen| seen.gtid.clone()).collect();
    assert_eq!(gtids.get(2), Some(&format!("{uuid}:billing:2")));
    assert_eq!(gtids.get(3), Some(&format!("{uuid}:audit_1:1")));
    assert_eq!(memory.position().gtid_set(), &executed(&server));
    let written = memory.position().encode();
    assert!(written.contains(":billing:1-2"), "{written}");
    assert_eq!(Position::decode(&written).unwrap(), memory.position());

    server
        .sql("SET GTID_NEXT = 'AUTOMATIC:billing'; INSERT INTO d.t VALUES (6); INSERT INTO d.t VALUES (7)")
        .unwrap();
    memory.forget();
    resume(&server, &memory).unwrap();
    assert_eq!(memory.items(), inserts([6, 7]));
    assert_eq!(memory.position().gtid_set(), &executed(&server));
}

/// Case BL-33: as text, `bin.1000000` comes before `bin.999999`.
#[test]
fn the_millionth_file() {
    let server = server();
    server.sql("RESET BINARY LOGS AND GTIDS TO 999998").unwrap();
    let memory = from_now(&server);
    let running = Running::start(replica_of(&server), memory.clone()).unwrap();
    running.until("the stream", |status| status.state == "streaming");
    for id in 1..=4 {
        insert(&server, [id]);
        running.catch_up(&server);
        server.sql("FLUSH BINARY LOGS").unwrap();
    }
    running.stop().unwrap();
    let names = server.sql("SHOW BINARY LOGS").unwrap();
    assert!(names.contains("bin.999999") && names.contains("bin.1000001"), "{names}");
    assert_eq!(memory.items(), inserts(1..=4));
    // From every position on.
    each_restart(&server, &memory);
}

/// Case BL-35: forty sources, gaps, and transactions that hold nothing for us.
#[test]
fn sets_with_gaps_and_filtered_transactions() {
    let server = server();
    server.sql("CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY)").unwrap();
    let only = || replica_of(&server).tables(["d.*"]);
    let memory = Memory::new();
    run(only().start(Start::Current).until(Until::Now), memory.clone()).unwrap();
    let mut session = server.connect().unwrap();
    for n in 0..40_u32 {
        // A captured row, an empty transaction and a row that is not captured, with gaps between them.
        let uuid = format!("aaaaaaaa-aaaa-aaaa-aaaa-0000000000{n:02}");
        session
            .sql(&format!(
                "SET GTID_NEXT = '{uuid}:7'; INSERT INTO d.t VALUES ({n});
                 SET GTID_NEXT = '{uuid}:5'; BEGIN; COMMIT;
                 SET GTID_NEXT = '{uuid}:9'; INSERT INTO other.t VALUES ({n})"
            ))
            .unwrap();
    }
    let until_now = || only().until(Until::Now);
    run(until_now(), memory.clone()).unwrap();
    let all = executed(&server);
    assert!(all.to_string().len() > 1024, "what SHOW VARIABLES would cut");
    assert_eq!(memory.position().gtid_set(), &all);
    assert!(all.to_string().contains("000000000039:5:7:9"), "{all}");
    assert_eq!(memory.items(), inserts(0..40));

    // The watermark holds what was filtered, so nothing of it is missed when it is purged.
    purge(&server);
    session
        .sql("SET GTID_NEXT = 'aaaaaaaa-aaaa-aaaa-aaaa-000000000039:6'; INSERT INTO d.t VALUES (99)")
        .unwrap();
    memory.forget();
    run(until_now(), memory.clone()).unwrap();
    assert_eq!(memory.items(), inserts([99]));
    assert_eq!(memory.position().gtid_set(), &executed(&server));

    // Nothing but filtered transactions: the position moves all the same.
    session.sql("SET GTID_NEXT = 'AUTOMATIC'; INSERT INTO other.t VALUES (100)").unwrap();
    let running = Running::start(only(), memory.clone()).unwrap();
    running.catch_up(&server);
    session.sql("INSERT INTO other.t VALUES (101)").unwrap();
    running.catch_up(&server);
    running.stop().unwrap();
    assert_eq!(memory.position().gtid_set(), &executed(&server));
    assert_eq!(memory.items(), inserts([99]));
}

/// Case BL-41: each switch begins a file, and the ROTATE before it follows the file before.
#[test]
fn checksums_switched_while_it_streams() {
    let server = server();
    let memory = from_now(&server);
    let running = Running::start(replica_of(&server), memory.clone()).unwrap();
    running.until("the stream", |status| status.state == "streaming");
    for (id, checksum) in [(1, "NONE"), (2, "NONE"), (3, "CRC32"), (4, "NONE"), (5, "CRC32")] {
        server
            .sql(&format!("SET GLOBAL binlog_checksum = {checksum}; INSERT INTO d.t VALUES ({id})"))
            .unwrap();
        running.catch_up(&server);
    }
    assert_eq!(running.status().reconnects, 0, "each switch was followed on the same link");
    running.stop().unwrap();
    assert_eq!(memory.items(), inserts(1..=5));
    each_restart(&server, &memory);
    // A link that begins under each.
    server.sql("SET GLOBAL binlog_checksum = NONE").unwrap();
    each_restart(&server, &memory);
}

/// Case BL-23: no position lies inside a group, and from each of them comes the rest and no more.
#[test]
fn every_stored_position_is_between_two_transactions() {
    let server = server();
    let memory = from_now(&server);
    server
        .sql(
            "CREATE TABLE d.v (id INT PRIMARY KEY, v VARCHAR(2000));
             CREATE DATABASE mine; CREATE TABLE mine.f (id INT PRIMARY KEY) ENGINE = MyISAM;
             SET SESSION cte_max_recursion_depth = 10000;
             INSERT INTO d.v WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 3000)
               SELECT n, REPEAT('v', 700) FROM n;
             BEGIN; INSERT INTO d.t VALUES (1); INSERT INTO d.t VALUES (2); COMMIT;
             SET GTID_NEXT = 'bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb:4'; BEGIN; COMMIT; SET GTID_NEXT = 'AUTOMATIC';
             INSERT INTO mine.f VALUES (1); INSERT INTO mine.f VALUES (2);
             CREATE TABLE d.c AS SELECT * FROM d.t;
             UPDATE d.v SET v = 'w' WHERE id < 100;
             DROP TABLE d.c; DELETE FROM d.v",
        )
        .unwrap();
    // Small enough that the large ones are handed over while they are read.
    let small = Limits { stream_above: 64 << 10, ..hasty() };
    let one = capstan::BatchLimits { max_transactions: 1, ..capstan::BatchLimits::default() };
    run(replica_of(&server).limits(small).batch(one).until(Until::Now), memory.clone()).unwrap();
    let seen = memory.lock().seen.clone();
    assert!(seen.iter().any(|seen| seen.streamed) && seen.iter().any(|seen| !seen.streamed));
    assert_eq!(memory.items().iter().filter(|item| item.starts_with("insert d.v")).count(), 3000);
    assert!(memory.lock().positions.len() > 8, "{} positions", memory.lock().positions.len());
    each_restart(&server, &memory);
}

/// Goes on from every position that was ever stored: what comes is what came after it, whole and in order.
fn each_restart(server: &Server, memory: &Memory) {
    let held = memory.lock().clone();
    let all = executed(server);
    for position in held.positions {
        let rest: Vec<_> = held
            .seen
            .iter()
            .filter(|seen| !position.gtid_set().contains(&seen.gtid.parse().unwrap()))
            .map(|seen| (seen.gtid.clone(), seen.items.clone()))
            .collect();
        let from = Memory::at(position.clone());
        resume(server, &from).unwrap();
        let came: Vec<_> =
            from.lock().seen.iter().map(|seen| (seen.gtid.clone(), seen.items.clone())).collect();
        assert!(came == rest, "from {position}: {} transactions, not {}", came.len(), rest.len());
        assert_eq!(from.position().gtid_set(), &all);
    }
}
