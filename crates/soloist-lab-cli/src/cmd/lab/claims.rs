//! The table of an experiment's claims.

use anyhow::Result;
use soloist_lab::judgement::Verdict;
use soloist_lab::report::{estimate, figure, word};

use soloist_cli::table as columns;
use soloist_cli::Ctx;

/// Prints what each claim says, and whether it holds.
pub(super) fn print_claims(verdicts: &[Verdict], ctx: &Ctx) -> Result<()> {
    let mut table = columns(["CLAIM", "KIND", "THEIRS", "OURS", "EFFECT", ""]);
    for v in verdicts {
        let color = if v.holds == Some(true) { 32 } else { 31 };
        table.add_row([
            v.what.clone(),
            v.worth().to_owned(),
            figure(v.theirs, &v.unit),
            estimate(v.ours, &v.unit),
            figure(v.effect, ""),
            ctx.paint(color, &word(v)),
        ]);
    }
    outln!("{table}")?;
    Ok(())
}
