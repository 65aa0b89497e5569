//! What a kernel's tracepoints say, as text: lines of `trace_pipe` become events.
//!
//! Of `events/sched`: `sched_switch`, `sched_wakeup`, `sched_wakeup_new`,
//! `sched_process_fork` and `_exit`; `task_rename`; of the module's: `soloist_cpu_stop` and
//! `_go`. A command's name may hold anything (prctl(2)), so fields are looked for
//! from where no name can stand. `sched_process_exec` is left alone: the file that
//! it names may hold whole lines.

/// The first priority that is not a real-time one.
const FAIR: i32 = 100;
/// Width of the name that a line begins with, and of any name.
const NAME: usize = 16;

/// A line that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Processor that wrote it.
    pub cpu: u32,
    /// Time by the trace's clock, picoseconds; lines have microseconds.
    pub at_ps: u64,
    /// The event.
    pub event: Event<'a>,
}

/// The reason why a task is switched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It could go on, but what is as urgent or more runs.
    Ready,
    /// It could go on, and gave way to another of its real-time priority:
    /// sched_yield(2), or the end of a SCHED_RR slice.
    Yields,
    /// It could go on, but what is less urgent runs: SCHED_DEADLINE has used up or
    /// given up (sched_yield(2)) its budget, or SCHED_FIFO and SCHED_RR theirs
    /// (sched_rt_runtime_us). There is no event of its own for that.
    Held,
    /// It sleeps until somebody or a timer wakes it (S, I): its job may be done.
    Sleeps,
    /// It waits for the kernel or a tracer (D, T and the like): its job goes on.
    Blocked,
    /// It has ended.
    Dead,
}

/// An event of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A processor goes from one task to another; 0 is idle.
    Switch {
        /// Thread id of the one that ran.
        prev: u32,
        /// What it does now.
        state: State,
        /// Thread id of the one that runs.
        next: u32,
        /// Name of the one that ran.
        prev_name: &'a str,
        /// Name of the one that runs.
        next_name: &'a str,
    },
    /// A task is made ready.
    Wake {
        /// Its thread id.
        pid: u32,
        /// Its name.
        name: &'a str,
        /// Processor that it is to run on.
        cpu: u32,
    },
    /// A task makes another.
    Fork {
        /// The one that was there.
        parent: u32,
        /// The new one.
        child: u32,
    },
    /// A task takes another name.
    Rename {
        /// Its thread id.
        pid: u32,
        /// The new name.
        name: &'a str,
    },
    /// A task ends.
    Exit {
        /// Its thread id.
        pid: u32,
    },
    /// The module stops a processor: its budget is used up.
    Stop {
        /// The processor.
        cpu: u32,
    },
    /// It goes on.
    Go {
        /// The processor.
        cpu: u32,
        /// How long it stood, picoseconds.
        stood_ps: u64,
    },
}

/// A line of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// An event.
    Line(Line<'a>),
    /// The kernel has lost so many events here (0: it does not know how many).
    Lost(u64),
    /// Nothing of ours: another event, a comment, an empty line.
    Other,
    /// One of our events, but not as they are known.
    Unread,
}

/// A trace's bytes as text. The kernel cuts names within a letter: each byte of such a rest
/// becomes one sign, so that columns stay where they are.
#[must_use]
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// Reads one line, without its newline.
#[must_use]
pub fn parse(line: &str) -> Parsed<'_> {
    if let Some(lost) = lost(line) {
        return Parsed::Lost(lost);
    }
    let Some((pid, cpu, at_ps, event, fields)) = head(line) else {
        let other = line.trim().is_empty() || line.starts_with('#');
        return if other { Parsed::Other } else { Parsed::Unread };
    };
    let read = match event {
        "sched_switch" => switch(fields),
        "sched_wakeup" | "sched_wakeup_new" => wake(fields),
        "sched_process_fork" => fork(fields),
        "task_rename" => rename(fields, pid),
        "sched_process_exit" => after(fields, " pid=").map(|pid| Event::Exit { pid }),
        "soloist_cpu_stop" => number(fields, "cpu=").map(|cpu| Event::Stop { cpu }),
        "soloist_cpu_go" => go(fields),
        _ => return Parsed::Other,
    };
    read.map_or(Parsed::Unread, |event| {
        Parsed::Line(Line { cpu, at_ps, event })
    })
}

