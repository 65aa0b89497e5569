//! Groups by the command line, against a made-up machine: what is refused, in
//! which words, and what is told.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

mod machine;

use machine::{small, soloist};

/// Status and what was said on both streams.
fn say(root: &Path, args: &[&str]) -> (i32, String) {
    let out = soloist(root, args).output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// Who writes what CAT or PALLOC take would get other colours than meant.
#[test]
fn a_mask_is_refused_with_the_list_that_it_means() {
    let machine = small();
    let flags: [&[&str]; 8] = [
        &["group", "set", "core0", "--bank-sets"],
        &["group", "set", "core0", "--colors"],
        &["group", "set", "core0", "--llc"],
        &["group", "set", "core0", "--node"],
        &["group", "set", "core0", "--cpus"],
        &["run", "--bank-sets"],
        &["run", "--cpus"],
        &["verify", "1", "--bank-sets"],
    ];
    for flag in flags {
        for (mask, list) in [
            ("0x3", "write 0-1"),
            ("0XF", "write 0-3"),
            ("0,0xc", "write 2-3"),
        ] {
            let end: &[&str] = if flag[0] == "run" {
                &["--", "true"]
            } else {
                &[]
            };
            let (status, said) = say(machine.path(), &[flag, &[mask], end].concat());
            assert!(
                status == 2 && said.contains("a mask") && said.contains(list),
                "{flag:?} {mask}: {status}, {said}"
            );
        }
    }
}
