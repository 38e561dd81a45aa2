//! The names of binlog files.

use core::cmp::Ordering;

/// Which of two binlog files is the earlier one.
///
/// Files of one base name are ordered by their number, whatever its width: `bin.1000000` comes behind
/// `bin.999999`. A path in front is not part of the name. Across base names, and for what is no name of a
/// binlog file, no order is claimed (`None`): only GTIDs can tell.
///
/// ```
/// use capstan_core::binlog::compare_names;
/// use core::cmp::Ordering;
/// assert_eq!(compare_names(b"bin.999999", b"bin.1000000"), Some(Ordering::Less));
/// assert_eq!(compare_names(b"mysql-bin.000009", b"binlog.000001"), None);
/// ```
#[must_use]
pub fn compare_names(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let ((base_a, number_a), (base_b, number_b)) = (split(a)?, split(b)?);
    if base_a != base_b {
        return None;
    }
    // Numbers without leading zeros, so the longer one is the larger one, of any width.
    Some(number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b)))
}

/// The base name and the digits behind its last point, without leading zeros.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let name = name.rsplit(|&byte| byte == b'/').next()?;
    let point = name.iter().rposition(|&byte| byte == b'.')?;
    let (base, digits) = (name.get(..point)?, name.get(point.checked_add(1)?..)?);
    if base.is_empty() || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let zeros = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    Some((base, digits.get(zeros..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_order_files_of_one_base_name() {
        use Ordering::{Equal, Greater, Less};
        for (a, b, want) in [
            ("bin.999999", "bin.1000000", Some(Less)),
            ("bin.1000001", "bin.1000000", Some(Greater)),
            ("bin.9", "bin.10", Some(Less)),
            ("bin.000007", "bin.7", Some(Equal)),
            ("bin.000000", "bin.000001", Some(Less)),
            ("my.bin.000001", "my.bin.000002", Some(Less)),
            ("/var/lib/mysql/bin.000002", "bin.000001", Some(Greater)),
            ("./bin.000002", "/var/bin.000002", Some(Equal)),
            ("bin.99999999999999999999999999", "bin.100000000000000000000000000", Some(Less)),
            ("mysql-bin.000009", "binlog.000001", None),
            ("my.bin.000001", "bin.000001", None),
            ("bin.000001", "log.000002", None),
            ("bin", "bin.000001", None),
            ("bin.", "bin.000001", None),
            ("bin.00000x", "bin.00000x", None),
            (".000001", ".000002", None),
            ("", "", None),
            ("bin.000001/", "bin.000001", None),
        ] {
            assert_eq!(compare_names(a.as_bytes(), b.as_bytes()), want, "{a} {b}");
            assert_eq!(compare_names(b.as_bytes(), a.as_bytes()), want.map(Ordering::reverse), "{b} {a}");
        }
    }
}
