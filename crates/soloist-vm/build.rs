//! Compiles the guest's own programs: static, since a stock kernel runs init from
//! an initramfs before any library can be reached.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=CC");
    compile("init");
    compile("record");
}

/// That of the machine that the guest's programs run on, which is this crate's target.
fn compiler() -> String {
    let target = env::var("TARGET").unwrap_or_default();
    if Ok(&target) != env::var("HOST").as_ref() {
        return target.replace("-unknown", "") + "-gcc";
    }
    env::var("CC").unwrap_or_else(|_| "cc".into())
}

fn compile(name: &str) {
    let source = format!("guest/{name}.c");
    println!("cargo:rerun-if-changed={source}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join(name);
    let cc = compiler();
    let status = Command::new(&cc)
        .args(["-static", "-s", "-Os", "-Wall", "-Wextra", "-o"])
        .arg(&out)
        .arg(&source)
        .status()
        .unwrap_or_else(|e| panic!("cannot run the C compiler {cc}: {e}"));
    assert!(status.success(), "{cc} failed on {source}");
}
