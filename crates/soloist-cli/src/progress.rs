//! Progress of what takes long, on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

use crate::Ctx;

/// A bar over `n` steps, on a terminal only.
pub fn bar(ctx: &Ctx, n: usize, word: &'static str) -> ProgressBar {
    if !ctx.progress {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(n as u64).with_message(word);
    match ProgressStyle::with_template("{pos} of {len} {msg} {wide_bar} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A line that says how far what has no steps is, on a terminal only.
pub fn line(ctx: &Ctx) -> ProgressBar {
    if ctx.progress {
        ProgressBar::new_spinner()
    } else {
        ProgressBar::hidden()
    }
}
