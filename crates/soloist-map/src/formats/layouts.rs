//! Whole layouts out of other tools' files: bank functions with rows and
//! columns, where [`crate::formats::functions`] has functions alone.
//!
//! - TRRespass' `drama`: with `-v` lines `Valid Function: 0x4080 bits: 7 + 14` and
//!   `Row mask: 0x7ff80000 bits: 19 + ...`, else masks alone, the last of them the
//!   rows' (its source). A row mask that ends at bit 39 is where its search gave up.
//!   Its hammersuite has functions, rows and columns in one `DRAMLayout`.
//! - DRAMDig: headings `=== bank addr funs (5): ===`, `=== row bits: (16) ===`,
//!   `=== column bits: (13)===`, under them bit numbers, one function a line
//!   (its README).
//! - Blacksmith's configuration: JSON with `bank_bits`, a list of lists of
//!   bits, and `row_bits`, `col_bits`, highest first (its config folder); or
//!   `banks({0x2040, 0x24000});`, functions alone.
//!
//! These tools know bits up to 30 or 33 only, and no ranges; [`crate::formats::found`] fills
//! in what lies above.

use soloist_machine::function::MAX_BIT;
use soloist_machine::gf2;
use soloist_machine::Layout;

use crate::formats::found::{Found, Runs};
use crate::formats::functions::{self, of_that_tool, Format};
use soloist_machine::FileError;

/// A tool's format with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// TRRespass.
    Trrespass,
    /// DRAMDig.
    Dramdig,
    /// Blacksmith.
    Blacksmith,
}

impl Tool {
    /// All of them, by the names of the command line.
    pub const ALL: [(&'static str, Self); 3] = [
        ("trrespass", Self::Trrespass),
        ("dramdig", Self::Dramdig),
        ("blacksmith", Self::Blacksmith),
    ];

    /// By name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, tool)| tool)
    }
}

fn wrong(line: usize, message: impl Into<String>) -> FileError {
    FileError::in_line("", line, message)
}

/// Reads bank functions, rows and, where given, columns.
///
/// # Errors
/// With the line: what can't be read, another tool's text, runs that contradict each
/// other.
pub fn read(tool: Tool, text: &str) -> Result<Found, FileError> {
    let named = Tool::ALL.into_iter().find(|(_, known)| *known == tool);
    of_that_tool(named.map_or("", |(name, _)| name), text)?;
    match tool {
        Tool::Trrespass if text.contains("DRAMLayout") => hammersuite(text),
        Tool::Trrespass => trrespass(text),
        Tool::Dramdig => dramdig(text),
        Tool::Blacksmith => blacksmith(text),
    }
}

fn singles(mask: u64) -> impl Iterator<Item = u64> {
    gf2::bits(mask).map(|bit| 1 << bit)
}

fn mask_of(bits: impl IntoIterator<Item = u64>) -> Result<u64, String> {
    bits.into_iter().try_fold(0u64, |mask, bit| {
        match bit <= u64::from(MAX_BIT) && mask >> bit & 1 == 0 {
            true => Ok(mask | 1 << bit),
            false => Err(format!("bit {bit}: expected 0 to {MAX_BIT}, each once")),
        }
    })
}

/// Functions that TRRespass searches have no more bits; its row masks have.
const MOST_BITS: u32 = 6;
/// Where its search for rows ends, without having found any.
const LAST_ROW_BIT: u32 = 39;

fn trrespass_mask(line: usize, rest: &str) -> Result<u64, FileError> {
    let word = rest.split_whitespace().next().unwrap_or_default();
    let mask = word
        .strip_prefix("0x")
        .and_then(|w| u64::from_str_radix(w, 16).ok());
    mask.filter(|&mask| mask != 0 && mask >> (MAX_BIT + 1) == 0)
        .ok_or_else(|| wrong(line, format!("`{word}`: expected a mask such as 0x4080")))
}

fn trrespass_rows(mask: u64, found: &mut Found) {
    if mask.checked_ilog2() != Some(LAST_ROW_BIT) {
        found.rows.extend(singles(mask));
    } else {
        found.doubts.push(format!(
            "The row mask {mask:#x} is the end of its search: it found no rows."
        ));
    }
}

