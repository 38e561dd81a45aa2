//! Table maps built byte by byte; those that a server wrote are in `rows::tests`.

use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::value::KeyPart;

/// `d.t` with these column types, their metadata and optional metadata; the first column is NOT NULL.
fn body(types: &[u8], metadata: &[u8], optional: &[u8]) -> Vec<u8> {
    let mut body = std::vec![0x6f, 0, 0, 0, 0, 0, 0x01, 0x00, 1, b'd', 0, 1, b't', 0];
    body.push(types.len().try_into().unwrap());
    body.extend(types);
    body.push(metadata.len().try_into().unwrap());
    body.extend(metadata);
    body.extend(std::vec![0xfe; types.len().div_ceil(8)]);
    body.extend(optional);
    body
}

fn parse(types: &[u8], metadata: &[u8], optional: &[u8]) -> Result<TableVersion, TableMapError> {
    parse_table_map(&body(types, metadata, optional))
}

fn type_names(table: &TableVersion) -> Vec<String> {
    table.columns().iter().map(|c| c.column_type.type_name().to_string()).collect()
}

#[test]
fn types_and_their_metadata() {
    for (type_code, metadata, want) in [
        (1, &[][..], "tinyint"),
        (4, &[4], "float"),
        (5, &[8], "double"),
        (7, &[], "timestamp"),
        (10, &[], "date"),
        (14, &[], "date"),
        (11, &[], "time"),
        (12, &[], "datetime"),
        (15, &[0x2c, 0x01], "varchar(300)"),
        (16, &[0, 8], "bit(64)"),
        (16, &[7, 0], "bit(7)"),
        (17, &[6], "timestamp(6)"),
        (246, &[65, 30], "decimal(65,30)"),
        (252, &[3], "mediumtext"),
        (249, &[1], "tinytext"),
        // CHAR(255) of utf8mb4: 1,020 bytes, the bits above 255 inverted into the type byte.
        (254, &[0xce, 0xfc], "char(1020)"),
        (254, &[0xfe, 0xff], "char(255)"),
        (254, &[0xee, 0x00], "char(256)"),
        (254, &[0xf7, 2], "enum"),
        (254, &[0xf8, 8], "set"),
        (247, &[0xf7, 1], "enum"),
        (253, &[0xee, 0x2c], "varchar(300)"),
    ] {
        let table = parse(&[type_code], metadata, &[]).unwrap();
        assert_eq!(type_names(&table), [want], "{type_code} {metadata:02x?}");
    }
}

#[test]
fn types_that_cannot_be_read_are_named_with_their_column() {
    for type_code in [0, 6, 20, 21, 200, 243, 244] {
        let error = parse(&[3, type_code], &[0, 0], &[]).unwrap_err();
        assert_eq!(error, TableMapError::UnsupportedColumnType { column: 1, type_code });
    }
}

#[test]
fn impossible_metadata_is_malformed() {
    for (type_code, metadata) in [
        (4, &[8][..]),
        (5, &[4]),
        (16, &[8, 0]),
        (16, &[0, 0]),
        (16, &[1, 8]),
        (16, &[0, 255]),
        (17, &[7]),
        (18, &[255]),
        (242, &[3]),
        (245, &[1]),
        (255, &[0]),
        (246, &[0, 0]),
        (246, &[66, 0]),
        (246, &[65, 31]),
        (246, &[3, 4]),
        (252, &[0]),
        (252, &[9]),
        (253, &[0xf7, 1]),
        (253, &[0xfd, 3]),
        (254, &[0xf7, 3]),
        (254, &[0xf8, 5]),
        (254, &[0x0f, 1]),
        (254, &[0xe7, 1]),
        (15, &[1]),
        (3, &[1]),
    ] {
        let result = parse(&[type_code], metadata, &[]);
        assert!(matches!(result, Err(TableMapError::Malformed(_))), "{type_code} {metadata:02x?}");
    }
}

