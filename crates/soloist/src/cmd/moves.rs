//! What `soloist group --evict`, `--move` and `soloist recolor` share.

use anyhow::Result;
use soloist_cli::{progress, Ctx};
use soloist_host::control::{Control, Group, MoveHow, MoveReport};

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
    match wanted.evict {
        true => evict(&Evicted::Group(group), group.name(), wanted, ctx),
        false => Ok(()),
    }
}

/// Whose colours others leave.
pub enum Evicted<'a> {
    /// A group with a directory.
    Group(&'a Group),
    /// One that a rule made, by its number.
    Number(&'a Control, u32),
}

/// Evicts others from the colours of `name` and says what became of them.
pub fn evict(whose: &Evicted, name: &str, wanted: &Wanted<'_>, ctx: &Ctx) -> Result<()> {
    let report = evict_with_progress(whose, wanted.how(wanted.rate), ctx)?;
    say(&format!("others in {name}"), &report, ctx)
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
fn evict_with_progress(whose: &Evicted, how: MoveHow, ctx: &Ctx) -> Result<MoveReport> {
    let line = progress::line(ctx);
    let so_far = |now: &MoveReport| {
        line.set_message(format!(
            "{} pages moved, {} dropped",
            now.moved, now.dropped
        ));
    };
    let report = match whose {
        Evicted::Group(group) => group.evict(how, so_far),
        Evicted::Number(control, id) => control.evict_number(*id, how, so_far),
    };
    line.finish_and_clear();
    Ok(report?)
}
