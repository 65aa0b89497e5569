//! Words of which other tools' lists of functions are made.

use soloist_machine::function::MAX_BIT;
use soloist_machine::gf2;

/// A function of these bits.
pub(crate) fn mask_of(numbers: &[u32]) -> Result<u64, String> {
    let mut mask = 0u64;
    for &bit in numbers {
        if bit > MAX_BIT {
            return Err(format!("bit {bit}: expected 0 to {MAX_BIT}"));
        }
        if mask >> bit & 1 == 1 {
            return Err(format!("bit {bit} occurs twice"));
        }
        mask |= 1 << bit;
    }
    Ok(mask)
}

/// Numbers apart by anything that is no digit.
pub(crate) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.parse()
                .map_err(|_| format!("`{word}`: expected a bit number"))
        })
        .collect()
}

/// A mask that a person or a tool writes.
pub(crate) fn hex(word: &str) -> Result<u64, String> {
    let mask = match word.strip_prefix("0b") {
        Some(digits) => u64::from_str_radix(digits, 2),
        None => {
            let digits = word.trim_start_matches("0x").trim_start_matches("0X");
            u64::from_str_radix(digits, 16)
        }
    };
    match mask {
        Ok(mask) if mask != 0 && mask >> (MAX_BIT + 1) == 0 => Ok(mask),
        _ => Err(format!(
            "`{word}`: expected a hexadecimal mask of bits 0 to {MAX_BIT}"
        )),
    }
}

/// A function's bits, apart by spaces.
pub(crate) fn words(function: u64) -> String {
    gf2::show(function).replace('^', " ")
}
