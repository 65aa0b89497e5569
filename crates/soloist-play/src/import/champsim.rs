//! ChampSim's instructions, 64 bytes each, little endian (its
//! `inc/trace_instruction.h`, `input_instr`): the program counter, two bytes of
//! branches, two registers written and four read, two addresses written and four read,
//! where 0 is none. A thread a file. Nothing in a file says that it is such a trace, so
//! every instruction is looked at: no other layout's records pass for many of them.

use std::io::Read;
use std::path::Path;

use super::{ImportError, Taker};

/// Bytes of an instruction.
const INSTRUCTION: usize = 64;
/// The trace does not say how much is read or written; a word never leaves its line.
const WORD: u64 = 1;

/// Reads one file.
pub(super) fn read(
    from: &mut impl Read,
    file: &Path,
    thread: u64,
    taker: &mut Taker<'_>,
) -> Result<(), ImportError> {
    taker.switch(thread, false)?;
    let mut loaded = Loaded([false; 256]);
    let mut bytes = Vec::with_capacity(INSTRUCTION);
    let mut offset = 0;
    loop {
        bytes.clear();
        let foreign = |why: String| super::foreign(file, offset, why);
        let got = from.take(INSTRUCTION as u64).read_to_end(&mut bytes);
        match got {
            Ok(0) => return Ok(()),
            Ok(INSTRUCTION) => {
                looks_like_one(&bytes).map_err(foreign)?;
                take(&bytes, &mut loaded, taker)?;
            }
            Ok(got) => {
                return Err(foreign(format!(
                    "{got} bytes behind the last whole instruction, ChampSim's have {INSTRUCTION}: the file is \
                     cut, or its instructions have another layout"
                )))
            }
            Err(source) => return Err(super::io(file)(source)),
        }
        offset += INSTRUCTION as u64;
    }
}

/// Whether these bytes may be an instruction, else why not.
fn looks_like_one(bytes: &[u8]) -> Result<(), String> {
    let mut ip = [0; 8];
    ip.copy_from_slice(&bytes[..8]);
    let ip = u64::from_le_bytes(ip);
    let why = match (bytes[8], bytes[9]) {
        (0, 0) | (1, 0 | 1) if ip == 0 => "its address is 0".to_owned(),
        (0, 0) | (1, 0 | 1) if !matches!(ip >> 56, 0 | 0xff) => {
            format!("no program has an instruction at {ip:#x}")
        }
        (0, 0) | (1, 0 | 1) => return Ok(()),
        (branch, taken) => {
            format!("whether it is a branch, and taken, is 0 or 1 each, here {branch} and {taken}")
        }
    };
    Err(format!(
        "no instruction of ChampSim: {why}. Only its own layout of {INSTRUCTION} bytes is read, \
         not CloudSuite's, nor those of other tools"
    ))
}

fn take(bytes: &[u8], loaded: &mut Loaded, taker: &mut Taker<'_>) -> Result<(), ImportError> {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let addresses = |from: usize, count: usize| {
        let all = (0..count).map(move |i| word(from + 8 * i));
        all.filter(|&address| address != 0)
    };
    let (written, read) = (&bytes[10..12], &bytes[12..16]);
    taker.instruction(0, word(0), true)?;
    taker.dependent = loaded.any(read);
    let mut left = false;
    for address in addresses(32, 4) {
        left |= taker.data(0, address, WORD, false)?;
    }
    if left {
        *loaded = Loaded([false; 256]);
    }
    // What is computed from what was loaded depends on it too.
    loaded.set(written, left || taker.dependent);
    for address in addresses(16, 2) {
        taker.data(0, address, WORD, true)?;
    }
    taker.dependent = false;
    Ok(())
}

/// Registers that hold what the last load from beyond the private caches brought.
struct Loaded([bool; 256]);

impl Loaded {
    fn any(&self, registers: &[u8]) -> bool {
        let mut registers = registers.iter().filter(|&&r| r != 0);
        registers.any(|&r| self.0[usize::from(r)])
    }

    fn set(&mut self, registers: &[u8], to: bool) {
        for &register in registers.iter().filter(|&&r| r != 0) {
            self.0[usize::from(register)] = to;
        }
    }
}
