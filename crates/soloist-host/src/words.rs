//! Words for people.

/// `1 task`, `2 tasks`.
///
/// ```
/// assert_eq!(soloist_host::words::counted(1, "page"), "1 page");
/// assert_eq!(soloist_host::words::counted(0, "page"), "0 pages");
/// ```
pub fn counted(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}
