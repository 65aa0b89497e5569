//! Lists of bank functions as other tools write them.
//!
//! These hold functions only: no ranges, no rows, and nothing of which function
//! is channel, rank or bank. Importing makes one layout of bank bits over one
//! range; exporting keeps the channel, rank and bank functions of a layout.

use std::fmt;
use std::str::FromStr;

use soloist_machine::function::{parse_list, MAX_BIT};
use soloist_machine::gf2::{self, Basis};

/// A format of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `map.txt` of DRAMA++, newer PALLOC patches and IsolBench: one function a
    /// line, decimal bit numbers.
    Bits,
    /// DRAMA: lines `Bits: 14 18` or `(14, 18)`, other lines passed over.
    Drama,
    /// Hexadecimal masks, one function each.
    Hex,
    /// PALLOC's debugfs: `mask 0x1e000`, each bit a function, and
    /// `xor 13 17`, which joins bit 17 to bit 13.
    Palloc,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bits, Self::Drama, Self::Hex, Self::Palloc];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bits => "bits",
            Self::Drama => "drama",
            Self::Hex => "hex",
            Self::Palloc => "palloc",
        })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |format: &&Self| format.to_string() == text;
        let alias = match text {
            "map.txt" | "isolbench" | "drama++" => Some(&Self::Bits),
            _ => None,
        };
        Self::ALL
            .iter()
            .find(named)
            .or(alias)
            .copied()
            .ok_or_else(|| format!("`{text}`: expected bits (map.txt), drama, hex, palloc, trrespass, dramdig, blacksmith, order, machine or text"))
    }
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", at(*.line))]
pub struct FormatError {
    /// From 1; 0: all of it.
    pub line: usize,
    /// What was wrong and what was expected.
    pub message: String,
}

fn at(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!("line {line}: "),
    }
}

/// Reads functions.
///
/// # Errors
/// With the line: what can't be read, or functions that depend on each other.
pub fn read(format: Format, text: &str) -> Result<Vec<u64>, FormatError> {
    let mut functions = Vec::new();
    let mut basis = Basis::new();
    let mut joins: Vec<(usize, u32, u32)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = |message: String| FormatError {
            line: i + 1,
            message,
        };
        let line = line.split('#').next().unwrap_or_default().trim();
        let found = match format {
            Format::Bits => bits_line(line),
            Format::Drama => drama_line(line),
            Format::Hex => hex_line(line),
            Format::Palloc => palloc_line(line, i + 1, &mut joins),
        };
        for function in found.map_err(wrong)? {
            if !basis.insert(function) {
                return Err(wrong(format!(
                    "{} follows from the functions before it",
                    gf2::show(function)
                )));
            }
            functions.push(function);
        }
    }
    for (line, to, from) in joins {
        join(&mut functions, line, to, from)?;
    }
    if functions.is_empty() {
        return Err(FormatError {
            line: 0,
            message: format!("no functions in it; expected {}", example(format)),
        });
    }
    Ok(functions)
}

fn example(format: Format) -> &'static str {
    match format {
        Format::Bits => "lines such as `14 18`",
        Format::Drama => "lines such as `Bits: 14 18`",
        Format::Hex => "masks such as `0x44000`",
        Format::Palloc => "`mask 0x1e000` and `xor 13 17`",
    }
}

fn mask_of(numbers: &[u32]) -> Result<u64, String> {
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
fn numbers(text: &str) -> Result<Vec<u32>, String> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.parse()
                .map_err(|_| format!("`{word}`: expected a bit number"))
        })
        .collect()
}

fn bits_line(line: &str) -> Result<Vec<u64>, String> {
    if line.is_empty() {
        return Ok(Vec::new());
    }
    let plain = |c: char| c.is_ascii_digit() || c.is_whitespace() || c == ',' || c == '^';
    if !line.chars().all(plain) {
        return Err(format!("`{line}`: expected bit numbers such as `14 18`"));
    }
    Ok(vec![mask_of(&numbers(line)?)?])
}

