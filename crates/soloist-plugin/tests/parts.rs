//! Runs the tests that stand in the plugin's own files: QEMU alone can load the plugin.
#![allow(dead_code)] // what only the plugin needs

#[path = "../src/arm64.rs"]
mod arm64;
#[path = "../src/code.rs"]
mod code;
#[path = "../src/qemu.rs"]
mod qemu;
#[path = "../src/ram.rs"]
mod ram;
#[path = "../src/registers.rs"]
mod registers;
#[path = "../src/vcpu.rs"]
mod vcpu;
#[path = "../src/x86.rs"]
mod x86;
