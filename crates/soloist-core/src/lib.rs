//! Safe Rust over core/: address map, palette, frame lists.
