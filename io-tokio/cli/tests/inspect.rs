//! Files that real servers wrote, through the command.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{collections::BTreeMap, fs, io::Write as _, process::Stdio};

use common::{capstan, command, fixture};

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

/// Its rows are not in the log; the statement is, and what comes behind it.
#[test]
fn changes_logged_as_statements_are_shown_as_such() {
    let path = fixture("cases/BL-29.binlog");
    let called = capstan(&["inspect".as_ref(), "-o".as_ref(), "json".as_ref(), path.as_os_str()]);
    assert_eq!(called.status, 0, "{called:?}");
    let lines = called.lines();
    let said: Vec<_> =
        lines.iter().flat_map(|line| line["changes"].as_array().cloned().unwrap_or_default()).collect();
    let ops: Vec<_> = said.iter().map(|change| change["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["insert", "statement", "statement", "insert", "statement"]);
    assert_eq!(said[2]["statement"], "UPDATE t SET v=v+1");
    assert_eq!(said[2]["rows"], "changed_without_row_events");
    let shown = capstan(&["inspect".as_ref(), "-o".as_ref(), "text".as_ref(), path.as_os_str()]);
    assert!(shown.out.contains("! statement DELETE FROM t WHERE id=1"), "{}", shown.out);
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

/// Names, types, labels and numbers of members, and the words for what is not there.
#[test]
fn people_see_names_and_types() {
    let shown = |name: &str| {
        let called =
            capstan(&["inspect".as_ref(), "-o".as_ref(), "text".as_ref(), fixture(name).as_os_str()]);
        assert_eq!(called.status, 0, "{name}: {called:?}");
        assert!(!called.out.contains('\u{1b}'), "no colours into a pipe");
        called.out
    };
    let words = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let times = words(&shown("cases/BL-01.binlog"));
    for line in [
        "+ insert b01.t",
        "id int 1",
        "f time(6) \"-16:08:04.010123\"",
        "5 changes,",
        "! schema CREATE TABLE",
    ] {
        assert!(times.iter().any(|got| got.starts_with(line)), "{line}: {times:#?}");
    }
    let enums = words(&shown("cases/BL-07.binlog"));
    for line in ["a enum \"e256\" (256)", "b enum \"f200\" (200)", "b enum \"\" (0)"] {
        assert!(enums.iter().any(|got| got == line), "{line}: {enums:#?}");
    }
    let types = words(&shown("types/types.binlog"));
    for line in [
        "l linestring LINESTRING(0 0,1 1,2 2)",
        "ps point POINT(20 10) (SRID 4326)",
        "gc geomcollection NULL",
    ] {
        assert!(types.iter().any(|got| got == line), "{line}");
    }
}

/// The same file, compressed and through a pipe, is the same file, wherever one begins.
#[test]
fn compressed_files_and_standard_input_read_as_the_file() {
    let plain = fixture("cases/BL-01.binlog");
    let bytes = fs::read(&plain).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).unwrap();
    let gzip = gzip.finish().unwrap();
    let zst = zstd::encode_all(&bytes[..], 1).unwrap();
    let (gz_path, zst_path) = (folder.path().join("a"), folder.path().join("b"));
    fs::write(&gz_path, &gzip).unwrap();
    fs::write(&zst_path, &zst).unwrap();
    let offsets = event_offsets(&bytes);
    for start in [None, Some(4), Some(offsets[2]), Some(offsets[4])] {
        let mut arguments = vec!["inspect".to_owned()];
        if let Some(start) = start {
            arguments.extend(["--start-offset".to_owned(), start.to_string()]);
        }
        let called = |path: &str, input: &[u8]| {
            let mut child = command()
                .args(&arguments)
                .arg(path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let _ = child.stdin.take().unwrap().write_all(input);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{path} from {start:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let want = called(plain.to_str().unwrap(), b"");
        assert_eq!(called(gz_path.to_str().unwrap(), b""), want, "gzip from {start:?}");
        assert_eq!(called(zst_path.to_str().unwrap(), b""), want, "zstd from {start:?}");
        for input in [&bytes, &gzip, &zst] {
            assert_eq!(called("-", input), want, "standard input from {start:?}");
        }
    }
    // Damaged or cut, it ends with a code, never as if it were whole.
    for (path, whole) in [(&gz_path, &gzip), (&zst_path, &zst)] {
        for cut in [whole.len() / 2, whole.len() - 1] {
            fs::write(path, &whole[..cut]).unwrap();
            let called = capstan(&["inspect", path.to_str().unwrap(), "-o", "json"]);
            assert_eq!(
                (called.status, called.halt()["code"].as_str()),
                (4, Some("event_malformed")),
                "{cut}"
            );
        }
    }
}

/// The sums of a summary against the lines of the same file.
#[test]
fn the_summary_counts_rows_and_names_the_largest() {
    let path = fixture("captured/savepoints.binlog");
    let path = path.to_str().unwrap();
    let summary = &capstan(&["inspect", "--summary", "-o", "json", path]).lines()[0];
    let lines = capstan(&["inspect", path]).lines();
    let changes: Vec<_> = lines
        .iter()
        .filter(|line| line["kind"] == "transaction")
        .map(|line| line["changes"].as_array().unwrap().len() as u64)
        .collect();
    let rows: u64 = summary["tables"]
        .as_object()
        .unwrap()
        .values()
        .map(|table| {
            ["inserts", "updates", "deletes"].map(|op| table[op].as_u64().unwrap()).iter().sum::<u64>()
        })
        .sum();
    assert!(rows > 0);
    assert_eq!(rows, changes.iter().sum::<u64>());
    let largest = summary["largest"].as_array().unwrap();
    assert_eq!(largest.len(), lines.len().min(5));
    let file = fs::read(path).unwrap();
    let offsets = event_offsets(&file);
    for transaction in largest {
        let at = transaction["offset"].as_u64().unwrap() as usize;
        let end = at + transaction["bytes"].as_u64().unwrap() as usize;
        assert!(offsets.contains(&at) && offsets.contains(&end), "{transaction}");
        // GTID_LOG_EVENT
        assert_eq!(file[at + 4], 33);
    }
    let text = capstan(&["inspect", "--summary", path]).out;
    assert!(text.contains("largest transactions") && text.contains(largest[0]["gtid"].as_str().unwrap()));
}

/// What is logged as a statement is in no count of rows, so it has one of its own.
#[test]
fn the_summary_counts_changes_that_were_logged_as_statements() {
    let path = fixture("cases/BL-29.binlog");
    let path = path.to_str().unwrap();
    let summary = &capstan(&["inspect", "--summary", "-o", "json", path]).lines()[0];
    let statements = capstan(&["inspect", path]).out.matches("\"op\":\"statement\"").count() as u64;
    assert!(statements > 0);
    assert_eq!(summary["statement_changes"], statements);
    let by_schema = summary["statement_changes_in"].as_object().unwrap();
    assert_eq!(by_schema.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), statements);
    let text = capstan(&["inspect", "--summary", path]).out;
    assert!(text.contains(&format!("{statements:>10}  changes logged as statements")), "{text}");
    let without = fixture("captured/savepoints.binlog");
    let text = capstan(&["inspect", "--summary", without.to_str().unwrap()]).out;
    assert!(!text.contains("logged as statements"), "{text}");
}
