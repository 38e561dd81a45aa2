//! Stores of positions, and what may go wrong with them.

use capstan_core::{
    deliver::{Expected, FailureClass, Position},
    halt::Code,
    time::SourceTime,
};

use super::{BlockingCheckpointStore, FileCheckpoint, lock::beside};
use crate::{Decision, Stored as _};

pub(crate) fn position(n: u64) -> Position {
    let mut position = Position::new("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7".parse().unwrap(), "`shop`.*");
    position.add(&format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{n}").parse().unwrap(), SourceTime(n));
    position.claimed(7)
}

/// Any store: a position is replaced by the next one only where it is the expected one.
pub(crate) fn is_conditional(store: &mut impl BlockingCheckpointStore) {
    let class = |result: Result<(), crate::SinkError>| result.map_err(|error| error.class());
    assert_eq!(store.load().unwrap(), None);
    let wrong = Expected::new(Some(position(8)));
    assert_eq!(class(store.store(&wrong, &position(9))), Err(FailureClass::Fenced));
    assert_eq!(store.load().unwrap(), None);
    store.store(&Expected::new(None), &position(8)).unwrap();
    assert_eq!(store.load().unwrap(), Some(position(8)));
    assert_eq!(class(store.store(&Expected::new(None), &position(9))), Err(FailureClass::Fenced));
    let stale = Expected::new(Some(position(10)));
    assert_eq!(class(store.store(&stale, &position(9))), Err(FailureClass::Stale));
    let other = Expected::new(Some(position(8).claimed(9)));
    assert_eq!(class(store.store(&other, &position(9))), Err(FailureClass::Fenced));
    assert_eq!(store.load().unwrap(), Some(position(8)));
    store.store(&Expected::new(Some(position(8))), &position(9)).unwrap();
    assert_eq!(store.load().unwrap(), Some(position(9)));
}

#[test]
fn a_file_is_stored_over_what_is_expected_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let mut store = FileCheckpoint::open(&path).unwrap();
    is_conditional(&mut store);
    assert_eq!(FileCheckpoint::open(&path).unwrap_err().code, Code::CheckpointInUse);
    drop(store);
    assert_eq!(FileCheckpoint::open(&path).unwrap().load().unwrap(), Some(position(9)));
    // What a crash between writing and renaming leaves is not looked at.
    std::fs::write(beside(&path, ".new"), "half a posi").unwrap();
    let mut store = FileCheckpoint::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), Some(position(9)));
    store.store(&Expected::new(Some(position(9))), &position(10)).unwrap();
    assert_eq!(store.load().unwrap(), Some(position(10)));
}

#[test]
fn what_is_no_position_is_refused_before_anything_is_dialled() {
    let folder = tempfile::tempdir().unwrap();
    let whole = position(8).encode();
    for (content, code) in [
        ("", Code::PositionReadFailed),
        ("x", Code::PositionReadFailed),
        (&whole[..whole.len() / 2], Code::PositionReadFailed),
        ("{\"format\":3}", Code::PositionFormatNewer),
    ] {
        let path = folder.path().join("p");
        std::fs::write(&path, content).unwrap();
        assert_eq!(FileCheckpoint::open(&path).unwrap_err().code, code, "{content:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
    std::fs::write(folder.path().join("p"), [0xff, 0xfe]).unwrap();
    assert_eq!(FileCheckpoint::open(folder.path().join("p")).unwrap_err().code, Code::PositionReadFailed);
    assert_eq!(FileCheckpoint::open(folder.path()).unwrap_err().code, Code::ConfigInvalid);
}

#[test]
fn a_store_whose_folder_has_gone_cannot_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in/p");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let mut store = FileCheckpoint::open(&path).unwrap();
    store.store(&Expected::new(None), &position(8)).unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    // Nothing stored where something was: somebody else's doing.
    let error = store.store(&Expected::new(Some(position(8))), &position(9)).unwrap_err();
    assert_eq!(error.class(), FailureClass::Fenced);
    let error = store.store(&Expected::new(None), &position(9)).unwrap_err();
    assert_eq!(error.class(), FailureClass::Permanent);
}

#[test]
fn a_decision_is_recorded_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let mut store = FileCheckpoint::open(&path).unwrap();
    store.store(&Expected::new(None), &position(8)).unwrap();
    let decision = Decision { kind: "skip".into(), subject: "x:9".into(), reason: "a \"test\"".into() };
    store.decide(&Expected::new(Some(position(8))), &position(9), &decision).unwrap();
    assert_eq!(store.stored().unwrap(), Some(position(9)));
    assert!(store.decide(&Expected::new(Some(position(8))), &position(10), &decision).is_err());
    let text = std::fs::read_to_string(beside(&path, ".decisions")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["reason"], "a \"test\"");
    assert_eq!(lines[0]["gtid_set_after"], "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7:9");
}
