//! How a directory grows, on a terminal.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar};

/// Shows how much lies in a directory until it is dropped.
pub struct Directory {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Directory {
    /// Watches `dir`; `word` says what is done.
    pub fn watch(dir: &Path, word: &'static str) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (stop, dir) = (Arc::clone(&done), dir.to_path_buf());
        let thread = thread::spawn(move || {
            let bar = ProgressBar::new_spinner();
            while !stop.load(Ordering::Relaxed) {
                bar.set_message(format!("{word} {}", HumanBytes(size(&dir))));
                bar.tick();
                thread::sleep(Duration::from_millis(300));
            }
            bar.finish_and_clear();
        });
        Self {
            done,
            thread: Some(thread),
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
