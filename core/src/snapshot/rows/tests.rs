//! Answers as 9.7.4 gives them, and what becomes of them. Every type against a running server: `tests/tests/values.rs`.

use super::*;
use crate::binlog::rows::{ChangeRow, RowScratch};
use crate::deliver::KeyParts;
use crate::link::{Cells, ResultSet};
use crate::value::{ColumnType, Value};
use alloc::{borrow::ToOwned, boxed::Box, format, string::String, sync::Arc, vec, vec::Vec};
use bytes::Bytes;
use core::cmp::Ordering;

fn answer(rows: &[&[Option<&str>]]) -> ResultSet {
    let cell = |cell: &Option<&str>| cell.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    let rows = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    ResultSet { rows, ..ResultSet::default() }
}

/// A column as `information_schema` has it: name, place, data type, column type, nullable, and numbers.
fn column(cells: [&str; 14]) -> Vec<Option<&str>> {
    // None of them is of a unique key that stands for the primary key, or generated.
    cells.iter().chain(["", ""].iter()).map(|cell| (*cell != "-").then_some(*cell)).collect()
}

fn described(
    columns: &[[&str; 14]],
    indexes: &[[&str; 5]],
    labels: &[&[Option<&str>]],
) -> Result<Described, DescribeError> {
    let table = answer(&[&[Some("BASE TABLE"), Some("InnoDB")]]);
    let columns: Vec<_> = columns.iter().map(|cells| column(*cells)).collect();
    let columns = answer(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let indexes: Vec<Vec<_>> =
        indexes.iter().map(|row| row.iter().map(|cell| (*cell != "-").then_some(*cell)).collect()).collect();
    let indexes = answer(&indexes.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut describe = Describe::new("d", "t");
    for answer in [table, columns, indexes, answer(labels)] {
        match describe.on_result(&answer)? {
            DescribeStep::More(next) => describe = next,
            DescribeStep::Done(done) => return Ok(*done),
        }
    }
    panic!("asks on: {}", describe.statement())
}

const ID: [&str; 14] = ["id", "1", "int", "int", "NO", "-", "10", "0", "-", "-", "-", "-", "-", ""];
const NAME: [&str; 14] = [
    "n",
    "2",
    "varchar",
    "varchar(20)",
    "NO",
    "80",
    "-",
    "-",
    "-",
    "utf8mb4",
    "utf8mb4_general_ci",
    "45",
    "20",
    "INVISIBLE",
];
const SET: [&str; 14] =
    ["s", "3", "set", "set('a','é')", "NO", "3", "-", "-", "-", "latin1", "latin1_swedish_ci", "8", "3", ""];
const AT: [&str; 14] =
    ["at", "4", "timestamp", "timestamp(3)", "YES", "-", "-", "-", "3", "-", "-", "-", "-", ""];

#[test]
fn a_table_is_what_its_table_map_says() {
    let labels: &[&[Option<&str>]] = &[&[Some("a")], &[Some("?")]];
    let found = described(
        &[ID, NAME, SET, AT],
        &[["PRIMARY", "n", "-", "YES", "A"], ["PRIMARY", "id", "-", "YES", "A"]],
        labels,
    );
    let found = found.unwrap();
    assert_eq!(found.kind, TableKind::InnoDb);
    let version = &found.version;
    let types: Vec<String> =
        version.columns().iter().map(|c| format!("{}", c.column_type.type_name())).collect();
    assert_eq!(types, ["int", "varchar(80)", "set", "timestamp(3)"]);
    assert_eq!(version.columns().iter().map(|c| c.visible).collect::<Vec<_>>(), [true, false, true, true]);
    assert_eq!(version.columns().iter().map(|c| c.nullable).collect::<Vec<_>>(), [false, false, false, true]);
    assert_eq!(version.columns()[1].column_type.collation(), Some(45));
    assert_eq!(version.primary_key().iter().map(|part| part.column).collect::<Vec<_>>(), [1, 0]);
    let ColumnType::Set { labels, bytes: 1 } = &version.columns()[2].column_type else { panic!("a SET") };
    // As the server converted it.
    assert_eq!((labels.get(1), labels.collation()), (Some(&b"?"[..]), Some(8)));
}

#[test]
fn what_cannot_be_described_is_said_so() {
    let mut hidden = ID;
    hidden[1] = "2";
    let mut unknown = ID;
    unknown[2] = "row";
    let mut doubtful = NAME;
    (doubtful[1], doubtful[2], doubtful[3]) = ("1", "enum", "enum('a?')");
    for (columns, want) in [
        (&[hidden][..], DescribeError::ColumnMissing),
        (&[unknown], DescribeError::ColumnType("id".to_owned())),
        (&[doubtful], DescribeError::Labels("n".to_owned())),
        (&[], DescribeError::NoSuchTable),
    ] {
        assert_eq!(described(columns, &[], &[]).unwrap_err(), want);
    }
    let unseen = Describe::new("d", "t").on_result(&ResultSet::default());
    assert_eq!(unseen.unwrap_err(), DescribeError::NoSuchTable);
}

#[test]
fn keys_are_chosen_in_order_and_what_is_unsupported_is_named() {
    let key = |columns: &[[&str; 14]], indexes: &[[&str; 5]]| {
        described(columns, indexes, &[]).unwrap().key().map(|key| key.name().to_owned())
    };
    let part = |name, column| [name, column, "-", "YES", "A"];
    let prefix = KeyUnsupported::Prefix { key: "PRIMARY".to_owned(), column: "n".to_owned() };
    let mut at = AT;
    at[1] = "3";
    for (indexes, want) in [
        (&[part("PRIMARY", "id"), part("a", "n")][..], Ok("PRIMARY")),
        (&[part("a", "at"), part("b", "n"), part("b", "id")], Ok("b")),
        (&[["PRIMARY", "n", "4", "YES", "A"], part("b", "id")], Ok("b")),
        (&[["PRIMARY", "n", "4", "YES", "A"]], Err(prefix)),
        (&[["a", "-", "-", "YES", "A"]], Err(KeyUnsupported::Expression("a".to_owned()))),
        (&[["a", "id", "-", "NO", "A"]], Err(KeyUnsupported::NoKey)),
        (&[part("a", "at")], Err(KeyUnsupported::NoKey)),
        (&[], Err(KeyUnsupported::NoKey)),
    ] {
        assert_eq!(key(&[ID, NAME, at], indexes), want.map(str::to_owned));
    }
    let mut left_out = described(&[ID], &[part("PRIMARY", "id")], &[]).unwrap();
    left_out.version.leave_out(|_| false);
    assert_eq!(left_out.key().unwrap_err(), KeyUnsupported::LeftOut("id".to_owned()));
}

/// Its sort keys are not in the order of its comparison: what the index has is not what the weights say.
#[test]
fn text_whose_weights_are_not_its_order_is_no_key() {
    let mut name = NAME;
    (name[9], name[10], name[11]) = ("big5", "big5_chinese_ci", "1");
    let found = described(&[ID, name], &[["PRIMARY", "n", "-", "YES", "A"]], &[]).unwrap().key();
    let want = KeyUnsupported::Collation { column: "n".to_owned(), collation: "big5_chinese_ci".to_owned() };
    assert_eq!(found.unwrap_err(), want);
}

#[test]
fn conditions_name_the_parts_in_index_order() {
    let indexes = [["PRIMARY", "n", "-", "YES", "A"], ["PRIMARY", "id", "-", "YES", "A"]];
    let key = described(&[ID, NAME], &indexes, &[]).unwrap().key().unwrap();
    assert_eq!(key.order_by(), "`n`, `id`");
    let parts = |parts: &[&[u8]]| KeyParts(parts.iter().map(|part| Box::from(*part)).collect());
    let value = parts(&[b"a'\\", &[0xfe, 0xff, 0xff, 0xff]]);
    let literal = "_utf8mb4 x'61275c' COLLATE utf8mb4_general_ci";
    assert_eq!(key.behind(&value).unwrap(), format!("(`n` > {literal}) OR (`n` = {literal} AND `id` > -2)"));
    assert_eq!(key.up_to(&value).unwrap(), format!("(`n` < {literal}) OR (`n` = {literal} AND `id` <= -2)"));
    let mut descending = indexes;
    descending[0][4] = "D";
    let backwards = described(&[ID, NAME], &descending, &[]).unwrap().key().unwrap();
    assert_eq!(backwards.order_by(), "`n` DESC, `id`");
    assert_eq!(backwards.order_by_from_end(), "`n`, `id` DESC");
    assert_eq!(
        backwards.up_to(&value).unwrap(),
        format!("(`n` > {literal}) OR (`n` = {literal} AND `id` <= -2)")
    );
    let [n, id] = key.parts() else { panic!("two parts") };
    assert_eq!(n.weight(&n.expression()).unwrap(), "WEIGHT_STRING(`n` AS CHAR(20))");
    assert_eq!(id.weight("`id`"), None);
    // Text that differs is the server's to compare; before it, and equal, it is not asked.
    let of = |text: &'static [u8], id: i32| parts(&[text, &id.to_le_bytes()]);
    assert!(!key.is_ordered_here());
    assert_eq!(key.compare(&of(b"a", 1), &of(b"a", -1)), Some(Ordering::Greater));
    assert_eq!(key.compare(&of(b"a", 1), &of(b"A", 1)), None);
    assert_eq!(key.behind(&parts(&[b"a"])), None);
    assert_eq!(key.behind(&parts(&[b"a", b"b"])), None);
}

/// A name is a name, whatever is in it.
#[test]
fn names_are_quoted() {
    assert_eq!(quoted_table("a`b", "c'.d"), "`a``b`.`c'.d`");
}

#[test]
fn result_rows_become_insert_images() {
    let table = described(&[ID, NAME, SET, AT], &[], &[&[Some("a")], &[Some("?")]]).unwrap().version;
    assert_eq!(select_list(&table), "`id`, `n`, CAST(`s` AS UNSIGNED), `at`");
    let mut encoder = RowEncoder::new(Arc::new(table));
    assert_eq!(encoder.take().unwrap().map(|event| event.changes()), None);
    encoder.push(&mut Cells::new(b"\x02-1\x02\xc3\xa9\x013\xfb")).unwrap();
    // A cell that its column cannot hold, a row that ends early: neither is taken.
    assert!(matches!(
        encoder.push(&mut Cells::new(b"\x02-x\x01a\x011\xfb")),
        Err(RowError::Cell { column: 0, .. })
    ));
    assert!(matches!(encoder.push(&mut Cells::new(b"\x011\x01a\x011")), Err(RowError::Columns(_))));
    encoder.push(&mut Cells::new(b"\x012\x00\x010\x171970-01-01 00:00:01.250")).unwrap();
    assert_eq!(encoder.rows(), 2);
    let event = encoder.take().unwrap().unwrap();
    assert_eq!(
        event.images(),
        [
            &[0x08, 0xff, 0xff, 0xff, 0xff, 2, 0xc3, 0xa9, 3][..],
            &[0x00, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x09, 0xc4],
        ]
        .concat()
    );
    assert_eq!((encoder.rows(), event.changes()), (0, 2));
    let mut scratch = RowScratch::new();
    let mut rows = event.cursor(&mut scratch);
    let Some(ChangeRow::Insert { after }) = rows.next().unwrap() else { panic!("an insert") };
    assert_eq!((after.get(0), after.get(3)), (Ok(Value::Int(-1)), Ok(Value::Null)));
}

#[test]
fn wide_tables_have_a_count_of_three_bytes() {
    for count in [250, 251, 300] {
        let names: Vec<String> = (1..=count).map(|n| format!("{n}")).collect();
        let columns: Vec<_> = names
            .iter()
            .map(|n| {
                let mut column = ID;
                (column[0], column[1]) = (n.as_str(), n.as_str());
                column
            })
            .collect();
        let table = described(&columns, &[], &[]).unwrap().version;
        let mut encoder = RowEncoder::new(Arc::new(table));
        encoder.push(&mut Cells::new(&vec![0xfb; count])).unwrap();
        assert_eq!(encoder.take().unwrap().unwrap().images().len(), count.div_ceil(8));
    }
}

/// Left-out columns are neither asked for nor shown.
#[test]
fn left_out_columns_are_null() {
    let mut table = described(&[ID, NAME], &[], &[]).unwrap().version;
    table.leave_out(|name| name != "n");
    assert_eq!(select_list(&table), "`id`, NULL");
}

/// Each whole number: so many behind another, and no further than its type goes.
#[test]
fn a_key_that_is_one_whole_number_is_counted_along() {
    let types = [
        ("tinyint", 1, -128, 127),
        ("tinyint unsigned", 1, 0, 255),
        ("smallint", 2, -32_768, 32_767),
        ("smallint unsigned", 2, 0, 65_535),
        ("mediumint", 3, -8_388_608, 8_388_607),
        ("mediumint unsigned", 3, 0, 16_777_215),
        ("int", 4, i32::MIN.into(), i32::MAX.into()),
        ("int unsigned", 4, 0, u32::MAX.into()),
        ("bigint", 8, i64::MIN.into(), i64::MAX.into()),
        ("bigint unsigned", 8, 0, u64::MAX.into()),
    ];
    let part = |order| [["PRIMARY", "id", "-", "YES", order]];
    for (name, width, least, most) in types {
        let mut id = ID;
        (id[2], id[3]) = (name.split(' ').next().unwrap(), name);
        let key = described(&[id], &part("A"), &[]).unwrap().key().unwrap();
        let of = |n: i128| KeyParts([n.to_le_bytes()[..width].into()].into());
        for (from, by, to) in [
            (least, 0, least),
            (least, 100, least + 100),
            (most - 1, 1, most),
            (least, u128::MAX, most),
            (most, 1, most),
        ] {
            assert_eq!(key.ahead(&of(from), by), Some(of(to)), "{name} {from} {by}");
            assert_eq!(key.numbers(&of(from), &of(to)), u128::try_from(to - from).ok(), "{name}");
        }
        assert_eq!(key.numbers(&of(most), &of(least)), None);
        assert_eq!(key.ahead(&KeyParts([of(0).0[0].clone(), of(0).0[0].clone()].into()), 1), None);
        let falls = described(&[id], &part("D"), &[]).unwrap().key().unwrap();
        assert_eq!((falls.ahead(&of(1), 1), falls.numbers(&of(0), &of(1))), (None, None));
    }
    let text = described(&[ID, NAME], &[["PRIMARY", "n", "-", "YES", "A"]], &[]).unwrap().key().unwrap();
    assert_eq!(text.ahead(&KeyParts([b"a".as_slice().into()].into()), 1), None);
}
