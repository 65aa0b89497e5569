//! What is played, for other simulators.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use soloist_machine::FileError;
use soloist_record::export::export_placed;

use super::{Job, Replay, ReplayError};

/// Why nothing could be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The programs can't be placed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A file or folder can't be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Replay {
    /// Writes what jobs play into `dir`, each placement and seed once: the first program is
    /// the foreground.
    ///
    /// # Errors
    /// When the programs can't be placed, or a file can't be written.
    pub fn export(&self, jobs: &[Job], dir: &Path) -> Result<(), ExportError> {
        fs::create_dir_all(dir).map_err(|source| failed(dir, source))?;
        let mut done = HashSet::new();
        for job in jobs {
            let name = format!("{}-seed-{}", job.placement, job.seed);
            if done.insert(name.clone()) {
                self.export_job(*job, dir, &name)?;
            }
        }
        Ok(())
    }

    /// Writes a file for each core of a job; their names begin with `name`.
    fn export_job(&self, job: Job, dir: &Path, name: &str) -> Result<(), ExportError> {
        let frames = self.place(job)?;
        for (number, (part, frames)) in self.parts.iter().zip(&frames).enumerate() {
            for (steps, core) in part.program.lanes().iter().zip(&part.cores) {
                let file = dir.join(format!("{name}-program-{number}-core-{core}.txt"));
                let made = || -> io::Result<()> {
                    let mut to = BufWriter::new(File::create(&file)?);
                    export_placed(&part.program, steps, frames, &mut to)?;
                    to.flush()
                };
                made().map_err(|source| failed(&file, source))?;
            }
        }
        Ok(())
    }
}

fn failed(path: &Path, source: io::Error) -> FileError {
    FileError::whole(path.display().to_string(), source.to_string())
}
