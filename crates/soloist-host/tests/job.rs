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

/// `mov eax, 1; xor ebx, ebx; int 0x80`, with the headers of a 32-bit program around it.
#[cfg(target_arch = "x86_64")]
fn program_of_32_bits() -> Vec<u8> {
    const AT: u32 = 0x0804_8000;
    const HEADERS: u32 = 52 + 32;
    let code = [0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80];
    let size = HEADERS + code.len() as u32;
    let halves = |halves: &[u16]| halves.iter().flat_map(|n| n.to_le_bytes()).collect();
    let words = |words: &[u32]| words.iter().flat_map(|n| n.to_le_bytes()).collect();
    let parts: [Vec<u8>; 6] = [
        b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
        // An executable of the i386; entry, program headers.
        halves(&[2, 3]),
        words(&[1, AT + HEADERS, 52, 0, 0]),
        halves(&[52, 32, 1, 0, 0, 0]),
        words(&[1, 0, AT, AT, size, size, 5, 0x1000]),
        code.to_vec(),
    ];
    parts.concat()
}

/// It has other registers, by which it can't be made to lock its memory.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_32_bit_program_runs_without_its_memory_locked() {
    use std::os::unix::fs::PermissionsExt;

    let machine = Machine::loaded();
    let group = Control::open(&machine.host())
        .unwrap()
        .group("core0")
        .unwrap();
    let program = machine.path("program");
    machine.bytes("program", &program_of_32_bits());
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let start = |lock| {
        let class = Class::Fifo(7);
        Job::start(
            &group,
            &[program.clone().into()],
            Some(&Realtime { class, lock }),
        )
    };
    let refused = match start(true) {
        Err(HostError::Exec { source, .. }) if source.raw_os_error() == Some(libc::ENOEXEC) => {
            return eprintln!("not run: this kernel runs no 32-bit program");
        }
        started => started.map(|_| ()).unwrap_err().to_string(),
    };
    assert!(
        refused.contains("32-bit") && refused.contains("--no-lock"),
        "{refused}"
    );
    let ended = start(false)
        .and_then(Job::wait)
        .map(|exit| exit.code.to_string());
    if let Some(code) = allowed(ended) {
        assert_eq!(code, "0");
    }
}

/// Refuses ptrace(2) to this thread and its children, as the filter of a container does.
fn refuse_ptrace() {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let (load, equals) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
    );
    let back = libc::BPF_RET | libc::BPF_K;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut steps = [
        step(load, 0, 0, 0),
        step(equals, 0, 1, libc::SYS_ptrace as u32),
        step(back, 0, 0, refused),
        step(back, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: a filter of four steps that lives until the kernel has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter),
            0
        );
    }
}

/// Where nothing is to be locked nothing is traced.
#[test]
fn where_tracing_is_refused_a_command_runs_without_its_memory_locked() {
    std::thread::spawn(|| {
        refuse_ptrace();
        let class = Class::Fifo(7);
        let refused = realtime(Realtime { class, lock: true });
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("ptrace") && refused.contains("--no-lock"),
            "{refused}"
        );
        if let Some(said) = allowed(realtime(Realtime { class, lock: false })) {
            assert_eq!(said, "7 1 0\n");
        }
    })
    .join()
    .unwrap();
}
