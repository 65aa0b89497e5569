//! Whole layouts out of other tools' files: bank functions with rows and
//! columns, where [`crate::formats`] has functions alone.
//!
//! - TRRespass' `drama`: with `-v` lines `Valid Function: 0x4080 bits: 7 + 14` and
//!   `Row mask: 0x7ff80000 bits: 19 + ...`, else masks alone, the last of them the
//!   rows' (its source).
//! - DRAMDig: headings `=== bank addr funs (5): ===`, `=== row bits: (16) ===`,
//!   `=== column bits: (13)===`, under them bit numbers, one function a line
//!   (its README).
//! - Blacksmith's configuration: JSON with `bank_bits`, a list of lists of
//!   bits, and `row_bits`, `col_bits`, highest first (its config folder).
//!
//! These tools know bits up to 30 or 33 only, and no ranges; what lies above
//! becomes rows.

use soloist_machine::function::{terms_of, MAX_BIT};
use soloist_machine::gf2::{self, Basis};
use soloist_machine::Layout;

use crate::formats::FormatError;

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

/// What a file says, in its order.
#[derive(Debug, Default)]
struct Found {
    banks: Vec<u64>,
    rows: Vec<u64>,
    columns: Vec<u64>,
}

fn wrong(line: usize, message: impl Into<String>) -> FormatError {
    FormatError {
        line,
        message: message.into(),
    }
}

/// Reads a layout: bank functions, rows and, where given, columns that are
/// not within a line. Columns that bank functions and rows make up already
/// (tools list every bit of a column) are dropped.
///
/// # Errors
/// With the line: what can't be read, or functions that depend on each other.
pub fn read(tool: Tool, text: &str) -> Result<Layout, FormatError> {
    let found = match tool {
        Tool::Trrespass => trrespass(text)?,
        Tool::Dramdig => dramdig(text)?,
        Tool::Blacksmith => blacksmith(text)?,
    };
    if found.banks.is_empty() {
        return Err(wrong(0, "no bank functions in it"));
    }
    let mut known = Basis::new();
    if let Some(double) = found.banks.iter().find(|&&bank| !known.insert(bank)) {
        let message = format!(
            "{} follows from the functions before it",
            gf2::show(*double)
        );
        return Err(wrong(0, message));
    }
    let fresh = |masks: Vec<u64>, known: &mut Basis| -> Vec<u64> {
        let mut masks = masks;
        masks.sort_unstable();
        masks.retain(|&mask| mask >> 6 != 0 && known.insert(mask));
        masks
    };
    let rows = fresh(found.rows, &mut known);
    let columns = fresh(found.columns, &mut known);
    Ok(Layout {
        bank: found.banks,
        row: terms_of(&rows),
        column: terms_of(&columns),
        ..Layout::default()
    })
}

fn mask_of(bits: impl IntoIterator<Item = u64>) -> Result<u64, String> {
    bits.into_iter().try_fold(0u64, |mask, bit| {
        match bit <= u64::from(MAX_BIT) && mask >> bit & 1 == 0 {
            true => Ok(mask | 1 << bit),
            false => Err(format!("bit {bit}: expected 0 to {MAX_BIT}, each once")),
        }
    })
}

fn trrespass(text: &str) -> Result<Found, FormatError> {
    let mut found = Found::default();
    let mut alone = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        let after = |word: &str| lower.find(word).map(|at| lower[at + word.len()..].trim());
        let hex = |rest: &str| {
            let word = rest.split_whitespace().next().unwrap_or_default();
            let mask = word
                .strip_prefix("0x")
                .and_then(|w| u64::from_str_radix(w, 16).ok());
            mask.filter(|&mask| mask != 0 && mask >> (MAX_BIT + 1) == 0)
                .ok_or_else(|| wrong(i + 1, format!("`{word}`: expected a mask such as 0x4080")))
        };
        if let Some(rest) = after("valid function:").or_else(|| after("bank_mask:")) {
            found.banks.push(hex(rest)?);
        } else if let Some(rest) = after("row mask:").or_else(|| after("row_mask:")) {
            found.rows.extend(gf2::bits(hex(rest)?).map(|bit| 1 << bit));
        } else if lower.trim().starts_with("0x") {
            alone.push(hex(lower.trim())?);
        }
    }
    if found.banks.is_empty() && found.rows.is_empty() {
        let rows = alone.pop().unwrap_or_default();
        found.rows.extend(gf2::bits(rows).map(|bit| 1 << bit));
        found.banks = alone;
    }
    Ok(found)
}

