//! Commands run in a group: joined before execve, status passed on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

use std::ffi::OsString;

use machine::Machine;
use soloist_host::{Control, HostError, Job, Outcome};

fn run(machine: &Machine, command: &[&str]) -> Result<Outcome, HostError> {
    let control = Control::open(&machine.host()).unwrap();
    let group = control.group("core0").unwrap();
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    Job::start(&group, &command)?.wait()
}

fn shell(script: &str) -> Outcome {
    run(&Machine::loaded(), &["sh", "-c", script]).unwrap()
}

#[test]
fn the_status_is_passed_on() {
    assert_eq!(
        shell("exit 3"),
        Outcome {
            code: 3,
            signal: None
        }
    );
    assert_eq!(
        shell("true"),
        Outcome {
            code: 0,
            signal: None
        }
    );
    assert_eq!(
        shell("kill -9 $$"),
        Outcome {
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