fn drama_line(line: &str) -> Result<Vec<u64>, String> {
    let lower = line.to_ascii_lowercase();
    let body = match lower.find("bits:") {
        Some(at) => {
            let rest = &line[at + 5..];
            let end = rest.find(['(', '[', '%']).unwrap_or(rest.len());
            &rest[..end]
        }
        None => match (line.find('('), line.find(')')) {
            (Some(open), Some(close)) if open < close => &line[open + 1..close],
            _ => return Ok(Vec::new()),
        },
    };
    let list = |c: char| c.is_ascii_digit() || c.is_whitespace() || c == ',' || c == '^';
    if !body.chars().all(list) {
        return Ok(Vec::new());
    }
    let numbers = numbers(body)?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![mask_of(&numbers)?])
}

fn hex(word: &str) -> Result<u64, String> {
    let digits = word.trim_start_matches("0x").trim_start_matches("0X");
    match u64::from_str_radix(digits, 16) {
        Ok(mask) if mask != 0 && mask >> (MAX_BIT + 1) == 0 => Ok(mask),
        _ => Err(format!(
            "`{word}`: expected a hexadecimal mask of bits 0 to {MAX_BIT}"
        )),
    }
}

fn hex_line(line: &str) -> Result<Vec<u64>, String> {
    line.split(|c: char| c.is_whitespace() || c == ',' || c == '{' || c == '}')
        .filter(|word| !word.is_empty())
        .map(hex)
        .collect()
}

fn palloc_line(
    line: &str,
    number: usize,
    joins: &mut Vec<(usize, u32, u32)>,
) -> Result<Vec<u64>, String> {
    let words: Vec<&str> = line
        .split([' ', '\t', '='])
        .filter(|w| !w.is_empty())
        .collect();
    match words.as_slice() {
        [] => Ok(Vec::new()),
        ["xor", to, from] => {
            let bit = |word: &str| match word.parse::<u32>() {
                Ok(bit) if bit <= MAX_BIT => Ok(bit),
                _ => Err(format!(
                    "`{word}`: expected a bit number from 0 to {MAX_BIT}"
                )),
            };
            joins.push((number, bit(to)?, bit(from)?));
            Ok(Vec::new())
        }
        ["mask" | "palloc_mask", mask] | [mask] => {
            Ok(gf2::bits(hex(mask)?).map(|bit| 1 << bit).collect())
        }
        _ => Err(format!("`{line}`: expected `mask 0x1e000` or `xor 13 17`")),
    }
}

fn join(functions: &mut [u64], line: usize, to: u32, from: u32) -> Result<(), FormatError> {
    // Written either way round by different versions: the bit in the mask is
    // the one that is changed.
    let at = [to, from]
        .iter()
        .find_map(|bit| functions.iter().position(|f| f.trailing_zeros() == *bit));
    let Some(at) = at else {
        return Err(FormatError {
            line,
            message: format!("xor {to} {from}: neither bit is in the mask"),
        });
    };
    functions[at] |= 1 << to | 1 << from;
    Ok(())
}

/// Writes functions.
///
/// # Errors
/// When the format can't express one.
pub fn write(format: Format, functions: &[u64]) -> Result<String, String> {
    let lines: Vec<String> = match format {
        Format::Bits => functions.iter().map(|&f| words(f)).collect(),
        Format::Drama => functions
            .iter()
            .map(|&f| format!("Bits: {}", words(f)))
            .collect(),
        Format::Hex => functions.iter().map(|f| format!("{f:#x}")).collect(),
        Format::Palloc => {
            if let Some(wide) = functions.iter().find(|f| f.count_ones() > 2) {
                return Err(format!(
                    "PALLOC joins two bits at most; {} has {} (newer patches read `bits`)",
                    gf2::show(*wide),
                    wide.count_ones()
                ));
            }
            let mask = functions
                .iter()
                .fold(0u64, |all, f| all | (f & f.wrapping_neg()));
            if mask.count_ones() as usize != functions.len() {
                return Err(
                    "PALLOC names a function by its lowest bit; two of these have the same".into(),
                );
            }
            let pairs = functions.iter().filter(|f| f.count_ones() == 2);
            std::iter::once(format!("mask {mask:#x}"))
                .chain(pairs.map(|&f| format!("xor {}", words(f))))
                .collect()
        }
    };
    Ok(lines.join("\n") + "\n")
}

