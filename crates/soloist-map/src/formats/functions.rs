//! Lists of bank functions as other tools write them.
//!
//! These hold functions only (Sudoku's log names rows and columns too): no ranges, no
//! rows, and nothing of which function is channel, rank or bank. Importing makes one
//! layout of bank bits over one range ([`crate::formats::found`] fills in the rest); exporting
//! keeps the channel, rank and bank functions of a layout.

use std::fmt;
use std::str::FromStr;

use soloist_machine::function::parse_list;
use soloist_machine::{gf2, FileError};

use crate::formats::found::{Found, Runs};
use crate::formats::palloc;
use crate::formats::words::{hex, mask_of, numbers, words};

/// A format of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `map.txt` of DRAMA++, newer PALLOC patches and IsolBench: one function a
    /// line, decimal bit numbers.
    Bits,
    /// What DRAMA and DRAMA++ print: lines `14 18  (Correct: 99%)`; also
    /// `Bits: 14 18` and `(14, 18)`, and what Sudoku prints. Other lines are passed over.
    Drama,
    /// What DARE, ZenHammer's tool, prints: lines `0x0000044000 (18 14)`, and
    /// last the XOR of all of them.
    Dare,
    /// Hexadecimal (`0b`: binary) masks, one function each.
    Hex,
    /// PALLOC's debugfs ([`crate::formats::palloc`]).
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
            "sudoku" => Some(&Self::Drama),
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

/// What tells a tool's text from another's: words of a line, in lower case, and the
/// name of its format.
const MARKS: [(&str, &str); 12] = [
    ("bank addr funs", "dramdig"),
    ("valid function:", "trrespass"),
    ("dramlayout", "trrespass"),
    ("\"bank_bits\"", "blacksmith"),
    ("xor of all found functions", "dare"),
    ("functions (up to", "dare"),
    ("(correct:", "drama"),
    ("row_bits,0x", "drama"),
    ("column_bits,0x", "drama"),
    ("palloc_mask", "palloc"),
    ("bank_bits[", "palloc"),
    ("soloist-map", "text"),
];

/// Refuses a text that another tool than `from`'s wrote.
///
/// # Errors
/// With the line that shows it.
pub fn of_that_tool(from: &str, text: &str) -> Result<(), FileError> {
    for (i, line) in text.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        let mark = MARKS.iter().find(|(mark, _)| lower.contains(mark));
        let Some(&(_, is)) = mark.filter(|(_, is)| *is != from) else {
            continue;
        };
        let advice = match is {
            "text" => "the kernel's map text is written only; a machine file is read".to_owned(),
            is => format!("that is another tool's: --from {is}"),
        };
        return Err(FileError::in_line(
            "",
            i + 1,
            format!("`{}`: {advice}", line.trim()),
        ));
    }
    Ok(())
}

/// Reads functions.
///
/// # Errors
/// With the line: what can't be read, another tool's text, runs that contradict each
/// other.
pub fn read(format: Format, text: &str) -> Result<Found, FileError> {
    of_that_tool(&format.to_string(), text)?;
    let mut runs = Runs::default();
    let mut is_sum = false;
    if format == Format::Palloc {
        return palloc::read(text);
    }
    for (i, line) in text.lines().enumerate() {
        let wrong = |message: String| FileError::in_line("", i + 1, message);
        let line = line.split('#').next().unwrap_or_default().trim();
        let begins = match format {
            Format::Drama => begins_drama(line),
            Format::Dare => line.starts_with("Found ") && line.contains("functions"),
            Format::Bits | Format::Hex | Format::Palloc => false,
        };
        if begins {
            runs.next(i + 1);
            is_sum = false;
            if format == Format::Dare {
                let counts = numbers(line.split('(').next().unwrap_or_default());
                runs.announced = counts.ok().and_then(|counts| counts.first().copied());
            }
            continue;
        }
        is_sum |= line.starts_with("XOR of all");
        let now = &mut runs.now;
        match format {
            Format::Drama => drama_line(line, now).map_err(wrong)?,
            Format::Dare if !is_sum => now.banks.extend(dare_line(line).map_err(wrong)?),
            Format::Hex => now.banks.extend(hex_line(line).map_err(wrong)?),
            Format::Bits => now.banks.extend(bits_line(line).map_err(wrong)?),
            Format::Dare | Format::Palloc => {}
        }
    }
    let mut found = runs.finish()?;
    if matches!(format, Format::Bits | Format::Hex) {
        let like_rows = found.banks.iter().filter(|&&mask| is_like_rows(mask));
        let doubt = |&mask: &u64| {
            format!(
                "{} has {} bits side by side, as rows have: a row mask is no function (TRRespass \
                 prints one last: --from trrespass).",
                gf2::show(mask),
                mask.count_ones()
            )
        };
        found
            .doubts
            .extend(like_rows.map(doubt).collect::<Vec<_>>());
    }
    if found.banks.is_empty() && found.doubts.is_empty() {
        return Err(FileError::whole(
            "",
            format!("no functions in it; expected {}", example(format)),
        ));
    }
    Ok(found)
}

