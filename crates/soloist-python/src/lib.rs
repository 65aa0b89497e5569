//! The wheel's native module, `soloist._native`: the rooms of the lab for Python.
//!
//! People call Python (`python/soloist`): it checks shapes, allocates arrays and
//! makes Arrow tables. What stands here takes text, numbers and buffers, lets go of the
//! interpreter while Rust works ([`work`]), and turns errors into exceptions with file and
//! line ([`error`]). Nothing is computed here that the command line does not compute with
//! the same functions.

mod error;
mod lab;
mod machine;
mod plan;
mod record;
mod trace;
mod work;

use pyo3::prelude::*;

/// The module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::error::SoloistError;
    #[pymodule_export]
    use super::lab::{
        lab_check, lab_names, lab_policies, lab_run, lab_text, metrics, toml_of, toml_value_of,
    };
    #[pymodule_export]
    use super::machine::{machine_names, machine_text, Machine};
    #[pymodule_export]
    use super::plan::plan;
    #[pymodule_export]
    use super::record::{record_about, Events};
    #[pymodule_export]
    use super::trace::trace;

    /// Version of the crate.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Hash of all sources that figures depend on.
    #[pymodule_export]
    const MODEL: &str = env!("SOLOIST_MODEL");
}
