//! What the fields of a `[[task]]` say, and which of them are of its kind.

use soloist_play::programs::counters::Counters;
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::table_1::Benchmark;
use soloist_play::programs::ProgramKind;

use crate::spec::number::parse_cpus;
use crate::spec::{Number, TaskSpec};

/// Values of the sweeps by name.
type Sweep<'a> = [(&'a str, u64)];

/// Bytes of a page, the least that a task has: what is less is rounded up.
const PAGE: u64 = 4096;

/// Arrays that a program may walk in step.
const MOST_ARRAYS: u32 = 64;

/// The cpus of a task, a copy on each.
pub(super) fn cpus(spec: &TaskSpec, sweep: &Sweep) -> Result<Vec<u32>, String> {
    let mut cpus = parse_cpus(&spec.cpus)?;
    let Some(copies) = &spec.copies else {
        return Ok(cpus);
    };
    let copies = copies.resolve(sweep)?;
    if copies > cpus.len() as u64 {
        return Err(format!(
            "`copies` is {copies}, but `cpus` {:?} names {} CPUs; name one for each copy",
            spec.cpus,
            cpus.len()
        ));
    }
    cpus.truncate(copies as usize);
    Ok(cpus)
}

/// Threads of each program of a task on this many cpus: of a recording that many take part.
pub(super) fn threads(spec: &TaskSpec, cpus: usize) -> Result<usize, String> {
    let threads = spec.recorded.as_ref().map_or(1, Recorded::threads);
    if cpus % threads != 0 {
        return Err(format!(
            "the recording has {threads} threads: give it {threads} cpus, not {cpus}"
        ));
    }
    if threads > 1 && spec.rounds > 0 {
        return Err(format!(
            "`rounds` is not for a recording of {threads} threads: they wait for each other"
        ));
    }
    Ok(threads)
}

/// A number that is `least` or more.
fn at_least(least: u64, name: &str, number: &Number, sweep: &Sweep) -> Result<u64, String> {
    match number.resolve(sweep)? {
        n if n < least => Err(format!("`{name}` {n}: expected {least} or more")),
        n => Ok(n),
    }
}

/// A task's `bytes`; a recording has its own.
pub(super) fn bytes(spec: &TaskSpec, sweep: &Sweep) -> Result<u64, String> {
    match (&spec.bytes, spec.kind) {
        (Some(_), ProgramKind::Recorded) => {
            Err("`bytes` is not for kind \"recorded\": a recording has its own".to_owned())
        }
        (None, ProgramKind::Recorded) => Ok(PAGE),
        (None, _) => Err("`bytes` is missing: its memory, such as \"32M\"".to_owned()),
        (Some(bytes), _) => Ok(at_least(1, "bytes", bytes, sweep)?.max(PAGE)),
    }
}

/// A task's `work`; none: all of its recording.
pub(super) fn work(spec: &TaskSpec, sweep: &Sweep) -> Result<u64, String> {
    match (&spec.work, spec.kind) {
        (None, ProgramKind::Recorded) => Ok(spec.recorded.as_ref().map_or(0, Recorded::lines)),
        (None, _) => Err("`work` is missing: how many steps it does".to_owned()),
        (Some(work), _) => at_least(1, "work", work, sweep),
    }
}

/// Bytes from one access to the next in memory of so many `bytes`; 0: a line.
pub(super) fn stride(spec: &TaskSpec, bytes: u64, sweep: &Sweep) -> Result<u64, String> {
    use ProgramKind::{AlternatingStride, BandwidthRead, BandwidthWrite};
    let Some(stride) = &spec.stride else {
        return Ok(0);
    };
    let most = match spec.kind {
        AlternatingStride => bytes / 4,
        BandwidthRead | BandwidthWrite => bytes,
        _ => {
            let what = "`stride` is for kinds \"alternating-stride\", \"bandwidth-read\" and \
                        \"bandwidth-write\"";
            return Err(what.to_owned());
        }
    };
    match stride.resolve(sweep)? {
        stride if (1..=most).contains(&stride) => Ok(stride),
        stride => Err(format!(
            "`stride` {stride}: expected 1 to {most}, of its `bytes`"
        )),
    }
}

