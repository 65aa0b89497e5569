//! A kernel's guests: which tests each runs, and what it is booted with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use soloist_vm::{Arch, GuestNodes, Kernel, Output, Spec};

use super::{Args, Failure};

/// How many tests one guest runs. Of a kernel with more, several guests run some each:
/// a guest uses one cpu, and the longest would run alone at the end.
const TESTS_OF_A_GUEST: usize = 50;

/// A guest to boot.
pub struct Guest {
    /// Its kernel's name; of a kernel with several guests with a number behind it.
    pub name: String,
    pub spec: Spec,
}

/// The processor and the words of the command line that a kernel is booted with.
#[derive(Clone, Copy)]
pub struct Boot<'a> {
    pub cpu: Option<&'a str>,
    pub append: &'a str,
}

/// The guests of a kernel, each with its share of `tests`.
pub fn guests_of(
    args: &Args,
    root: &Path,
    kernel: &Kernel,
    boot: Boot,
    tests: &[(String, PathBuf)],
) -> Result<Vec<Guest>, Failure> {
    let shares = shares(tests);
    let several = shares.len() > 1;
    let guest = |(at, share): (usize, &Vec<(String, PathBuf)>)| {
        let name = match several {
            true => format!("{}-{}", kernel.name(), at + 1),
            false => kernel.name(),
        };
        let mut spec = spec(args, root, kernel.clone(), &name, share)?;
        spec.cpu = boot.cpu.map(str::to_owned);
        spec.append = boot.append.to_owned();
        Ok(Guest { name, spec })
    };
    shares.iter().enumerate().map(guest).collect()
}

/// Tests dealt to as many guests as they need: neighbours in the list, which take alike
/// long, go to different guests.
fn shares<T: Clone>(tests: &[T]) -> Vec<Vec<T>> {
    let guests = tests.len().div_ceil(TESTS_OF_A_GUEST).max(1);
    let share = |first| tests.iter().skip(first).step_by(guests).cloned().collect();
    (0..guests).map(share).collect()
}

fn spec(
    args: &Args,
    root: &Path,
    kernel: Kernel,
    name: &str,
    tests: &[(String, PathBuf)],
) -> Result<Spec, Failure> {
    let arch = kernel.arch();
    let default = || format!("machines/{}.toml", arch.machine()).into();
    let file = root.join(args.machine.clone().unwrap_or_else(default));
    let machine = soloist_machine::Machine::read(&file)?;
    let module = kernel
        .built_module(Some(root))
        .map_err(|_| format!("no module for {}: make modules", kernel.version))?;
    let limit = args.limit * if args.long { 5 } else { 1 };
    let mut command: Vec<OsString> = vec![
        root.join("tests/guest/inside").into(),
        limit.to_string().into(),
    ];
    command.extend(
        tests
            .iter()
            .map(|(name, file)| format!("{name}={}", file.display()).into()),
    );
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/sbin:/usr/bin:/sbin:/bin".into());
    let mut env = vec![
        format!(
            "PATH={}:{path}",
            root.join("build/tests/guest/bin").display()
        ),
        "HOME=/root".to_owned(),
        "LANG=C.UTF-8".to_owned(),
        format!("SOLOIST_ROOT={}", root.display()),
        format!("MODULE={}", module.display()),
    ];
    // A hundred of them take longer than all other tests together.
    env.push(format!("RELOADS={}", if args.long { 100 } else { 3 }));
    if args.long {
        env.push("SOLOIST_LONG=1".to_owned());
    }
    Ok(Spec {
        nodes: GuestNodes::of(&machine)?.on(arch, &machine),
        log: Some(
            root.join("build/logs")
                .join(format!("guest-{name}.console")),
        ),
        map: Some(machine.map_text()),
        kernel,
        cpu: None,
        icount: None,
        append: String::new(),
        qemu_args: match arch {
            Arch::X86_64 => tables(root),
            // Its guests have no ACPI.
            Arch::Arm64 => Vec::new(),
        },
        module: Some(module),
        // Off by default; control/mmapabi tests them.
        params: "mmap_abi=1".to_owned(),
        command,
        env: env.into_iter().map(OsString::from).collect(),
        cwd: root.to_path_buf(),
        writable: Vec::new(),
        timeout: Some(Duration::from_secs(60 + limit * tests.len() as u64)),
        // The guest's own clock ends a test in time, if it goes.
        silence: Some(Duration::from_secs(60 + limit)),
        output: Output::Keep,
        stdin: false,
        recorder: None,
    })
}

/// QEMU's arguments for the ACPI table that firmware/adxl asks, where there was
/// an iasl to build it.
fn tables(root: &Path) -> Vec<String> {
    let table = root.join("build/tests/guest/firmware/adxl.aml");
    match table.exists() {
        true => vec!["-acpitable".into(), format!("file={}", table.display())],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_goes_to_one_guest() {
        let tests: Vec<usize> = (0..TESTS_OF_A_GUEST * 2 - 7).collect();
        let shares = shares(&tests);
        assert_eq!(shares.len(), 2);
        assert!(shares[0].len() - shares[1].len() <= 1);
        let mut all = shares.concat();
        all.sort_unstable();
        assert_eq!(all, tests);
        assert_eq!(super::shares(&tests[..TESTS_OF_A_GUEST]).len(), 1);
        assert_eq!(super::shares(&tests[..0]).len(), 1);
    }
}
