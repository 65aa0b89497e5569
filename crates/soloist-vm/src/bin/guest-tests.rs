//! Runs the guest tests: for each kernel a guest that runs its tests in turn, or several
//! guests where it has many; three guests at a time for each two cpus. `tests/guest/run` builds what it needs
//! and starts it.
//!
//! A test is an executable that prints `ok NAME`, `FAIL NAME: why` or `skip
//! NAME: why` lines. It fails without such a line when its status is not 0 or
//! when it printed none at all; a kernel fails when its guest was not well.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rayon::iter::{ParallelBridge, ParallelIterator};
use serde::Serialize;
use soloist_vm::{
    kernel, source_root, Arch, GuestNodes, GuestOutcome, Kernel, Output, Row, Spec, TestPlan,
    Verdict,
};

/// How many tests one guest runs. Of a kernel with more, several guests run some each:
/// a guest uses one cpu, and the longest would run alone at the end.
const TESTS_OF_A_GUEST: usize = 50;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Run the guest tests on the stock kernels.
#[derive(Parser)]
#[command(name = "tests/guest/run", version)]
struct Args {
    /// Kernel, as for `soloist vm run`; may be given several times. It runs all
    /// tests [default: all kernels, each with what tests/kernels says].
    #[arg(long, short)]
    kernel: Vec<String>,
    /// All tests on all kernels.
    #[arg(long)]
    all: bool,
    /// Machine file whose nodes and map the guests have [default: qemu-2node's, of arm64
    /// qemu-arm64-2node's].
    #[arg(long, short)]
    machine: Option<PathBuf>,
    /// Model of the processor, as QEMU names it [default: what tests/kernels says, or the
    /// usual one of `soloist vm run`].
    #[arg(long)]
    cpu: Option<String>,
    /// Guests at a time [default: three for each two cpus].
    #[arg(long, short)]
    jobs: Option<usize>,
    /// Longer: SOLOIST_LONG=1 for the tests, 100 reloads of the module instead
    /// of 3, and five times the time.
    #[arg(long)]
    long: bool,
    /// Seconds that one test may take.
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
    /// Print all that the tests print.
    #[arg(long, short)]
    verbose: bool,
    /// Only these tests: AREA, AREA/NAME or AREA/NAME@KIND.
    tests: Vec<String>,
}

/// One test of one kernel.
#[derive(Serialize)]
struct Test {
    name: String,
    passed: usize,
    failed: usize,
    skipped: usize,
    seconds: f64,
    status: i32,
    /// The lines that say what failed.
    failures: Vec<String>,
    #[serde(skip)]
    output: String,
}

/// A guest to boot.
struct Guest {
    /// Its kernel's name; of a kernel with several guests with a number behind it.
    name: String,
    spec: Spec,
}

/// What one guest said.
#[derive(Serialize)]
struct GuestResult {
    name: String,
    #[serde(flatten)]
    guest: GuestOutcome,
    /// Why the guest was not well; a failure of its own.
    trouble: Option<String>,
    tests: Vec<Test>,
}

#[derive(Serialize)]
struct Report {
    passed: usize,
    failed: usize,
    skipped: usize,
    guests: Vec<GuestResult>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tests/guest/run: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<bool, Failure> {
    let root = source_root().ok_or("run it inside the source tree")?;
    let plan = TestPlan::read(&root)?;
    let tests = find_tests(args, &root, &plan)?;
    let mut kernels = plan.kernels.clone();
    // The longest boots first: else one of them is alone at the end.
    kernels.sort_by_key(|row| std::cmp::Reverse(tests_of(&plan, row, &tests)));
    let names: Vec<String> = match args.kernel.as_slice() {
        [] => kernels.into_iter().map(|row| row.kernel).collect(),
        names => names.to_vec(),
    };
    let every = args.all || args.long || !args.kernel.is_empty() || !args.tests.is_empty();
    let mut guests = Vec::new();
    for name in &names {
        let mut tests = tests.clone();
        tests.retain(|(test, _)| every || plan.runs(name, test));
        if tests.is_empty() {
            continue;
        }
        let kernel = kernel::find(name, Some(&root))?;
        let cpu = args.cpu.as_deref().or(plan.cpu(name));
        guests.extend(guests_of(args, &root, &kernel, cpu, &tests)?);
    }
    let guests = boot_all(&guests, args)?;
    let sum = |count: fn(&Test) -> usize| -> usize {
        guests.iter().flat_map(|g| &g.tests).map(count).sum()
    };
    let report = Report {
        passed: sum(|t| t.passed),
        failed: sum(|t| t.failed) + guests.iter().filter(|g| g.trouble.is_some()).count(),
        skipped: sum(|t| t.skipped),
        guests,
    };
    save(&root, &report)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!(
            "{} passed, {} failed, {} skipped",
            report.passed, report.failed, report.skipped
        );
    }
    Ok(report.failed == 0 && report.passed > 0)
}

