//! Plans as Linux runs them: priorities that there are, budgets, and what the
//! kernel keeps for others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use soloist_core::time::{Time, MS, US};
use soloist_memory::Platform;
use soloist_rt::analysis::linux::{admitted, Server};
use soloist_rt::plan::refusal::PlanError;
use soloist_rt::plan::{plan, Plan};
use soloist_rt::tasks::file::parse;

fn made(text: &str) -> Result<Plan, PlanError> {
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.toml");
    let platform = Platform::find(small).unwrap();
    plan(&platform, &parse(text, "tasks.toml").unwrap(), 1)
}

/// `(core, period, wcet)` in microseconds each; a task computes only.
fn tasks(order: &str, tasks: &[(Option<u32>, u64, u64)]) -> String {
    let mut text = format!("order = {order:?}\n");
    for (i, (core, period, wcet)) in tasks.iter().enumerate() {
        let core = core.map_or(String::new(), |core| format!("core = {core}\n"));
        text += &format!(
            "[[task]]\nname = \"t{i}\"\n{core}period = \"{period} us\"\nwcet = \"{wcet} us\"\n"
        );
    }
    text
}

fn refused(text: &str) -> String {
    made(text).unwrap_err().to_string()
}

/// A task's priority has to do with those of its core alone: many tasks elsewhere
/// leave it as many to choose from.
#[test]
fn priorities_are_of_each_core() {
    let mut all = vec![(Some(1), 10_000, 10); 60];
    all.extend([(Some(2), 10_000, 10); 60]);
    all.extend([(Some(0), 20_000, 100), (Some(0), 40_000, 100)]);
    let plan = made(&tasks("rm", &all)).unwrap();
    assert!(plan.holds);
    let priority = |i: usize| plan.assignments[i].priority;
    assert_eq!((priority(0), priority(59), priority(60)), (90, 31, 90));
    assert_eq!((priority(120), priority(121)), (90, 89));
    for core in 0..3 {
        let mine = plan.assignments.iter().filter(|a| a.core == core);
        let mut given: Vec<u32> = mine.map(|a| a.priority).collect();
        let tasks = given.len();
        given.dedup();
        assert_eq!(given.len(), tasks, "core {core}");
    }
}

/// More than there are priorities: a task that is bound is refused, one that is not
/// goes elsewhere.
#[test]
fn a_core_has_no_more_tasks_than_priorities() {
    let full = vec![(Some(0), 10_000, 10); 90];
    let plan = made(&tasks("dm", &full)).unwrap();
    let least = plan.assignments.iter().map(|a| a.priority).min();
    assert_eq!(least, Some(1));
    let mut more = full.clone();
    more.push((None, 10_000, 10));
    let plan = made(&tasks("dm", &more)).unwrap();
    assert_ne!(plan.assignments[90].core, 0);
    more[90].0 = Some(0);
    let said = refused(&tasks("dm", &more));
    // Four lines a task, and the order's.
    assert!(
        said.starts_with(&format!("tasks.toml:{}: ", 2 + 90 * 5)),
        "{said}"
    );
    assert!(
        said.contains("core 0 has 90 tasks") && said.contains("\"t90\""),
        "{said}"
    );
}

/// Two tasks that no fixed priorities hold get a budget each, which together the
/// kernel takes.
#[test]
fn edf_is_budgets() {
    let pair = [(Some(0), 5_000, 2_000), (Some(0), 7_000, 3_600)];
    let fixed = made(&tasks("rm", &pair)).unwrap();
    assert!(!fixed.holds && fixed.assignments.iter().all(|a| a.server.is_none()));
    let plan = made(&tasks("edf", &pair)).unwrap();
    assert!(plan.holds);
    let servers: Vec<Server> = plan.assignments.iter().map(|a| a.server.unwrap()).collect();
    assert!(plan.assignments.iter().all(|a| a.priority == 0));
    for (server, (_, period, wcet)) in servers.iter().zip(pair) {
        assert_eq!(
            (server.period, server.deadline),
            (Time(period * US), Time(period * US))
        );
        assert!(server.budget > Time(wcet * US), "{server:?}");
        assert_eq!(server.budget.0 % 1000, 0);
    }
    assert!(admitted(&servers), "{servers:?}");
}

/// The kernel counts a deadline from when a task wakes up, which may be late.
#[test]
fn a_deadline_is_shorter_by_the_jitter() {
    let text = tasks("edf", &[(Some(0), 10_000, 1_000)]);
    let text = text.replace("wcet", "deadline = \"8 ms\"\njitter = \"1 ms\"\nwcet");
    let server = made(&text).unwrap().assignments[0].server.unwrap();
    assert_eq!(server.deadline, Time(7 * MS));
    assert_eq!(server.period, Time(10 * MS));
}

