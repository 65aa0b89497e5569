//! Lists of bank functions as other tools write them.
//!
//! These hold functions only: no ranges, no rows, and nothing of which function
//! is channel, rank or bank. Importing makes one layout of bank bits over one
//! range; exporting keeps the channel, rank and bank functions of a layout.

use std::fmt;
use std::str::FromStr;

use soloist_machine::function::parse_list;
use soloist_machine::gf2::{self, Basis};

use crate::palloc;
pub use crate::words::FormatError;
use crate::words::{hex, mask_of, numbers, words};

/// A format of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `map.txt` of DRAMA++, newer PALLOC patches and IsolBench: one function a
    /// line, decimal bit numbers.
    Bits,
    /// What DRAMA and DRAMA++ print: lines `14 18  (Correct: 99%)`; also
    /// `Bits: 14 18` and `(14, 18)`. Other lines are passed over.
    Drama,
    /// What DARE, ZenHammer's tool, prints: lines `0x0000044000 (18 14)`, and
    /// last the XOR of all of them.
    Dare,
    /// Hexadecimal (`0b`: binary) masks, one function each.
    Hex,
    /// PALLOC's debugfs ([`crate::palloc`]).
    Palloc,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Bits, Self::Drama, Self::Dare, Self::Hex, Self::Palloc];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bits => "bits",
            Self::Drama => "drama",
            Self::Dare => "dare",
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
            "zenhammer" => Some(&Self::Dare),
            _ => None,
        };
        Self::ALL
            .iter()
            .find(named)
            .or(alias)
            .copied()
            .ok_or_else(|| format!("`{text}`: expected bits (map.txt), drama, dare, hex, palloc, trrespass, dramdig, blacksmith, order, machine or text"))
    }
}

/// Reads functions.
///
/// # Errors
/// With the line: what can't be read, or functions that depend on each other.
pub fn read(format: Format, text: &str) -> Result<Vec<u64>, FormatError> {
    if format == Format::Palloc {
        return palloc::read(text);
    }
    let mut functions = Vec::new();
    let mut basis = Basis::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = |message: String| FormatError {
            line: i + 1,
            message,
        };
        let line = line.split('#').next().unwrap_or_default().trim();
        if format == Format::Dare && line.starts_with("XOR of all") {
            break;
        }
        let found = match format {
            Format::Drama => drama_line(line),
            Format::Dare => dare_line(line),
            Format::Hex => hex_line(line),
            Format::Bits | Format::Palloc => bits_line(line),
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
        Format::Drama => "lines such as `14 18 (Correct: 99%)`",
        Format::Dare => "lines such as `0x0000044000 (18 14)`",
        Format::Hex => "masks such as `0x44000`",
        Format::Palloc => "`mask 0x1e000` and `xor 13 17`",
    }
}

fn bits_line(line: &str) -> Result<Vec<u64>, String> {
    if line.is_empty() {
        return Ok(Vec::new());
    }
    if line.starts_with("region") || line.starts_with("selector") {
        return Err(format!(
            "`{line}`: functions that differ by what address bits say; a machine file has \
             others by range of addresses only"
        ));
    }
    let plain = |c: char| c.is_ascii_digit() || c.is_whitespace() || c == ',' || c == '^';
    if !line.chars().all(plain) {
        return Err(format!("`{line}`: expected bit numbers such as `14 18`"));
    }
    Ok(vec![mask_of(&numbers(line)?)?])
}

