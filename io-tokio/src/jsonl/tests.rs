//! Lines of captured files, and files that were left in every state a crash can leave.

use std::{
    fs,
    future::Future,
    io::{self, Write},
    path::Path,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use capstan_core::{
    deliver::{BatchLimits, BlockingSink as _, Expected, FailureClass, Holds, Sink as _},
    halt::Code,
};
use serde_json::Value;
use tokio::io::AsyncWrite;

use super::*;
use crate::{Decision, Stored as _, checkpoint::lock::beside, testkit::Kit};

const UPSERTS: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-53.binlog");

fn kit() -> Kit {
    Kit::from_binlog(UPSERTS).unwrap()
}

/// Progress by the position alone, so that lines do not depend on the clock.
fn options() -> JsonOptions {
    JsonOptions { progress_every: Duration::MAX, ..JsonOptions::default() }
}

/// One word per line, one letter per change.
fn words(text: &str) -> String {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is not whole");
    let word = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["kind"].as_str().unwrap() {
            "transaction" => line["changes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|change| &change["op"].as_str().unwrap()[..1])
                .collect(),
            "schema_change" => "ddl".to_owned(),
            "snapshot_rows" => {
                assert_eq!(line["table"], "t");
                let last = if line["last"].as_bool().unwrap() { "!" } else { "" };
                format!("{}x{}{last}", line["chunk"], line["rows"].as_array().unwrap().len())
            }
            "progress" => match line["gtid_set"].as_str().unwrap() {
                "" => "progress".to_owned(),
                set => format!("..{}", set.rsplit(['-', ':']).next().unwrap()),
            },
            kind => panic!("{kind}"),
        }
    };
    text.lines().map(word).collect::<Vec<_>>().join(" ")
}

/// What the statements of BL-53.sql do.
const WHOLE: &str = "progress ddl ii u iu du i u ..246";

#[test]
fn a_chunk_of_a_copy_is_a_line() {
    let out = Pipe::default();
    let mut sink = JsonLines::new(out.clone(), options());
    kit().snapshot().run_blocking(&mut sink).unwrap();
    assert_eq!(words(&out.text()).replace(" ..246", ""), "progress ddl 0x2 u iu du 1x1! u");
}

/// Red without the look at the path before each batch: the lines go where nobody reads them, or behind a hole.
#[test]
fn a_file_that_was_moved_removed_or_emptied_is_not_written_to() {
    let empty = |path: &Path| fs::OpenOptions::new().write(true).open(path)?.set_len(0);
    let moved = |path: &Path| fs::rename(path, path.with_extension("1"));
    let removed = |path: &Path| fs::remove_file(path);
    let spoils: [fn(&Path) -> io::Result<()>; 3] = [empty, moved, removed];
    for (n, spoil) in spoils.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let mut sink = JsonFile::open(&path, options()).unwrap();
        let mut kit = kit();
        kit.start(None).unwrap();
        for _ in 0..3 {
            let mut state = kit.next_batch().unwrap();
            let ack = sink.apply(state.blocking()).unwrap();
            kit.accept(state, ack).unwrap();
        }
        spoil(&path).unwrap();
        let mut state = kit.next_batch().unwrap();
        assert_eq!(sink.apply(state.blocking()).unwrap_err().code(), Code::PositionReadFailed, "{n}");
        drop(sink);
        assert_eq!(JsonFile::open(&path, options()).unwrap_err().code, Code::PositionReadFailed, "{n}");
    }
}

#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Vec<u8>>>, Option<usize>);

