//! Sizes as people and the kernel write them: `512M`.

/// A size could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Neither number nor unit as expected.
    #[error("`{0}` is no size: expected bytes, 0x hexadecimal, or a number with K, M, G or T (1K = 1024), such as 512M")]
    Syntax(String),
    /// `1G512M`.
    #[error("`{0}` has two units: write it in one, such as 1536M")]
    TwoUnits(String),
}

/// Reads `512M`, `4k`, `1 GiB`, `0x1000` or plain bytes; units are powers of
/// 1024 in either spelling and case.
///
/// ```
/// assert_eq!(soloist_core::parse_size("512M"), Ok(512 << 20));
/// ```
///
/// # Errors
/// Anything else, and what 64 bits don't hold.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    size(trimmed).ok_or_else(|| match two_units(trimmed) {
        true => SizeError::TwoUnits(text.to_owned()),
        false => SizeError::Syntax(text.to_owned()),
    })
}

/// Is it a size, and another one after it?
fn two_units(text: &str) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    let unit = text.find(|c: char| c.is_ascii_alphabetic());
    let again = unit.and_then(|unit| text[unit..].find(digit).map(|at| unit + at));
    again.is_some_and(|at| size(text[..at].trim_end()).is_some() && size(&text[at..]).is_some())
}

/// A whole number without a sign: hexadecimal after `0x`, else decimal.
#[must_use]
pub fn parse_whole(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => plain(hex, 16),
        None => plain(text, 10),
    }
}

fn size(text: &str) -> Option<u64> {
    if let Some(bytes) = parse_whole(text) {
        return Some(bytes);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    let digits = digits.strip_suffix(' ').unwrap_or(digits);
    plain(digits, 10)?.checked_mul(1 << shift)
}

/// Digits only: `u64`'s own parser takes a sign too.
fn plain(digits: &str, radix: u32) -> Option<u64> {
    let all = digits.chars().all(|c| c.is_digit(radix));
    all.then(|| u64::from_str_radix(digits, radix).ok())?
}

/// `512 MiB`, `1.5 GiB`, `12 KiB`, `100 B`: at most one decimal.
pub fn format_size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return match tenths % 10 {
                0 => format!("{} {unit}", tenths / 10),
                tenth => format!("{}.{tenth} {unit}", tenths / 10),
            };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_sizes() {
        for (text, bytes) in [
            ("512M", 512 << 20),
            ("4096", 4096),
            (" 2GiB\n", 2 << 30),
            ("2 GiB", 2 << 30),
            ("3k", 3072),
            ("8g", 8 << 30),
            ("1T", 1 << 40),
            ("64B", 64),
            ("0x1000", 4096),
            ("0X1b", 27),
        ] {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text:?}");
        }
    }

    #[test]
    fn two_units_are_named() {
        for wrong in ["4M2K", "1G 512M", "1 GiB 5 MB"] {
            let said = parse_size(wrong).unwrap_err().to_string();
            assert!(said.contains("two units"), "{said}");
        }
        for wrong in ["4M2Q", "4Q2M", "M2K", "0x1g5"] {
            let said = parse_size(wrong).unwrap_err().to_string();
            assert!(said.contains("is no size"), "{said}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for wrong in [
            "",
            "M",
            "-1",
            "+1",
            "1.5G",
            "5X",
            "1  M",
            " ",
            "0x",
            "0x+1",
            "0xg",
            "é",
            "5µ",
            "99999999999T",
            "18446744073709551616",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn prints_sizes() {
        assert_eq!(format_size(0), "0 B");
        assert_eq!(format_size(512 << 20), "512 MiB");
        assert_eq!(format_size(3 << 29), "1.5 GiB");
        assert_eq!(format_size(u64::MAX), "16777215.9 TiB");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            let _ = parse_size(&text);
        }

        #[test]
        fn whole_units_come_back(count in 1u64..1024, unit in 0u32..4) {
            let bytes = count << (10 * unit);
            prop_assert_eq!(parse_size(&format_size(bytes)).unwrap(), bytes);
        }
    }
}
