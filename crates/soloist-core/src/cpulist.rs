//! Lists of processors as the kernel writes them: `0-3,8`.

use crate::list::NumList;
use crate::text::Refusal;

/// Processors are numbered below this: what `sched_setaffinity` takes without
/// asking for more room.
pub const MAX_CPUS: u32 = 1024;

/// Reads a list of processors; blanks around the commas are passed over.
///
/// ```
/// # fn main() -> Result<(), soloist_core::Refusal> {
/// let cpus = soloist_core::cpu_list("0-3, 8\n")?;
/// assert_eq!(cpus.to_string(), "0-3,8");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Names the part that is wrong.
pub fn cpu_list(text: &str) -> Result<NumList, Refusal> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    NumList::parse(&parts.join(","), MAX_CPUS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_lists() {
        for (text, printed) in [("", ""), ("7", "7"), (" 0-3 ,8\n", "0-3,8"), ("1,0", "0-1")] {
            assert_eq!(cpu_list(text).unwrap().to_string(), printed, "{text:?}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for wrong in ["x", "3-", "-3", "3-1", "1,,2", "1,", "1024", "0-4294967296"] {
            assert!(cpu_list(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9, -]{0,20}|\\PC{0,20}") {
            if let Ok(list) = cpu_list(&text) {
                prop_assert_eq!(cpu_list(&list.to_string()).unwrap(), list);
            }
        }
    }
}
