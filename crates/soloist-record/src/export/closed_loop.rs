//! For a simulator that is put behind a core of one's own: all that the model knows of a
//! thread, with its pages where a policy placed them.

use std::io::{self, Write};

use crate::event::Kind;
use crate::program::{Lane, Program};
use crate::step::Step;

/// The first line of such a file: the meaning of each other line.
pub const HEAD: &str =
    "# KIND DEPENDS INSTRUCTIONS ADDRESS: L load, S store, F fetch, W write-back; \
    d: waits for the load before; instructions since the line before";

/// Writes a lane whose pages lie in `frames`, page by page; how many lines.
///
/// # Errors
/// What writing says.
pub fn export_placed(
    program: &Program,
    lane: &Lane,
    frames: &[u32],
    to: &mut impl Write,
) -> io::Result<u64> {
    writeln!(to, "{HEAD}")?;
    let mut lines = 0;
    for step in program.steps(lane) {
        let Step::Access(a) = step else { continue };
        let Some(&frame) = frames.get(a.page as usize) else {
            continue;
        };
        let kind = match a.kind {
            Kind::Read => 'L',
            Kind::Write => 'S',
            Kind::Fetch => 'F',
            Kind::WriteBack => 'W',
        };
        let depends = if a.dependent { 'd' } else { '-' };
        let addr = u64::from(frame) << 12 | u64::from(a.line) << 6;
        writeln!(to, "{kind} {depends} {} {addr:#x}", a.work)?;
        lines += 1;
    }
    Ok(lines)
}
