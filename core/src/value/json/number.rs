//! Numbers as the server writes them into JSON text.

use alloc::string::String;

use super::JsonError;

/// Appends a signed integer.
#[inline]
pub(crate) fn integer(out: &mut String, value: i64) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// Appends an unsigned integer.
#[inline]
pub(crate) fn unsigned(out: &mut String, value: u64) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// Appends a double: the fewest digits that read back as the same double, in the notation of `my_gcvt`
/// (`strings/dtoa.cc`), with `.0` where nothing else says that it is no integer.
///
/// # Errors
/// [`JsonError::NotFinite`]: no server stores one, and JSON has no word for it.
pub(crate) fn double(out: &mut String, value: f64) -> Result<(), JsonError> {
    if !value.is_finite() {
        return Err(JsonError::NotFinite);
    }
    shortest(out, value, ryu::Buffer::new().format_finite(value));
    Ok(())
}

/// Appends a float as [`double`] does a double: the fewest digits that read back as the same float.
///
/// # Errors
/// [`JsonError::NotFinite`].
pub(crate) fn float(out: &mut String, value: f32) -> Result<(), JsonError> {
    if !value.is_finite() {
        return Err(JsonError::NotFinite);
    }
    shortest(out, value.into(), ryu::Buffer::new().format_finite(value));
    Ok(())
}

fn shortest(out: &mut String, value: f64, digits: &str) {
    // In this range `ryu` and the server both write plain digits; outside it, and at 1e15, they part.
    if value == 0.0 || (1e-4..1e15).contains(&value.abs()) {
        out.push_str(digits);
    } else {
        gcvt(out, digits);
    }
}

/// Rewrites any decimal notation into that of `my_gcvt` for doubles: plain digits if the point lies at
/// most 15 places right of the first digit (or inside the digits) and at most 14 zeros follow `0.`,
/// else an exponent without sign or zeros in front.
fn gcvt(out: &mut String, shortest: &str) {
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    let mut digits = [b'0'; 32];
    let mut length = 0_usize;
    let mut leading = 0_i32;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if length == 0 && digit == b'0' {
            leading = leading.saturating_add(1);
        } else if let Some(slot) = digits.get_mut(length) {
            *slot = digit;
            length = length.saturating_add(1);
        }
    }
    let digits = digits.get(..length).and_then(|digits| core::str::from_utf8(digits).ok());
    let digits = digits.unwrap_or("0").trim_end_matches('0');
    let whole_length = i32::try_from(whole.len()).unwrap_or(i32::MAX);
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The value is 0.DIGITS × 10^point.
    let point = whole_length.saturating_sub(leading).saturating_add(exponent);

    out.push_str(sign);
    if (-14..=15).contains(&point) || (point > 15 && count > point) {
        plain(out, digits, point);
    } else {
        scientific(out, digits, point.saturating_sub(1));
    }
}

fn plain(out: &mut String, digits: &str, point: i32) {
    let count = digits.len();
    match usize::try_from(point) {
        Ok(point) if point > 0 => {
            let (whole, fraction) = digits.split_at(point.min(count));
            out.push_str(whole);
            out.extend(core::iter::repeat_n('0', point.saturating_sub(count)));
            out.push('.');
            out.push_str(if fraction.is_empty() { "0" } else { fraction });
        }
        Ok(_) | Err(_) => {
            out.push_str("0.");
            let zeros = usize::try_from(point.saturating_neg()).unwrap_or(0);
            out.extend(core::iter::repeat_n('0', zeros));
            out.push_str(digits);
        }
    }
}

fn scientific(out: &mut String, digits: &str, exponent: i32) {
    let (first, rest) = digits.split_at(digits.len().min(1));
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out.push('e');
    out.push_str(itoa::Buffer::new().format(exponent));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right column is what MySQL 9.7.4 prints for the left one as a JSON double.
    #[test]
    fn doubles_have_the_servers_digits_and_notation() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.001, "0.001"),
            (1e-4, "0.0001"),
            (1.5e-5, "0.000015"),
            (1e-14, "0.00000000000001"),
            (1e-15, "0.000000000000001"),
            (1.234_567_890_123_456_8e-15, "0.0000000000000012345678901234568"),
            (-1.234_567_890_123_456_8e-15, "-0.0000000000000012345678901234568"),
            (1e-16, "1e-16"),
            (1e14, "100000000000000.0"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (1e15, "1e15"),
            (-1e15, "-1e15"),
            (1_234_567_890_123_456.0, "1.234567890123456e15"),
            (1_234_567_890_123_456.8, "1234567890123456.8"),
            (12_345_678_901_234_568.0, "1.2345678901234568e16"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
            (2.225_073_858_507_201_4e-308, "2.2250738585072014e-308"),
            (1e100, "1e100"),
            (123e50, "1.23e52"),
        ] {
            let mut out = String::new();
            double(&mut out, value).unwrap();
            assert_eq!(out, text);
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(double(&mut String::new(), value), Err(JsonError::NotFinite));
        }
    }
}
