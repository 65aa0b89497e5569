//! How people write XOR functions: `6^16^17`, runs `20-31`, printed positions
//! `@11:14`.

use crate::gf2;

/// Highest address bit that a function may name.
pub const MAX_BIT: u32 = 51;

/// One bit of a field: its position in the printed number and its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Bit number in the printed field.
    pub at: u32,
    /// Address bits that are XORed.
    pub mask: u64,
}

/// Parses one entry of a list of functions and appends what it stands for.
///
/// `6^16^17` is one function, `20-31` twelve of one bit each. `@N:` before
/// either says which bit of the printed number the (first) function is; by
/// default one above the last.
///
/// # Errors
/// In words: what is wrong with `text`.
pub fn parse_into(terms: &mut Vec<Term>, text: &str) -> Result<(), String> {
    let (at, body) = match text.trim().strip_prefix('@') {
        Some(rest) => {
            let (at, body) = rest
                .split_once(':')
                .ok_or_else(|| format!("`{text}`: expected `@N:` and then address bits"))?;
            (number(at, 31)?, body)
        }
        None => (terms.last().map_or(0, |last| last.at + 1), text),
    };
    if terms.last().is_some_and(|last| at <= last.at) {
        return Err(format!("`{text}`: printed bits must ascend"));
    }
    if let Some((low, high)) = body.split_once('-') {
        let (low, high) = (number(low, MAX_BIT)?, number(high, MAX_BIT)?);
        if low > high {
            return Err(format!(
                "`{text}`: a run goes from the low bit to the high one"
            ));
        }
        terms.extend((low..=high).enumerate().map(|(i, bit)| Term {
            at: at + i as u32,
            mask: 1 << bit,
        }));
        return Ok(());
    }
    let mut mask = 0u64;
    for part in body.split('^') {
        let bit = 1u64 << number(part, MAX_BIT)?;
        if mask & bit != 0 {
            return Err(format!("`{text}`: bit {} occurs twice", part.trim()));
        }
        mask |= bit;
    }
    terms.push(Term { at, mask });
    Ok(())
}

/// Parses a whole list, entries apart by white space or commas.
///
/// # Errors
/// As [`parse_into`].
pub fn parse_list(text: &str) -> Result<Vec<Term>, String> {
    let mut terms = Vec::new();
    for entry in text.split(|c: char| c.is_whitespace() || c == ',') {
        if !entry.is_empty() {
            parse_into(&mut terms, entry)?;
        }
    }
    Ok(terms)
}

/// Writes terms as the map text does, single bits and `@N:` included.
#[must_use]
pub fn show_terms(terms: &[Term]) -> String {
    let mut next = 0;
    let mut words = Vec::with_capacity(terms.len());
    for term in terms {
        let prefix = if term.at == next {
            String::new()
        } else {
            format!("@{}:", term.at)
        };
        words.push(format!("{prefix}{}", gf2::show(term.mask)));
        next = term.at + 1;
    }
    words.join(" ")
}

/// Numbers plain functions from bit 0 up.
#[must_use]
pub fn terms_of(masks: &[u64]) -> Vec<Term> {
    masks
        .iter()
        .enumerate()
        .map(|(at, &mask)| Term {
            at: at as u32,
            mask,
        })
        .collect()
}

fn number(text: &str, max: u32) -> Result<u32, String> {
    let text = text.trim();
    match text.parse::<u32>() {
        Ok(value) if value <= max => Ok(value),
        _ => Err(format!("`{text}`: expected a bit number from 0 to {max}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_runs_and_printed_positions() {
        let terms = parse_list("3-4 6^16 @11:14").unwrap();
        let seen: Vec<_> = terms.iter().map(|t| (t.at, t.mask)).collect();
        assert_eq!(
            seen,
            [(0, 8), (1, 16), (2, 1 << 6 | 1 << 16), (11, 1 << 14)]
        );
        assert_eq!(show_terms(&terms), "3 4 6^16 @11:14");
    }

    #[test]
    fn refuses_in_words() {
        for (text, says) in [
            ("6^6", "twice"),
            ("x", "bit number"),
            ("52", "bit number"),
            ("9-3", "low bit"),
            ("@3", "@N:"),
            ("@3:4 @3:5", "ascend"),
            ("", ""),
        ] {
            match parse_list(text) {
                Err(error) => assert!(error.contains(says), "{text}: {error}"),
                Ok(terms) => assert!(terms.is_empty() && text.is_empty(), "{text}"),
            }
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = parse_list(&text);
        }

        #[test]
        fn digits_never_panic(text in "[0-9^@:, -]{0,40}") {
            let _ = parse_list(&text);
        }

        #[test]
        fn printing_and_parsing_agree(masks in prop::collection::vec(1u64..1 << 52, 1..16)) {
            let terms = terms_of(&masks);
            prop_assert_eq!(parse_list(&show_terms(&terms)).unwrap(), terms);
        }
    }
}