/// `CPU:1 [LOST 123 EVENTS]`, or without the number.
fn lost(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("CPU:")?;
    let (_, rest) = rest.split_once(" [LOST ")?;
    Some(number(rest, "").unwrap_or(0))
}

/// `            perl-197   [000] d..2.     5.2: sched_switch: fields`: thread id,
/// processor, time, event, fields.
fn head(line: &str) -> Option<(Option<u32>, u32, u64, &str, &str)> {
    // The name is filled up to 16, and none is longer.
    let rest = line.get(NAME..)?.strip_prefix('-')?;
    let (pid, rest) = rest.split_once('[')?;
    let pid = pid.trim_end().parse().ok();
    let (cpu, rest) = rest.split_once(']')?;
    let (_flags, rest) = rest.trim_start().split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (event, fields) = rest.split_once(": ")?;
    Some((pid, cpu.parse().ok()?, picoseconds(time)?, event, fields))
}

/// `5.254794`.
fn picoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|&n| n <= 12)?;
    let fraction: u64 = fraction.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    let whole = seconds.checked_mul(1_000_000_000_000)?;
    whole.checked_add(fraction * 10_u64.pow(12 - digits))
}

/// The number right after the first `key`.
fn number<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    let rest = &text[text.find(key)? + key.len()..];
    let sign = usize::from(rest.starts_with('-'));
    let end = rest[sign..]
        .find(|c: char| !c.is_ascii_digit())
        .map_or(rest.len(), |at| at + sign);
    rest[..end].parse().ok()
}

/// The number after the last `key`: behind all names.
fn after(text: &str, key: &str) -> Option<u32> {
    number(&text[text.rfind(key)?..], key)
}

fn wake(fields: &str) -> Option<Event<'_>> {
    let name = fields.strip_prefix("comm=")?;
    Some(Event::Wake {
        pid: after(fields, " pid=")?,
        cpu: after(fields, " target_cpu=")?,
        name: &name[..name.rfind(" pid=")?],
    })
}

fn fork(fields: &str) -> Option<Event<'_>> {
    let (parent, _) = split_where(fields, " child_comm=", |left| after(left, " pid="))?;
    Some(Event::Fork {
        parent,
        child: after(fields, " child_pid=")?,
    })
}

/// `pid=7 oldcomm=a newcomm=b oom_score_adj=0`; newer kernels leave out the first, which is
/// `own`, the thread that the line is of.
fn rename(fields: &str, own: Option<u32>) -> Option<Event<'_>> {
    let pid = match fields.starts_with("pid=") {
        true => number(fields, "pid="),
        false => own,
    };
    let (names, _) = fields.rsplit_once(" oom_score_adj=")?;
    // The old name may hold the mark; the new one is short enough behind the right one.
    let mut marks = names.match_indices(" newcomm=");
    let name = marks.find_map(|(at, mark)| {
        let name = &names[at + mark.len()..];
        (name.len() < NAME).then_some(name)
    });
    Some(Event::Rename {
        pid: pid?,
        name: name?,
    })
}

fn go(fields: &str) -> Option<Event<'_>> {
    let stood: u64 = number(fields, "stood_ns=")?;
    Some(Event::Go {
        cpu: number(fields, "cpu=")?,
        stood_ps: stood.checked_mul(1000)?,
    })
}

fn switch(fields: &str) -> Option<Event<'_>> {
    let (left, rest) = split_where(fields, " ==> next_comm=", leaves)?;
    let end = rest.rfind(" next_pid=")?;
    let next_name = &rest[..end];
    let next_prio = number(&rest[end..], " next_prio=")?;
    let state = match left.state {
        State::Ready => why_ready(&left, next_name, next_prio),
        other => other,
    };
    Some(Event::Switch {
        prev: left.pid,
        state,
        prev_name: left.name,
        next: number(&rest[end..], " next_pid=")?,
        next_name,
    })
}

