//! Sizes as people write them.

use crate::Error;

/// Bytes in `text`: a decimal number, then nothing, `K`, `M` or `G` (powers of
/// 1024).
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let wrong = || Error::Size(text.to_owned());
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse_size("4096").ok(), Some(4096));
        assert_eq!(parse_size("512M").ok(), Some(512 << 20));
        assert_eq!(parse_size("8g").ok(), Some(8 << 30));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "M", "1T", "-1", "1.5G", "99999999999999G", "é"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