/// Private bank sets.
pub(super) fn sets(spec: &TaskSpec, sweep: &Sweep) -> Result<Option<u64>, String> {
    let sets = spec.sets.as_ref();
    sets.map(|n| at_least(1, "sets", n, sweep)).transpose()
}

/// The benchmark of a `spec`.
pub(super) fn benchmark(spec: &TaskSpec, sweep: &Sweep) -> Result<Option<Benchmark>, String> {
    match (spec.kind, &spec.benchmark) {
        (ProgramKind::Spec, Some(number)) => {
            let number = number.resolve(sweep)?;
            let found = Benchmark::find(number).ok_or_else(|| {
                format!("no benchmark {number}: expected a SPEC CPU2006 number such as 470")
            });
            found.map(Some)
        }
        (ProgramKind::Spec, None) => Err("kind `spec` needs `benchmark`, such as 470".to_owned()),
        (_, Some(_)) => Err("`benchmark` is for kind \"spec\"".to_owned()),
        (_, None) => Ok(None),
    }
}

/// A share that the file gives, or `usual`.
fn share(name: &str, value: Option<f64>, usual: f64) -> Result<f64, String> {
    match value {
        Some(v) if !(0.0..=1.0).contains(&v) => Err(format!("{name} {v}: expected from 0 to 1")),
        value => Ok(value.unwrap_or(usual)),
    }
}

/// Arrays that the file gives, or `usual`.
fn arrays(spec: &TaskSpec, usual: u32) -> Result<u32, String> {
    match spec.arrays {
        Some(n) if n > MOST_ARRAYS => Err(format!("arrays {n}: expected from 0 to {MOST_ARRAYS}")),
        arrays => Ok(arrays.unwrap_or(usual)),
    }
}

/// Counters of a benchmark: what is printed of it, and the file's of the rest.
pub(super) fn counted(spec: &TaskSpec, benchmark: Benchmark) -> Result<Counters, String> {
    if spec.ipc.or(spec.mpki).is_some() {
        return Err("`ipc` and `mpki` of kind \"spec\" are MemGuard's Table 1".to_owned());
    }
    let printed = benchmark.counters();
    Ok(Counters {
        writes: share("writes", spec.writes, printed.writes)?,
        arrays: arrays(spec, printed.arrays)?,
        uneven: share("uneven", spec.uneven, printed.uneven)?,
        ..printed
    })
}

/// Counters of a `program`.
pub(super) fn counters(spec: &TaskSpec) -> Result<Option<Counters>, String> {
    let within = |name: &str, value: Option<f64>, most: f64| match value {
        Some(v) if v > 0.0 && v <= most => Ok(v),
        Some(v) => Err(format!("{name} {v}: expected above 0 and at most {most}")),
        None => Err(format!("kind \"program\" needs `{name}`")),
    };
    if spec.uneven.is_some() {
        return Err("`uneven` is for kind \"spec\"".to_owned());
    }
    if spec.kind == ProgramKind::Program {
        return Ok(Some(Counters {
            ipc: within("ipc", spec.ipc, 8.0)?,
            mpki: within("mpki", spec.mpki, 500.0)?,
            writes: within("writes", spec.writes.or(Some(0.3)), 1.0)?,
            arrays: arrays(spec, 4)?,
            uneven: 0.0,
            spell: 0.0,
        }));
    }
    let counted = spec.ipc.or(spec.mpki).or(spec.writes);
    match counted.or(spec.arrays.map(f64::from)) {
        Some(_) => Err("`ipc`, `mpki`, `writes` and `arrays` are for kind \"program\"".to_owned()),
        None => Ok(None),
    }
}

/// How many times as many instructions a generator has between its accesses.
pub(super) fn instructions(spec: &TaskSpec) -> Result<f64, String> {
    use ProgramKind::{Latency, Program, Recorded, Spec};
    match (spec.instructions, spec.kind) {
        (None, _) => Ok(1.0),
        (Some(_), Program | Spec | Recorded | Latency) => {
            Err("`instructions` is for generators that no counters make".to_owned())
        }
        (Some(times), _) if (0.01..=100.0).contains(&times) => Ok(times),
        (Some(times), _) => Err(format!("instructions {times}: expected 0.01 to 100")),
    }
}
