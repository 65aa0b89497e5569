//! Recordings, a batch of lines at a time.

use std::path::PathBuf;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use soloist_record::meta::Stream;
use soloist_record::{Event, Meta, Recording};

use crate::error::Refused;
use crate::work::failed;

/// `recording.json` of a recording, checked.
#[pyfunction]
pub fn record_about(dir: PathBuf) -> PyResult<String> {
    let meta = Meta::read(&dir).map_err(Refused::from)?;
    let text = serde_json::to_string(&meta);
    Ok(text.map_err(|e| Refused::from(e.to_string()))?)
}

/// Lines of one processor's stream, in columns of little-endian numbers.
#[derive(Default)]
struct Batch {
    rows: usize,
    thread: Vec<u8>,
    kind: Vec<u8>,
    virt: Vec<u8>,
    phys: Vec<u8>,
    work: Vec<u8>,
    kernel: Vec<u8>,
    dependent: Vec<u8>,
}

/// A batch; `None` at the end, so that a reader that died is not taken for one that is done.
type Sent = Result<Option<Batch>, Refused>;

/// The lines of a stream, in order: an iterator of batches.
#[pyclass(frozen, module = "soloist._native")]
pub struct Events {
    /// `None` behind the end.
    batches: Mutex<Option<Receiver<Sent>>>,
}

type Columns<'py> = (usize, Vec<Bound<'py, PyBytes>>);

#[pymethods]
impl Events {
    /// Of a processor's stream in the recording `dir`; `rows` is the most that a batch has.
    #[new]
    fn new(dir: PathBuf, cpu: u32, rows: usize) -> PyResult<Self> {
        let recording = Recording::open(&dir).map_err(Refused::from)?;
        let stream = recording.meta.stream(cpu).cloned();
        let none = || Refused::from(format!("{}: no stream of cpu {cpu}", dir.display()));
        let stream = stream.ok_or_else(none)?;
        // The reader is at most two batches ahead.
        let (sender, batches) = sync_channel::<Sent>(2);
        let thread = std::thread::Builder::new().name("soloist".to_owned());
        thread.spawn(move || {
            let mut send = |sent| sender.send(sent).is_ok();
            read(&recording, &stream, rows.max(1), &mut send);
        })?;
        Ok(Self {
            batches: Mutex::new(Some(batches)),
        })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Columns<'py>>> {
        loop {
            match py.detach(|| self.heard()) {
                Ok(sent) => return Ok(sent?.map(|batch| columns(py, &batch))),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => return Err(failed()),
            }
        }
    }
}

impl Events {
    /// What the reader sent; the end again behind the end.
    fn heard(&self) -> Result<Sent, RecvTimeoutError> {
        let lock = self.batches.lock();
        let mut batches = lock.map_err(|_| RecvTimeoutError::Disconnected)?;
        let Some(open) = batches.as_ref() else {
            return Ok(Ok(None));
        };
        let heard = open.recv_timeout(Duration::from_millis(50));
        if !matches!(heard, Ok(Ok(Some(_))) | Err(RecvTimeoutError::Timeout)) {
            *batches = None;
        }
        heard
    }
}

fn columns<'py>(py: Python<'py>, batch: &Batch) -> Columns<'py> {
    let all = [
        &batch.thread,
        &batch.kind,
        &batch.virt,
        &batch.phys,
        &batch.work,
        &batch.kernel,
        &batch.dependent,
    ];
    let all = all.map(|column| PyBytes::new(py, column));
    (batch.rows, all.into())
}

/// Sends the batches of a stream, the intact ones of a damaged one too, and the end.
fn read(of: &Recording, stream: &Stream, rows: usize, send: &mut impl FnMut(Sent) -> bool) {
    let mut batch = Batch::default();
    let mut pages: Vec<(u64, u64)> = Vec::new();
    let mut thread = u32::MAX;
    let mut heard = true;
    let ended = of.stream(stream, |event| match event {
        _ if !heard => {}
        Event::Switch { thread: next, .. } => thread = next,
        Event::Page { virt, phys, .. } => pages.push((virt, phys)),
        Event::Access(access) => {
            let Some(&(virt, phys)) = pages.get(access.page as usize) else {
                return;
            };
            let at = |page: u64| (page << 12 | u64::from(access.line) << 6).to_le_bytes();
            batch.rows += 1;
            batch.thread.extend(thread.to_le_bytes());
            batch.kind.push(access.kind as u8);
            batch.virt.extend(at(virt));
            batch.phys.extend(at(phys));
            batch.work.extend(access.work.to_le_bytes());
            batch.kernel.push(u8::from(access.kernel));
            batch.dependent.push(u8::from(access.dependent));
            if batch.rows == rows {
                heard = send(Ok(Some(std::mem::take(&mut batch))));
            }
        }
        Event::Mark { .. } | Event::Wake { .. } | Event::Wait { .. } => {}
    });
    if heard && batch.rows > 0 {
        heard = send(Ok(Some(batch)));
    }
    if heard {
        send(ended.map(|()| None).map_err(Refused::from));
    }
}
