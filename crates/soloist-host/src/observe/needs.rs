//! What the module can't do without, by its own table (kernel/hook/table.c).
//!
//! Rows that hang on the kernel's configuration, or whose name differs by its version, are
//! left to the module, which compares all of them when it is loaded.

use std::collections::HashSet;

use crate::machine::Host;

const TABLE: &str = include_str!("../../../../kernel/hook/table.c");

/// How a row is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A function that is hooked.
    Hook,
    /// A function or variable that is looked up.
    Symbol,
    /// A tracepoint.
    Event,
}

/// A row without which the module does not load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) kind: Kind,
    /// Its names, those of other versions last.
    pub(crate) names: Vec<&'static str>,
}

impl Need {
    /// Whether `symbols` have it, by one of its names.
    fn is_in(&self, symbols: &HashSet<&str>) -> bool {
        self.names.iter().any(|name| match self.kind {
            Kind::Event => symbols.contains(format!("__tracepoint_{name}").as_str()),
            Kind::Hook | Kind::Symbol => symbols.contains(name),
        })
    }
}

/// All rows that are needed.
pub(crate) fn needs() -> Vec<Need> {
    let rows = TABLE.split_once("rows[] = {").map_or("", |(_, rows)| rows);
    let rows = rows.split_once("\n};").map_or("", |(rows, _)| rows);
    let mut conditions = 0u32;
    let always = rows.lines().map(str::trim_start).filter(move |line| {
        conditions += u32::from(line.starts_with("#if"));
        conditions -= u32::from(line.starts_with("#endif"));
        conditions == 0
    });
    always.filter_map(need).collect()
}

/// The row that begins with the line `{ HOOK, false, "NAME", "ALT" or NULL, ...`.
fn need(line: &'static str) -> Option<Need> {
    let mut fields = line.strip_prefix("{ ")?.split(',').map(str::trim);
    let kind = match fields.next()? {
        "HOOK" => Kind::Hook,
        "SYMBOL" => Kind::Symbol,
        "EVENT" => Kind::Event,
        _ => return None,
    };
    if fields.next()? != "false" {
        return None;
    }
    let quoted = |field: &'static str| field.strip_prefix('"')?.strip_suffix('"');
    let names: Vec<&'static str> = fields.take(2).filter_map(quoted).collect();
    (!names.is_empty()).then_some(Need { kind, names })
}

/// What a kernel has of it, as far as can be seen.
pub(crate) struct Seen {
    /// Functions that the module hooks: `traceable` tells whether they can be, or only
    /// whether they are there.
    pub(crate) hooks: usize,
    pub(crate) traceable: bool,
    /// Names of what can't be hooked, and of what is not there.
    pub(crate) unhooked: Vec<&'static str>,
    pub(crate) absent: Vec<&'static str>,
    /// Names of tracepoints whose variables are not there.
    pub(crate) events: Vec<&'static str>,
}

/// Compares `host`'s kernel with the table; `None`: nothing can be read.
pub(crate) fn compare(host: &Host) -> Option<Seen> {
    let traced = host.read("/sys/kernel/tracing/available_filter_functions");
    let (traced, all) = (traced.ok(), host.read("/proc/kallsyms").ok());
    let traced = traced.as_deref().map(|text| words(text, 0));
    let all = all.as_deref().map(|text| words(text, 2));
    let hookable = traced.as_ref().or(all.as_ref())?;
    let needs = needs();
    let missing = |kind: Kind, symbols: &HashSet<&str>| -> Vec<&'static str> {
        let of_kind = needs.iter().filter(|need| need.kind == kind);
        of_kind
            .filter(|need| !need.is_in(symbols))
            .map(|need| need.names[0])
            .collect()
    };
    let absent = |kind| {
        all.as_ref()
            .map(|all| missing(kind, all))
            .unwrap_or_default()
    };
    Some(Seen {
        hooks: needs.iter().filter(|need| need.kind == Kind::Hook).count(),
        traceable: traced.is_some(),
        unhooked: missing(Kind::Hook, hookable),
        absent: absent(Kind::Symbol),
        events: absent(Kind::Event),
    })
}

/// The words in column `column` of each line.
fn words(text: &str, column: usize) -> HashSet<&str> {
    text.lines()
        .filter_map(|line| line.split_whitespace().nth(column))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_is_needed() {
        let needs = needs();
        let names = |kind| -> Vec<&str> {
            let of_kind = needs.iter().filter(|need| need.kind == kind);
            of_kind
                .flat_map(|need| need.names.iter().copied())
                .collect()
        };
        let hooks = names(Kind::Hook);
        for hook in [
            "handle_mm_fault",
            "vma_alloc_folio",
            "vma_alloc_folio_noprof",
            "migrate_pages",
            "pagefault_out_of_memory",
        ] {
            assert!(hooks.contains(&hook), "{hooks:?}");
        }
        assert!(names(Kind::Symbol).contains(&"folio_isolate_lru"));
        assert!(names(Kind::Event).contains(&"cgroup_mkdir"));
        // Optional, and of some configurations only.
        assert!(!hooks.contains(&"ksm_madvise") && !hooks.contains(&"alloc_migration_target"));
    }
}
