//! Sizes as people and the kernel write them: `512M`.

/// A size could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no size: write bytes, or a number with K, M, G or T (1K = 1024), such as 512M")]
pub struct SizeError(String);

/// Reads `512M`, `4k`, `1GiB` or plain bytes; powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let wrong = || SizeError(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match trimmed[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `512M`, `1.5G`, `12K`: at most one decimal.
pub fn format_size(bytes: u64) -> String {
    for (shift, unit) in [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')] {
        if bytes >= 1 << shift {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return match tenths % 10 {
                0 => format!("{}{unit}", tenths / 10),
                tenth => format!("{}.{tenth}{unit}", tenths / 10),
            };
        }
    }
    bytes.to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        assert_eq!(parse_size("512M").unwrap(), 512 << 20);
        assert_eq!(parse_size("4096").unwrap(), 4096);
        assert_eq!(parse_size("2GiB").unwrap(), 2 << 30);
        assert_eq!(parse_size("3k").unwrap(), 3072);
        for wrong in ["", "M", "-1", "1.5G", "5X", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn prints_sizes() {
        assert_eq!(format_size(0), "0");
        assert_eq!(format_size(512 << 20), "512M");
        assert_eq!(format_size(3 << 29), "1.5G");
        assert_eq!(format_size(u64::MAX), "16777215.9T");
    }
}
