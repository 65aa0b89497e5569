//! Compiles the guest's init: a static C program, since a stock kernel runs it
//! from an initramfs before any library can be reached.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=guest/init.c");
    println!("cargo:rerun-if-env-changed=CC");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("init");
    let cc = env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(&cc)
        .args(["-static", "-s", "-Os", "-Wall", "-Wextra", "-o"])
        .arg(&out)
        .arg("guest/init.c")
        .status()
        .unwrap_or_else(|e| panic!("cannot run the C compiler {cc}: {e}"));
    assert!(status.success(), "{cc} failed on guest/init.c");
}
