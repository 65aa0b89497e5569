//! What `soloist group --evict`, `--move` and `soloist recolor` share.

use anyhow::Result;
use soloist_cli::{progress, Ctx};
use soloist_host::control::{Group, MoveReport};

/// Migrations that a command asks for.
pub struct Wanted<'a> {
    /// Processes whose pages move in.
    pub recolor: &'a [i32],
    /// Others' pages move out.
    pub evict: bool,
    /// Bytes a second that --evict may move.
    pub rate: Option<u64>,
}

/// Own pages move in first, so that they don't count as others'.
pub fn after(wanted: &Wanted<'_>, group: &Group, ctx: &Ctx) -> Result<()> {
    for &pid in wanted.recolor {
        let report = group.recolor(Some(pid))?;
        say(&format!("process {pid}"), &report, ctx)?;
    }
    if wanted.evict {
        let report = evict(group, wanted.rate, ctx)?;
        say(&format!("others in {}", group.name()), &report, ctx)?;
    }
    Ok(())
}

/// What became of the pages; with --json the command's own object follows alone.
pub fn say(whose: &str, report: &MoveReport, ctx: &Ctx) -> Result<()> {
    if ctx.json {
        return Ok(());
    }
    outln!("{whose}: {}", report.words())?;
    for line in report.stays_in_words() {
        outln!("  {line}")?;
    }
    Ok(())
}

/// Shows how far an eviction is.
fn evict(group: &Group, rate: Option<u64>, ctx: &Ctx) -> Result<MoveReport> {
    let line = progress::line(ctx);
    let report = group.evict(rate, |now| {
        line.set_message(format!(
            "{} pages moved, {} dropped",
            now.moved, now.dropped
        ));
    });
    line.finish_and_clear();
    Ok(report?)
}
