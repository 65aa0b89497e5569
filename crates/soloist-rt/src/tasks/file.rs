//! Task files (docs/reference/task-files.md): TOML in, a [`TaskSet`] out, or what is wrong
//! and in which line.
//!
//! ```toml
//! machine = "opteron-6128"
//! order = "rate-monotonic"      # or deadline-monotonic, fixed, edf
//!
//! [[task]]
//! name = "control"
//! period = "10 ms"
//! wcet = "3 ms"                 # alone on the machine
//! memory = "4M"
//! kind = "is"                   # a program of the lab; without memory and kind: compute only
//!
//! [[task]]
//! name = "logger"               # no period: best effort
//! core = 1
//! memory = "24M"
//! kind = "stream"
//! ```

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::{self, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use soloist_core::parse_size;
use soloist_core::time::Time;
use soloist_machine::file::read_text;
use soloist_machine::{FileError, FileText};
use soloist_play::programs::recorded::Recorded;
use soloist_play::programs::ProgramKind;
use toml::Spanned;

use crate::tasks::{Behaviour, Order, Release, Task, TaskSet, STOP};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    machine: Option<Spanned<String>>,
    #[serde(default)]
    order: Order,
    stop: Option<Spanned<Time>>,
    #[serde(default, deserialize_with = "tasks")]
    task: Vec<Spanned<RawTask>>,
}

/// `[task]` is one of a kind; tasks are a list.
fn tasks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Spanned<RawTask>>, D::Error> {
    struct List;
    impl<'de> Visitor<'de> for List {
        type Value = Vec<Spanned<RawTask>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list: write each task as [[task]], in two brackets")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(task) = seq.next_element()? {
                all.push(task);
            }
            Ok(all)
        }
    }
    from.deserialize_seq(List)
}

/// A number from 0 to what 32 bits hold.
#[derive(Clone, Copy)]
struct Whole(u32);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {}", u32::MAX)
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Whole, E> {
                let whole = u32::try_from(n).map(Whole);
                whole.map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
            }
        }
        from.deserialize_i64(Number)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTask {
    name: Spanned<String>,
    period: Option<Spanned<Time>>,
    deadline: Option<Spanned<Time>>,
    phase: Option<Spanned<Time>>,
    jitter: Option<Spanned<Time>>,
    priority: Option<Spanned<Whole>>,
    core: Option<Spanned<Whole>>,
    wcet: Option<Spanned<Time>>,
    memory: Option<Spanned<String>>,
    kind: Option<Spanned<ProgramKind>>,
    recording: Option<Spanned<PathBuf>>,
    lines: Option<Spanned<Whole>>,
    ipc: Option<Spanned<f64>>,
    mpki: Option<Spanned<f64>>,
    writes: Option<Spanned<f64>>,
}

type Wrong = (Range<usize>, String);

/// Reads a task file.
///
/// # Errors
/// If it cannot be read, or as [`parse`].
pub fn read(path: &Path) -> Result<TaskSet, FileError> {
    let (text, file) = read_text(path)?;
    parse(&text, &file)
}

/// Reads the text of a task file; `file` is its name in messages, and from its
/// folder recordings are looked for.
///
/// # Errors
/// With the line: what was wrong and what to change.
pub fn parse(text: &str, file: &str) -> Result<TaskSet, FileError> {
    parse_any(text, file, false)
}

/// As [`parse`], but `mpki` may be missing where recordings say it
/// ([`crate::model::recorded`]); it is 0 then.
///
/// # Errors
/// As [`parse`].
pub fn parse_to_fill(text: &str, file: &str) -> Result<TaskSet, FileError> {
    parse_any(text, file, true)
}

