//! Files that real servers wrote, through the command.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{collections::BTreeMap, fs};

use common::{capstan, fixture};

/// The beginnings of the events of `cases/BL-01.binlog`, from the sizes in its headers; the last is its end.
fn event_offsets(file: &[u8]) -> Vec<usize> {
    let mut offsets = vec![4];
    while let Some(size) = file.get(offsets[offsets.len() - 1] + 9..).and_then(|rest| rest.get(..4)) {
        offsets.push(offsets[offsets.len() - 1] + u32::from_le_bytes(size.try_into().unwrap()) as usize);
    }
    assert_eq!(offsets.last(), Some(&file.len()));
    offsets
}

/// From `cases/BL-01.sql` and what `SELECT` shows: one line to a unit.
#[test]
fn transactions_are_lines() {
    let called = capstan(&["inspect".as_ref(), fixture("cases/BL-01.binlog").as_os_str()]);
    assert_eq!(called.status, 0, "{called:?}");
    let lines = called.lines();
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["schema_change", "transaction"]);
    let changes = lines[1]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 5);
    let first = &changes[0];
    assert_eq!((first["op"].as_str(), first["schema"].as_str()), (Some("insert"), Some("b01")));
    // CAST('-16:08:04.010123' AS TIME(6)), and rounded to seconds.
    assert_eq!(
        (&first["after"]["f"], &first["after"]["a"]),
        (&"-16:08:04.010123".into(), &"-16:08:04".into())
    );
    assert!(lines[1]["gtid"].as_str().unwrap().ends_with(":4"));
}

/// The server's own list of the events of each file (`SHOW BINLOG EVENTS`) against the summary.
#[test]
fn the_summary_counts_what_the_server_lists() {
    for name in
        ["savepoints", "myisam.1", "create-select", "xa.1", "compression", "checksum-none", "rows-query"]
    {
        let (stem, number) = name.split_once('.').unwrap_or((name, "1"));
        let listed = fs::read_to_string(fixture(&format!("captured/{stem}.events.tsv"))).unwrap();
        let log = format!("bin.{:0>6}\t", number);
        let mut want: BTreeMap<String, u64> = BTreeMap::new();
        for line in listed.lines().filter(|line| line.starts_with(&log)) {
            *want.entry(line.split('\t').nth(2).unwrap().to_lowercase()).or_default() += 1;
        }
        let path = fixture(&format!("captured/{name}.binlog"));
        let called = capstan(&[
            "inspect".as_ref(),
            "--summary".as_ref(),
            "-o".as_ref(),
            "json".as_ref(),
            path.as_os_str(),
        ]);
        assert_eq!(called.status, 0, "{name}: {called:?}");
        let summary = &called.lines()[0];
        let got = |name: &str| summary["events"][name].as_u64().unwrap_or(0);
        // The server's words in its list, and those of its headers.
        for (listed, header) in [
            ("format_desc", "FORMAT_DESCRIPTION_EVENT"),
            ("previous_gtids", "PREVIOUS_GTIDS_LOG_EVENT"),
            ("gtid", "GTID_LOG_EVENT"),
            ("xid", "XID_EVENT"),
            ("query", "QUERY_EVENT"),
            ("write_rows", "WRITE_ROWS_EVENT"),
            ("update_rows", "UPDATE_ROWS_EVENT"),
            ("delete_rows", "DELETE_ROWS_EVENT"),
            ("table_map", "TABLE_MAP_EVENT"),
            ("xa_prepare", "XA_PREPARE_LOG_EVENT"),
        ] {
            if name == "compression" && !matches!(header, "FORMAT_DESCRIPTION_EVENT" | "GTID_LOG_EVENT") {
                continue; // the server lists what is inside of payloads, a summary counts the file's events
            }
            assert_eq!(got(header), want.get(listed).copied().unwrap_or(0), "{header} in {name}");
        }
        assert!(want["format_desc"] == 1, "{name}: the list was read");
    }
}

#[test]
fn a_file_cut_inside_an_event_ends_with_its_code_and_the_events_offset() {
    let whole = fs::read(fixture("cases/BL-01.binlog")).unwrap();
    let offsets = event_offsets(&whole);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("binlog.000001");
    let (mut inside, mut between) = (0, 0);
    for cut in (1..whole.len()).step_by(53).chain(offsets.iter().copied()) {
        fs::write(&path, &whole[..cut]).unwrap();
        let called = capstan(&["inspect", path.to_str().unwrap(), "-o", "json"]);
        if offsets.contains(&cut) {
            between += 1;
            // Inside a transaction the file is incomplete, though no event of it is.
            let [first, second, end] = [offsets[2], offsets[4], offsets[offsets.len() - 2]];
            let inside = (first < cut && cut < second) || (second < cut && cut < end);
            assert_eq!(called.status, if inside { 4 } else { 0 }, "cut at {cut}: {called:?}");
            if inside {
                assert_eq!(called.halt()["offset"].as_u64(), Some(cut as u64));
            }
            continue;
        }
        inside += 1;
        let begin = offsets.iter().copied().filter(|at| *at <= cut).max().unwrap_or(0);
        let halt = called.halt();
        assert_eq!((called.status, halt["code"].as_str()), (4, Some("event_malformed")), "cut at {cut}");
        assert_eq!(
            (halt["offset"].as_u64(), halt["file"].as_str()),
            (Some(begin as u64), Some("binlog.000001"))
        );
        // What was whole before the cut is there, and nothing else.
        let units = [offsets[4], offsets[offsets.len() - 2]].iter().filter(|end| **end <= cut).count();
        assert_eq!(called.lines().len(), units, "cut at {cut}: {called:?}");
    }
    assert!(inside > 10 && between > 5);
}