/// With `-v` functions and rows have names, and stand there without them once more,
/// which is passed over.
fn trrespass(text: &str) -> Result<Found, FileError> {
    let (mut named, mut alone) = (Runs::default(), Runs::default());
    for (i, line) in text.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        let after = |word: &str| lower.find(word).map(|at| lower[at + word.len()..].trim());
        if let Some(rest) = after("valid function:").or_else(|| after("bank_mask:")) {
            named.now.banks.push(trrespass_mask(i + 1, rest)?);
        } else if let Some(rest) = after("row mask:").or_else(|| after("row_mask:")) {
            trrespass_rows(trrespass_mask(i + 1, rest)?, &mut named.now);
            named.next(i + 2);
        } else if lower.trim().starts_with("0x") {
            let mask = trrespass_mask(i + 1, lower.trim())?;
            if mask.count_ones() > MOST_BITS {
                trrespass_rows(mask, &mut alone.now);
                alone.next(i + 2);
            } else {
                alone.now.banks.push(mask);
            }
        }
    }
    let named = named.finish()?;
    match named.banks.is_empty() {
        true => alone.finish(),
        false => Ok(named),
    }
}

/// TRRespass' hammersuite: `DRAMLayout g_mem_layout = {{{0x4080,0x48000}, 2}, 0x3ffc0000, ROW_SIZE-1};`
fn hammersuite(text: &str) -> Result<Found, FileError> {
    let mut runs = Runs::default();
    for (i, line) in text.lines().enumerate() {
        let Some((_, body)) = line
            .split_once("DRAMLayout")
            .and_then(|(_, l)| l.split_once('{'))
        else {
            continue;
        };
        runs.next(i + 1);
        let torn = || {
            let expected = "expected `DRAMLayout name = {{{functions}, how many}, rows, columns};` on one line";
            wrong(i + 1, expected)
        };
        let (functions, rest) = body
            .trim_start_matches(['{', ' '])
            .split_once('}')
            .ok_or_else(torn)?;
        for word in functions
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            runs.now.banks.push(trrespass_mask(i + 1, word)?);
        }
        let words = rest.split([',', '{', '}', ';']).map(str::trim);
        let fields: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let [count, rows, columns] = fields[..] else {
            return Err(torn());
        };
        if count.parse() != Ok(runs.now.banks.len()) {
            let there = runs.now.banks.len();
            return Err(wrong(
                i + 1,
                format!("{count} functions are announced, {there} are there"),
            ));
        }
        let mask = |word: &str| match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        };
        let sized = |mask: &u64| *mask != 0 && mask >> (MAX_BIT + 1) == 0;
        for (word, field) in [(rows, &mut runs.now.rows), (columns, &mut runs.now.columns)] {
            match mask(word).filter(sized) {
                Some(mask) => field.extend(singles(mask)),
                None => {
                    let doubt =
                        format!("`{word}` stands for a mask whose value the line does not say.");
                    runs.now.doubts.push(doubt);
                }
            }
        }
    }
    runs.finish()
}

/// A list of DRAMDig's result.
#[derive(Clone, Copy)]
enum List {
    Banks,
    Rows,
    Columns,
}

/// The list that a heading such as `=== row bits: (16) ===` begins, and how many it
/// says there are. Before its result the tool prints headings that do not end so, and
/// lists of other things below them.
fn dramdig_heading(line: &str) -> Option<(List, Option<u32>)> {
    let lower = line
        .strip_prefix("===")?
        .strip_suffix("===")?
        .to_ascii_lowercase();
    let (what, count) = match lower.split_once('(') {
        Some((what, rest)) => (what, Some(rest.split(')').next()?.trim().parse().ok()?)),
        None => (lower.as_str(), None),
    };
    let list = match what.trim().trim_end_matches(':') {
        "bank addr funs" => List::Banks,
        "row bits" => List::Rows,
        "column bits" => List::Columns,
        _ => return None,
    };
    Some((list, count))
}

fn dramdig(text: &str) -> Result<Found, FileError> {
    let mut runs = Runs::default();
    let mut now = None;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("===") {
            now = dramdig_heading(line);
            if let Some((List::Banks, count)) = now {
                runs.next(i + 1);
                runs.announced = count;
            }
            continue;
        }
        let list = |c: char| c.is_ascii_digit() || c == ',' || c.is_whitespace();
        let Some((kind, count)) = now.filter(|_| !line.is_empty()) else {
            continue;
        };
        if !line.chars().all(list) {
            now = None;
            continue;
        }
        let numbers = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        let bits: Result<Vec<u64>, _> = numbers.map(str::parse).collect();
        let bits = bits.map_err(|_| wrong(i + 1, "expected bit numbers"))?;
        let mask = mask_of(bits).map_err(|message| wrong(i + 1, message))?;
        let (what, field) = match kind {
            List::Banks => {
                runs.now.banks.push(mask);
                continue;
            }
            List::Rows => ("row bits", &mut runs.now.rows),
            List::Columns => ("column bits", &mut runs.now.columns),
        };
        field.extend(singles(mask));
        let there = mask.count_ones();
        if let Some(count) = count.filter(|&count| count != there) {
            let torn = format!("The log announces {count} {what}, {there} are there.");
            runs.now.doubts.push(torn);
        }
        now = None;
    }
    runs.finish()
}

