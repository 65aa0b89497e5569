//! Functions in the words of PALLOC's debugfs.
//!
//! Its README sets them by `echo 0x1e000 > /sys/kernel/debug/palloc/palloc_mask`,
//! each bit a function, and `echo xor 13 17 > .../control`, which joins bit 17 to
//! bit 13. A bit has one other: the last one holds. Newer patches read a `map.txt` (format
//! `bits`) and show it in `control` as `bank_bits[0]: 13 17`.
//!
//! The same mask colours a cache, with the bits of its set. PALLOC takes pages, so bits
//! below a page choose none of them: a mask that has some was made for a cache. One
//! that has none may be either, and is doubtful unless bits are joined.

use soloist_machine::function::MAX_BIT;
use soloist_machine::gf2;

use crate::formats::found::Found;
use crate::formats::words::{hex, mask_of, numbers, words};
use soloist_machine::FileError;

const FOLDER: &str = "/sys/kernel/debug/palloc";

/// What a line says.
enum Said {
    /// Nothing of the functions.
    Nothing,
    /// Each bit is a function.
    Mask(u64),
    /// The second bit joins the function of the first.
    Join(u32, u32),
    /// A function.
    Function(u64),
}

/// Address bits below a page.
const IN_PAGE: u64 = 0xfff;

/// Reads functions.
///
/// # Errors
/// With the line: what can't be read, a mask of cache sets.
pub fn read(text: &str) -> Result<Found, FileError> {
    // Each with the bit that names it: its own in the mask.
    let mut functions: Vec<(u32, u64)> = Vec::new();
    let mut joins = Vec::new();
    let mut masked = 0;
    for (i, line) in text.lines().enumerate() {
        let wrong = |message: String| FileError::in_line("", i + 1, message);
        match said(line).map_err(wrong)? {
            Said::Nothing => {}
            Said::Mask(mask) => {
                // The last one holds.
                functions.retain(|(_, function)| masked & function == 0);
                functions.extend(gf2::bits(mask).map(|bit| (bit, 1 << bit)));
                masked = mask;
            }
            Said::Join(to, from) => joins.push((i + 1, to, from)),
            Said::Function(function) => functions.push((function.trailing_zeros(), function)),
        }
    }
    let is_joined = !joins.is_empty();
    let mut doubts = Vec::new();
    for (line, to, from) in joins {
        let named = |bit: u32| functions.iter().position(|(name, _)| *name == bit);
        let at = named(to).or_else(|| {
            doubts.push(format!(
                "xor {to} {from}: {to} is not in the mask, so PALLOC joins nothing; xor {from} {to} \
                 is taken to be meant."
            ));
            named(from)
        });
        let message = format!("xor {to} {from}: neither bit is in the mask");
        let at = at.ok_or(FileError::in_line("", line, message))?;
        functions[at].1 = 1 << to | 1 << from;
    }
    let functions: Vec<u64> = functions
        .into_iter()
        .map(|(_, function)| function)
        .collect();
    let is_inside = |function: &&u64| **function & !IN_PAGE == 0 && masked & **function != 0;
    let inside = functions.iter().filter(is_inside);
    let inside = inside.fold(0, |all, function| all | function);
    let message = if inside != 0 {
        format!(
            "{masked:#x}: bits {} choose no page, so this mask is of a cache's sets, not of banks",
            words(inside)
        )
    } else if functions.is_empty() {
        "no functions in it; expected `mask 0x1e000` and `xor 13 17`".to_owned()
    } else {
        let mut found = Found::functions(functions);
        found.doubts.append(&mut doubts);
        if masked != 0 && !is_joined {
            let either = "PALLOC's mask does not say whether its bits are of banks or of a cache's sets; they are taken for banks.";
            found.doubts.push(either.into());
        }
        return Ok(found);
    };
    Err(FileError::whole("", message))
}

fn said(line: &str) -> Result<Said, String> {
    // A root shell's prompt looks like a comment.
    let line = line.trim();
    let typed = line.trim_start_matches(['#', '$', ' ', '\t']);
    if let Some(echo) = typed.strip_prefix("echo ") {
        let (what, file) = echo.split_once('>').unwrap_or((echo, ""));
        return match file.trim().rsplit('/').next() {
            Some("palloc_mask" | "control") => words_said(what.trim()),
            _ => Ok(Said::Nothing),
        };
    }
    let line = line.split('#').next().unwrap_or_default().trim();
    if let Some((_, bits)) = line
        .strip_prefix("bank_bits[")
        .and_then(|l| l.split_once("]:"))
    {
        return Ok(Said::Function(mask_of(&numbers(bits)?)?));
    }
    // The rest of `control`, and what the README says of its lines.
    if line.is_empty() || line.contains(':') || line.starts_with("-->") {
        return Ok(Said::Nothing);
    }
    words_said(line)
}

