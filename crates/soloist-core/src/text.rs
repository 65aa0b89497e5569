//! Text out of C: what a function prints, and refusals in words.

use std::ffi::c_char;
use std::fmt;

use crate::ffi;

/// C code refused an input and says why; as the kernel's `last_cmd_status`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Line of the text that was wrong, counted from 1.
    pub line: Option<u32>,
    /// One sentence.
    pub text: String,
    /// The errno, positive (22: EINVAL).
    pub errno: i32,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl ffi::Err {
    /// What C wrote when it returned `code` (negative).
    pub(crate) fn refusal(&self, code: i32) -> Refusal {
        Refusal {
            line: (self.line != 0).then_some(self.line),
            text: string(&self.text),
            errno: -code,
        }
    }

    /// `Ok` for 0, the refusal otherwise.
    pub(crate) fn check(&self, code: i32) -> Result<(), Refusal> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.refusal(code))
        }
    }
}

/// A NUL-terminated C array as text.
pub(crate) fn string(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .take_while(|&&c| c != 0)
        .map(|&c| c as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Text of a C function that prints as snprintf does.
pub(crate) fn print(c: impl Fn(*mut c_char, usize) -> usize) -> String {
    let needed = c(std::ptr::null_mut(), 0);
    let mut buf = vec![0u8; needed + 1];
    let written = c(buf.as_mut_ptr().cast(), buf.len()).min(needed);
    buf.truncate(written);
    String::from_utf8_lossy(&buf).into_owned()
}
