//! Commands run in a group: joined before execve, status passed on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

use std::ffi::OsString;

use machine::Machine;
use soloist_core::cpu_list;
use soloist_core::time::Time;
use soloist_host::control::Control;
use soloist_host::machine::pin;
use soloist_host::run::{Class, Exit, Job, Realtime};
use soloist_host::HostError;

fn run(machine: &Machine, command: &[&str]) -> Result<Exit, HostError> {
    let control = Control::open(&machine.host()).unwrap();
    let group = control.group("core0").unwrap();
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    Job::start(&group, &command, None)?.wait()
}

fn shell(script: &str) -> Exit {
    run(&Machine::loaded(), &["sh", "-c", script]).unwrap()
}

#[test]
fn processors_that_are_not_there_are_refused_with_those_that_are() {
    let error = pin(&cpu_list("1023").unwrap()).unwrap_err().to_string();
    let words = "CPUs 1023: none of them is online and allowed here; this process is on ";
    let here = error
        .strip_prefix(words)
        .unwrap_or_else(|| panic!("{error}"));
    assert!(cpu_list(here).is_ok_and(|list| !list.is_empty()), "{error}");
}

#[test]
fn the_status_is_passed_on() {
    assert_eq!(
        shell("exit 3"),
        Exit {
            code: 3,
            signal: None
        }
    );
    assert_eq!(
        shell("true"),
        Exit {
            code: 0,
            signal: None
        }
    );
    assert_eq!(
        shell("kill -9 $$"),
        Exit {
            code: 137,
            signal: Some(9)
        }
    );
}

#[test]
fn the_command_joins_before_it_runs() {
    let machine = Machine::loaded();
    let tasks = machine.path("sys/kernel/config/soloist/groups/core0/tasks");
    let script = format!("head -c2 '{}' | grep -q 0", tasks.display());
    let outcome = run(&machine, &["sh", "-c", &script]).unwrap();
    assert_eq!(outcome.code, 0);
}

#[test]
fn a_command_that_is_not_there() {
    let error = run(&Machine::loaded(), &["/no/such/command"]).unwrap_err();
    let HostError::Exec { command, source } = &error else {
        panic!("{error}");
    };
    assert_eq!(command, "/no/such/command");
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
}

/// A shell that knows its own class and how much of its memory is locked: fields
/// 40 and 41 of its stat, VmLck of its status, without a child.
const MY_CLASS_AND_LOCK: &str = r#"
while read -r key value unit; do [ "$key" = VmLck: ] && locked=$value; done </proc/$$/status
read -r stat </proc/$$/stat
set -- ${stat##*) }
shift 37
echo "$1 $2 $locked"
"#;

fn realtime(realtime: Realtime) -> Result<String, HostError> {
    let machine = Machine::loaded();
    let control = Control::open(&machine.host()).unwrap();
    let group = control.group("core0").unwrap();
    let said = machine.path("said");
    let script = format!("exec >'{}'\n{MY_CLASS_AND_LOCK}", said.display());
    let command: Vec<OsString> = ["sh", "-c", &script].iter().map(OsString::from).collect();
    let outcome = Job::start(&group, &command, Some(&realtime))?.wait()?;
    assert_eq!(outcome.code, 0);
    Ok(std::fs::read_to_string(said).unwrap())
}

/// What an unprivileged test may see instead: the refusal, with the way out.
fn allowed(answer: Result<String, HostError>) -> Option<String> {
    // SAFETY: always succeeds.
    if unsafe { libc::geteuid() } == 0 {
        return Some(answer.unwrap());
    }
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("root"), "{error}");
    None
}

#[test]
fn a_real_time_command_has_its_class_and_its_memory_locked() {
    let class = Class::Fifo(7);
    if let Some(said) = allowed(realtime(Realtime { class, lock: true })) {
        let [priority, policy, locked] = said.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{said}");
        };
        assert_eq!((priority, policy), ("7", "1"));
        assert!(locked.parse::<u64>().unwrap() > 500, "{locked} KiB locked");
    }
    if let Some(said) = allowed(realtime(Realtime { class, lock: false })) {
        assert_eq!(said, "7 1 0\n");
    }
}

#[test]
fn a_command_gets_a_budget_and_a_deadline() {
    let ms = |n: u64| Time(n * 1_000_000_000);
    let class = |budget| Class::Deadline {
        budget: ms(budget),
        deadline: ms(30),
        period: ms(40),
    };
    if let Some(said) = allowed(realtime(Realtime {
        class: class(20),
        lock: true,
    })) {
        assert!(said.starts_with("0 6 "), "{said}");
    }
    // More than its deadline allows.
    let error = realtime(Realtime {
        class: class(35),
        lock: false,
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("SCHED_DEADLINE, 35 ms of 40 ms"),
        "{error}"
    );
}

#[test]
fn a_real_time_command_that_is_not_there() {
    let machine = Machine::loaded();
    let group = Control::open(&machine.host())
        .unwrap()
        .group("core0")
        .unwrap();
    let asked = Realtime {
        class: Class::Fifo(7),
        lock: true,
    };
    let error = Job::start(&group, &["/no/such/command".into()], Some(&asked)).unwrap_err();
    assert!(matches!(error, HostError::Exec { .. }), "{error}");
}