/// A ready task leaves its core. Real-time priorities are below 100 and the less
/// the more urgent, SCHED_DEADLINE's all -1; that of the kernel's stopper is 0,
/// though it goes before all.
fn why_ready(left: &Left, next_name: &str, next_prio: i32) -> State {
    let stopper = next_name.starts_with("migration/");
    if left.prio >= FAIR || stopper {
        State::Ready
    } else if next_prio > left.prio {
        State::Held
    } else if next_prio == left.prio && left.prio >= 0 && !left.forced {
        State::Yields
    } else {
        State::Ready
    }
}

/// The task that is switched from.
struct Left<'a> {
    pid: u32,
    prio: i32,
    name: &'a str,
    state: State,
    /// It was interrupted in the kernel (`R+`).
    forced: bool,
}

/// `prev_comm=perl prev_pid=197 prev_prio=-1 prev_state=D`.
fn leaves(left: &str) -> Option<Left<'_>> {
    let left = left.strip_prefix("prev_comm=")?;
    let end = left.rfind(" prev_pid=")?;
    let (name, rest) = left.split_at(end);
    let (_, state) = rest.rsplit_once(" prev_state=")?;
    let forced = state.starts_with("R+");
    let state = match state.as_bytes().first()? {
        b'R' => State::Ready,
        b'S' | b'I' => State::Sleeps,
        b'X' | b'Z' => State::Dead,
        _ => State::Blocked,
    };
    Some(Left {
        pid: number(rest, " prev_pid=")?,
        prio: number(rest, " prev_prio=")?,
        name,
        state,
        forced,
    })
}