fn parse_any(text: &str, file: &str, to_fill: bool) -> Result<TaskSet, FileError> {
    let place = FileText { file, text };
    let raw: Raw = toml::from_str(text).map_err(|error| place.toml(&error))?;
    if raw.task.is_empty() {
        let last = text.trim_end().len();
        let what = "no [[task]] up to here: a task set needs at least one, with `name`, `period` and `wcet`";
        return Err(place.error(last..last, what));
    }
    if let Some(stop) = raw.stop.as_ref().filter(|stop| stop.get_ref().0 == 0) {
        let what = "stop must be above 0: no core stops at once";
        return Err(place.error(stop.span(), what));
    }
    let given = Given {
        order: raw.order,
        folder: Path::new(file).parent().unwrap_or(Path::new("")),
        to_fill,
    };
    let mut tasks: Vec<Task> = Vec::new();
    for raw in raw.task {
        let line = place.line(raw.span().start);
        let span = raw.get_ref().name.span();
        let task = task(raw.into_inner(), line, given)
            .and_then(|task| fits(&tasks, task).map_err(|what| (span, what)))
            .map_err(|(span, message)| place.error(span, message))?;
        tasks.push(task);
    }
    Ok(TaskSet {
        machine_line: (raw.machine.as_ref()).map_or(0, |m| place.line(m.span().start)),
        machine: raw.machine.map(Spanned::into_inner),
        order: raw.order,
        stop: raw.stop.map_or(STOP, Spanned::into_inner),
        tasks,
        file: file.to_owned(),
    })
}

/// The next task beside those before it: names apart, no core overfull.
fn fits(before: &[Task], task: Task) -> Result<Task, String> {
    if before.iter().any(|t| t.name == task.name) {
        return Err(format!("there are two tasks {:?}: rename one", task.name));
    }
    if let Some(core) = task.core {
        let mates = before.iter().filter(|t| t.core == Some(core));
        let all: f64 = mates.map(Task::utilisation).sum::<f64>() + task.utilisation();
        if all > 1.0 + 1e-9 {
            return Err(format!(
                "with {:?} the tasks of core {core} need {:.0} % of it even alone: move one, lengthen a period or shorten a wcet",
                task.name,
                all * 100.0
            ));
        }
    }
    Ok(task)
}

/// What all tasks of a file have in common.
#[derive(Clone, Copy)]
struct Given<'a> {
    order: Order,
    /// The file's folder, from which recordings are looked for.
    folder: &'a Path,
    /// Recordings will say what is missing.
    to_fill: bool,
}

fn task(raw: RawTask, line: usize, given: Given) -> Result<Task, Wrong> {
    let name = raw.name.get_ref().clone();
    let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '.';
    if name.is_empty() || name.len() > 40 || !name.chars().all(plain) {
        return Err((
            raw.name.span(),
            format!("name {name:?}: expected 1 to 40 letters, digits, `-`, `_` or `.`"),
        ));
    }
    let release = release(&raw, given.order)?;
    let wcet = wcet(&raw, release)?;
    let behaviour = behaviour(&raw, given.to_fill)?;
    let recorded = recorded(&raw, given.folder)?;
    both_or_neither(&raw, given.to_fill)?;
    let own = recorded.as_ref().map_or(0, Recorded::bytes);
    Ok(Task {
        release,
        wcet,
        core: raw.core.as_ref().map(|c| c.get_ref().0),
        bytes: bytes(raw.memory.as_ref())?.max(own),
        behaviour,
        recorded,
        recording: raw.recording.map(|dir| given.folder.join(dir.into_inner())),
        name,
        line,
    })
}

/// Longest execution alone; 0 of a best-effort task.
fn wcet(raw: &RawTask, release: Option<Release>) -> Result<Time, Wrong> {
    let name = raw.name.get_ref();
    let (wcet, release) = match (&raw.wcet, release) {
        (Some(wcet), Some(release)) => (wcet, release),
        (Some(wcet), None) => {
            return Err((
                wcet.span(),
                format!("{name:?} has a wcet and no period: add `period`, or leave `wcet` out for a best-effort task"),
            ))
        }
        (None, Some(_)) => {
            return Err((
                raw.name.span(),
                format!("{name:?} needs `wcet`, its longest execution alone, such as \"3 ms\""),
            ))
        }
        (None, None) => return Ok(Time(0)),
    };
    let (span, wcet) = (wcet.span(), *wcet.get_ref());
    if wcet.0 == 0 {
        return Err((span, "wcet must be above 0".to_owned()));
    }
    if wcet > release.deadline {
        let deadline = release.deadline;
        let what = format!(
            "wcet {wcet} is longer than the deadline, {deadline}: {name:?} misses it even alone"
        );
        return Err((span, what));
    }
    Ok(wcet)
}