fn blacksmith(text: &str) -> Result<Found, FileError> {
    if text.trim_start().starts_with("banks(") {
        return functions::read(Format::Hex, text);
    }
    let json: serde_json::Value =
        serde_json::from_str(text).map_err(|error| wrong(error.line(), error.to_string()))?;
    let list = |key: &str| -> Result<Vec<u64>, FileError> {
        let Some(entries) = json.get(key).and_then(|value| value.as_array()) else {
            return Err(wrong(0, format!("`{key}`: expected a list of bits")));
        };
        entries
            .iter()
            .map(|entry| {
                let bits: Option<Vec<u64>> = match entry {
                    serde_json::Value::Array(bits) => bits.iter().map(|b| b.as_u64()).collect(),
                    bit => bit.as_u64().map(|bit| vec![bit]),
                };
                let bits = bits.filter(|bits| !bits.is_empty());
                let bits =
                    bits.ok_or_else(|| wrong(0, format!("`{key}`: expected bit numbers")))?;
                mask_of(bits).map_err(|message| wrong(0, format!("`{key}`: {message}")))
            })
            .collect()
    };
    let mut found = Found {
        banks: list("bank_bits")?,
        rows: list("row_bits")?,
        columns: list("col_bits")?,
        doubts: Vec::new(),
    };
    // Highest first, as its matrices are.
    found.banks.reverse();
    let total = json.get("total_banks").and_then(|total| total.as_u64());
    let banks = 1u64.checked_shl(found.banks.len() as u32);
    if let Some(total) = total.filter(|&total| Some(total) != banks) {
        let functions = found.banks.len();
        let doubt = format!("`total_banks` says {total}, `bank_bits` has {functions} functions.");
        found.doubts.push(doubt);
    }
    Ok(found)
}

