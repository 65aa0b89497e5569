//! ChampSim's instructions, 64 bytes each, little endian (its
//! `inc/trace_instruction.h`, `input_instr`): the program counter, two bytes of
//! branches, two registers written and four read, two addresses written and four read,
//! where 0 is none. A thread a file, unpacked.

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
        let got = from.take(INSTRUCTION as u64).read_to_end(&mut bytes);
        match got {
            Ok(0) => return Ok(()),
            Ok(INSTRUCTION) => take(&bytes, &mut loaded, taker)?,
            Ok(got) => {
                return Err(ImportError::Foreign {
                    file: file.to_path_buf(),
                    offset,
                    why: format!(
                        "{got} bytes behind the last whole instruction of {INSTRUCTION}: \
                         is it unpacked?"
                    ),
                })
            }
            Err(source) => {
                return Err(ImportError::Io {
                    file: file.to_path_buf(),
                    source,
                })
            }
        }
        offset += INSTRUCTION as u64;
    }
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
