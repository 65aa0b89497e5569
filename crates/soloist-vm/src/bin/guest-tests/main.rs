//! Runs the guest tests: for each kernel a guest that runs its tests in turn, or several
//! guests where it has many; three guests at a time for each two cpus. `tests/guest/run`
//! builds what it needs and starts it.
//!
//! A test is an executable that prints `ok NAME`, `FAIL NAME: why` or `skip
//! NAME: why` lines. It fails without such a line when its status is not 0 or
//! when it printed none at all; a kernel fails when its guest was not well.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use rayon::iter::{ParallelBridge, ParallelIterator};
use serde::Serialize;
use soloist_vm::{kernel, source_root, GuestOutcome, Spec, TestPlan, Verdict};

mod find;
mod guest;
mod said;

use find::{find_tests, tests_of};
use guest::{guests_of, Boot, Guest};
use said::{judge, show, GuestResult, Test};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Run the guest tests on the stock kernels.
#[derive(Parser)]
#[command(name = "tests/guest/run", version)]
struct Args {
    /// Kernel, as for `soloist vm run`; may be given several times. It runs all
    /// tests [default: all kernels, each with what tests/kernels says].
    #[arg(long, short)]
    kernel: Vec<String>,
    /// What make check-long runs: more on each kernel, and on more kernels (tests/kernels).
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
    /// Words for the kernel's command line [default: what tests/kernels says].
    #[arg(long, allow_hyphen_values = true)]
    append: Option<String>,
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
    let every = args.long || !args.kernel.is_empty() || !args.tests.is_empty();
    let runs = |kernel: &str, test: &str| match args.all {
        true => plan.runs_long(kernel, test),
        false => plan.runs(kernel, test),
    };
    let mut guests = Vec::new();
    for name in &names {
        let mut tests = tests.clone();
        tests.retain(|(test, _)| every || runs(name, test));
        if tests.is_empty() {
            continue;
        }
        let kernel = kernel::find(name, Some(&root))?;
        let boot = Boot {
            cpu: args.cpu.as_deref().or(plan.cpu(name)),
            append: args.append.as_deref().or(plan.append(name)).unwrap_or(""),
        };
        guests.extend(guests_of(args, &root, &kernel, boot, &tests)?);
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
}
