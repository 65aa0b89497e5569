//! How a directory grows while something is written to it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar};
use soloist_cli::progress::LINE_EVERY;
use soloist_cli::Ctx;

/// How often a terminal shows the size.
const TICK: Duration = Duration::from_millis(300);

/// Shows how much lies in a directory until it is dropped: on a terminal always, elsewhere by a
/// line now and then, but by none beside JSON.
pub struct Directory {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Directory {
    /// Watches `dir`; `word` says what is done.
    pub fn watch(dir: &Path, word: &'static str, ctx: &Ctx) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (stop, dir, is_terminal) = (Arc::clone(&done), dir.to_path_buf(), ctx.progress);
        let watch = move || match is_terminal {
            true => draw(&dir, word, &stop),
            false => tell(&dir, word, &stop),
        };
        Self {
            done,
            thread: (ctx.progress || !ctx.json).then(|| thread::spawn(watch)),
        }
    }
}

fn draw(dir: &PathBuf, word: &str, stop: &AtomicBool) {
    let bar = ProgressBar::new_spinner();
    while !stop.load(Ordering::Relaxed) {
        bar.set_message(format!("{word} {}", HumanBytes(size(dir))));
        bar.tick();
        thread::sleep(TICK);
    }
    bar.finish_and_clear();
}

fn tell(dir: &PathBuf, word: &str, stop: &AtomicBool) {
    let since = Instant::now();
    let mut told = since;
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(TICK);
        if told.elapsed() >= LINE_EVERY {
            told = Instant::now();
            let seconds = since.elapsed().as_secs();
            errln!("soloist: {word} {} in {seconds} s", HumanBytes(size(dir)));
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only draws: if it panicked, nothing is lost.
            let _ = thread.join();
        }
    }
}

fn size(dir: &PathBuf) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|e| Some(e.metadata().ok()?.len())).sum()
}