fn words_said(text: &str) -> Result<Said, String> {
    let separate = |c: char| c.is_whitespace() || c == '=';
    let words: Vec<&str> = text.split(separate).filter(|w| !w.is_empty()).collect();
    match words.as_slice() {
        ["xor", to, from] => {
            let bit = |word: &str| match word.parse::<u32>() {
                Ok(bit) if bit <= MAX_BIT => Ok(bit),
                _ => Err(format!(
                    "`{word}`: expected a bit number from 0 to {MAX_BIT}"
                )),
            };
            Ok(Said::Join(bit(to)?, bit(from)?))
        }
        ["mask" | "palloc_mask", mask] | [mask] => Ok(Said::Mask(hex(mask)?)),
        _ => Err(format!("`{text}`: expected `mask 0x1e000` or `xor 13 17`")),
    }
}

/// The lines to type.
///
/// # Errors
/// When PALLOC can't express a function.
pub fn lines(functions: &[u64]) -> Result<Vec<String>, String> {
    if let Some(wide) = functions.iter().find(|f| f.count_ones() > 2) {
        return Err(format!(
            "PALLOC joins two bits at most; {} has {} (newer patches read `bits`)",
            gf2::show(*wide),
            wide.count_ones()
        ));
    }
    if let Some(inside) = functions.iter().find(|&&f| f & !IN_PAGE == 0) {
        return Err(format!(
            "PALLOC colours pages; {} lies within one",
            gf2::show(*inside)
        ));
    }
    let lowest = |f: &u64| f & f.wrapping_neg();
    let mask = functions.iter().fold(0, |all, f| all | lowest(f));
    if mask.count_ones() as usize != functions.len() {
        return Err("PALLOC names a function by its lowest bit; two of these have the same".into());
    }
    let mut lines = vec![format!("echo {mask:#x} > {FOLDER}/palloc_mask")];
    let joined = functions.iter().filter(|f| f.count_ones() == 2);
    lines.extend(joined.map(|&f| format!("echo xor {} > {FOLDER}/control", words(f))));
    if lines.len() > 1 {
        lines.push(format!("echo 1 > {FOLDER}/use_mc_xor"));
    }
    Ok(lines)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn reads_its_readme_and_its_control() {
        let two = [1 << 13 | 1 << 17, 1 << 14];
        let readme = "   # echo 0x00006000 > /sys/kernel/debug/palloc/palloc_mask\n\
                      # echo xor 13 17 > /sys/kernel/debug/palloc/control\n\
                      # echo 1 > /sys/kernel/debug/palloc/use_mc_xor\n\
                      --> select (13 XOR 17) and 14\n";
        assert_eq!(read(readme).unwrap().banks, two);
        // A bit has one other: the last one holds, wherever the mask is set again.
        for text in [
            "0x6000\nxor 13 16\nxor 13 17",
            "xor 13 16\nxor 13 17\nmask 0x6000",
        ] {
            let read = read(text).unwrap();
            assert_eq!(
                (read.banks.as_slice(), read.doubts.len()),
                (&two[..], 0),
                "{text}"
            );
        }
        // Of a bit that is not in the mask PALLOC takes no notice.
        let turned = read("0x6000\nxor 17 13").unwrap();
        assert_eq!(turned.banks, two);
        assert!(
            turned.doubts[0].starts_with("xor 17 13: 17 is not"),
            "{:?}",
            turned.doubts
        );
        let control = "statistics Color:\n min(ns): 3\nbank_map:\nbank_bits[0]: 13 17 \n\
                       bank_bits[1]: 14 \npalloc_masks_count: 2\nuse_palloc: 0\n";
        assert_eq!(read(control).unwrap().banks, two);
    }

    #[test]
    fn writes_what_is_typed() {
        let lines = lines(&[1 << 13 | 1 << 17, 1 << 14]).unwrap();
        assert_eq!(
            lines,
            [
                "echo 0x6000 > /sys/kernel/debug/palloc/palloc_mask",
                "echo xor 13 17 > /sys/kernel/debug/palloc/control",
                "echo 1 > /sys/kernel/debug/palloc/use_mc_xor"
            ]
        );
        let error = super::lines(&[7 << 12]).unwrap_err();
        assert!(error.contains("two bits"), "{error}");
    }

    #[test]
    fn refuses_with_the_line() {
        for (text, line, says) in [
            ("0x2000\nxor 5 6", 2, "neither"),
            ("0x2000\nxor 13 99", 2, "bit number"),
            ("mask 0x0", 1, "mask"),
            ("0x1fc0", 0, "cache"),
            ("use_palloc: 0", 0, "no functions"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }
}
