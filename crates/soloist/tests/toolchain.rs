//! The packages that Cargo.lock names build with the Rust that Cargo.toml names
//! (Debian's own): one that wants a newer Rust fails here, not on a user's
//! machine.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use serde_json::Value;

/// `1.85` and `1.85.0` as numbers to compare.
fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[test]
fn no_package_wants_a_newer_rust() {
    let ours = numbers(env!("CARGO_PKG_RUST_VERSION"));
    assert!(ours > (1, 0), "no rust-version in Cargo.toml");
    let done = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        // Packages of other systems are never built here.
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let read: Value = serde_json::from_slice(&done.stdout).unwrap();
    // All packages are listed, the graph has only those of this platform.
    let nodes = read["resolve"]["nodes"].as_array().unwrap();
    let built: Vec<&str> = nodes.iter().filter_map(|n| n["id"].as_str()).collect();
    let newer: Vec<String> = read["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| built.contains(&p["id"].as_str().unwrap_or("")))
        .filter(|p| numbers(p["rust_version"].as_str().unwrap_or("0")) > ours)
        .map(|p| {
            format!(
                "{} {} wants Rust {}",
                p["name"], p["version"], p["rust_version"]
            )
        })
        .collect();
    assert!(built.len() > 50, "only {} packages", built.len());
    assert!(
        newer.is_empty(),
        "Cargo.toml says rust-version {}.{}: {newer:#?}; take an older release, for instance \
         `cargo update -p NAME --precise VERSION`",
        ours.0,
        ours.1
    );
}