fn dramdig(text: &str) -> Result<Found, FormatError> {
    let mut found = Found::default();
    let mut heading = String::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("===") {
            heading = line.to_ascii_lowercase();
            continue;
        }
        let list = |c: char| c.is_ascii_digit() || c == ',' || c.is_whitespace();
        if line.is_empty() || !line.chars().all(list) {
            continue;
        }
        let numbers = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        let bits: Result<Vec<u64>, _> = numbers.map(str::parse).collect();
        let bits = bits.map_err(|_| wrong(i + 1, "expected bit numbers"))?;
        let mask = mask_of(bits).map_err(|message| wrong(i + 1, message))?;
        let single = gf2::bits(mask).map(|bit| 1 << bit);
        if heading.contains("bank") {
            found.banks.push(mask);
        } else if heading.contains("row") {
            found.rows.extend(single);
        } else if heading.contains("column") {
            found.columns.extend(single);
        }
    }
    Ok(found)
}

fn blacksmith(text: &str) -> Result<Found, FormatError> {
    let json: serde_json::Value =
        serde_json::from_str(text).map_err(|error| wrong(error.line(), error.to_string()))?;
    let list = |key: &str| -> Result<Vec<u64>, FormatError> {
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
    };
    // Highest first, as its matrices are.
    found.banks.reverse();
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
    let numbers = |mask: u64| {
        gf2::bits(mask)
            .map(|bit| bit.to_string())
            .collect::<Vec<_>>()
    };
    let all = |masks: &[u64]| masks.iter().fold(0, |all, mask| all | mask);
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
    use soloist_machine::gf2::same_span;

    #[test]
    fn reads_what_the_tools_print() {
        let trrespass = read(
            Tool::Trrespass,
            "~~~ Found Functions ~~~\n\t Valid Function: 0x4080 \t\t bits: 7 + 14\n\
             Valid Function: 0x88000 bits: 15 + 19\n[LOG] - Row mask: 0x7ff80000 bits: 19 + 20\n0x4080\n",
        )
        .unwrap();
        assert_eq!(trrespass.bank, [0x4080, 0x88000]);
        assert_eq!(trrespass.row.len(), 12);
        assert_eq!(trrespass.row[0].mask, 1 << 19);
        // Without -v: the rows' mask is the last.
        let alone = read(Tool::Trrespass, "0x4080\n0x88000\n0x7ff80000\n").unwrap();
        assert_eq!(alone, trrespass);
        let dramdig = read(
            Tool::Dramdig,
            "=== bank addr funs (2): ===\n17, 20,\n7, 14,\n === row bits: (3) ===\n18, 19, 20,\n\
             === column bits: (13)===\n0, 1, 2, 3, 4, 5, 6, 7, 9,\n",
        )
        .unwrap();
        assert_eq!(dramdig.bank, [1 << 17 | 1 << 20, 1 << 7 | 1 << 14]);
        assert_eq!(dramdig.row_masks(), [1 << 18, 1 << 19, 1 << 20]);
        let columns: Vec<u64> = dramdig.column.iter().map(|term| term.mask).collect();
        assert_eq!(columns, [1 << 6, 1 << 7, 1 << 9]);
        let blacksmith = read(
            Tool::Blacksmith,
            r#"{"name": "x", "row_bits": [20, 19, 18], "col_bits": [7, 6, 5], "bank_bits": [[6, 13], [14, 18]]}"#,
        )
        .unwrap();
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
            let error = read(tool, text).unwrap_err();
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
                let again = read(tool, &write(tool, name, layout).unwrap()).unwrap();
                assert!(same_span(&again.bank, &layout.bank_functions()), "{name}");
                assert_eq!(again.row_masks(), layout.row_masks(), "{name}");
            }
        }
    }
}
