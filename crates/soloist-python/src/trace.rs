//! Requests in arrays, played against the controllers of a machine: `soloist sim trace`.

use std::io::{self, Read};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use soloist_memory::controller::Completion;
use soloist_memory::replay::Source;
use soloist_memory::trace::{Format, Reader};
use soloist_memory::Machine;
use soloist_play::requests::{self, Played};

use crate::error::Refused;
use crate::work::{work, Told};

/// Requests of one source.
struct Requests {
    addresses: Vec<u64>,
    writes: Vec<u8>,
    /// Cycle of each; empty: as fast as the controller takes them.
    cycles: Vec<u64>,
}

/// Arrays as the text that the simulator reads: it has one reader.
struct Lines<'a> {
    of: &'a Requests,
    next: usize,
    rest: Vec<u8>,
    read: usize,
    told: &'a Told,
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.rest.len() {
            if self.told.stopped() {
                return Err(io::Error::other("interrupted"));
            }
            self.fill()?;
        }
        let n = buffer.len().min(self.rest.len() - self.read);
        buffer[..n].copy_from_slice(&self.rest[self.read..self.read + n]);
        self.read += n;
        Ok(n)
    }
}

impl Lines<'_> {
    /// The next lines.
    fn fill(&mut self) -> io::Result<()> {
        use std::io::Write;
        self.rest.clear();
        self.read = 0;
        let end = self.of.addresses.len().min(self.next + 4096);
        for i in self.next..end {
            let (addr, write) = (self.of.addresses[i], self.of.writes[i] != 0);
            match (self.of.cycles.get(i), write) {
                (Some(cycle), true) => writeln!(self.rest, "{addr:#x} WRITE {cycle}")?,
                (Some(cycle), false) => writeln!(self.rest, "{addr:#x} READ {cycle}")?,
                (None, true) => writeln!(self.rest, "{addr:#x} W")?,
                (None, false) => writeln!(self.rest, "{addr:#x} R")?,
            }
        }
        self.next = end;
        Ok(())
    }
}

/// The fate of each request, in the order of their ends.
#[derive(Default)]
struct Ends {
    source: Vec<u32>,
    write: Vec<u8>,
    arrival: Vec<u64>,
    end: Vec<u64>,
    outcome: Vec<u8>,
}

impl Ends {
    fn see(&mut self, source: usize, c: &Completion) {
        self.source.push(source as u32);
        self.write.push(u8::from(c.write));
        self.arrival.push(c.arrival);
        self.end.push(c.done);
        self.outcome.push(c.outcome as u8);
    }
}

/// A source, as the simulator reads it.
fn source<'a>(i: usize, of: &'a Requests, outstanding: usize, told: &'a Told) -> Source<Lines<'a>> {
    let lines = Lines {
        of,
        next: 0,
        rest: Vec::new(),
        read: 0,
        told,
    };
    let format = match of.cycles.is_empty() {
        true => Format::Ramulator,
        false => Format::Dramsim3,
    };
    Source {
        reader: Reader::new(lines, &format!("requests of source {i}"), format),
        outstanding: (outstanding > 0).then_some(outstanding),
    }
}

/// What is played, and what is wanted of it.
struct Ask {
    machine: String,
    sources: Vec<Requests>,
    /// Reads that each source may have outstanding; 0: as many as the queues hold.
    outstanding: usize,
    /// Keeps each request's end.
    latencies: bool,
    /// Checks each command against the data sheet's rules.
    check: bool,
}

fn play(ask: &Ask, told: &Told) -> Result<(Played, Ends), Refused> {
    let machine = Machine::find(&ask.machine)?;
    let sources = ask.sources.iter().enumerate();
    let sources = sources
        .map(|(i, of)| source(i, of, ask.outstanding, told))
        .collect();
    let mut ends = Ends::default();
    let see = |source: usize, c: &Completion| {
        if ask.latencies {
            ends.see(source, c);
        }
    };
    let played = requests::play(&machine, sources, ask.check, see)?;
    Ok((played, ends))
}

type Arrays = (PyBuffer<u64>, PyBuffer<u8>, Option<PyBuffer<u64>>);
type EndArrays = (Vec<u32>, Vec<u8>, Vec<u64>, Vec<u64>, Vec<u8>);

/// Plays sources; the report as JSON, what was checked, and each request's end.
#[pyfunction]
pub fn trace(
    py: Python<'_>,
    machine: String,
    sources: Vec<Arrays>,
    outstanding: usize,
    latencies: bool,
    check: bool,
) -> PyResult<(String, Option<u64>, EndArrays)> {
    let mut all = Vec::new();
    for (addresses, writes, cycles) in sources {
        let one = Requests {
            addresses: addresses.to_vec(py)?,
            writes: writes.to_vec(py)?,
            cycles: cycles.map_or(Ok(Vec::new()), |c| c.to_vec(py))?,
        };
        let n = one.addresses.len();
        if one.writes.len() != n || !(one.cycles.is_empty() || one.cycles.len() == n) {
            return Err(PyValueError::new_err("expected arrays of one length"));
        }
        all.push(one);
    }
    let ask = Ask {
        machine,
        sources: all,
        outstanding,
        latencies,
        check,
    };
    let (played, e) = work(py, None, move |told| play(&ask, told))??;
    let report = serde_json::to_string(&played.report);
    let report = report.map_err(|e| Refused::from(e.to_string()))?;
    let ends = (e.source, e.write, e.arrival, e.end, e.outcome);
    Ok((report, played.commands_checked, ends))
}