/// How many of `tests` the kernel of a row runs.
fn tests_of(plan: &TestPlan, row: &Row, tests: &[(String, PathBuf)]) -> usize {
    let runs = |(test, _): &&(String, PathBuf)| plan.runs(&row.kernel, test);
    tests.iter().filter(runs).count()
}

/// Name and file of every test, in order; a test that also runs on busy machines once
/// for each.
fn find_tests(
    args: &Args,
    root: &Path,
    plan: &TestPlan,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    let only = &args.tests;
    let long = args.all || args.long || only.iter().any(|test| test.contains('@'));
    let ways = |name: &str, file: &Path, tests: &mut Vec<(String, PathBuf)>| {
        let ways = plan.ways(name, long).into_iter();
        tests.extend(ways.map(|way| (way, file.to_owned())));
    };
    let mut tests = Vec::new();
    for area in sorted_dir(&root.join("tests/guest"))? {
        let Some(area_name) = area.file_name().and_then(|n| n.to_str()).map(str::to_owned) else {
            continue;
        };
        if !area.is_dir() || area_name == "lib" {
            continue;
        }
        for file in sorted_dir(&area)? {
            let Some(stem) = file.file_stem().and_then(|n| n.to_str()) else {
                continue;
            };
            let name = format!("{area_name}/{stem}");
            let built = root.join("build/tests/guest").join(&name);
            match file.extension().and_then(|e| e.to_str()) {
                Some("c") if built.exists() => ways(&name, &built, &mut tests),
                Some("c") => return Err(format!("{name} is not built: make -C tests/guest").into()),
                Some("sh") => ways(&name, &file, &mut tests),
                _ => {}
            }
        }
    }
    let wanted = |name: &str| {
        only.is_empty()
            || only.iter().any(|o| {
                o == name
                    || name
                        .strip_prefix(o.as_str())
                        .is_some_and(|r| r.starts_with(['/', '@']))
            })
    };
    if let Some(unknown) = only.iter().find(|o| {
        !tests
            .iter()
            .any(|(n, _)| n == *o || n.starts_with(&format!("{o}/")))
    }) {
        let known: Vec<&str> = tests.iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!("no test '{unknown}' (known: {})", known.join(", ")).into());
    }
    tests.retain(|(name, _)| wanted(name));
    Ok(tests)
}

fn sorted_dir(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The guests of a kernel, each with its share of `tests`.
fn guests_of(
    args: &Args,
    root: &Path,
    kernel: &Kernel,
    cpu: Option<&str>,
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
        spec.cpu = cpu.map(str::to_owned);
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

/// Whether a guest fell silent without a complaint: one whose kernel complained before is
/// not well, however a second one ends.
fn stood_still(outcome: &GuestOutcome) -> bool {
    outcome.verdict == Verdict::Silent && outcome.troubles.is_empty()
}

/// A guest whose clock stands still says nothing of its kernel: it begins anew, once. All
/// guests of a host stopped at one instant, each in another test.
fn boot_again(spec: &Spec) -> Result<GuestOutcome, soloist_vm::Error> {
    let outcome = soloist_vm::run(spec)?;
    if !stood_still(&outcome) {
        return Ok(outcome);
    }
    eprintln!(
        "{}: the guest said nothing for too long, as if its clock stood still; it begins anew",
        spec.kernel.name()
    );
    soloist_vm::run(spec)
}

/// All guests, `args.jobs` at a time; results in the order of `guests`.
fn boot_all(guests: &[Guest], args: &Args) -> Result<Vec<GuestResult>, Failure> {
    let boot = |guest: &Guest| {
        if !args.json && std::io::stderr().is_terminal() {
            eprintln!("{} ...", guest.name);
        }
        let result = boot_again(&guest.spec)
            .map(|outcome| judge(guest, outcome))
            .map_err(Failure::from);
        if let (Ok(result), false) = (&result, args.json) {
            print!("{}", show(result, args.verbose));
        }
        result
    };
    // Tests wait now and then, so a guest does not keep a cpu busy.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.unwrap_or(cpus + cpus / 2).max(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    let mut results: Vec<_> = pool.install(|| {
        let guests = guests.iter().enumerate().par_bridge();
        guests.map(|(at, guest)| (at, boot(guest))).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

fn judge(guest: &Guest, mut outcome: GuestOutcome) -> GuestResult {
    let output = outcome.stdout.take().unwrap_or_default();
    let errors = outcome.stderr.take().unwrap_or_default();
    let tests = read_tests(&output);
    let trouble = match &outcome.verdict {
        _ if !outcome.troubles.is_empty() => Some(outcome.troubles[0].text.clone()),
        Verdict::Exit(0) => None,
        Verdict::Exit(status) => Some(format!("the tests' runner exited with {status}: {errors}")),
        other => Some(format!("{other:?}")),
    };
    GuestResult {
        name: guest.name.clone(),
        guest: outcome,
        trouble,
        tests,
    }
}

/// What `tests/guest/inside` printed, test by test.
fn read_tests(output: &str) -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["@@", "start", name] => tests.push(Test {
                name: (*name).to_owned(),
                passed: 0,
                failed: 0,
                skipped: 0,
                seconds: 0.0,
                status: -1,
                failures: Vec::new(),
                output: String::new(),
            }),
            ["@@", "end", _, status, seconds] => {
                if let Some(test) = tests.last_mut() {
                    test.status = status.parse().unwrap_or(-1);
                    test.seconds = seconds.parse().unwrap_or(0.0);
                }
            }
            _ => {
                if let Some(test) = tests.last_mut() {
                    test.hear(line);
                }
            }
        }
    }
    tests.iter_mut().for_each(Test::close);
    tests
}

