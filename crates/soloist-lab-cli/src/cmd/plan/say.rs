//! What is said of a plan.

use std::collections::BTreeSet;

use anyhow::Result;
use soloist_cli::{table, Ctx, Table};
use soloist_core::format_size;
use soloist_core::time::{Time, MS, US};
use soloist_host::words::counted;
use soloist_rt::analysis::linux::Server;
use soloist_rt::plan::check::Check;
use soloist_rt::plan::event::Event;
use soloist_rt::plan::grounds::Grounds;
use soloist_rt::plan::{Assignment, Plan};
use soloist_rt::tasks::{Order, Task};

/// Where cpusets are.
const CGROUPS: &str = "/sys/fs/cgroup";

/// What the verdict rests on, a line each.
pub fn grounds(grounds: &Grounds, event: Option<&Event>) -> Vec<String> {
    let machine = format!("if {grounds}");
    let tasks = "the bounds cover these tasks only, not other programs on the machine".to_owned();
    let event = event.map(|event| [event.says(), event.says_when()]);
    let lines = machine.split("; ").map(str::to_owned);
    let event = event.into_iter().flatten();
    lines.chain([tasks]).chain(event).collect()
}

/// The head of a configuration: from what it was written, and what that is worth.
pub fn head(plan: &Plan, file: &str, rests: &[String]) -> String {
    let verdict = if plan.holds { "proved" } else { "NOT proved" };
    let mut lines = vec![
        format!("Written by soloist plan from {file}: {verdict}"),
        format!("for {}, {}", plan.machine, rests.join("; ")),
    ];
    lines.extend(misses(plan));
    if plan.holds {
        lines.extend(starts(plan));
    }
    lines.push(
        "`soloist apply` makes what follows true; config.md says what may stand here.".to_owned(),
    );
    let line = |text: &String| {
        let plain: String = text
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        format!("# {plain}\n")
    };
    lines.iter().map(line).collect::<String>() + "\n"
}

/// Says which tasks miss and how much would be enough, and what was measured against the proof.
pub fn misses(plan: &Plan) -> Vec<String> {
    let missing = plan.relaxations.iter().map(ToString::to_string);
    missing.chain(plan.refuted.iter().cloned()).collect()
}

/// All of it, for people.
pub fn say(plan: &Plan, check: &Check, rests: &[String], ctx: &Ctx) -> Result<()> {
    let verdict = match (plan.holds, plan.refuted.is_empty()) {
        (true, _) => ctx.paint(32, "every deadline is proved"),
        (false, true) => ctx.paint(31, "not every deadline can be proved"),
        (false, false) => ctx.paint(31, "what was measured refutes the proof"),
    };
    outln!(
        "{}: {verdict} ({} tried)",
        plan.machine,
        counted(plan.tried as u64, "way")
    )?;
    outln!("{}\n", rests.join("\n"))?;
    outln!("{}\n", places(plan))?;
    outln!("{}\n{}", proof(plan, check), plan.alone_is())?;
    for line in misses(plan) {
        outln!("\n{line}")?;
    }
    if plan.holds {
        outln!("\nto run it: soloist plan ... --apply, then")?;
        for line in starts(plan) {
            outln!("{line}")?;
        }
    } else {
        outln!(
            "\n`played` is one play of {} on the model; the proof is for all.",
            Time(check.timeline.end_ps)
        )?;
    }
    Ok(())
}

/// Where each task runs, and on what.
fn places(plan: &Plan) -> Table {
    let mut places = table([
        "task",
        "core",
        "node",
        "bank sets",
        "cache colours",
        "bandwidth",
        match plan.set.order {
            Order::Edf => "budget",
            _ => "priority",
        },
    ]);
    for a in &plan.assignments {
        let limit = a
            .limit
            .map_or("-".to_owned(), |l| format!("{} MB/s", l / 1_000_000));
        let class = match (a.priority, &a.server) {
            (0, Some(server)) => server.budget.to_string(),
            (0, None) => "-".to_owned(),
            (priority, _) => priority.to_string(),
        };
        let llc = if a.llc.is_empty() { "any" } else { &a.llc };
        places.add_row([
            &a.task,
            &a.core.to_string(),
            &a.node.to_string(),
            &a.bank_sets,
            llc,
            &limit,
            &class,
        ]);
    }
    places
}