fn words(function: u64) -> String {
    gf2::show(function).replace('^', " ")
}

/// Reads functions as a person types them: `14^18, 15^19`.
///
/// # Errors
/// In words.
pub fn typed(text: &str) -> Result<Vec<u64>, String> {
    Ok(parse_list(text)?
        .into_iter()
        .map(|term| term.mask)
        .collect())
}

/// First row bit to assume where only bank functions are known: above the
/// lowest bits of all functions, since the higher bits of an XOR are rows.
#[must_use]
pub fn likely_first_row(functions: &[u64]) -> u32 {
    functions
        .iter()
        .map(|f| f.trailing_zeros() + 1)
        .max()
        .unwrap_or(12)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SKYLAKE: [u64; 3] = [1 << 7 | 1 << 14, 1 << 15 | 1 << 19, 0x23300 | 1 << 18];

    #[test]
    fn a_line_is_named_where_there_is_one() {
        let message = "no bank functions in it".to_owned();
        let mut error = FormatError { line: 0, message };
        assert_eq!(error.to_string(), "no bank functions in it");
        error.line = 3;
        assert_eq!(error.to_string(), "line 3: no bank functions in it");
    }

    #[test]
    fn golden_outputs() {
        let two = [1u64 << 13 | 1 << 17, 1 << 14];
        assert_eq!(
            write(Format::Bits, &SKYLAKE).unwrap(),
            "7 14\n15 19\n8 9 12 13 17 18\n"
        );
        assert_eq!(write(Format::Hex, &two).unwrap(), "0x22000\n0x4000\n");
        assert_eq!(
            write(Format::Drama, &two).unwrap(),
            "Bits: 13 17\nBits: 14\n"
        );
        assert_eq!(
            write(Format::Palloc, &two).unwrap(),
            "mask 0x6000\nxor 13 17\n"
        );
        assert!(write(Format::Palloc, &SKYLAKE)
            .unwrap_err()
            .contains("two bits"));
    }

    #[test]
    fn reads_what_tools_print() {
        let drama =
            "Found 3 functions\nBits: 14 18 (Correct: 99.8%)\n [+] (15, 19)\nreduced in 0.1 s\n";
        assert_eq!(
            read(Format::Drama, drama).unwrap(),
            [1 << 14 | 1 << 18, 1 << 15 | 1 << 19]
        );
        assert_eq!(
            read(Format::Palloc, "0x6000\nxor 17 13").unwrap(),
            [1 << 13 | 1 << 17, 1 << 14]
        );
        assert_eq!(
            read(Format::Hex, "{0x2000, 0x4000}").unwrap(),
            [0x2000, 0x4000]
        );
    }

    #[test]
    fn refuses_with_the_line() {
        for (format, text, line, says) in [
            (Format::Bits, "14 18\nx", 2, "bit numbers"),
            (Format::Bits, "14 14", 1, "twice"),
            (Format::Bits, "14\n14", 2, "follows"),
            (Format::Bits, "99", 1, "0 to"),
            (Format::Hex, "0x0", 1, "mask"),
            (Format::Palloc, "0x2000\nxor 5 6", 2, "neither"),
            (Format::Drama, "nothing", 0, "no functions"),
        ] {
            let error = read(format, text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,80}") {
            for format in Format::ALL {
                let _ = read(format, &text);
            }
        }

        #[test]
        fn number_soup_never_panics(text in "[0-9a-fxor mask:(),\n]{0,80}") {
            for format in Format::ALL {
                let _ = read(format, &text);
            }
        }

        #[test]
        fn what_is_written_is_read(rows in prop::collection::vec(1u64..1 << 40, 1..8)) {
            let functions = Basis::of(rows).lightest();
            for format in Format::ALL {
                if let Ok(text) = write(format, &functions) {
                    prop_assert_eq!(read(format, &text).unwrap(), functions.clone());
                }
            }
        }
    }
}
