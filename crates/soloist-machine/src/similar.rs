//! What a mistyped name was meant to be.

/// Less alike than this, and a name is another one altogether.
const ALIKE: f64 = 0.6;

/// The name of `known` that `name` is most like, if it is like one.
///
/// ```
/// let known = ["opteron-6128", "haswell"];
/// assert_eq!(soloist_machine::similar("hasvell", known), Some("haswell"));
/// assert_eq!(soloist_machine::similar("oteron", known), Some("opteron-6128"));
/// let known = ["opteron-6128", "opteron-6128-noninterleaved"];
/// assert_eq!(soloist_machine::similar("opteron-6182", known), Some("opteron-6128"));
/// assert_eq!(soloist_machine::similar("p4080", known), None);
/// ```
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let alike = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
    // Or like its beginning, where the rest was left out.
    let begins = |known: &str| known.chars().take(name.chars().count()).collect::<String>();
    // Of two that begin alike, the one of which less was left out.
    let like = |known: &str| (alike(known).max(alike(&begins(known))), alike(known));
    let best = known.into_iter().map(|known| (like(known), known));
    let best = best.max_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    (best.0 .0 >= ALIKE).then_some(best.1)
}

/// ` (did you mean "haswell"?)`, or nothing.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    similar(name, known).map_or_else(String::new, |known| format!(" (did you mean {known:?}?)"))
}
