//! Users, by name or number.

use std::process::Command;

/// The id that the kernel knows a user by: a number, `any` and `registered` as they
/// are, a name's.
///
/// `id` is asked, so users are found wherever this system keeps them; a static
/// binary could read /etc/passwd alone.
///
/// ```
/// assert_eq!(soloist_host::machine::user_id("root").as_deref(), Ok("0"));
/// assert_eq!(soloist_host::machine::user_id("any").as_deref(), Ok("any"));
/// assert_eq!(soloist_host::machine::user_id("007").as_deref(), Ok("7"));
/// ```
pub fn user_id(text: &str) -> Result<String, String> {
    if matches!(text, "any" | "registered") {
        return Ok(text.to_owned());
    }
    if let Ok(number) = text.parse::<u32>() {
        return Ok(number.to_string());
    }
    let none = || format!("there is no user {text:?}; a number, `any` or `registered` will do too");
    let said = Command::new("id").args(["-u", "--", text]).output();
    let said = said.map_err(|error| format!("id -u {text}: {error}"))?;
    match String::from_utf8_lossy(&said.stdout).trim() {
        id if said.status.success() && id.parse::<u32>().is_ok() => Ok(id.to_owned()),
        _ => Err(none()),
    }
}
