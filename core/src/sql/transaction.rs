//! Transaction control and XA.

use alloc::string::String;
use alloc::vec::Vec;

use super::cursor::{Cursor, Read, Refused};
use super::lex::{Token, TokenKind};
use super::{Statement, Xid, lower_case};
use crate::binlog::sql_mode::NO_BACKSLASH_ESCAPES;

/// The statement, if its first word is one of transaction control.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Option<Statement>> {
    let statement = if cursor.accept("BEGIN")? {
        cursor.accept("WORK")?;
        Statement::Begin
    } else if cursor.accept_all(&["START", "TRANSACTION"])? {
        // WITH CONSISTENT SNAPSHOT, READ ONLY, READ WRITE.
        cursor.rest()?;
        Statement::Begin
    } else if cursor.accept("COMMIT")? {
        completion(cursor)?;
        Statement::Commit
    } else if cursor.accept("ROLLBACK")? {
        rollback(cursor)?
    } else if cursor.accept("SAVEPOINT")? {
        Statement::Savepoint(savepoint(cursor)?)
    } else if cursor.accept_all(&["RELEASE", "SAVEPOINT"])? {
        Statement::ReleaseSavepoint(savepoint(cursor)?)
    } else if cursor.accept("XA")? {
        xa(cursor)?
    } else {
        return Ok(None);
    };
    cursor.end()?;
    Ok(Some(statement))
}

/// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`
fn completion(cursor: &mut Cursor<'_>) -> Read<()> {
    cursor.accept("WORK")?;
    if cursor.accept("AND")? {
        cursor.accept("NO")?;
        cursor.expect("CHAIN")?;
    }
    if cursor.accept("NO")? {
        cursor.expect("RELEASE")?;
    } else {
        cursor.accept("RELEASE")?;
    }
    Ok(())
}

fn rollback(cursor: &mut Cursor<'_>) -> Read<Statement> {
    cursor.accept("WORK")?;
    if cursor.accept("TO")? {
        // SAVEPOINT is no reserved word: `ROLLBACK TO savepoint` names one of that name.
        if cursor.accept("SAVEPOINT")? && cursor.at_end()? {
            return Ok(Statement::RollbackToSavepoint("savepoint".into()));
        }
        return Ok(Statement::RollbackToSavepoint(savepoint(cursor)?));
    }
    completion(cursor)?;
    Ok(Statement::Rollback)
}

/// A savepoint's name. Names of savepoints compare without regard to case.
fn savepoint(cursor: &mut Cursor<'_>) -> Read<String> {
    Ok(lower_case(&cursor.name()?))
}

fn xa(cursor: &mut Cursor<'_>) -> Read<Statement> {
    if cursor.accept_any(&["START", "BEGIN"])? {
        let xid = xid(cursor)?;
        cursor.accept_any(&["JOIN", "RESUME"])?;
        Ok(Statement::XaStart(xid))
    } else if cursor.accept("END")? {
        let xid = xid(cursor)?;
        if cursor.accept("SUSPEND")? {
            cursor.accept_all(&["FOR", "MIGRATE"])?;
        }
        Ok(Statement::XaEnd(xid))
    } else if cursor.accept("PREPARE")? {
        Ok(Statement::XaPrepare(xid(cursor)?))
    } else if cursor.accept("COMMIT")? {
        let xid = xid(cursor)?;
        Ok(Statement::XaCommit { xid, one_phase: cursor.accept_all(&["ONE", "PHASE"])? })
    } else {
        cursor.expect("ROLLBACK")?;
        Ok(Statement::XaRollback { xid: xid(cursor)? })
    }
}

/// `gtrid [, bqual [, formatID]]`; the log has them as `X'…',X'…',n`.
fn xid(cursor: &mut Cursor<'_>) -> Read<Xid> {
    let mut xid = Xid { format_id: 1, gtrid: xid_part(cursor)?, bqual: Vec::new() };
    if cursor.accept_symbol(b',')? {
        xid.bqual = xid_part(cursor)?;
        if cursor.accept_symbol(b',')? {
            xid.format_id = format_id(cursor.next()?.ok_or(Refused)?)?;
        }
    }
    Ok(xid)
}

/// `MAXGTRIDSIZE`, `MAXBQUALSIZE` of `sql/xa.h`.
const XID_PART_BYTES: usize = 64;

fn xid_part(cursor: &mut Cursor<'_>) -> Read<Vec<u8>> {
    let escapes = cursor.context().sql_mode & NO_BACKSLASH_ESCAPES == 0;
    let token = cursor.next()?.ok_or(Refused)?;
    let part = match token.kind {
        TokenKind::Hex => unhex(token.raw.get(2..token.raw.len().saturating_sub(1)).unwrap_or_default()),
        TokenKind::HexNumber => unhex(token.raw.get(2..).unwrap_or_default()),
        TokenKind::String => plain_string(token, escapes),
        TokenKind::Word | TokenKind::Quoted | TokenKind::Bits | TokenKind::Number | TokenKind::Symbol(_) => {
            None
        }
    };
    part.filter(|part| part.len() <= XID_PART_BYTES).ok_or(Refused)
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let nibble = |&b: &u8| char::from(b).to_digit(16).and_then(|n| u8::try_from(n).ok());
    let mut bytes = Vec::new();
    // An odd count gets a leading zero, as the server reads `0x…`.
    let (odd, pairs) = digits.split_at_checked(digits.len() % 2)?;
    if let Some(digit) = odd.first() {
        bytes.push(nibble(digit)?);
    }
    for pair in pairs.chunks_exact(2) {
        let [high, low] = pair else { return None };
        bytes.push(nibble(high)? << 4 | nibble(low)?);
    }
    Some(bytes)
}

/// A string without anything to unescape. The log writes no others, and a wrong XID is worse than none.
fn plain_string(token: Token<'_>, escapes: bool) -> Option<Vec<u8>> {
    let (quote, inner) = token.raw.split_first()?;
    let inner = inner.strip_suffix(&[*quote])?;
    let plain = inner.is_ascii() && !inner.contains(quote) && !(escapes && inner.contains(&b'\\'));
    plain.then(|| inner.to_vec())
}

fn format_id(token: Token<'_>) -> Read<u64> {
    let (digits, radix) = match token.kind {
        TokenKind::Number => (Some(token.raw), 10),
        TokenKind::HexNumber => (token.raw.get(2..), 16),
        TokenKind::Word
        | TokenKind::Quoted
        | TokenKind::String
        | TokenKind::Hex
        | TokenKind::Bits
        | TokenKind::Symbol(_) => (None, 10),
    };
    let digits = digits.and_then(|digits| core::str::from_utf8(digits).ok()).ok_or(Refused)?;
    u64::from_str_radix(digits, radix).map_err(|_| Refused)
}
