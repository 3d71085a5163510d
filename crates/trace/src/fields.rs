//! Numbers and words in lines of text.

/// A whole number, all digits.
#[inline]
pub fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut number = 0_u64;
    for &sign in text {
        let digit = sign.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
}

/// Seconds, as `12` or `12.345678`, in ns; digits beyond the ninth are left out.
pub fn seconds_ns(text: &[u8]) -> Option<u64> {
    let (before, after) = match text.iter().position(|&sign| sign == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[] as &[u8]),
    };
    let seconds = whole(before)?;
    let mut part = 0_u64;
    if !after.iter().all(u8::is_ascii_digit) {
        return None;
    }
    for place in 0..9 {
        part = part * 10 + after.get(place).map_or(0, |sign| u64::from(sign - b'0'));
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Words between spaces.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The fields of a line of a comma-separated file; None when there are not exactly so many.
#[inline]
pub fn commas<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    let mut found = [&line[..0]; N];
    let mut fields = line.split(|&sign| sign == b',');
    for place in &mut found {
        *place = fields.next()?.trim_ascii();
    }
    fields.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_to_the_nanosecond() {
        assert_eq!(seconds_ns(b"12.345678"), Some(12_345_678_000));
        assert_eq!(seconds_ns(b"0.0000000019"), Some(1));
        assert_eq!(seconds_ns(b"7"), Some(7_000_000_000));
        assert_eq!(seconds_ns(b"7.x"), None);
        assert_eq!(seconds_ns(b"-7.0"), None);
    }

    #[test]
    fn a_number_that_is_too_long_is_none() {
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), None);
        assert_eq!(whole(b"12a"), None);
        assert_eq!(whole(b""), None);
    }

    #[test]
    fn a_line_with_more_or_fewer_fields_is_none() {
        assert_eq!(commas::<2>(b"a, b"), Some([&b"a"[..], &b"b"[..]]));
        assert_eq!(commas::<2>(b"a"), None);
        assert_eq!(commas::<2>(b"a,b,c"), None);
    }
}