impl Pipe {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap();
        let room = self.1.map_or(usize::MAX, |most| most.saturating_sub(held.len()));
        if room == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = bytes.len().min(room);
        held.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_gets_whole_transactions_and_the_position_last() {
    let text = || {
        let pipe = Pipe::default();
        kit().run_blocking(&mut JsonLines::new(pipe.clone(), options())).unwrap();
        pipe.text()
    };
    assert_eq!(words(&text()), WHOLE);
    assert!(text().contains(
        r#""changes":[{"op":"update","schema":"c04","table":"t","before":{"id":1,"u":10,"v":0},"after":{"id":1,"u":10,"v":1}}]}"#
    ));
    for (name, kit, spill_above) in [
        ("all in one batch", kit().batch(BatchLimits { max_transactions: 100, max_bytes: 1 << 20 }), 1 << 20),
        ("streamed", kit().stream_above(0), 1 << 20),
        ("one broken off", kit().abort_once(3), 1 << 20),
        ("spilled", kit(), 0),
        ("spilled and broken off", kit().stream_above(0).abort_once(4), 0),
    ] {
        let (mut kit, pipe) = (kit, Pipe::default());
        kit.run_blocking(&mut JsonLines::new(pipe.clone(), JsonOptions { spill_above, ..options() }))
            .unwrap();
        assert_eq!(pipe.text(), text(), "{name}");
    }
}

/// Takes a few bytes at every other call and lets the others wait.
#[derive(Default)]
struct Narrow(Pipe, bool);

impl AsyncWrite for Narrow {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.1 = !self.1;
        if self.1 { Poll::Pending } else { Poll::Ready(self.0.write(&bytes[..bytes.len().min(61)])) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.1 = !self.1;
        if self.1 { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Polls so many times, then drops it.
fn polled<F: Future>(future: F, most: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    (0..most).find_map(|_| match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

#[test]
fn a_writer_that_is_awaited_gets_the_same_lines() {
    let want = WHOLE.strip_suffix(" ..246").unwrap();
    for (name, kit, spill_above) in [
        ("plain", kit(), 1 << 20),
        ("one broken off", kit().stream_above(0).abort_once(3), 1 << 20),
        ("spilled", kit(), 0),
    ] {
        let (mut kit, pipe) = (kit, Pipe::default());
        let options = JsonOptions { spill_above, ..options() };
        let mut sink = AsyncJsonLines::new(Narrow(pipe.clone(), false), options);
        polled(kit.run(&mut sink), usize::MAX).unwrap().unwrap();
        assert_eq!(words(&pipe.text()), want, "{name}");
    }
    let pipe = Pipe(Arc::default(), Some(700));
    let mut sink = AsyncJsonLines::new(Narrow(pipe.clone(), false), options());
    let error = polled(kit().run(&mut sink), usize::MAX).unwrap().unwrap_err();
    assert_eq!((error.class(), error.step()), (FailureClass::Permanent, "print"));
    assert_eq!(pipe.text().len(), 700, "nothing is printed after a broken line");
}

/// Each call is dropped at another of its awaits; the position says what is still being sent, and nothing comes
/// twice. Red where the rest is forgotten: the next line begins inside
/// the one that was cut.
#[test]
fn a_dropped_call_cuts_no_line() {
    for spill_above in [1 << 20, 0] {
        let pipe = Pipe::default();
        let options = JsonOptions { spill_above, ..options() };
        let mut sink = AsyncJsonLines::new(Narrow(pipe.clone(), false), options);
        let (mut kit, mut dropped, mut waits) = (kit(), Vec::new(), 0);
        kit.start(None).unwrap();
        let mut again = None;
        while let Some(mut state) = again.take().or_else(|| kit.next_batch()) {
            waits = waits % 7 + 1;
            if let Some(answer) = polled(sink.apply(state.batch()), waits) {
                kit.accept(state, answer.unwrap()).unwrap();
                continue;
            }
            let stored = polled(sink.position(), 1).unwrap().unwrap();
            let holds = kit.failed(state, stored.as_ref());
            dropped.push(matches!(holds, Holds::Committed { .. }));
            again = kit.again().filter(|_| holds == Holds::Expected);
        }
        assert!(dropped.contains(&true) && dropped.contains(&false), "{dropped:?}");
        polled(sink.print(), usize::MAX).unwrap().unwrap();
        assert_eq!(words(&pipe.text()), WHOLE.strip_suffix(" ..246").unwrap());
    }
}

#[test]
fn the_position_is_told_at_its_cadence() {
    let pipe = Pipe::default();
    let options = JsonOptions { progress_every: Duration::ZERO, ..options() };
    kit().run_blocking(&mut JsonLines::new(pipe.clone(), options)).unwrap();
    assert_eq!(words(&pipe.text()), "progress ddl ..240 ii ..241 u ..242 iu ..243 du ..244 i ..245 u ..246");
}

#[test]
fn a_reader_that_has_gone_is_the_end() {
    let whole = {
        let pipe = Pipe::default();
        kit().run_blocking(&mut JsonLines::new(pipe.clone(), options())).unwrap();
        pipe.text()
    };
    for most in [1, 100, 1000, whole.len() - 1] {
        let pipe = Pipe(Arc::default(), Some(most));
        let error = kit().run_blocking(&mut JsonLines::new(pipe.clone(), options()));
        // The last line of all is nobody's loss.
        if let Err(error) = error {
            assert_eq!((error.class(), error.step()), (FailureClass::Permanent, "print"));
        }
        assert_eq!(pipe.text(), whole[..most], "nothing is printed after a broken line");
    }
}

fn open(path: &Path) -> JsonFile {
    JsonFile::open(path, options()).unwrap()
}

fn content(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_file_holds_every_transaction_once_whatever_a_crash_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    kit().run_blocking(&mut open(&path)).unwrap();
    let whole = content(&path);
    assert_eq!(words(&whole), WHOLE);
    let record = content(&beside(&path, ".position"));

    // Killed between the data and its record, after any number of bytes.
    for left in [1, 50, 500] {
        std::fs::write(&path, format!("{whole}{}", &whole[..left])).unwrap();
        let file = open(&path);
        assert_eq!(file.length(), whole.len() as u64);
        drop(file);
        assert_eq!(content(&path), whole);
    }
    // A smaller length would cut the file.
    let length = format!("\"length\":{}", whole.len());
    assert!(record.contains(&length), "{record}");
    std::fs::write(beside(&path, ".position"), record.replace(&length, "\"length\":1")).unwrap();
    assert_eq!(JsonFile::open(&path, options()).unwrap_err().code, Code::PositionReadFailed);
    assert_eq!(content(&path), whole);
    std::fs::write(beside(&path, ".position"), &record).unwrap();
    // Killed while the record was written beside.
    std::fs::write(beside(&path, ".position.new"), &record[..record.len() / 2]).unwrap();
    drop(open(&path));
    assert_eq!(content(&path), whole);
    // Killed before the first record: nothing is lost, for nothing was acknowledged.
    let fresh = folder.path().join("fresh.jsonl");
    std::fs::write(&fresh, "").unwrap();
    kit().run_blocking(&mut open(&fresh)).unwrap();
    assert_eq!(words(&content(&fresh)), WHOLE);
}

#[test]
fn batches_that_fail_leave_the_file_at_its_last_good_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut file = open(&path);
    let mut kit = kit();
    kit.start(None).unwrap();
    for _ in 0..2 {
        let mut state = kit.next_batch().unwrap();
        let ack = file.apply(state.blocking()).unwrap();
        kit.accept(state, ack).unwrap();
    }
    let before = content(&path);
    // The record cannot be written: a folder is in its way.
    std::fs::create_dir(beside(&path, ".position.new")).unwrap();
    let mut state = kit.next_batch().unwrap();
    let error = file.apply(state.blocking()).unwrap_err();
    assert!(matches!(error.class(), FailureClass::Permanent | FailureClass::Unknown), "{error}");
    assert_eq!(error.code(), Code::PositionWriteFailed);
    std::fs::remove_dir(beside(&path, ".position.new")).unwrap();
    let stored = file.position().unwrap();
    assert_eq!(kit.failed(state, stored.as_ref()), Holds::Expected);
    let mut state = kit.again().unwrap();
    let ack = file.apply(state.blocking()).unwrap();
    kit.accept(state, ack).unwrap();
    assert!(content(&path).starts_with(&before));
    assert_eq!(words(&content(&path)), "progress ddl ii");
}

#[test]
fn another_owner_of_the_record_is_noticed_and_its_file_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut file = open(&path);
    let mut kit = kit();
    kit.start(None).unwrap();
    let mut state = kit.next_batch().unwrap();
    let ack = file.apply(state.blocking()).unwrap();
    let ours = ack.position().clone();
    kit.accept(state, ack).unwrap();
    // As on a file system whose locks the other one does not see.
    let record = beside(&path, ".position");
    let length = content(&path).len();
    let theirs = ours.claimed(9).encode();
    std::fs::write(&record, format!("{{\"kind\":\"jsonl\",\"format\":1,\"length\":{length}}}\n{theirs}\n"))
        .unwrap();
    let before = content(&path);
    let mut state = kit.next_batch().unwrap();
    assert_eq!(file.apply(state.blocking()).unwrap_err().class(), FailureClass::Fenced);
    drop(file);
    assert_eq!(words(&content(&path)), words(&before));
}

#[test]
fn files_that_are_not_ours_are_refused_and_left_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let refused = |name: &str| {
        let before = std::fs::read(path(name)).ok();
        let halt = JsonFile::open(path(name), options()).unwrap_err();
        assert_eq!(std::fs::read(path(name)).ok(), before, "{name}");
        halt.code
    };
    std::fs::write(path("theirs"), "a,b,c\n").unwrap();
    assert_eq!(refused("theirs"), Code::TargetOfAnotherSource);
    for (record, code) in [
        ("", Code::PositionReadFailed),
        ("{}\n", Code::PositionReadFailed),
        ("{\"kind\":\"jsonl\",\"format\":1,\"length\":6}", Code::PositionReadFailed),
        ("{\"kind\":\"jsonl\",\"format\":1,\"length\":6}\nx", Code::PositionReadFailed),
        ("{\"kind\":\"jsonl\",\"format\":1,\"length\":7}\n", Code::PositionReadFailed),
        ("{\"kind\":\"jsonl\",\"format\":2,\"length\":6}\n", Code::PositionFormatNewer),
        ("{\"kind\":\"jsonl\",\"format\":1,\"length\":6}\n{\"format\":3}\n", Code::PositionFormatNewer),
        ("{\"kind\":\"mirror\",\"format\":1,\"length\":6}\n", Code::TargetOfAnotherSource),
    ] {
        std::fs::write(path("theirs.position"), record).unwrap();
        assert_eq!(refused("theirs"), code, "{record}");
    }
    let held = open(&path("held"));
    assert_eq!(JsonFile::open(path("held"), options()).unwrap_err().code, Code::CheckpointInUse);
    drop(held);
    drop(open(&path("held")));
    assert_eq!(refused("no/such/folder"), Code::ConfigInvalid);
}

#[test]
fn a_decision_moves_the_position_and_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut file = open(&path);
    kit().run_blocking(&mut file).unwrap();
    let before = file.stored().unwrap().unwrap();
    let after = before.clone().with_captured("other");
    let decision =
        Decision { kind: "accept-tables".into(), subject: "other".into(), reason: "a test".into() };
    file.decide(&Expected::new(Some(before)), &after, &decision).unwrap();
    drop(file);
    assert_eq!(open(&path).stored().unwrap(), Some(after));
    assert!(content(&beside(&path, ".decisions")).contains("accept-tables"));
}
