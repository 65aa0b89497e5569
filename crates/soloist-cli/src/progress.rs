//! Progress of what takes long.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::Ctx;

/// How often a line is printed where there is no terminal.
pub const LINE_EVERY: Duration = Duration::from_secs(10);

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

/// Steps of minutes of work: a bar on a terminal; elsewhere a line now and then, which says
/// how long the rest may take, but none beside JSON.
pub struct Steps {
    bar: ProgressBar,
    word: &'static str,
    /// Where lines are printed.
    lines: Option<Mutex<Lines>>,
}

struct Lines {
    done: usize,
    of: usize,
    since: Instant,
    told: Instant,
}

impl Lines {
    fn new(of: usize) -> Self {
        let now = Instant::now();
        Self {
            done: 0,
            of,
            since: now,
            told: now,
        }
    }

    /// One more is done; what to say of it.
    fn step(&mut self, now: Instant, word: &str) -> Option<String> {
        self.done += 1;
        if now < self.told + LINE_EVERY || self.done >= self.of {
            return None;
        }
        self.told = now;
        let each = (now - self.since).as_secs_f64() / self.done as f64;
        let left = each * (self.of - self.done) as f64;
        let (done, of) = (self.done, self.of);
        Some(format!("{done} of {of} {word}, some {left:.0} s left"))
    }
}

impl Steps {
    /// None of `n` is done; `word` says what is done to each, such as `played`.
    pub fn new(ctx: &Ctx, n: usize, word: &'static str) -> Self {
        let prints = !ctx.progress && !ctx.json;
        Self {
            bar: bar(ctx, n, word),
            word,
            lines: prints.then(|| Mutex::new(Lines::new(n))),
        }
    }

    /// One more is done.
    pub fn step(&self) {
        self.bar.inc(1);
        let Some(lines) = &self.lines else { return };
        // A thread that panicked held it for a count only.
        let mut lines = lines
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(said) = lines.step(Instant::now(), self.word) {
            errln!("soloist: {said}");
        }
    }

    /// All is done.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_now_and_then_and_says_what_is_left() {
        let mut lines = Lines::new(4);
        let at = |seconds| lines.since + Duration::from_secs(seconds);
        let (soon, later, end) = (at(3), at(12), at(60));
        assert_eq!(lines.step(soon, "played"), None);
        let said = lines.step(later, "played");
        assert_eq!(said.as_deref(), Some("2 of 4 played, some 12 s left"));
        assert_eq!(lines.step(later, "played"), None);
        assert_eq!(lines.step(end, "played"), None, "the last needs no line");
    }
}