fn release(raw: &RawTask, order: Order) -> Result<Option<Release>, Wrong> {
    let get = |time: &Option<Spanned<Time>>| time.as_ref().map(|t| *t.get_ref());
    let Some(period) = &raw.period else {
        let timed = [&raw.deadline, &raw.phase, &raw.jitter];
        let timed = timed.map(|time| time.as_ref().map(Spanned::span));
        let numbers = [&raw.priority, &raw.lines].map(|n| n.as_ref().map(Spanned::span));
        if let Some(alone) = timed.into_iter().chain(numbers).flatten().next() {
            let what = "only tasks with a `period` have deadline, phase, jitter, priority and lines (of a job)";
            return Err((alone, what.to_owned()));
        }
        return Ok(None);
    };
    let (span, period) = (period.span(), *period.get_ref());
    if period.0 == 0 {
        return Err((
            span,
            "period must be above 0; a task without one is best effort".to_owned(),
        ));
    }
    let deadline = get(&raw.deadline).unwrap_or(period);
    let jitter = get(&raw.jitter).unwrap_or_default();
    let at = |time: &Option<Spanned<Time>>| time.as_ref().map_or(0..0, Spanned::span);
    if deadline.0 == 0 || deadline > period {
        return Err((
            at(&raw.deadline),
            format!("deadline {deadline} must be above 0 and at most the period, {period}"),
        ));
    }
    if jitter >= deadline && jitter.0 > 0 {
        return Err((
            at(&raw.jitter),
            format!("jitter {jitter} leaves nothing of the deadline, {deadline}"),
        ));
    }
    let priority = match (&raw.priority, order) {
        (Some(p), Order::Fixed) if !(1..=99).contains(&p.get_ref().0) => {
            let what = format!(
                "priority {}: expected 1 to 99, 99 the highest",
                p.get_ref().0
            );
            return Err((p.span(), what));
        }
        (Some(p), Order::Fixed) => p.get_ref().0,
        (Some(p), _) => return Err((
            p.span(),
            "`priority` is for order = \"fixed\"; the order of this file gives priorities itself"
                .to_owned(),
        )),
        (None, Order::Fixed) => {
            return Err((
                raw.name.span(),
                format!(
                    "order = \"fixed\": {:?} needs `priority`, 1 to 99",
                    raw.name.get_ref()
                ),
            ))
        }
        (None, _) => 0,
    };
    Ok(Some(Release {
        period,
        deadline,
        phase: get(&raw.phase).unwrap_or_default(),
        jitter,
        priority,
    }))
}

fn bytes(memory: Option<&Spanned<String>>) -> Result<u64, Wrong> {
    let Some(memory) = memory else {
        return Ok(4096);
    };
    let wrong = |message: String| (memory.span(), message);
    match parse_size(memory.get_ref()) {
        Ok(0) => Err(wrong("memory must be above 0, such as \"4M\"".to_owned())),
        Ok(bytes) if bytes > 1 << 46 => Err(wrong("memory is more than 64 TiB".to_owned())),
        Ok(bytes) => Ok(bytes.max(4096)),
        Err(error) => Err(wrong(format!("memory {:?}: {error}", memory.get_ref()))),
    }
}

/// What a task of kind `recorded` plays; `beside` is the file's folder.
fn recorded(raw: &RawTask, beside: &Path) -> Result<Option<Recorded>, Wrong> {
    let is_recorded = |k: &Spanned<ProgramKind>| *k.get_ref() == ProgramKind::Recorded;
    match (&raw.recording, raw.kind.as_ref()) {
        (Some(dir), Some(kind)) if is_recorded(kind) => {
            let at = beside.join(dir.get_ref());
            let wrong = |what| (dir.span(), format!("recording {}: {what}", at.display()));
            let found = Recorded::load(&at).map_err(wrong)?;
            match found.lines() {
                _ if found.threads() > 1 => Err(wrong(format!(
                    "it has {} threads, and a task is one: `soloist sim replay` and `soloist lab run` play all",
                    found.threads()
                ))),
                0 => Err(wrong("nothing left its private caches: there is nothing to play".to_owned())),
                _ => Ok(Some(found)),
            }
        }
        (None, Some(kind)) if is_recorded(kind) => Err((
            kind.span(),
            "kind = \"recorded\" needs `recording`, a folder that `soloist vm record --out` made, seen from this file's".to_owned(),
        )),
        (Some(dir), _) => Err((
            dir.span(),
            "`recording` is for kind = \"recorded\"".to_owned(),
        )),
        (None, _) => Ok(None),
    }
}