/// A job that comes late preempts one that is due before it would have come: in the budget is
/// what that costs, whether its deadline is a bit before the other's or a bit behind.
#[test]
fn a_late_job_preempts_one_with_an_earlier_deadline() {
    let preempted = |deadline: u64, jitter: u64| {
        let text = format!(
            "order = \"edf\"\n\
            [[task]]\nname = \"a\"\ncore = 0\nperiod = \"10 ms\"\nwcet = \"2 ms\"\nmemory = \"64K\"\nkind = \"latency\"\n\
            [[task]]\nname = \"b\"\ncore = 0\nperiod = \"40 ms\"\nwcet = \"500 us\"\ndeadline = \"{deadline} us\"\njitter = \"{jitter} us\"\n"
        );
        made(&text).unwrap().analysis[0].preempted
    };
    let once = preempted(9_999, 5_000);
    assert_eq!(preempted(10_001, 5_000), once);
    assert_eq!(preempted(14_999, 5_000), once);
    // It comes too early to be in the way, however late.
    let never = preempted(15_000, 5_000);
    assert!(never < once);
    assert_eq!(preempted(10_001, 0), never);
}

/// 5 % of a core are not real time's, whatever the order.
#[test]
fn what_the_kernel_keeps_is_no_task_s() {
    for (order, wcet, holds) in [
        ("edf", 9_400, true),
        ("edf", 9_600, false),
        ("rm", 9_400, true),
        ("rm", 9_600, false),
    ] {
        let plan = made(&tasks(order, &[(Some(0), 10_000, wcet)])).unwrap();
        assert_eq!(plan.holds, holds, "{order} {wcet}");
        if !holds {
            let change = &plan.relaxations[0].change;
            assert!(change.contains("50 ms of each second"), "{change}");
        }
    }
    // Where jobs are long, that part is counted like a task that goes before all.
    let text = |deadline: &str| {
        let text = tasks("rm", &[(Some(0), 4_000_000, 2_000_000)]);
        text.replace("wcet", &format!("deadline = \"{deadline} ms\"\nwcet"))
    };
    let long = made(&text("2300")).unwrap();
    assert!(long.holds);
    assert_eq!(long.analysis[0].others, Time(200 * MS));
    assert!(!made(&text("2190")).unwrap().holds);
}

/// A turn of the kernel's is a preemption, also of a task that has no other beside it.
#[test]
fn what_a_turn_of_others_puts_out_is_counted() {
    let platform = Platform::find("opteron-6128").unwrap();
    let text = "[[task]]\nname = \"a\"\ncore = 0\nperiod = \"4 s\"\nwcet = \"2 s\"\nmemory = \"8M\"\nkind = \"matmult-blocked\"\n";
    let plan = plan(&platform, &parse(text, "tasks.toml").unwrap(), 1).unwrap();
    let (answer, costs) = (&plan.analysis[0], &plan.costs);
    assert_eq!(answer.others, Time(200 * MS));
    // In each turn: its lines, those of whoever had the core, and the walks to its pages.
    let lines = costs.again(costs.cached.min((8 << 20) / 64)) * costs.miss_ps;
    let turn = lines + costs.handed_over_ps + costs.begun_ps + costs.walks_ps(8 << 20);
    assert_eq!(answer.preempted.0, answer.others.0 + 4 * turn, "{answer:?}");
}

/// A task whose core leaves others too little waits for their part, whether another of its
/// core misses anyway or not.
#[test]
fn a_miss_of_another_takes_no_part_from_the_kernel() {
    let text = tasks(
        "rm",
        &[(Some(0), 100_000, 60_000), (Some(0), 1_250_000, 460_000)],
    );
    let text = text.replacen(
        "period = \"1250000 us\"",
        "deadline = \"900 ms\"\nperiod = \"1250000 us\"",
        1,
    );
    let plan = made(&text).unwrap();
    let holds: Vec<bool> = plan.analysis.iter().map(|a| a.holds).collect();
    assert_eq!(holds, [false, false], "{:?}", plan.analysis);
}

/// Many tasks of which none is long wait for the same lines of others once, and not
/// each for all of them.
#[test]
fn many_short_tasks_leave_others_their_time() {
    let platform = Platform::find("opteron-6128").unwrap();
    let all: Vec<_> = (0..60).map(|i| (Some(i % 2), 10_000, 10)).collect();
    let set = parse(&tasks("rm", &all), "tasks.toml").unwrap();
    let plan = plan(&platform, &set, 1).unwrap();
    assert!(plan.holds, "{:?}", plan.relaxations);
    assert!(plan.analysis.iter().all(|a| a.others == Time(0)));
}

#[test]
fn what_sched_deadline_does_not_take_is_refused() {
    let said = refused(&tasks("edf", &[(None, 90, 20)]));
    assert!(
        said.starts_with("tasks.toml:2: ") && said.contains("100 us"),
        "{said}"
    );
    let said = refused(&tasks("edf", &[(None, 5_000_000, 20)]));
    assert!(
        said.contains("4.194 s") || said.contains("4194 ms"),
        "{said}"
    );
    assert!(made(&tasks("rm", &[(None, 90, 20)])).is_ok());
    let everywhere: Vec<_> = (0..4).map(|core| (Some(core), 10_000, 100)).collect();
    let said = refused(&tasks("edf", &everywhere));
    assert!(said.contains("cpuset of its own"), "{said}");
    assert!(made(&tasks("edf", &everywhere[..3])).unwrap().holds);
}