fn drama_line(line: &str) -> Result<Vec<u64>, String> {
    let lower = line.to_ascii_lowercase();
    let body = match (lower.find("bits:"), lower.find("(correct:")) {
        (Some(at), _) => {
            let rest = &line[at + 5..];
            let end = rest.find(['(', '[', '%']).unwrap_or(rest.len());
            &rest[..end]
        }
        (None, Some(end)) => &line[..end],
        (None, None) => match (line.find('('), line.find(')')) {
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

/// A mask and its bits, which must agree.
fn dare_line(line: &str) -> Result<Vec<u64>, String> {
    let Some((mask, bits)) = line
        .strip_suffix(')')
        .and_then(|line| line.split_once(" ("))
    else {
        return Ok(Vec::new());
    };
    if !mask.starts_with("0x") {
        return Ok(Vec::new());
    }
    let function = hex(mask)?;
    if mask_of(&numbers(bits)?)? != function {
        return Err(format!(
            "`{line}`: the mask has other bits than those named"
        ));
    }
    Ok(vec![function])
}

fn hex_line(line: &str) -> Result<Vec<u64>, String> {
    line.split(|c: char| c.is_whitespace() || c == ',' || c == '{' || c == '}')
        .filter(|word| !word.is_empty())
        .map(hex)
        .collect()
}

/// Writes functions.
///
/// # Errors
/// When the format can't express one.
pub fn write(format: Format, functions: &[u64]) -> Result<String, String> {
    let lines: Vec<String> = match format {
        Format::Bits => functions.iter().map(|&f| words(f)).collect(),
        // The share of addresses where it is 1, as good as half of them.
        Format::Drama => functions
            .iter()
            .map(|&f| format!("{}  (Correct: 100%)", words(f)))
            .collect(),
        Format::Dare => dare_lines(functions),
        Format::Hex => functions.iter().map(|f| format!("{f:#x}")).collect(),
        Format::Palloc => palloc::lines(functions)?,
    };
    Ok(lines.join("\n") + "\n")
}

fn dare_lines(functions: &[u64]) -> Vec<String> {
    let widest = functions.iter().map(|f| f.count_ones()).max().unwrap_or(0);
    let line = |function: u64| {
        let bits: Vec<String> = gf2::bits(function).map(|bit| bit.to_string()).collect();
        let highest_first: Vec<String> = bits.into_iter().rev().collect();
        format!("{function:#012x} ({})", highest_first.join(" "))
    };
    let heading = format!("Found {} functions (up to {widest} bits):", functions.len());
    let all = functions.iter().fold(0, |all, f| all ^ f);
    std::iter::once(heading)
        .chain(functions.iter().map(|&f| line(f)))
        .chain(["XOR of all found functions:".to_owned(), line(all)])
        .collect()
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
            "13 17  (Correct: 100%)\n14  (Correct: 100%)\n"
        );
        assert_eq!(
            write(Format::Dare, &two).unwrap(),
            "Found 2 functions (up to 2 bits):\n0x0000022000 (17 13)\n0x0000004000 (14)\n\
             XOR of all found functions:\n0x0000026000 (17 14 13)\n"
        );
    }

    /// As DRAMA and DRAMA++ print them, among what they print before.
    #[test]
    fn reads_what_drama_prints() {
        let text = "Searching for set 1 (try 1): base_phy=0x1f3a400\n403:   12 ##\n\
                    reduced to 2 functions\nBits: 2, sz=5\n7 14  (Correct: 99%)\n15  (Correct: 100%)\n\
                    Bank mapping functions saved to map.txt\n";
        assert_eq!(
            read(Format::Drama, text).unwrap(),
            [1 << 7 | 1 << 14, 1 << 15]
        );
        let piecewise = read(
            Format::Bits,
            "# region_index 0\nregion\nselector 0 6\n14 19\n",
        );
        assert!(piecewise.unwrap_err().message.contains("by range"));
    }

    #[test]
    fn reads_what_dare_prints() {
        let text =
            "Found 2 functions (up to 7 bits):\n0x0002204000 (25 21 14)\n0x0000042000 (18 13)\n\
                    XOR of all found functions:\n0x0002246000 (25 21 18 14 13)\n";
        let two = [1 << 25 | 1 << 21 | 1 << 14, 1 << 18 | 1 << 13];
        assert_eq!(read(Format::Dare, text).unwrap(), two);
        let torn = read(Format::Dare, "0x0002204000 (25 21 15)").unwrap_err();
        assert!(torn.message.contains("other bits"), "{torn}");
        assert_eq!(
            read(Format::Hex, "0b10000001000000, 0b11000000000000000").unwrap(),
            [1 << 6 | 1 << 13, 1 << 15 | 1 << 16]
        );
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