impl Test {
    fn hear(&mut self, line: &str) {
        self.output.push_str(line);
        self.output.push('\n');
        match line.split_whitespace().next() {
            Some("ok") => self.passed += 1,
            Some("skip") => self.skipped += 1,
            Some("FAIL") => {
                self.failed += 1;
                self.failures.push(line.to_owned());
            }
            Some("kernel:") => self.failures.push(line.to_owned()),
            _ => {}
        }
    }

    /// Counts what a test did not say itself.
    fn close(&mut self) {
        let why = match self.status {
            -1 => "FAIL did not end".to_owned(),
            124 | 137 => "FAIL ran out of time".to_owned(),
            0 if self.passed + self.failed + self.skipped == 0 => "FAIL checked nothing".to_owned(),
            status if status != 0 && self.failed == 0 => format!("FAIL exited with {status}"),
            _ => return,
        };
        self.failed += 1;
        self.failures.push(why);
    }
}

fn show(result: &GuestResult, verbose: bool) -> String {
    let mut text = String::new();
    let sum = |count: fn(&Test) -> usize| -> usize { result.tests.iter().map(count).sum() };
    let failed = sum(|t| t.failed) + usize::from(result.trouble.is_some());
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{:<10} {} passed, {failed} failed, {} skipped  ({} tests, boot {:.1} s, {:.0} s)",
        result.name,
        sum(|t| t.passed),
        sum(|t| t.skipped),
        result.tests.len(),
        result.guest.boot_s.unwrap_or(f64::NAN),
        result.guest.wall_s,
    );
    for test in &result.tests {
        if verbose {
            let _ = write!(
                text,
                "  {} ({:.1} s)\n{}",
                test.name,
                test.seconds,
                indent(&test.output)
            );
        } else if test.failed > 0 {
            let _ = write!(
                text,
                "  {} ({:.1} s)\n{}",
                test.name,
                test.seconds,
                indent(&test.failures.join("\n"))
            );
        }
    }
    if let Some(trouble) = &result.trouble {
        let _ = write!(
            text,
            "  guest: {trouble}\n{}",
            indent(&result.guest.excerpt)
        );
        if let Some(log) = &result.guest.log {
            let _ = writeln!(text, "  console: {}", log.display());
        }
    }
    text
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Keeps what the tests printed and the results beside the consoles' logs.
fn save(root: &Path, report: &Report) -> Result<(), Failure> {
    let dir = root.join("build/logs");
    fs::create_dir_all(&dir)?;
    for result in &report.guests {
        let text: String = result
            .tests
            .iter()
            .map(|t| format!("== {} ({} s)\n{}", t.name, t.seconds, t.output))
            .collect();
        fs::write(dir.join(format!("guest-{}.txt", result.name)), text)?;
    }
    fs::write(
        dir.join("guest.json"),
        serde_json::to_string_pretty(report)?,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let tests = read_tests(
            "@@ start a/x\nok one\nFAIL two: why\nskip three: no\nkernel: [ 1.0] so\n\
             @@ end a/x 1 2.5\n\
             @@ start a/silent\n@@ end a/silent 0 0.1\n@@ start a/dies\nok one\n",
        );
        let counts: Vec<_> = tests
            .iter()
            .map(|t| (t.passed, t.failed, t.skipped))
            .collect();
        assert_eq!(counts, [(1, 1, 1), (0, 1, 0), (1, 1, 0)]);
        assert_eq!(tests[0].failures, ["FAIL two: why", "kernel: [ 1.0] so"]);
        assert_eq!(tests[2].failures, ["FAIL did not end"]);
    }

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

    #[test]
    fn a_silent_guest_begins_anew_unless_its_kernel_complained() {
        let mut outcome = GuestOutcome {
            kernel: "6.12".to_owned(),
            verdict: Verdict::Silent,
            boot_s: Some(4.0),
            wall_s: 400.0,
            troubles: Vec::new(),
            excerpt: String::new(),
            log: None,
            stdout: None,
            stderr: None,
            lost: None,
        };
        assert!(stood_still(&outcome));
        outcome.troubles =
            soloist_vm::console::troubles("[ 9.0] BUG: Bad page state in process sh  pfn:1234\n");
        assert!(!stood_still(&outcome));
    }

    #[test]
    fn a_status_without_a_word_is_a_failure() {
        let tests = read_tests("@@ start a/x\nok one\n@@ end a/x 139 2.5\n");
        assert_eq!(tests[0].failures, ["FAIL exited with 139"]);
    }
}
