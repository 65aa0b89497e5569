//! What `soloist group --evict`, `--move` and `soloist recolor` share.

use anyhow::Result;
use serde::Serialize;
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

/// What became of somebody's pages.
#[derive(Debug, Serialize)]
pub struct Moved {
    /// `process 1234`, `group video`, `others in video`.
    whose: String,
    #[serde(flatten)]
    report: MoveReport,
}

impl Moved {
    /// Says it, unless as JSON: there the command's object has it.
    fn said(whose: String, report: MoveReport, ctx: &Ctx) -> Result<Self> {
        if !ctx.json {
            say(&whose, &report)?;
        }
        Ok(Self { whose, report })
    }
}

/// Own pages move in first, so that they don't count as others'.
pub fn after(wanted: &Wanted<'_>, group: &Group, ctx: &Ctx) -> Result<Vec<Moved>> {
    let mut moved = Vec::new();
    for &pid in wanted.recolor {
        let report = group.recolor(Some(pid), wanted.how(None))?;
        moved.push(Moved::said(format!("process {pid}"), report, ctx)?);
    }
    if wanted.recolor_all {
        let report = group.recolor(None, wanted.how(None))?;
        moved.push(Moved::said(format!("group {}", group.name()), report, ctx)?);
    }
    if wanted.evict {
        moved.push(evict(&Evicted::Group(group), group.name(), wanted, ctx)?);
    }
    Ok(moved)
}

/// Whose colours others leave.
pub enum Evicted<'a> {
    /// A group with a directory.
    Group(&'a Group),
    /// One that a rule made, by its number.
    Number(&'a Control, u32),
}

/// Evicts others from the colours of `name` and says what became of them.
pub fn evict(whose: &Evicted, name: &str, wanted: &Wanted<'_>, ctx: &Ctx) -> Result<Moved> {
    let report = evict_with_progress(whose, wanted.how(wanted.rate), ctx)?;
    Moved::said(format!("others in {name}"), report, ctx)
}

/// What became of the pages.
pub fn say(whose: &str, report: &MoveReport) -> Result<()> {
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
