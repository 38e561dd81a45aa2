//! The captured files.

macro_rules! files {
    ($($name:ident = $path:literal;)*) => {
        $(pub const $name: &[u8] = include_bytes!(concat!("../../../../tests/fixtures/", $path));)*
        pub const ALL: &[(&str, &[u8])] = &[$(($path, $name),)*];
    };
}

files! {
    BL_01 = "cases/BL-01.binlog";
    BL_03 = "cases/BL-03.binlog";
    BL_05 = "cases/BL-05.binlog";
    BL_07 = "cases/BL-07.binlog";
    BL_09 = "cases/BL-09.binlog";
    BL_11 = "cases/BL-11.binlog";
    BL_13 = "cases/BL-13.binlog";
    BL_15 = "cases/BL-15.binlog";
    BL_17 = "cases/BL-17.binlog";
    BL_19 = "cases/BL-19.binlog";
    BL_21 = "cases/BL-21.binlog";
    BL_25 = "cases/BL-25.binlog";
    BL_27 = "cases/BL-27.binlog";
    BL_29 = "cases/BL-29.binlog";
    BL_43 = "cases/BL-43.binlog";
    BL_47 = "cases/BL-47.binlog";
    BL_53 = "cases/BL-53.binlog";
    TAGGED = "binlog/tagged.binlog";
    TAGGED_NEXT = "binlog/tagged-next.binlog";
    CHECKSUM_1 = "binlog/checksum-1.binlog";
    CHECKSUM_2 = "binlog/checksum-2.binlog";
    CHECKSUM_3 = "binlog/checksum-3.binlog";
    IN_USE = "binlog/in-use.binlog";
    PAYLOAD = "binlog/payload.binlog";
    STATEMENTS = "binlog/statements.binlog";
    ANONYMOUS = "binlog/anonymous.binlog";
}

/// Events of a link, each behind its length.
pub const LINK_V1: &[u8] = include_bytes!("../../../../tests/fixtures/binlog/link-v1.events");
/// The same with heartbeats of version 2.
pub const LINK_V2: &[u8] = include_bytes!("../../../../tests/fixtures/binlog/link-v2.events");
/// The same without checksums, from the middle of a file.
pub const LINK_NONE: &[u8] = include_bytes!("../../../../tests/fixtures/binlog/link-none.events");