#[test]
fn one_wrong_byte_anywhere_ends_with_a_code_and_the_events_offset() {
    let whole = fs::read(fixture("cases/BL-01.binlog")).unwrap();
    let offsets = event_offsets(&whole);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("binlog.000001");
    for at in (0..whole.len()).step_by(41) {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x04;
        fs::write(&path, &wrong).unwrap();
        let called = capstan(&["inspect", path.to_str().unwrap(), "-o", "json"]);
        let halt = called.halt();
        assert_eq!(called.status, 4, "byte {at}: {called:?}");
        let begin = offsets.iter().copied().filter(|begin| *begin <= at).max().unwrap_or(0);
        assert_eq!(halt["offset"].as_u64(), Some(begin as u64), "byte {at}: {called:?}");
        assert!(
            ["checksum_mismatch", "event_malformed", "row_event_too_large"]
                .contains(&halt["code"].as_str().unwrap())
        );
    }
}

#[test]
fn what_is_no_binlog_is_said_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "not a binlog at all").unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let bl_01 = fixture("cases/BL-01.binlog");
    let (bl_01, folder) = (bl_01.to_str().unwrap(), folder.path().to_str().unwrap());
    for (arguments, status, told) in [
        (&["inspect", text.to_str().unwrap()][..], 4, "This is not a binlog file"),
        (&["inspect", empty.to_str().unwrap()], 4, "event_malformed"),
        (&["inspect", "/nonexistent/binlog.000001"], 3, "No such file"),
        (&["inspect", folder], 3, "is a folder"),
        (&["inspect", bl_01, "--gtid", "x"], 3, "Setting gtid"),
        (&["inspect", bl_01, "--start-offset", "99999"], 3, "beyond the end"),
        (&["inspect", bl_01, "--start-offset", "130"], 4, "No event begins at --start-offset"),
        (&["inspect", bl_01, bl_01, "--start-offset", "4"], 3, "one file only"),
    ] {
        let called = capstan(arguments);
        assert_eq!(called.status, status, "{arguments:?}: {called:?}");
        assert!(called.err.contains(told), "{arguments:?}: {called:?}");
    }
}

#[test]
fn only_what_is_asked_for_is_printed() {
    let path = fixture("captured/savepoints.binlog");
    let path = path.to_str().unwrap();
    let all = capstan(&["inspect", path]).lines();
    let gtid =
        all.iter().find(|line| line["kind"] == "transaction").unwrap()["gtid"].as_str().unwrap().to_owned();
    let one = capstan(&["inspect", path, "--gtid", &gtid]).lines();
    assert_eq!((one.len(), one[0]["gtid"].as_str()), (1, Some(&*gtid)));
    let offset = {
        let file = fs::read(path).unwrap();
        let offsets = event_offsets(&file);
        offsets[offsets.len() - 2].to_string()
    };
    assert_eq!(capstan(&["inspect", path, "--start-offset", &offset]).lines().len(), 0);
    let none = capstan(&["inspect", path, "--table", "other.*"]).lines();
    assert!(
        none.iter().all(|line| line["kind"] != "transaction" || line["changes"] == serde_json::json!([]))
    );
}

#[test]
fn files_without_gtids_and_prepared_xa_are_shown_as_what_they_are() {
    let anonymous = capstan(&["inspect".as_ref(), fixture("binlog/anonymous.binlog").as_os_str()]);
    assert_eq!(anonymous.status, 0);
    assert!(anonymous.lines().iter().all(|line| line["gtid"].is_null()) && anonymous.lines().len() > 1);
    let xa = capstan(&["inspect".as_ref(), fixture("captured/xa.1.binlog").as_os_str()]);
    assert_eq!(xa.status, 0, "{xa:?}");
    assert!(xa.lines().iter().any(|line| line["xa"] == "prepared"), "{xa:?}");
}

/// A halt in the middle of a file: what was before it is printed, and the place is told.
#[test]
fn a_partial_row_image_halts_with_its_place() {
    // Partial updates of JSON are whole up to the first whose before image is MINIMAL.
    let path = fixture("captured/partial-json.binlog");
    let called = capstan(&["inspect".as_ref(), "-o".as_ref(), "json".as_ref(), path.as_os_str()]);
    let appended = serde_json::json!([1, 2, 3, "appended"]);
    assert!(called.out.lines().any(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["changes"][0]["after"]["j"]["a"] == appended
    }));
    let halt = called.halt();
    assert_eq!((called.status, halt["code"].as_str()), (4, Some("partial_row_image")));
    assert_eq!(halt["file"], "partial-json.binlog");
    assert!(halt["offset"].as_u64() > Some(4) && halt["gtid"].is_string(), "{halt}");
}
