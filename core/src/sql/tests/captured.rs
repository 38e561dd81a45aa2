//! Texts a real MySQL 9.7.4 wrote (the cases' binlogs, read here byte by byte without the crate's
//! own event decoder).

use super::*;
use alloc::vec::Vec;

const BL_25: &[u8] = include_bytes!("../../../../tests/fixtures/cases/BL-25.binlog");
const BL_27: &[u8] = include_bytes!("../../../../tests/fixtures/cases/BL-27.binlog");
const BL_43: &[u8] = include_bytes!("../../../../tests/fixtures/cases/BL-43.binlog");

/// The text of every QUERY event of a file with CRC32, and what the event says about it.
fn queries(file: &[u8]) -> Vec<(Context<'_>, &[u8])> {
    let u16_at = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let mut found = Vec::new();
    let mut at = 4;
    while at < file.len() {
        let size = u32::from_le_bytes(file[at + 9..at + 13].try_into().unwrap()) as usize;
        let event = &file[at..at + size - 4];
        at += size;
        if event[4] != 2 {
            continue;
        }
        let thread_specific = u16_at(event, 17) & 4 != 0;
        let body = &event[19..];
        let (schema_len, vars_len) = (usize::from(body[8]), usize::from(u16_at(body, 11)));
        let (vars, rest) = body[13..].split_at(vars_len);
        // In every event of these files: 00 flags2[4] 01 sql_mode[8] 06 "std" catalog 04 charset[2] …
        assert_eq!((vars[0], vars[5], &vars[14..20]), (0, 1, &b"\x06\x03std\x04"[..]));
        let sql_mode = u64::from_le_bytes(vars[6..14].try_into().unwrap());
        let context = Context {
            default_schema: &rest[..schema_len],
            client_charset: u16_at(vars, 20),
            sql_mode,
            lower_case_table_names: 0,
            thread_specific,
        };
        found.push((context, &rest[schema_len + 1..]));
    }
    found
}

fn ddl_of(file: &[u8]) -> Vec<String> {
    queries(file)
        .into_iter()
        .map(|(context, text)| shown(&classify(text, &context)))
        .filter(|shown| shown != "Begin")
        .collect()
}

#[test]
fn create_select_groups_of_bl_27() {
    let expected = [
        "CreateTable = b27.src:Created",
        "CreateTableSelect = b27.c1:Created in-group",
        "CreateTableSelect = b27.c 2:Created in-group",
        "CreateTableSelect = b27.c3:Created in-group",
        "CreateTableSelect = b27.c4:Created in-group",
        "DropTable ! b27.c4:Dropped b27.c3:Dropped",
    ];
    assert_eq!(ddl_of(BL_27), expected);
}

#[test]
fn renames_of_bl_43() {
    let expected = [
        "CreateTable = d01.t:Created",
        "CreateTable = d01._t_new:Created",
        "RenameTable = d01.t:RenamedFrom d01._t_old:RenamedTo d01._t_new:RenamedFrom d01.t:RenamedTo",
        "DropTable ! d01._t_old:Dropped",
        "CreateDatabase = {d01x}",
        "RenameTable = d01.t:RenamedFrom d01x.t:RenamedTo",
        "DropDatabase ! {d01x}",
    ];
    assert_eq!(ddl_of(BL_43), expected);
}

#[test]
fn xa_branches_of_bl_25() {
    let expected = [
        "CreateTable = b25.t:Created",
        "xa start [78, 31] [] 1",
        "xa end [78, 31] [] 1",
        "xa rollback [78, 31] [] 1",
        "xa start [78, 32] [] 1",
        "xa end [78, 32] [] 1",
        "xa commit [78, 32] [] 1 false",
        "xa start [78, 33] [62] 7",
        "xa end [78, 33] [62] 7",
    ];
    assert_eq!(ddl_of(BL_25), expected);
}