/// Eight bits and more side by side: so are rows, and hardly a function.
fn is_like_rows(mask: u64) -> bool {
    mask.count_ones() >= 8 && gf2::span(mask.trailing_zeros(), 63 - mask.leading_zeros()) == mask
}

/// Where a run of DRAMA, DRAMA++ or Sudoku begins to print what it found.
fn begins_drama(line: &str) -> bool {
    line.starts_with("reduced to ") || line == "Found functions:"
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
    // As people type them, several a line: `14^18, 15^19`.
    let between = |c: char| c == ',' && line.contains('^');
    line.split(between)
        .map(|part| {
            let numbers = match part.chars().all(plain) {
                true => numbers(part)?,
                false => Vec::new(),
            };
            match numbers.is_empty() {
                true => Err(format!("`{line}`: expected bit numbers such as `14 18`")),
                false => mask_of(&numbers),
            }
        })
        .collect()
}

/// From this share on DRAMA's functions are believed. 100 % says that a function is 1
/// for half of the sets of addresses, as every function of banks is; 50 % that it is 1
/// (or 0) for three quarters of them.
const SURE: u32 = 90;

/// `14 18  (Correct: 99%)`, `Bits: 14 18`, `(14, 18)`, or a line of Sudoku:
/// `0x44000  bits: 14,18`, `row_bits,0x3ffc0000, bits: 18,19`.
fn drama_line(line: &str, found: &mut Found) -> Result<(), String> {
    let lower = line.to_ascii_lowercase();
    let (head, body) = match (lower.find("bits:"), lower.find("(correct:")) {
        (Some(at), _) => {
            let rest = &line[at + 5..];
            let end = rest.find(['(', '[', '%']).unwrap_or(rest.len());
            (&lower[..at], &rest[..end])
        }
        (None, Some(end)) => ("", &line[..end]),
        (None, None) => ("", alone_in_parentheses(line)),
    };
    let list = |c: char| c.is_ascii_digit() || c.is_whitespace() || c == ',' || c == '^';
    let numbers = match body.chars().all(list) {
        true => numbers(body)?,
        false => Vec::new(),
    };
    if numbers.is_empty() {
        return Ok(());
    }
    let mask = mask_of(&numbers)?;
    let named = head.trim_start();
    let beside = head.trim_matches([' ', '\t', ',']).rsplit(',').next();
    if let Some(beside) = beside.filter(|word| word.starts_with("0x")) {
        if hex(beside)? != mask {
            return Err(format!(
                "`{line}`: the mask has other bits than those named"
            ));
        }
    }
    if named.starts_with("row") {
        found.rows.extend(gf2::bits(mask).map(|bit| 1 << bit));
    } else if named.starts_with("col") {
        found.columns.extend(gf2::bits(mask).map(|bit| 1 << bit));
    } else {
        match share(&lower) {
            Some(share) if share < SURE => found.doubts.push(format!(
                "{} is left out: the tool itself calls it {share} % correct.",
                gf2::show(mask)
            )),
            _ => found.banks.push(mask),
        }
    }
    Ok(())
}