/// Splits at the first `mark` whose left side can be read; a name may hold others.
fn split_where<'a, T>(
    text: &'a str,
    mark: &str,
    read: impl Fn(&'a str) -> Option<T>,
) -> Option<(T, &'a str)> {
    text.match_indices(mark)
        .find_map(|(at, _)| Some((read(&text[..at])?, &text[at + mark.len()..])))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn event(line: &str) -> Event<'_> {
        match parse(line) {
            Parsed::Line(line) => line.event,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// From a guest with 6.12-rt.
    #[test]
    fn recorded_lines_are_read() {
        let line = "            perl-197     [003] d..2.     5.254794: sched_switch: prev_comm=perl prev_pid=197 prev_prio=-1 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120";
        let Parsed::Line(read) = parse(line) else {
            panic!("{:?}", parse(line));
        };
        assert_eq!((read.cpu, read.at_ps), (3, 5_254_794_000_000));
        assert_eq!(
            read.event,
            Event::Switch {
                prev: 197,
                state: State::Blocked,
                next: 0,
                prev_name: "perl",
                next_name: "swapper/0"
            }
        );
        let state = |text: &str| match event(&line.replace("prev_state=D", text)) {
            Event::Switch { state, .. } => state,
            other => panic!("{other:?}"),
        };
        assert_eq!(state("prev_state=R+"), State::Held);
        assert_eq!(state("prev_state=R"), State::Held);
        assert_eq!(state("prev_state=S"), State::Sleeps);
        assert_eq!(state("prev_state=Z"), State::Dead);
        assert_eq!(
            event("     kworker/3:0-53      [003] d..31     5.255184: sched_wakeup: comm=perl pid=197 prio=-1 target_cpu=000"),
            Event::Wake { pid: 197, name: "perl", cpu: 0 }
        );
        assert_eq!(
            event("        kthreadd-2       [000] d..2.     9.396941: sched_wakeup_new: comm=soloist/1 pid=171 prio=120 target_cpu=003"),
            Event::Wake { pid: 171, name: "soloist/1", cpu: 3 }
        );
        assert_eq!(
            event("              sh-166     [000] .....     9.409037: sched_process_fork: comm=sh pid=166 child_comm=sh child_pid=172"),
            Event::Fork { parent: 166, child: 172 }
        );
        // 6.12, and from 6.15 on.
        for pid in ["pid=168 ", ""] {
            assert_eq!(
                event(&format!("            perl-168     [001] .....     9.687617: task_rename: {pid}oldcomm=perl newcomm=a newcomm=b oom_score_adj=0")),
                Event::Rename { pid: 168, name: "a newcomm=b" }
            );
        }
        assert_eq!(
            event("            perl-168     [001] .....     9.687617: sched_process_exit: comm=perl pid=168 prio=49"),
            Event::Exit { pid: 168 }
        );
        assert_eq!(
            event("              sh-169     [001] d.h1.     9.439521: soloist_cpu_stop: cpu=1"),
            Event::Stop { cpu: 1 }
        );
        assert_eq!(
            event("       soloist/1-171     [001] d.h1.     9.445794: soloist_cpu_go: cpu=1 stood_ns=6256880"),
            Event::Go { cpu: 1, stood_ps: 6_256_880_000 }
        );
    }

    #[test]
    fn why_a_ready_task_leaves() {
        let why = |prio: i32, state: &str, next: &str, next_prio: i32| {
            let line = format!("            perl-197     [003] d..2.     5.254794: sched_switch: prev_comm=perl prev_pid=197 prev_prio={prio} prev_state={state} ==> next_comm={next} next_pid=9 next_prio={next_prio}");
            match event(&line) {
                Event::Switch { state, .. } => state,
                other => panic!("{other:?}"),
            }
        };
        // What is more urgent; among SCHED_DEADLINE the next deadline, unseen.
        assert_eq!(why(49, "R", "perl", 40), State::Ready);
        assert_eq!(why(49, "R+", "soloist/1", -1), State::Ready);
        assert_eq!(why(-1, "R", "perl", -1), State::Ready);
        // Its equal, by its own will.
        assert_eq!(why(49, "R", "perl", 49), State::Yields);
        assert_eq!(why(49, "R+", "perl", 49), State::Ready);
        // What is less urgent.
        assert_eq!(why(-1, "R", "sh", 120), State::Held);
        assert_eq!(why(-1, "R+", "swapper/3", 120), State::Held);
        assert_eq!(why(49, "R", "sh", 120), State::Held);
        // The stopper moves it to another core; all share under the fair class.
        assert_eq!(why(-1, "R+", "migration/3", 0), State::Ready);
        assert_eq!(why(120, "R", "sh", 139), State::Ready);
        assert_eq!(why(-1, "S", "sh", 120), State::Sleeps);
    }

    #[test]
    fn losses_and_what_is_not_ours() {
        assert_eq!(parse("CPU:1 [LOST 2197 EVENTS]"), Parsed::Lost(2197));
        assert_eq!(parse("CPU:1 [LOST EVENTS]"), Parsed::Lost(0));
        assert_eq!(parse("# tracer: nop"), Parsed::Other);
        assert_eq!(parse(""), Parsed::Other);
        assert_eq!(
            parse("              sh-169     [001] d.h1.     9.439521: sched_migrate_task: comm=perl pid=1 prio=1 orig_cpu=0 dest_cpu=1"),
            Parsed::Other
        );
        for broken in [
            "              sh-169     [001] d.h1.     9.439521: soloist_cpu_stop: cpu=",
            "              sh-169     [001] d.h1.     9.439521: sched_wakeup: comm=perl",
            "half a line",
        ] {
            assert_eq!(parse(broken), Parsed::Unread, "{broken}");
        }
    }

    /// A task calls itself as it likes, in 15 bytes.
    #[test]
    fn names_can_forge_nothing() {
        for name in [
            "x-1 [000] 1: s:",
            " ==> next_comm=",
            " prev_pid=7 a=",
            " pid=7 prio=1 t",
            " next_pid=7 n=1",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
        ] {
            assert!(name.len() <= 15);
            let fill = " ".repeat(NAME - name.len());
            let head = format!("{fill}{name}-197     [003] d..2.     5.254794: ");
            let line = format!("{head}sched_switch: prev_comm={name} prev_pid=197 prev_prio=-1 prev_state=S ==> next_comm={name} next_pid=9 next_prio=120");
            assert_eq!(
                event(&line),
                Event::Switch {
                    prev: 197,
                    state: State::Sleeps,
                    next: 9,
                    prev_name: name,
                    next_name: name
                }
            );
            let line = format!("{head}sched_wakeup: comm={name} pid=9 prio=-1 target_cpu=000");
            let cpu = 0;
            assert_eq!(event(&line), Event::Wake { pid: 9, name, cpu });
            let line = format!(
                "{head}sched_process_fork: comm={name} pid=197 child_comm={name} child_pid=9"
            );
            assert_eq!(
                event(&line),
                Event::Fork {
                    parent: 197,
                    child: 9
                }
            );
        }
    }
}