/// Each task's proof, and what one play came to.
fn proof(plan: &Plan, check: &Check) -> Table {
    let mut proof = table([
        "task",
        "deadline",
        "response at most",
        "alone",
        "its core's others",
        "memory",
        "played",
        "",
    ]);
    for answer in &plan.analysis {
        let played = check.task(&answer.task);
        let played = played.map_or("-".to_owned(), |played| match played.missed {
            0 => played.response.to_string(),
            missed => format!("{missed} of {} miss", played.jobs),
        });
        let response = match (answer.response, answer.holds) {
            (Some(response), _) => response.to_string(),
            (None, true) => format!("{} left", Time(answer.slack_ps.unsigned_abs())),
            (None, false) if !answer.is_bounded() => "no bound".to_owned(),
            (None, false) => format!("+{} at least", Time(answer.slack_ps.unsigned_abs())),
        };
        let word = if answer.holds { "holds" } else { "not proved" };
        proof.add_row([
            &answer.task,
            &answer.deadline.to_string(),
            &response,
            &answer.alone.to_string(),
            &answer.preempted.to_string(),
            &answer.waits(),
            &played,
            word,
        ]);
    }
    proof
}

/// How the tasks are started under their plan.
fn starts(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    let cores: BTreeSet<u32> = plan.analysis.iter().map(|a| a.core).collect();
    let budgets = plan.set.order == Order::Edf;
    for &core in &cores {
        lines.extend(budgets.then(|| cpuset(core)).into_iter().flatten());
        lines.extend(without_servers(core, budgets));
    }
    for (a, task) in plan.assignments.iter().zip(&plan.set.tasks) {
        let cpuset = budgets && cores.contains(&a.core);
        lines.push(format!("  {}", command(a, task, cpuset)));
    }
    lines
}

fn cpuset_of(core: u32) -> String {
    format!("{CGROUPS}/soloist-core-{core}")
}

/// What SCHED_DEADLINE wants of a core before its tasks are started: a cpuset of its own.
fn cpuset(core: u32) -> [String; 2] {
    let dir = cpuset_of(core);
    [
        format!("  # core {core}, as root: a cpuset of its own"),
        format!("  echo +cpuset >{CGROUPS}/cgroup.subtree_control && mkdir -p {dir} && echo {core} >{dir}/cpuset.cpus && echo root >{dir}/cpuset.cpus.partition"),
    ]
}

/// From Linux 6.12 on servers run ordinary tasks before those with deadlines, whether these
/// leave them time or not: no bound holds beside them. The core itself turns them off. Else a
/// server whose last task sleeps may be active still, and Linux 6.12 then warns that it counts
/// `running_bw` wrongly (its task_non_contending()). `cpuset`: the core is one of its own.
fn without_servers(core: u32, cpuset: bool) -> [String; 2] {
    let off = format!("for f in /sys/kernel/debug/sched/*_server/cpu{core}/runtime; do [ ! -e \"$f\" ] || echo 0 >\"$f\"; done");
    [
        format!("  # core {core}, as root: without the servers that run ordinary tasks first"),
        match cpuset {
            true => format!("  (echo 0 >{}/cgroup.procs && {off})", cpuset_of(core)),
            false => format!("  taskset -c {core} sh -c '{off}'"),
        },
    ]
}

/// How a task is started; `cpuset`: its core is one of its own.
fn command(a: &Assignment, task: &Task, cpuset: bool) -> String {
    let class = match (a.priority, &a.server) {
        (0, Some(server)) => deadline(server),
        (0, None) => String::new(),
        (priority, _) => format!("--rt {priority} "),
    };
    let run = format!(
        "soloist run --group {} --cpus {} {class}-- ./{}",
        a.group, a.core, task.name
    );
    let run = match cpuset {
        true => format!(
            "sh -c 'echo 0 >{}/cgroup.procs && exec {run}'",
            cpuset_of(a.core)
        ),
        false => run,
    };
    format!("{run}    # {}", format_size(task.bytes))
}

fn deadline(server: &Server) -> String {
    let mut words = format!(
        "--budget {} --period {} ",
        exact(server.budget),
        exact(server.period)
    );
    if server.deadline != server.period {
        words += &format!("--deadline {} ", exact(server.deadline));
    }
    words
}

/// Whole nanoseconds, as `soloist run` takes them.
fn exact(time: Time) -> String {
    match time.0 {
        ps if ps % MS == 0 => format!("{}ms", ps / MS),
        ps if ps % US == 0 => format!("{}us", ps / US),
        ps => format!("{}ns", ps / 1000),
    }
}
