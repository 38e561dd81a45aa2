//! The members of an ENUM or SET out of `COLUMN_TYPE`.

use alloc::{string::String, vec::Vec};

/// The members of `enum('a','b')` or `set(…)`, unescaped (`append_unescaped`, `sql/sql_show.cc`); `None` if it is
/// neither.
pub(super) fn members(column_type: &str) -> Option<Vec<String>> {
    let list = column_type.strip_prefix("enum(").or_else(|| column_type.strip_prefix("set("))?;
    let mut chars = list.chars().peekable();
    let mut members = Vec::new();
    loop {
        if chars.next()? != '\'' {
            return None;
        }
        let mut member = String::new();
        loop {
            match chars.next()? {
                '\'' if chars.peek() == Some(&'\'') => {
                    chars.next();
                    member.push('\'');
                }
                '\'' => break,
                '\\' => member.push(match chars.next()? {
                    '0' => '\0',
                    'n' => '\n',
                    'r' => '\r',
                    other => other,
                }),
                other => member.push(other),
            }
        }
        members.push(member);
        match chars.next()? {
            ',' => {}
            ')' => return chars.next().is_none().then_some(members),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_are_part_of_members() {
        for (text, want) in [
            ("enum('a')", Some(&["a"][..])),
            ("set('a','b''c','d\\\\e','é','')", Some(&["a", "b'c", "d\\e", "é", ""])),
            ("enum('\\n\\r\\0',',')", Some(&["\n\r\0", ","])),
            ("enum(')','(')", Some(&[")", "("])),
            ("enum('a'", None),
            ("enum('a')x", None),
            ("enum(a)", None),
            ("enum()", None),
            ("int", None),
        ] {
            let found = members(text);
            assert_eq!(
                found.as_deref().map(|m| m.iter().map(String::as_str).collect()),
                want.map(Vec::from),
                "{text}"
            );
        }
    }
}
