//! What a server makes of every code of a character set.

use capstan_core::value::charset::Charset;
use capstan_mysql::{Session, SqlError};

/// The character sets whose characters have more than one byte, ASCII being one of them.
pub const EAST_ASIAN: [Charset; 9] = [
    Charset::Big5,
    Charset::Cp932,
    Charset::Eucjpms,
    Charset::Euckr,
    Charset::Gb18030,
    Charset::Gb2312,
    Charset::Gbk,
    Charset::Sjis,
    Charset::Ujis,
];

/// What a server makes of some bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// They are malformed: no column of the character set takes them.
    Malformed,
    /// They are stored, but there is only `?` or U+FFFD for them.
    NoCharacter,
    /// Their text.
    Text(String),
}

/// Bytes and what the server makes of them.
pub type Conversion = (Vec<u8>, Answer);

/// Makes the tables of codes that [`conversions`] reads, in a database `charsets` of its own.
pub fn prepare(session: &mut Session) -> Result<(), SqlError> {
    session.query(
        "CREATE DATABASE charsets; USE charsets;
         SET SESSION cte_max_recursion_depth = 200000;
         CREATE TABLE code_1 (b VARBINARY(4) PRIMARY KEY);
         CREATE TABLE code_2 (b VARBINARY(4) PRIMARY KEY);
         CREATE TABLE code_3 (b VARBINARY(4) PRIMARY KEY);
         CREATE TABLE code_4 (b VARBINARY(4) PRIMARY KEY);
         INSERT INTO code_1 WITH RECURSIVE r AS (SELECT 0 i UNION ALL SELECT i + 1 FROM r WHERE i < 255)
           SELECT UNHEX(LPAD(HEX(i), 2, '0')) FROM r;
         INSERT INTO code_2 WITH RECURSIVE r AS (SELECT 0 i UNION ALL SELECT i + 1 FROM r WHERE i < 65535)
           SELECT UNHEX(LPAD(HEX(i), 4, '0')) FROM r;
         INSERT INTO code_3 SELECT CONCAT(x'8F', b) FROM code_2;
         -- Code points: the whole basic plane, and every 16th beyond it.
         INSERT INTO code_4 SELECT CONCAT(x'0000', b) FROM code_2 WHERE b NOT BETWEEN x'D800' AND x'DFFF';
         INSERT INTO code_4 WITH RECURSIVE r AS (SELECT 65536 i UNION ALL SELECT i + 16 FROM r WHERE i < 1114096)
           SELECT UNHEX(LPAD(HEX(i), 8, '0')) FROM r;",
    )?;
    Ok(())
}

/// Every code of `length` bytes (1 or 2; 3: those behind 0x8f), malformed ones among them. Codes of two
/// or more bytes begin beyond ASCII, unless the set has two bytes to every character.
pub fn conversions(session: &mut Session, charset: Charset, length: u8) -> Result<Vec<Conversion>, SqlError> {
    let name = charset.name();
    let every = length == 1 || matches!(charset, Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le);
    let beyond_ascii = if every { "TRUE" } else { "b >= x'80'" };
    ask(
        session,
        &format!(
            "SELECT b, CONVERT(CONVERT(b USING {name}) USING utf8mb4) FROM charsets.code_{length} WHERE {beyond_ascii}"
        ),
    )
}

/// The bytes in `charset` of the characters it has, over the code points of [`prepare`].
pub fn characters(session: &mut Session, charset: Charset) -> Result<Vec<Conversion>, SqlError> {
    let name = charset.name();
    ask(
        session,
        &format!(
            "SELECT CAST(c AS BINARY), CONVERT(c USING utf8mb4)
             FROM (SELECT b, CONVERT(CONVERT(b USING utf32) USING {name}) c FROM charsets.code_4) codes
             WHERE CAST(c AS BINARY) <> CAST(CONVERT('?' USING {name}) AS BINARY) OR b = x'0000003F'"
        ),
    )
}

fn ask(session: &mut Session, sql: &str) -> Result<Vec<Conversion>, SqlError> {
    let rows = session.query(sql)?.pop().map(|result| result.rows).unwrap_or_default();
    let answer = |row: Vec<Option<Vec<u8>>>| {
        let [bytes, text] = <[_; 2]>::try_from(row).ok()?;
        let bytes = bytes?;
        let answer = match text.map(String::from_utf8) {
            Some(Ok(text)) if stands_for_nothing(&bytes, &text) => Answer::NoCharacter,
            Some(Ok(text)) => Answer::Text(text),
            None | Some(Err(_)) => Answer::Malformed,
        };
        Some((bytes, answer))
    };
    Ok(rows.into_iter().filter_map(answer).collect())
}

/// Whether the server had no character: it then gives `?`, U+FFFD, or (cut characters) nothing at all.
fn stands_for_nothing(bytes: &[u8], text: &str) -> bool {
    let question_marks = bytes.iter().filter(|&&byte| byte == b'?').count();
    let replacement = matches!(
        *bytes,
        [0xff, 0xfd] | [0xfd, 0xff] | [0xef, 0xbf, 0xbd] | [0, 0, 0xff, 0xfd] | [0x84, 0x31, 0xa4, 0x37]
    );
    text.matches('?').count() > question_marks
        || (text.contains('\u{fffd}') && !replacement)
        || text.is_empty()
}
