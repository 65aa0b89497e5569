//! Maps in other tools' files: lists of functions, whole layouts, mapping strings.

pub mod any;
pub mod found;
pub mod functions;
pub mod layouts;
pub mod order;
pub mod palloc;
pub mod words;
