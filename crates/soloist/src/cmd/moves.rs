//! What `soloist group --evict`, `--move` and `soloist recolor` share.

use anyhow::Result;
use soloist_cli::{progress, Ctx};
use soloist_host::control::{Group, MoveHow, MoveReport};

/// Migrations that a command asks for.
pub struct Wanted<'a> {
    /// Processes whose pages move in.
    pub recolor: &'a [i32],
    /// All of the group's pages move in: its colours changed.
    pub recolor_all: bool,
    /// Others' pages move out.
    pub evict: bool,
    /// Bytes a second that --evict may move.
    pub rate: Option<u64>,
    /// Isolated CPUs may be interrupted.
    pub isolated: bool,
}

impl Wanted<'_> {
    fn how(&self, rate: Option<u64>) -> MoveHow {
        MoveHow {
            rate,
            isolated: self.isolated,
        }
    }
}

/// Own pages move in first, so that they don't count as others'.
pub fn after(wanted: &Wanted<'_>, group: &Group, ctx: &Ctx) -> Result<()> {
    for &pid in wanted.recolor {
        let report = group.recolor(Some(pid), wanted.how(None))?;
        say(&format!("process {pid}"), &report, ctx)?;
    }
    if wanted.recolor_all {
        let report = group.recolor(None, wanted.how(None))?;
        say(&format!("group {}", group.name()), &report, ctx)?;
    }
    if wanted.evict {
        let report = evict(group, wanted.how(wanted.rate), ctx)?;
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
fn evict(group: &Group, how: MoveHow, ctx: &Ctx) -> Result<MoveReport> {
    let line = progress::line(ctx);
    let report = group.evict(how, |now| {
        line.set_message(format!(
            "{} pages moved, {} dropped",
            now.moved, now.dropped
        ));
    });
    line.finish_and_clear();
    Ok(report?)
}
