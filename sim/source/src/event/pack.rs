//! DECIMAL and the temporal types, from the text that `SELECT` shows of them (TIMESTAMP: seconds since 1970) to bytes.
//!
//! Sources: `decimal2bin` in `strings/decimal.cc`, `my_*_packed_to_binary` in `mysys/my_time.cc`.

/// The bytes of a value; none for a type that is not packed.
pub(super) fn packed(type_code: u8, meta: &[u8], text: &str) -> Vec<u8> {
    match (type_code, meta) {
        (10, _) => date(text),
        (17, [fsp]) => timestamp(text, *fsp),
        (18, [fsp]) => datetime(text, *fsp),
        (19, [fsp]) => time(text, *fsp),
        (246, [precision, scale]) => decimal(text, usize::from(precision - scale), usize::from(*scale)),
        _ => Vec::new(),
    }
}

/// Groups of nine digits from the point outwards; the first bit inverted, and all bits of what is below zero.
fn decimal(text: &str, whole_digits: usize, scale: usize) -> Vec<u8> {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let size = text.trim_start_matches('-');
    let (whole, fraction) = size.split_once('.').unwrap_or((size, ""));
    let whole = format!("{whole:0>whole_digits$}");
    let (odd, groups) = whole[whole.len() - whole_digits..].split_at(whole_digits % 9);
    let fraction = format!("{fraction:0<scale$}");
    let mut out = Vec::new();
    let digits = [groups.as_bytes(), fraction.as_bytes()].into_iter().flat_map(|part| part.chunks(9));
    for group in std::iter::once(odd.as_bytes()).chain(digits) {
        let number = group.iter().fold(0_u32, |n, digit| n * 10 + u32::from(digit - b'0'));
        out.extend_from_slice(&number.to_be_bytes()[4 - BYTES[group.len()]..]);
    }
    if text.starts_with('-') {
        out.iter_mut().for_each(|byte| *byte = !*byte);
    }
    out[0] ^= 0x80;
    out
}

fn date(text: &str) -> Vec<u8> {
    let [year, month, day] = parts(text);
    (year << 9 | month << 5 | day).to_le_bytes()[..3].to_vec()
}

fn timestamp(text: &str, fsp: u8) -> Vec<u8> {
    let [seconds] = parts(text);
    [&seconds.to_be_bytes()[4..], &fraction(text, fsp)].concat()
}

fn datetime(text: &str, fsp: u8) -> Vec<u8> {
    let [year, month, day, hour, minute, second] = parts(text);
    let packed = (year * 13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second;
    [&(packed | 1 << 39).to_be_bytes()[3..], &fraction(text, fsp)].concat()
}

/// One number with its fraction, biased by the half of what it can hold.
fn time(text: &str, fsp: u8) -> Vec<u8> {
    let [hour, minute, second] = parts(text);
    let fraction = fraction(text, fsp);
    let number = fraction.iter().fold(hour << 12 | minute << 6 | second, |n, byte| n << 8 | u64::from(*byte));
    let bias = 1 << (23 + 8 * fraction.len());
    let biased: u64 = if text.starts_with('-') { bias - number } else { bias + number };
    biased.to_be_bytes()[5 - fraction.len()..].to_vec()
}

/// The numbers before the fraction.
fn parts<const N: usize>(text: &str) -> [u64; N] {
    let whole = text.split('.').next().unwrap_or_default().trim_start_matches('-');
    let mut numbers = whole.split(['-', ' ', ':']).map(|part| part.parse().expect("digits"));
    std::array::from_fn(|_| numbers.next().expect("all parts"))
}

/// Two digits to a byte, as one number.
fn fraction(text: &str, fsp: u8) -> Vec<u8> {
    let width = usize::from(fsp).div_ceil(2);
    let digits = text.split_once('.').map_or("", |(_, digits)| digits);
    let number: u32 = format!("{digits:0<0$}", 2 * width).parse().unwrap_or(0);
    number.to_be_bytes()[4 - width..].to_vec()
}