/// Writes a layout as the tool does.
///
/// # Errors
/// When the tool's format can't express it.
pub fn write(tool: Tool, name: &str, layout: &Layout) -> Result<String, String> {
    let banks = layout.bank_functions();
    let rows = layout.row_masks();
    if let Some(xor) = rows.iter().find(|row| row.count_ones() > 1) {
        let row = gf2::show(*xor);
        return Err(format!(
            "row bits are single address bits there; one here is {row}"
        ));
    }
    let all = |masks: &[u64]| masks.iter().fold(0, |all, mask| all | mask);
    if matches!(tool, Tool::Trrespass) && all(&rows).checked_ilog2() == Some(LAST_ROW_BIT) {
        return Err(format!(
            "{name}: its rows end with bit {LAST_ROW_BIT}, as a search does there that found none"
        ));
    }
    let numbers = |mask: u64| {
        gf2::bits(mask)
            .map(|bit| bit.to_string())
            .collect::<Vec<_>>()
    };
    let columns: Vec<u64> = layout.column.iter().map(|term| term.mask).collect();
    Ok(match tool {
        Tool::Trrespass => {
            let line = |word: &str, mask: u64| {
                format!("{word}: {mask:#x} bits: {}\n", numbers(mask).join(" + "))
            };
            let functions = banks.iter().map(|&bank| line("Valid Function", bank));
            functions.collect::<String>() + &line("Row mask", all(&rows))
        }
        Tool::Dramdig => {
            let line = |mask: u64| format!("{},\n", numbers(mask).join(", "));
            let within = all(&columns) | 0x3f;
            format!(
                "=== bank addr funs ({}): ===\n{}=== row bits: ({}) ===\n{}=== column bits: ({})===\n{}",
                banks.len(),
                banks.iter().map(|&bank| line(bank)).collect::<String>(),
                rows.len(),
                line(all(&rows)),
                within.count_ones(),
                line(within)
            )
        }
        Tool::Blacksmith => {
            let highest_first = |mask: u64| {
                gf2::bits(mask)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .collect::<Vec<_>>()
            };
            let json = serde_json::json!({
                "name": name,
                "channels": 1u32 << layout.channel.len(),
                "ranks": 1u32 << layout.rank.len(),
                "total_banks": 1u64 << banks.len(),
                "row_bits": highest_first(all(&rows)),
                "col_bits": highest_first(all(&columns) | 0x3f),
                "bank_bits": banks.iter().rev().map(|&bank| gf2::bits(bank).collect::<Vec<_>>()).collect::<Vec<_>>(),
            });
            format!("{json:#}\n")
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_machine::function::Term;
    use soloist_machine::gf2::same_span;

    fn layout(tool: Tool, text: &str) -> Layout {
        read(tool, text).unwrap().layout().unwrap().0
    }

    #[test]
    fn reads_what_the_tools_print() {
        let trrespass = layout(
            Tool::Trrespass,
            "~~~ Found Functions ~~~\n\t Valid Function: 0x4080 \t\t bits: 7 + 14\n\
             Valid Function: 0x88000 bits: 15 + 19\n[LOG] - Row mask: 0x7ff80000 bits: 19 + 20\n0x4080\n",
        );
        assert_eq!(trrespass.bank, [0x4080, 0x88000]);
        assert_eq!(trrespass.row.len(), 12);
        assert_eq!(trrespass.row[0].mask, 1 << 19);
        // Without -v: the rows' mask is the last.
        let alone = layout(Tool::Trrespass, "0x4080\n0x88000\n0x7ff80000\n");
        assert_eq!(alone, trrespass);
        let dramdig = layout(
            Tool::Dramdig,
            "=== bank addr funs (2): ===\n17, 20,\n7, 14,\n === row bits: (3) ===\n18, 19, 20,\n\
             === column bits: (13)===\n0, 1, 2, 3, 4, 5, 6, 7, 9,\n",
        );
        assert_eq!(dramdig.bank, [1 << 17 | 1 << 20, 1 << 7 | 1 << 14]);
        assert_eq!(dramdig.row_masks(), [1 << 18, 1 << 19, 1 << 20]);
        let columns: Vec<u64> = dramdig.column.iter().map(|term| term.mask).collect();
        assert_eq!(columns, [1 << 6, 1 << 7, 1 << 9]);
        let blacksmith = layout(
            Tool::Blacksmith,
            r#"{"name": "x", "row_bits": [20, 19, 18], "col_bits": [7, 6, 5], "bank_bits": [[6, 13], [14, 18]]}"#,
        );
        assert_eq!(blacksmith.bank, [1 << 14 | 1 << 18, 1 << 6 | 1 << 13]);
        assert_eq!(blacksmith.row[0].mask, 1 << 18);
    }

    #[test]
    fn refuses_in_words() {
        for (tool, text, line, says) in [
            (Tool::Trrespass, "nothing", 0, "no bank functions"),
            (Tool::Trrespass, "\nValid Function: 14", 2, "mask such as"),
            (
                Tool::Dramdig,
                "=== bank addr funs ===\n14, 14,",
                2,
                "each once",
            ),
            (
                Tool::Dramdig,
                "=== bank addr funs ===\n14,\n14,",
                0,
                "follows",
            ),
            (Tool::Blacksmith, "{", 1, "EOF"),
            (
                Tool::Blacksmith,
                "{\"bank_bits\": [\"a\"]}",
                0,
                "bit numbers",
            ),
            (Tool::Blacksmith, "{\"bank_bits\": [[60]]}", 0, "0 to 51"),
        ] {
            let error = read(tool, text).and_then(Found::layout).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for name in ["skylake", "haswell", "i7-6700k", "raspberry-pi-4"] {
            let machine = soloist_machine::known::find(name).unwrap();
            let layout = &machine.map.layouts[0];
            for (_, tool) in Tool::ALL {
                let again = super::tests::layout(tool, &write(tool, name, layout).unwrap());
                assert!(same_span(&again.bank, &layout.bank_functions()), "{name}");
                assert_eq!(again.row_masks(), layout.row_masks(), "{name}");
            }
        }
    }

    /// TRRespass' search for rows ends at bit 39, and a list of rows may end beyond it.
    #[test]
    fn rows_of_much_memory_are_rows() {
        let skylake = soloist_machine::known::find("skylake").unwrap();
        let rows_to = |top: u32| {
            let mut layout = skylake.map.layouts[0].clone();
            let row = |bit| Term {
                at: bit - 19,
                mask: 1u64 << bit,
            };
            layout.row = (19..=top).map(row).collect();
            layout
        };
        for top in [38, 40] {
            let layout = rows_to(top);
            let text = write(Tool::Trrespass, "big", &layout).unwrap();
            let again = super::tests::layout(Tool::Trrespass, &text);
            assert_eq!(again.row_masks(), layout.row_masks(), "{top}");
        }
        let why = write(Tool::Trrespass, "big", &rows_to(39)).unwrap_err();
        assert!(why.contains("bit 39"), "{why}");
    }
}
