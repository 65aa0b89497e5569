//! Expressions of claims. A whole number in them is a number like another: a third is
//! `1 / 3`, which would be 0 between integers.

use evalexpr::{EvalexprError, Node, Operator, Value};

/// The expression, its whole numbers being fractions.
///
/// # Errors
/// When `text` is none.
pub fn tree(text: &str) -> Result<Node, EvalexprError> {
    let mut tree = evalexpr::build_operator_tree(text)?;
    widen(&mut tree);
    Ok(tree)
}

fn widen(node: &mut Node) {
    if let Operator::Const { value } = node.operator_mut() {
        if let Value::Int(n) = value {
            *value = Value::Float(*n as f64);
        }
    }
    node.children_mut().iter_mut().for_each(widen);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_divided_as_fractions() {
        for (text, value) in [("1 / 3 * 6", 2.0), ("3 / 2", 1.5), ("-(1 / 4)", -0.25)] {
            assert_eq!(tree(text).unwrap().eval_number(), Ok(value), "{text}");
        }
    }
}
