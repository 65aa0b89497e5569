//! Machines, and addresses in them.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use soloist_core::AddrMap;
use soloist_machine::codec::{Codec, Field, Places};
use soloist_machine::known;
use soloist_rt::plan::grounds;

use crate::error::Refused;

/// A machine: its file, its map, and many addresses at a time.
#[pyclass(frozen, module = "soloist._native")]
pub struct Machine {
    machine: soloist_machine::Machine,
    map: AddrMap,
    codec: Codec,
}

#[pymethods]
impl Machine {
    /// By name, or by the path of its file.
    #[staticmethod]
    fn load(name: &str) -> PyResult<Self> {
        Ok(Self::of(known::find(name).map_err(Refused::from)?))
    }

    /// Of a file's text; `file` is its name in messages.
    #[staticmethod]
    fn parse(text: &str, file: &str) -> PyResult<Self> {
        let parsed = soloist_machine::Machine::parse(text, file);
        Ok(Self::of(parsed.map_err(Refused::from)?))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.machine.about.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.machine.about.description
    }

    #[getter]
    fn file(&self) -> &str {
        &self.machine.file
    }

    #[getter]
    fn trust(&self) -> String {
        self.machine.about.trust.to_string()
    }

    /// It has what the timing model needs.
    #[getter]
    fn modelled(&self) -> bool {
        soloist_memory::Platform::of(&self.machine).is_ok()
    }

    #[getter]
    fn cpus(&self) -> usize {
        self.machine.topology.processors()
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.map.bytes()
    }

    #[getter]
    fn line(&self) -> u32 {
        self.map.line_size()
    }

    #[getter]
    fn nodes(&self) -> u32 {
        self.map.n_nodes()
    }

    #[getter]
    fn channels(&self) -> u32 {
        self.map.channels()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.map.n_ranks()
    }

    #[getter]
    fn banks(&self) -> u32 {
        self.map.n_banks()
    }

    #[getter]
    fn bank_sets(&self) -> u32 {
        self.map.n_bank_sets()
    }

    #[getter]
    fn llc_colors(&self) -> u32 {
        self.map.n_llc()
    }

    /// First and first-behind-last address of each range, with its node.
    #[getter]
    fn ranges(&self) -> Vec<(u64, u64, u32)> {
        self.map
            .ranges()
            .map(|r| (r.start, r.end, r.node))
            .collect()
    }

    /// Decodes into `out`, pairs of a field's number and an array; returns the number of
    /// addresses in holes.
    fn decode(
        &self,
        py: Python<'_>,
        addresses: PyBuffer<u64>,
        out: Vec<(usize, PyBuffer<u32>)>,
    ) -> PyResult<usize> {
        let length = addresses.item_count();
        let addresses = input(&addresses)?;
        let mut fields = Vec::new();
        for (number, buffer) in &out {
            let field = Field::ALL.get(*number).copied();
            let field = field.ok_or_else(|| PyValueError::new_err("no such field"))?;
            fields.push((field, output(buffer, length)?));
        }
        Ok(py.detach(|| self.codec.decode(addresses, &mut fields)))
    }

    /// Encodes into `out`; returns the first place that has no address, and why.
    fn encode(
        &self,
        py: Python<'_>,
        places: Vec<PyBuffer<u32>>,
        out: PyBuffer<u64>,
    ) -> PyResult<Option<(usize, String)>> {
        let length = out.item_count();
        let mut fields: Vec<&[u32]> = Vec::new();
        for field in &places {
            fields.push(input(field)?);
        }
        let fields = <[&[u32]; 6]>::try_from(fields)
            .ok()
            .filter(|fields| fields.iter().all(|field| field.len() == length))
            .ok_or_else(|| PyValueError::new_err("expected six arrays of one length"))?;
        let out = output(&out, length)?;
        let encoded = py.detach(|| self.codec.encode(Places(fields), out));
        Ok(encoded.err().map(|(at, why)| (at, why.to_string())))
    }
}

impl Machine {
    fn of(machine: soloist_machine::Machine) -> Self {
        let map = machine.addr_map();
        Self {
            codec: Codec::new(&map),
            map,
            machine,
        }
    }
}

fn contiguous<T: Element>(buffer: &PyBuffer<T>) -> PyResult<()> {
    match buffer.is_c_contiguous() {
        true => Ok(()),
        false => Err(PyValueError::new_err("expected an array without gaps")),
    }
}

/// An array that is only read. Python's rule holds for it as for any of numpy's: who
/// changes it meanwhile gets what comes of it.
fn input<T: Element>(buffer: &PyBuffer<T>) -> PyResult<&[T]> {
    contiguous(buffer)?;
    if buffer.item_count() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is contiguous, of `T`, and held for as long as the slice.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.item_count()) })
}

/// An array that is written; the caller made it and nobody else has it yet.
#[allow(
    clippy::mut_from_ref,
    reason = "the memory is the array's, not the buffer's"
)]
fn output<T: Element>(buffer: &PyBuffer<T>, length: usize) -> PyResult<&mut [T]> {
    contiguous(buffer)?;
    if buffer.readonly() || buffer.item_count() != length {
        return Err(PyValueError::new_err(
            "expected a writable array of the same length",
        ));
    }
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `input`; and the array is new.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), length) })
}

/// Names of the machines that are built in.
#[pyfunction]
pub fn machine_names() -> Vec<&'static str> {
    known::names().collect()
}

/// The text of a machine's file, by name or path, and the file's name.
#[pyfunction]
pub fn machine_text(name: &str) -> PyResult<(String, String)> {
    let machine = known::find(name).map_err(Refused::from)?;
    let text = grounds::machine_text(&machine).map_err(Refused::from)?;
    Ok((text, machine.file))
}
