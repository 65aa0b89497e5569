//! Comparisons of a claim: `a < b && b <= 2 * c`.

/// One comparison, turned so that the left is to be the smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Expression that is to be smaller.
    pub less: String,
    /// Expression that is to be greater.
    pub more: String,
    /// They may be equal.
    pub equal: bool,
}

/// The comparisons of `text`; an error says what was expected.
pub fn comparisons(text: &str) -> Result<Vec<Comparison>, String> {
    text.split("&&").map(comparison).collect()
}

fn comparison(text: &str) -> Result<Comparison, String> {
    let wrong = || format!("`{text}`: expected comparisons with <, <=, > or >= joined by &&");
    let at = text.find(['<', '>']).ok_or_else(wrong)?;
    let (left, rest) = text.split_at(at);
    let greater = rest.starts_with('>');
    let rest = &rest[1..];
    let (equal, right) = match rest.strip_prefix('=') {
        Some(right) => (true, right),
        None => (false, rest),
    };
    if left.trim().is_empty() || right.trim().is_empty() || right.contains(['<', '>', '=', '|']) {
        return Err(wrong());
    }
    let (left, right) = (left.trim().to_owned(), right.trim().to_owned());
    let (less, more) = if greater {
        (right, left)
    } else {
        (left, right)
    };
    Ok(Comparison { less, more, equal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_turned_the_same_way() {
        let c = |less: &str, more: &str, equal| Comparison {
            less: less.to_owned(),
            more: more.to_owned(),
            equal,
        };
        assert_eq!(
            comparisons("a < 1.1 * b && c >= d"),
            Ok(vec![c("a", "1.1 * b", false), c("d", "c", true)])
        );
        for wrong in ["a", "a < b || c < d", "a == b", "< b", "a < b < c", ""] {
            assert!(comparisons(wrong).is_err(), "{wrong}");
        }
    }
}