/// The percents of `(Correct: 99%)`, whole ones.
fn share(lower: &str) -> Option<u32> {
    let (_, rest) = lower.split_once("(correct:")?;
    let digits = rest.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// What stands in parentheses on a line that has no words.
fn alone_in_parentheses(line: &str) -> &str {
    match (line.find('('), line.rfind(')')) {
        (Some(open), Some(close)) if open < close => {
            let around = line[..open].chars().chain(line[close..].chars());
            let has_words = around.clone().any(char::is_alphanumeric);
            match has_words {
                true => "",
                false => &line[open + 1..close],
            }
        }
        _ => "",
    }
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

/// Masks, with or without the brackets of a list in somebody's program.
fn hex_line(line: &str) -> Result<Vec<u64>, String> {
    let line = line.trim_end_matches([';', ' ']);
    if line.contains("{{") || line.contains("}, ") || line.contains("},0") {
        return Err(format!(
            "`{line}`: a structure with other fields than functions; TRRespass' DRAMLayout: --from trrespass"
        ));
    }
    let words = match line.find(['{', '[']) {
        // What a list is named.
        Some(open) if !line[..open].contains("0x") => &line[open..],
        _ => line,
    };
    words
        .split(|c: char| c.is_whitespace() || ",{}[]()".contains(c))
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use soloist_machine::gf2::Basis;

    const SKYLAKE: [u64; 3] = [1 << 7 | 1 << 14, 1 << 15 | 1 << 19, 0x23300 | 1 << 18];

    #[test]
    fn a_line_is_named_where_there_is_one() {
        let message = "no bank functions in it".to_owned();
        let mut error = FileError::whole("", message);
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
            read(Format::Drama, text).unwrap().banks,
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
        assert_eq!(read(Format::Dare, text).unwrap().banks, two);
        let torn = read(Format::Dare, "0x0002204000 (25 21 15)").unwrap_err();
        assert!(torn.message.contains("other bits"), "{torn}");
        assert_eq!(
            read(Format::Hex, "0b10000001000000, 0b11000000000000000")
                .unwrap()
                .banks,
            [1 << 6 | 1 << 13, 1 << 15 | 1 << 16]
        );
    }

    #[test]
    fn reads_what_tools_print() {
        let drama =
            "Found 3 functions\nBits: 14 18 (Correct: 99.8%)\n [+] (15, 19)\nreduced in 0.1 s\n";
        assert_eq!(
            read(Format::Drama, drama).unwrap().banks,
            [1 << 14 | 1 << 18, 1 << 15 | 1 << 19]
        );
        assert_eq!(
            read(Format::Hex, "{0x2000, 0x4000}").unwrap().banks,
            [0x2000, 0x4000]
        );
    }

    /// `,` alone stands between the bits of one function, as PALLOC has them.
    #[test]
    fn several_functions_of_a_line_stay_apart() {
        let banks = |text: &str| read(Format::Bits, text).unwrap().banks;
        let three = [1 << 7 | 1 << 14, 1 << 15 | 1 << 19, 1 << 16];
        assert_eq!(banks("7^14, 15^19, 16\n"), three);
        assert_eq!(banks("7^14\n15^19\n16\n"), three);
        assert_eq!(banks("7,14\n15, 19\n16\n"), three);
        let empty = read(Format::Bits, "7^14,,15^19").unwrap_err();
        assert!(empty.message.contains("bit numbers"), "{empty}");
    }

    #[test]
    fn refuses_with_the_line() {
        for (format, text, line, says) in [
            (Format::Bits, "14 18\nx", 2, "bit numbers"),
            (Format::Bits, "14 14", 1, "twice"),
            (Format::Bits, "14\n, ,", 2, "bit numbers"),
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
                    prop_assert_eq!(read(format, &text).unwrap().banks, functions.clone());
                }
            }
        }
    }
}