#[test]
fn what_does_not_add_up_is_malformed() {
    let good = body(&[3, 15], &[10, 0], &[]);
    assert!(parse_table_map(&good).is_ok());
    for (at, byte) in [
        (8, 0xff),  // length of the schema's name: no length
        (8, 2),     // one more than it is
        (10, b'x'), // no NUL behind it
        (9, 0xff),  // not UTF-8
        (14, 0),    // no columns
        (14, 0xfe), // 2^64 columns or so
        (17, 200),  // metadata longer than the event
    ] {
        let mut changed = good.clone();
        changed[at] = byte;
        assert!(matches!(parse_table_map(&changed), Err(TableMapError::Malformed(_))), "{at} {byte:#x}");
    }
    for end in 0..good.len() {
        assert!(parse_table_map(&good[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn optional_metadata_is_read_field_by_field() {
    #[rustfmt::skip]
    let optional = [
        1, 1, 0b1010_0000,                          // numbers: a, y, d; a and d are unsigned
        2, 5, 0xfc, 0xff, 0, 1, 63,                          // strings: s (255), b (63, exception), v
        4, 14, 1, b'a', 1, b'y', 1, b'd', 1, b's', 1, b'b', 1, b'v', 1, b'e',
        6, 5, 2, 1, b'x', 1, b'y',
        9, 4, 3, 2, 0, 0,                           // key: s(2), a
        10, 1, 8,
        12, 1, 0b1011_1110,                         // y is invisible
        13, 1, 7,
        99, 3, 1, 2, 3,                             // a field of the future
    ];
    let table = parse(&[3, 13, 246, 15, 252, 242, 254], &[10, 2, 20, 0, 2, 4, 0xf7, 1], &optional).unwrap();
    assert_eq!((table.schema(), table.table()), ("d", "t"));
    let names: Vec<_> = table.columns().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a", "y", "d", "s", "b", "v", "e"]);
    assert_eq!(
        type_names(&table),
        ["int unsigned", "year", "decimal(10,2) unsigned", "varchar(20)", "blob", "vector(7)", "enum"]
    );
    let collations: Vec<_> = table.columns().iter().map(|c| c.column_type.collation()).collect();
    assert_eq!(collations, [None, None, None, Some(255), Some(63), None, Some(8)]);
    let key = |column, prefix| KeyPart { column, prefix };
    assert_eq!(table.primary_key(), [key(3, 2), key(0, 0)]);
    let visible: Vec<_> = table.columns().iter().map(|c| c.visible).collect();
    assert_eq!(visible, [true, false, true, true, true, true, true]);
    let nullable: Vec<_> = table.columns().iter().map(|c| c.nullable).collect();
    assert_eq!(nullable, [false, true, true, true, true, true, true]);
    assert!(table.names_known() && table.signedness_known() && table.collations_known());
    assert_eq!(table.column_index("d"), Some(2));
    assert_eq!(table.column_index("D"), None);
}

#[test]
fn optional_metadata_that_does_not_add_up_is_malformed() {
    for optional in [
        &[1][..],                  // no length
        &[1, 2, 0x80],             // longer than what is left
        &[1, 0],                   // a bit for each number
        &[1, 2, 0x80, 0],          // not a byte more
        &[1, 1, 0x80, 1, 1, 0x80], // twice
        &[2, 3, 45, 1, 8],         // a collation for the second string of one
        &[2, 2, 45, 0],            // a pair cut in two
        &[2, 1, 45, 3, 1, 8],      // in both forms
        &[3, 2, 8, 8],             // two for one string
        &[3, 0],                   // none
        &[3, 4, 0xfd, 0, 0, 1],    // 65536
        &[4, 2, 1, b'a'],          // one name for three columns
        &[4, 8, 1, b'a', 1, b'b', 1, b'c', 1, b'd'],
        &[4, 6, 1, 0xff, 1, b'b', 1, b'c'],
        &[6, 2, 2, 1],                   // a label that is not there
        &[6, 3, 1, 1, b'x', 6, 1, 0],    // twice
        &[6, 6, 1, 1, b'x', 1, 1, b'x'], // labels of a second ENUM
        &[6, 10, 0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 0],
        &[8, 1, 3],             // a key of the fourth column
        &[8, 2, 0, 0],          // one column twice
        &[8, 1, 0, 9, 2, 0, 0], // two keys
        &[9, 1, 0],             // no prefix
        &[12, 2, 0, 0],
    ] {
        let result = parse(&[3, 15, 254], &[20, 0, 0xf7, 1], optional);
        assert!(matches!(result, Err(TableMapError::Malformed(_))), "{optional:02x?}");
    }
}

#[test]
fn what_the_source_did_not_write_is_said_to_be_unknown() {
    // As servers before 8.0 write it: no optional metadata at all.
    let table = parse(&[3, 15, 254], &[20, 0, 0xf7, 1], &[]).unwrap();
    assert!(!table.names_known() && !table.signedness_known() && !table.collations_known());
    assert_eq!(table.columns()[2].name, "@3");
    // No number and no string: there was nothing to write.
    let table = parse(&[10], &[], &[]).unwrap();
    assert!(table.signedness_known() && table.collations_known());
}

#[test]
fn the_same_table_map_is_parsed_once() {
    let mut maps = TableMaps::new();
    let first = body(&[3], &[], &[]);
    let one = maps.open(&first).unwrap();
    assert!(Arc::ptr_eq(maps.get(0x6f).unwrap(), &one));
    maps.close_all();
    assert!(maps.get(0x6f).is_none(), "the statement is over");
    assert!(Arc::ptr_eq(&maps.open(&first).unwrap(), &one));

    // Another id, as after FLUSH TABLES: the same table.
    let mut renumbered = first.clone();
    renumbered[0] = 0x70;
    assert!(Arc::ptr_eq(&maps.open(&renumbered).unwrap(), &one));
    assert!(maps.get(0x6f).is_some() && maps.get(0x70).is_some(), "both are open");

    // The same id with other columns, as after a restart: another table.
    let other = maps.open(&body(&[8], &[], &[])).unwrap();
    assert!(!Arc::ptr_eq(&other, &one));
    assert!(Arc::ptr_eq(maps.get(0x6f).unwrap(), &other));

    // Other flags are another table too; a broken one opens nothing and closes nothing.
    assert!(maps.open(&first[..10]).is_err());
    assert!(Arc::ptr_eq(maps.get(0x6f).unwrap(), &other));
    maps.clear();
    assert!(maps.get(0x6f).is_none() && maps.get(0x70).is_none());
}

#[test]
fn what_is_remembered_is_bounded_and_what_is_open_stays() {
    let mut maps = TableMaps::new();
    for id in 0..u16::try_from(REMEMBERED_MAX).unwrap() + 10 {
        let mut map = body(&[3], &[], &[]);
        map[..2].copy_from_slice(&id.to_le_bytes());
        maps.open(&map).unwrap();
        if id == 4_000 {
            maps.close_all();
        }
    }
    assert_eq!(maps.remembered.len(), REMEMBERED_MAX);
    assert_eq!(maps.versions.len(), 1, "all the same table");
    assert!(maps.get(4_001).is_some());
    maps.close_all();

    // Long ones: labels of a megabyte.
    let mut labels = std::vec![6, 0xfd];
    labels.extend(&(1_000_005u32.to_le_bytes()[..3]));
    labels.extend([1, 0xfd]);
    labels.extend(&(1_000_000u32.to_le_bytes()[..3]));
    labels.extend(std::vec![b'x'; 1_000_000]);
    for id in 0..20 {
        let mut map = body(&[254], &[0xf7, 1], &labels);
        map[..2].copy_from_slice(&[id, 0]);
        // Another table each time.
        *map.last_mut().unwrap() = id;
        maps.open(&map).unwrap();
    }
    assert!(maps.remembered_bytes <= REMEMBERED_BYTES_MAX);
    let under: usize = maps.versions.values().map(|(_, ids)| ids).sum();
    assert_eq!(under, maps.remembered.len(), "what is forgotten is gone");
    assert_eq!(maps.remembered.values().map(|m| m.description.len()).sum::<usize>(), maps.remembered_bytes);
}

#[test]
fn hostile_counts_are_refused_before_memory_is_taken() {
    // 65,536 columns, all of them there.
    let mut wide = body(&[3], &[], &[]);
    wide.truncate(14);
    wide.extend([0xfd, 0, 0, 1]);
    wide.extend(std::vec![3; 65_536]);
    wide.push(0);
    wide.extend(std::vec![0; 8_192]);
    assert!(matches!(parse_table_map(&wide), Err(TableMapError::Malformed(_))));

    let mut maps = TableMaps::new();
    let mut last = Ok(());
    for id in 0..=u16::try_from(OPEN_MAX).unwrap() {
        let mut map = body(&[3], &[], &[]);
        map[..2].copy_from_slice(&id.to_le_bytes());
        last = maps.open(&map).map(|_| ());
    }
    assert!(matches!(last, Err(TableMapError::Malformed(_))), "{last:?}");
}