/// Memory that nothing is said to be done to, and a program that has no memory
/// to do it to, would both be proved as if memory were no matter.
fn both_or_neither(raw: &RawTask, to_fill: bool) -> Result<(), Wrong> {
    let name = raw.name.get_ref();
    match (&raw.memory, &raw.kind, &raw.lines) {
        (Some(memory), None, None) => Err((
            memory.span(),
            format!("{name:?} has `memory`, and nothing says what it does to it: add `kind` (docs/reference/task-files.md), or how many `lines` a job has from and to memory (0: it stays in its private caches)"),
        )),
        (None, None, Some(lines)) if lines.get_ref().0 > 0 => Err((
            lines.span(),
            format!("{name:?} has `lines` and no memory that they could be of: add `memory`, such as \"4M\""),
        )),
        (None, Some(kind), None) => {
            let own = match kind.get_ref() {
                ProgramKind::Recorded => true,
                ProgramKind::Program => to_fill,
                _ => false,
            };
            match own {
                true => Ok(()),
                false => Err((
                    kind.span(),
                    format!("{name:?} has a `kind` and no memory that it could be done to: add `memory`, such as \"4M\""),
                )),
            }
        }
        _ => Ok(()),
    }
}

fn behaviour(raw: &RawTask, to_fill: bool) -> Result<Behaviour, Wrong> {
    let counters = [
        ("ipc", &raw.ipc, 8.0),
        ("mpki", &raw.mpki, 500.0),
        ("writes", &raw.writes, 1.0),
    ];
    let is_program = raw
        .kind
        .as_ref()
        .is_some_and(|k| *k.get_ref() == ProgramKind::Program);
    for (name, value, most) in &counters {
        let Some(value) = value else { continue };
        let v = *value.get_ref();
        if !is_program {
            return Err((value.span(), format!("`{name}` is for kind = \"program\"")));
        }
        if !(v > 0.0 && v <= *most) {
            return Err((
                value.span(),
                format!("{name} {v}: expected above 0 and at most {most}"),
            ));
        }
    }
    let get = |v: &Option<Spanned<f64>>| v.as_ref().map(|v| *v.get_ref());
    match (&raw.kind, &raw.lines) {
        (Some(_), Some(lines)) => Err((
            lines.span(),
            "either `lines` (from and to memory a job) or `kind`, from which they are measured"
                .to_owned(),
        )),
        (None, Some(lines)) => Ok(match lines.get_ref().0 {
            0 => Behaviour::Compute,
            lines => Behaviour::Lines(u64::from(lines)),
        }),
        (None, None) => Ok(Behaviour::Compute),
        (Some(kind), None) => {
            let span = kind.span();
            let kind = *kind.get_ref();
            if matches!(kind, ProgramKind::Spec | ProgramKind::Fps) {
                return Err((
                    span,
                    "this kind is the papers' own; describe a program with kind = \"program\", `ipc` and `mpki`".to_owned(),
                ));
            }
            if is_program && raw.ipc.is_none() {
                return Err((span, "kind = \"program\" needs `ipc` and `mpki`".to_owned()));
            }
            if is_program && raw.mpki.is_none() && !to_fill {
                return Err((
                    span,
                    "kind = \"program\" needs `ipc` and `mpki`, or for the latter a recording (soloist plan --profile DIR)".to_owned(),
                ));
            }
            Ok(Behaviour::Program {
                kind,
                ipc: get(&raw.ipc).unwrap_or(0.0),
                mpki: get(&raw.mpki).unwrap_or(0.0),
                writes: get(&raw.writes).unwrap_or(0.3),
            })
        }
    }
}
