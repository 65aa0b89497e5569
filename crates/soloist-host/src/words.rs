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

/// A share, 0 to 1, in per cent: what is not the whole is never shown as it.
///
/// ```
/// assert_eq!(soloist_host::words::percent(0.25), "25.0 %");
/// assert_eq!(soloist_host::words::percent(0.9996), "99.9 %");
/// assert_eq!(soloist_host::words::percent(1.0), "100.0 %");
/// ```
pub fn percent(share: f64) -> String {
    let most = if share < 1.0 { 99.9 } else { f64::MAX };
    format!("{:.1} %", (share * 100.0).min(most))
}
