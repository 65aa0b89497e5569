//! The command line against a made-up machine: help, wrong arguments, what
//! is printed and the exit status. Text that changes on purpose is taken over
//! with `TRYCMD=overwrite cargo test -p soloist --test cli`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use soloist_cli::lab::COMMANDS;
use tempfile::TempDir;

mod machine;

use machine::{small, soloist};

fn output(root: &Path, args: &[&str]) -> Output {
    soloist(root, args).output().unwrap()
}

#[test]
fn transcripts() {
    let machine = small();
    trycmd::TestCases::new()
        .env("SOLOIST_HOST_ROOT", machine.path().display().to_string())
        .env("COLUMNS", "100")
        .case("tests/cmd/*.trycmd");
}

#[test]
fn run_passes_the_status_on() {
    let machine = small();
    let in_group = |command: &[&str]| {
        let args = [&["run", "--group", "core0", "--"], command].concat();
        output(machine.path(), &args)
    };
    assert_eq!(in_group(&["sh", "-c", "exit 3"]).status.code(), Some(3));
    assert_eq!(
        in_group(&["sh", "-c", "kill -9 $$"]).status.code(),
        Some(137)
    );
    assert_eq!(in_group(&["/no/such/command"]).status.code(), Some(127));
    assert_eq!(in_group(&["/etc/passwd"]).status.code(), Some(126));
    let echo = in_group(&["echo", "--colors", "4"]);
    assert_eq!(echo.stdout, b"--colors 4\n", "{echo:?}");
    assert!(echo.stderr.is_empty(), "not a terminal: {echo:?}");
}

#[test]
fn the_status_is_passed_on_though_the_group_went() {
    let machine = small();
    let root = machine.path();
    let dir = root.join("sys/kernel/config/soloist/groups/core0");
    let script = format!("rm -r {}; exit 3", dir.display());
    let args = ["run", "--group", "core0", "--", "sh", "-c", &script];
    let out = output(root, &args);
    assert_eq!(out.status.code(), Some(3), "{out:?}");
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("group core0 was removed"), "{said}");
}

#[test]
fn a_killed_command_is_told_what_was_asked_for() {
    let blame = |how: &str, stats: &str| {
        let machine = small();
        let group = machine
            .path()
            .join("sys/kernel/config/soloist/groups/core0");
        fs::write(group.join("exhaust"), how).unwrap();
        // Counted while it runs.
        let file = group.join("stats").display().to_string();
        let script = format!("printf '{stats}' > '{file}'; kill -BUS $$");
        let args = ["run", "--group", "core0", "--", "sh", "-c", &script];
        let out = output(machine.path(), &args);
        assert_eq!(out.status.code(), Some(135), "{out:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    let fail = blame("fail", "exhausted 5\nspilled 0\n");
    assert!(fail.contains("--exhaust grow"), "{fail}");
    let grow = blame("grow", "exhausted 5\nspilled 3\n");
    assert!(
        !grow.contains("--exhaust grow") && grow.contains("no other colour was free"),
        "{grow}"
    );
    assert!(
        grow.contains("3 of its page tables") && !grow.contains("(--exhaust spill)"),
        "{grow}"
    );
    let spill = blame("spill", "exhausted 5\nspilled 3\n");
    assert!(
        spill.contains("3 pages are out of colour") && spill.contains("(--exhaust spill)"),
        "{spill}"
    );
}

#[test]
fn what_is_in_use_stays() {
    let machine = small();
    fs::create_dir_all(machine.path().join("sys/module/soloist")).unwrap();
    let down = output(machine.path(), &["down"]);
    assert_eq!(down.status.code(), Some(1), "{down:?}");
    let said = String::from_utf8(down.stderr).unwrap();
    assert!(
        said.contains("core0 (2 tasks)") && said.contains("--force"),
        "{said}"
    );
    let up = output(
        machine.path(),
        &["up", "--force", "--machine", "qemu-2node"],
    );
    assert_eq!(up.status.code(), Some(1), "{up:?}");
    let said = String::from_utf8(up.stderr).unwrap();
    assert!(
        said.contains("the map of small is in use by core0, video"),
        "{said}"
    );
}

#[test]
fn a_rule_is_changed_in_what_was_named() {
    let machine = small();
    let attribute = |name: &str| {
        let path = format!("sys/kernel/config/soloist/rules/video/{name}");
        fs::read_to_string(machine.path().join(path)).unwrap()
    };
    let args = [
        "rule",
        "set",
        "video",
        "--colors",
        "3",
        "--realtime",
        "true",
    ];
    let set = output(machine.path(), &args);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(
        (attribute("colors"), attribute("realtime")),
        ("3\n".into(), "1\n".into())
    );
    assert_eq!(attribute("path"), "/usr/bin/x264", "as it was");
}

#[test]
fn a_refused_rule_is_as_it_was() {
    let machine = small();
    let dir = machine.path().join("sys/kernel/config/soloist/rules/video");
    // An attribute that can be read, and takes nothing.
    fs::remove_file(dir.join("realtime")).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/osrelease", dir.join("realtime")).unwrap();
    let args = [
        "rule",
        "set",
        "video",
        "--colors",
        "3",
        "--realtime",
        "true",
    ];
    let set = output(machine.path(), &args);
    assert_eq!(set.status.code(), Some(1), "{set:?}");
    assert_eq!(fs::read_to_string(dir.join("colors")).unwrap().trim(), "2");
}

#[test]
fn what_one_rule_refuses_is_taken_back_from_the_others() {
    let machine = small();
    let rules = machine.path().join("sys/kernel/config/soloist/rules");
    fs::create_dir(rules.join("audio")).unwrap();
    for file in fs::read_dir(rules.join("video")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), rules.join("audio").join(file.file_name())).unwrap();
    }
    // An attribute that can be read, and takes nothing.
    fs::remove_file(rules.join("audio/colors")).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/osrelease", rules.join("audio/colors")).unwrap();
    let args = ["rule", "set", "video", "audio", "--colors", "3"];
    let set = output(machine.path(), &args);
    assert_eq!(set.status.code(), Some(1), "{set:?}");
    let colors = fs::read_to_string(rules.join("video/colors")).unwrap();
    assert_eq!(colors.trim(), "2");

    let enabled = rules.join("audio/enabled");
    fs::remove_file(&enabled).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/osrelease", enabled).unwrap();
    let was = fs::read_to_string(rules.join("video/enabled")).unwrap();
    for act in ["enable", "disable"] {
        let out = output(machine.path(), &["rule", act, "video", "audio"]);
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        let is = fs::read_to_string(rules.join("video/enabled")).unwrap();
        assert_eq!(is.trim(), was.trim(), "{act}");
    }
}

#[test]
fn a_refused_change_of_a_group_leaves_it_as_it_was() {
    let machine = small();
    let dir = machine
        .path()
        .join("sys/kernel/config/soloist/groups/core0");
    // An attribute that takes nothing.
    fs::create_dir_all(machine.path().join("proc/1")).unwrap();
    fs::remove_file(dir.join("procs")).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/osrelease", dir.join("procs")).unwrap();
    let args = [
        &["group", "set", "core0", "--bank-sets", "4-5", "--mode"][..],
        &["shareable", "--exhaust", "spill", "--pid", "1"],
    ];
    let set = output(machine.path(), &args.concat());
    assert_eq!(set.status.code(), Some(1), "{set:?}");
    let attribute = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    for (name, as_it_was) in [
        ("bank_set", "2-3"),
        ("mode", "exclusive"),
        ("exhaust", "fail"),
    ] {
        assert_eq!(attribute(name).trim(), as_it_was, "{name}");
    }
}

/// With `fail` in the place of `spill` its tasks could be killed.
#[test]
fn other_colours_leave_what_happens_without_free_pages_as_it_was() {
    let machine = small();
    let dir = machine
        .path()
        .join("sys/kernel/config/soloist/groups/core0");
    fs::write(dir.join("auto"), "").unwrap();
    let exhaust = |now: &str, flags: &[&str]| {
        fs::write(dir.join("exhaust"), now).unwrap();
        let set = output(
            machine.path(),
            &[&["group", "set", "core0"], flags].concat(),
        );
        assert!(set.status.success(), "{set:?}");
        let text = fs::read_to_string(dir.join("exhaust")).unwrap();
        text.trim().to_owned()
    };
    for now in ["spill", "grow"] {
        assert_eq!(exhaust(now, &["--bank-sets", "4-5"]), now);
        assert_eq!(exhaust(now, &["--colors", "2"]), now);
    }
    assert_eq!(exhaust("fail", &["--colors", "2", "--llc", "2"]), "fail");
    let asked = ["--bank-sets", "4-5", "--exhaust", "spill"];
    assert_eq!(exhaust("fail", &asked), "spill");
}

#[test]
fn automatic_colours_are_shared_where_that_is_asked_for() {
    let machine = small();
    let dir = machine
        .path()
        .join("sys/kernel/config/soloist/groups/core0");
    let args = [
        "group",
        "set",
        "core0",
        "--colors",
        "2",
        "--mode",
        "shareable",
    ];
    // As the kernel does: automatic colours make the group exclusive.
    fs::remove_file(dir.join("auto")).unwrap_or(());
    std::os::unix::fs::symlink("mode", dir.join("auto")).unwrap();
    let set = output(machine.path(), &args);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(
        fs::read_to_string(dir.join("mode")).unwrap().trim(),
        "shareable"
    );
}

#[test]
fn more_colours_than_there_are_make_no_rule() {
    let machine = small();
    let dir = machine.path().join("sys/kernel/config/soloist/rules");
    for args in [
        &["rule", "set", "video", "--colors", "99"][..],
        &["rule", "add", "more", "--path", "/x", "--colors", "17"],
    ] {
        let out = output(machine.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {out:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains("small has 16 bank sets"), "{said}");
    }
    let colors = fs::read_to_string(dir.join("video/colors")).unwrap();
    assert_eq!(colors.trim(), "2");
}

#[test]
fn a_command_far_from_its_memory_is_told_so() {
    let machine = small();
    // The two nodes of its map; processor 0 is on the second.
    for (node, cpus) in [(0, "1\n"), (1, "0\n")] {
        let dir = format!("sys/devices/system/node/node{node}");
        let dir = machine.path().join(dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("cpulist"), cpus).unwrap();
    }
    let said = |words: &[&str]| {
        let args = [&["run", "--group", "core0"], words, &["--", "true"]].concat();
        let out = output(machine.path(), &args);
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    let far = said(&["--cpus", "0"]);
    assert!(far.contains("on node 1, its memory on 0"), "{far:?}");
    fs::write(
        machine.path().join("sys/devices/system/node/node0/cpulist"),
        "0\n",
    )
    .unwrap();
    fs::remove_dir_all(machine.path().join("sys/devices/system/node/node1")).unwrap();
    assert_eq!(said(&["--cpus", "0"]), "");
}

#[test]
fn a_dry_run_before_there_is_a_module_names_every_step() {
    let machine = TempDir::new().unwrap();
    let file = machine.path().join("x.toml");
    let apply = |text: &str, words: &[&str]| {
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        output(
            machine.path(),
            &[&["apply", file, "--dry-run"], words].concat(),
        )
    };
    let text = "machine = 'qemu-2node'\nforce = true\n[groups.a]\nbank_sets = '1'";
    let told = String::from_utf8(apply(text, &[]).stdout).unwrap();
    assert_eq!(
        told,
        "+ module and map of qemu-2node\n+ groups/a\n  groups/a/bank_set: 1\n"
    );
    let json: serde_json::Value = serde_json::from_slice(&apply(text, &["--json"]).stdout).unwrap();
    assert_eq!(json["loads"], "qemu-2node", "{json}");
    assert_eq!(json["steps"][0]["path"], "groups/a", "{json}");
    // Colours that the map lacks are found too.
    let beyond = apply(&text.replace("'1'", "'999'"), &[]);
    assert_eq!(beyond.status.code(), Some(2), "{beyond:?}");
    // No map is loaded for a file that names no machine.
    let none = apply("[groups.a]\nbank_sets = '1'", &[]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(said.contains("names no machine"), "{said}");
    let guard = apply("[guard]\nr_min = '1000000000'", &[]);
    let told = String::from_utf8(guard.stdout).unwrap();
    assert_eq!(told, "+ module\n  guard/settings: r_min 1000000000\n");
}

/// Regulation alone needs no map.
#[test]
fn a_guard_without_a_map_is_saved_and_applied() {
    let machine = small();
    let dir = machine.path().join("sys/kernel/config/soloist");
    fs::write(dir.join("map"), "\n").unwrap();
    fs::remove_dir_all(dir.join("groups/core0")).unwrap();
    for (file, text) in [
        ("settings", "event LLC-misses\nr_min 1200000000\n"),
        ("stats", "stalled 0\n"),
        ("cpu1/bandwidth", "200000000 reclaim=1\n"),
        ("cpu1/stats", "stops 0\n"),
    ] {
        let path = dir.join("guard").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let file = machine.path().join("saved.toml").display().to_string();
    let save = || output(machine.path(), &["save", &file]);
    // The rule's colours are of a map.
    let saved = save();
    assert_eq!(saved.status.code(), Some(1), "{saved:?}");
    let said = String::from_utf8(saved.stderr).unwrap();
    assert!(said.contains("no address map is loaded"), "{said}");
    fs::remove_dir_all(dir.join("rules/video")).unwrap();
    let saved = save();
    assert!(
        saved.status.success() && saved.stderr.is_empty(),
        "{saved:?}"
    );
    let apply = output(machine.path(), &["apply", "--dry-run", &file]);
    assert_eq!(apply.stdout, b"nothing to change\n", "{apply:?}");
    fs::write(dir.join("guard/cpu1/bandwidth"), "off\n").unwrap();
    let apply = output(machine.path(), &["apply", "--dry-run", &file]);
    assert_eq!(
        apply.stdout, b"  guard/cpu1/bandwidth: off -> 200000000\n",
        "{apply:?}"
    );
}

#[test]
fn a_wrong_name_among_several_changes_nothing() {
    let machine = small();
    let dir = machine.path().join("sys/kernel/config/soloist");
    let attribute = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
    let enabled = attribute("rules/video/enabled");
    for args in [
        &["group", "rm", "nobody", "core0"][..],
        &["group", "rm", "core0", "nobody"],
        &["rule", "rm", "video", "nobody"],
        &["rule", "disable", "video", "nobody"],
        &["rule", "set", "video", "nobody", "--enabled", "false"],
    ] {
        let out = output(machine.path(), args);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {out:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains("\"nobody\""), "{args:?}: {said}");
        assert!(dir.join("groups/core0").is_dir(), "{args:?}");
        assert_eq!(attribute("rules/video/enabled"), enabled, "{args:?}");
    }
    let nothing = output(machine.path(), &["group", "set", "core0"]);
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
}

/// `soloist save -` writes to one.
#[test]
fn a_configuration_comes_from_a_pipe() {
    let machine = small();
    let mut child = soloist(machine.path(), &["apply", "--dry-run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = "[groups.core0]\nbank_sets = '2-3'\nexhaust = 'spill'\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(
        said.contains("groups/core0/exhaust: fail -> spill"),
        "{said}"
    );
}

/// The kernel takes an attribute after the other; a signal between two ends nothing.
#[test]
fn a_signal_leaves_no_half_rule() {
    let machine = small();
    let dir = machine.path().join("sys/kernel/config/soloist/rules/video");
    let enabled = dir.join("enabled");
    fs::remove_file(&enabled).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &enabled,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let args = ["rule", "set", "video", "--colors", "3", "--enabled", "0"];
    let mut child = soloist(machine.path(), &args).spawn().unwrap();
    // It reads what is to be put back, then writes; a pipe makes it wait for us each time.
    fs::write(&enabled, "1\n").unwrap();
    while fs::read_to_string(dir.join("colors")).unwrap() != "3\n" {
        assert_eq!(child.try_wait().unwrap(), None);
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut pipe = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&enabled)
        .unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    let mut written = [0; 2];
    pipe.read_exact(&mut written).unwrap();
    assert_eq!(&written, b"0\n");
}

/// A glob of the shell may name one again.
#[test]
fn a_name_may_stand_twice() {
    let machine = small();
    let rule = machine.path().join("sys/kernel/config/soloist/rules/e");
    fs::create_dir(&rule).unwrap();
    let out = output(machine.path(), &["rule", "rm", "e", "e"]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert!(!rule.exists());
}

#[test]
fn a_device_is_not_replaced() {
    let machine = small();
    let link = machine.path().join("full");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let file = link.display().to_string();
    for args in [&["metrics", "--textfile", &file][..], &["save", &file]] {
        let out = output(machine.path(), args);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {out:?}");
        assert!(link.is_symlink(), "{args:?}");
    }
}

#[test]
fn joining_says_what_it_coloured() {
    let machine = small();
    let root = machine::with_real_processes(&machine);
    let pid = std::process::id().to_string();
    let members = root.join("sys/kernel/config/soloist/groups/core0/members");
    fs::write(members, &pid).unwrap();
    let out = output(&root, &["group", "set", "core0", "--pid", &pid]);
    let said = String::from_utf8(out.stdout).unwrap();
    // Frame numbers are for root; others are told of the group only.
    if rustix::process::geteuid().is_root() {
        let line = format!("process {pid}: ");
        assert!(
            said.contains(&line) && said.contains("own pages are in colour"),
            "{said}"
        );
    }
    assert!(said.starts_with("group core0: "), "{said}");
}

#[test]
fn a_map_that_is_loaded_needs_no_name() {
    let machine = small();
    let text = output(machine.path(), &["map", "show", "-m", "zen2", "--text"]).stdout;
    fs::write(machine.path().join("sys/kernel/config/soloist/map"), text).unwrap();
    let named = output(machine.path(), &["map", "show", "-m", "zen2"]);
    let loaded = output(machine.path(), &["map", "show"]);
    assert!(loaded.status.success(), "{loaded:?}");
    assert_eq!(named.stdout, loaded.stdout);
    let none = output(TempDir::new().unwrap().path(), &["map", "show"]);
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(said.contains("--machine NAME"), "{said}");
}

/// `soloist map detect` gives one name to all that it finds.
#[test]
fn another_map_of_the_same_name_is_not_the_loaded_one() {
    let machine = small();
    let file = machine.path().join("sys/kernel/config/soloist/map");
    let map = fs::read_to_string(&file).unwrap();
    fs::write(&file, map.replace("name small", "name skylake")).unwrap();
    for args in [
        &["map", "show"][..],
        &["map", "decode", "0x5000000"],
        &["map", "encode", "--node", "1"],
        &["guard", "rmin"],
    ] {
        let out = output(machine.path(), args);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {out:?}");
        assert!(out.stdout.is_empty(), "{args:?}: {out:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        let words = "skylake: no machine file that is known has the loaded map";
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn run_passes_signals_on() {
    let machine = small();
    let script = "trap 'exit 7' TERM; echo up; for i in $(seq 100); do sleep 0.1; done";
    let mut run = soloist(
        machine.path(),
        &["run", "--group", "core0", "sh", "-c", script],
    )
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut line = [0; 3];
    std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut line).unwrap();
    let pid = run.id().to_string();
    // The shell's own: a bare Debian has no program of that name.
    assert!(Command::new("sh")
        .args(["-c", &format!("kill -TERM {pid}")])
        .status()
        .unwrap()
        .success());
    assert_eq!(run.wait().unwrap().code(), Some(7));
}

/// systemd starts services with SIGPIPE ignored, a shell does not.
#[test]
fn run_leaves_broken_pipes_as_they_were() {
    let machine = small();
    let ignored = |before: &str| {
        let script = format!(
            "{before} exec '{}' run --group core0 -- grep SigIgn: /proc/self/status",
            env!("CARGO_BIN_EXE_soloist")
        );
        let out = Command::new("sh")
            .args(["-c", &script])
            .env("SOLOIST_HOST_ROOT", machine.path())
            .output()
            .unwrap();
        let said = String::from_utf8(out.stdout).unwrap();
        let bits = said.strip_prefix("SigIgn:\t").map(str::trim_end);
        let bits = u64::from_str_radix(bits.unwrap(), 16).unwrap();
        bits & 1 << (libc::SIGPIPE - 1) != 0
    };
    assert!(ignored("trap '' PIPE;"));
    assert!(!ignored(""));
}

/// Starts it as the leader of a session at a terminal; the terminal's other end.
fn at_a_terminal(run: &mut Command) -> (Child, File) {
    let master = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open("/dev/ptmx")
        .unwrap();
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: an open terminal; the descriptor that it gives is nobody else's.
    let slave = unsafe {
        assert_eq!(libc::unlockpt(master.as_raw_fd()), 0);
        let slave = libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags);
        assert!(slave >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(slave)
    };
    let lead = || {
        // What starts the tests may ignore them, as nohup(1) does: then no shell can trap them.
        for signal in [libc::SIGHUP, libc::SIGINT] {
            // SAFETY: no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        // SAFETY: system calls alone.
        match unsafe { libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 } {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: it makes system calls alone.
    let run = unsafe { run.stdin(slave).pre_exec(lead) };
    (run.spawn().unwrap(), master)
}

/// A terminal that hangs up tells the leader of the session alone, and ^C goes by a command with
/// a process group of its own.
#[test]
fn run_passes_on_what_the_terminal_did_not_tell_its_command() {
    let machine = small();
    let script = "trap 'exit 7' HUP INT; echo up; for i in $(seq 100); do sleep 0.1; done";
    let ended = |around: &[&str], end: fn(File) -> Option<File>| {
        let args = [
            &["run", "--group", "core0", "--"],
            around,
            &["sh", "-c", script],
        ]
        .concat();
        let mut run = soloist(machine.path(), &args);
        let (mut run, terminal) = at_a_terminal(run.stdout(Stdio::piped()));
        run.stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut [0; 3])
            .unwrap();
        let _terminal = end(terminal);
        run.wait().unwrap().code()
    };
    let hang_up = |_| None;
    assert_eq!(ended(&[], hang_up), Some(7));
    let interrupt = |mut terminal: File| {
        terminal.write_all(b"\x03").unwrap();
        Some(terminal)
    };
    assert_eq!(ended(&["timeout", "60"], interrupt), Some(7));
    // Here both are told.
    assert_eq!(ended(&[], interrupt), Some(7));
}

#[test]
fn run_reports_as_json_on_standard_error() {
    let machine = small();
    let args = [
        "run", "--json", "--group", "core0", "--", "sh", "-c", "exit 4",
    ];
    let out = output(machine.path(), &args);
    let report: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    assert_eq!(report["exit"], 4);
    assert_eq!(report["group"], "core0");
    assert_eq!(report["stats"]["pages"], "12");
    assert!(out.stdout.is_empty());
}

#[test]
fn a_command_that_is_not_found_is_json_too() {
    let machine = small();
    let run = [
        "run",
        "--json",
        "--group",
        "core0",
        "--",
        "/no/such/command",
    ];
    let out = output(machine.path(), &run);
    assert_eq!(out.status.code(), Some(127), "{out:?}");
    let said: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    assert!(said["error"].as_str().unwrap().contains("/no/such/command"));
}

#[test]
fn run_refuses_processors_that_are_not_there() {
    let machine = small();
    let dir = machine.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("online"), "0-1\n").unwrap();
    for cpus in ["0,99", "99", ""] {
        let run = ["run", "--group", "core0", "--cpus", cpus, "--", "true"];
        let out = output(machine.path(), &run);
        assert_eq!(out.status.code(), Some(2), "{cpus}: {out:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        let why = match cpus {
            "" => "it names no CPU",
            _ => "there is no CPU 99",
        };
        assert!(said.contains(why), "{cpus}: {said}");
    }
}

#[test]
fn groups_of_rules_are_listed_and_watched() {
    let machine = small();
    let implicit = machine.path().join("sys/kernel/config/soloist/implicit");
    fs::write(implicit, "group 3 8-9 any 12 2 video\ntask 78 3\n").unwrap();
    let list = output(machine.path(), &["group", "list"]).stdout;
    let list = String::from_utf8(list).unwrap();
    let line = list
        .lines()
        .find(|line| line.starts_with("video#3"))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["video#3", "8-9", "any", "1", "-", "-", "1", "12"]);
    let top = output(machine.path(), &["top", "-n", "1"]).stdout;
    assert!(String::from_utf8(top).unwrap().contains("video#3  8-9"));
    let json = output(machine.path(), &["group", "list", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json[0]["implicit"], false);
    assert_eq!(
        (&json[1]["name"], &json[1]["implicit"]),
        (&"video#3".into(), &true.into())
    );
    assert_eq!(
        (&json[1]["dram_bank"], &json[1]["tasks"][0]),
        (&"8-9".into(), &78.into())
    );
}

#[test]
fn a_group_of_a_rule_is_shown_but_not_changed() {
    let machine = small();
    let implicit = machine.path().join("sys/kernel/config/soloist/implicit");
    fs::write(implicit, "group 3 8-9 any 12 2 video\ntask 78 3\n").unwrap();
    let said = |args: &[&str]| {
        let out = output(machine.path(), args);
        let text = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
        (out.status.code(), text)
    };
    let (status, text) = said(&["group", "show", "video#3"]);
    assert_eq!(status, Some(0), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..2],
        ["group        video#3 (id 3)", "bank sets    8-9"]
    );
    assert!(lines.contains(&"made by      rule video"), "{text}");
    assert!(lines.contains(&"tasks        78"), "{text}");
    assert!(!text.contains("exhaust"), "{text}");
    let (status, text) = said(&["group", "show", "video#4"]);
    assert_eq!(status, Some(1));
    assert!(text.contains("did you mean \"video#3\""), "{text}");
    for args in [
        &["group", "set", "video#3", "--mode", "shareable"][..],
        &["group", "rm", "video#3"],
        &["run", "--group", "video#3", "--", "true"],
    ] {
        let (status, text) = said(args);
        assert_ne!(status, Some(0), "{args:?}");
        assert!(
            text.contains("video#3 was made by a rule"),
            "{args:?}: {text}"
        );
    }
}

/// A group without any colours has none yet; one that has some is free in the others.
#[test]
fn colours_are_named_in_the_same_way_everywhere() {
    let machine = small();
    let dir = machine.path().join("sys/kernel/config/soloist");
    for (sets, llc, list) in [
        ("", "", ["none yet", "none yet"]),
        ("", "0-3", ["any", "0-3"]),
        ("2-3", "", ["2-3", "any"]),
    ] {
        fs::write(dir.join("groups/core0/bank_set"), sets).unwrap();
        fs::write(dir.join("groups/core0/llc_color"), llc).unwrap();
        let said = |args: &[&str]| {
            let text = output(machine.path(), args).stdout;
            let text = String::from_utf8(text).unwrap();
            let line = text.lines().find(|line| line.starts_with("core0")).unwrap();
            let cells = line.split("  ").filter(|cell| !cell.is_empty());
            cells.map(|c| c.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(said(&["group", "list"])[1..3], list);
        assert_eq!(said(&["top", "-n", "1"])[1], list[0]);
    }
}

#[test]
fn all_reservations_go_by_a_flag_that_stands_alone() {
    let machine = small();
    let run = |args: &[&str]| output(machine.path(), args);
    let old = run(&["guard", "off", "--json"]);
    let new = run(&["guard", "set", "--off", "--json"]);
    assert_eq!((new.status, new.stdout), (old.status, old.stdout));
    assert_eq!(new.stderr, old.stderr);
    for more in ["--event=page-faults", "0:1MB/s"] {
        let both = run(&["guard", "set", "--off", more]);
        assert_eq!(both.status.code(), Some(2), "{both:?}");
        let said = String::from_utf8(both.stderr).unwrap();
        assert!(said.contains("--off goes alone"), "{said}");
    }
}

/// The kernel could not make CPU 1 ready; CPU 2 is offline.
#[test]
fn a_processor_that_is_not_regulated_is_named() {
    let machine = small();
    let online = machine.path().join("sys/devices/system/cpu/online");
    let guard = machine.path().join("sys/kernel/config/soloist/guard");
    let put = |file: &str, text: &str| {
        let path = guard.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    fs::create_dir_all(online.parent().unwrap()).unwrap();
    fs::write(&online, "0-1\n").unwrap();
    put("settings", "event LLC-misses\nr_min 1000000000\n");
    put("stats", "stalled 0\n");
    for (cpu, bandwidth, ready) in [
        (0, "500000000 reclaim=1", 1),
        (1, "200000000 reclaim=1", 0),
        (2, "100000000 reclaim=1", 0),
        (3, "off", 0),
    ] {
        put(&format!("cpu{cpu}/bandwidth"), &format!("{bandwidth}\n"));
        put(
            &format!("cpu{cpu}/stats"),
            &format!("ready {ready}\nperiods 0\n"),
        );
    }
    let say = |args: &[&str]| {
        let out = output(machine.path(), args);
        String::from_utf8(out.stdout).unwrap()
    };
    let why = "CPU 1 is not regulated: it runs without limit";
    for args in [&["guard", "status"][..], &["doctor"]] {
        let said = say(args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    let metrics = say(&["metrics"]);
    assert!(
        metrics.contains("soloist_guard_unregulated{cpu=\"1\"} 1\n"),
        "{metrics}"
    );
    assert!(!metrics.contains("unregulated{cpu=\"2\"}"), "{metrics}");
    fs::write(&online, "0-2\n").unwrap();
    let both = "CPUs 1, 2 are not regulated: they run without limit";
    assert!(say(&["guard", "status"]).contains(both));
    put("cpu1/stats", "ready 1\n");
    put("cpu2/stats", "ready 1\n");
    for args in [&["guard", "status"][..], &["doctor"]] {
        let said = say(args);
        assert!(!said.contains("regulated"), "{args:?}: {said}");
    }
}

#[test]
fn a_reservation_names_each_processor_once() {
    let machine = small();
    let guard = machine.path().join("sys/kernel/config/soloist/guard");
    for cpu in ["cpu0", "cpu1"] {
        fs::create_dir_all(guard.join(cpu)).unwrap();
        fs::write(guard.join(cpu).join("bandwidth"), "off\n").unwrap();
        fs::write(guard.join(cpu).join("stats"), "stops 0\n").unwrap();
    }
    fs::write(guard.join("settings"), "r_min 1000000000\n").unwrap();
    fs::write(guard.join("stats"), "stalled 0\n").unwrap();
    let set = |args: &[&str]| output(machine.path(), &[&["guard", "set"], args].concat());
    for (limits, why) in [
        (&[":500MB/s"][..], ":500MB/s: it names no CPU"),
        (&["0-1:500MB/s", "1:off"], "1:off: CPU 1 is named twice"),
    ] {
        let out = set(limits);
        assert_eq!(out.status.code(), Some(2), "{limits:?}: {out:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains(why), "{limits:?}: {said}");
    }
    let untouched = fs::read_to_string(guard.join("cpu0/bandwidth")).unwrap();
    assert_eq!(untouched, "off\n");
    let out = set(&["1:500MB/s", "--json"]);
    let view: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(view["cpus"][0]["bandwidth"], "off");
    assert_eq!(view["cpus"][1]["bandwidth"], "500000000");
    assert!(set(&["1:500MB/s"]).stdout.is_empty());
}

#[test]
fn bandwidth_is_reserved_for_a_group_that_is_there() {
    let machine = small();
    let dir = machine.path().join("sys/kernel/config/soloist");
    fs::create_dir_all(dir.join("guard")).unwrap();
    fs::write(dir.join("guard/settings"), "r_min 1000000000\n").unwrap();
    let file = dir.join("groups/core0/bandwidth");
    let set = |args: &[&str]| {
        let out = output(machine.path(), &[&["group", "set", "core0"], args].concat());
        let said = [out.stdout, out.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        (out.status.code(), said, fs::read_to_string(&file).unwrap())
    };
    let refused = |args: &[&str], why: &str| {
        let before = fs::read_to_string(&file).unwrap();
        let (code, said, after) = set(args);
        assert_eq!((code, after), (Some(2), before), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    };
    refused(&["--bandwidth", "500MB/s"], "give --cpus LIST too");
    refused(&["--cpus", "0-1"], "say --bandwidth RATE");
    refused(&["--bandwidth", "fast", "--cpus", "0"], "`fast` is no rate");
    refused(&["--bandwidth", "1MB/s", "--cpus", "x"], "'--cpus <LIST>'");

    let (code, said, file) = set(&["--bandwidth", "500MB/s:write=1MB/s", "--cpus", "0-1"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("500MB/s:write=1MB/s on CPUs 0-1"), "{said}");
    assert_eq!(file, "500000000 write=1000000 cpus=0-1\n");
    let show = output(machine.path(), &["group", "show", "core0"]).stdout;
    let show = String::from_utf8(show).unwrap();
    assert!(
        show.contains("bandwidth    500MB/s:write=1MB/s on CPUs 0-1"),
        "{show}"
    );
    // What is not said stays.
    let (_, _, file) = set(&["--bandwidth", "200MB/s"]);
    assert_eq!(file, "200000000 cpus=0-1\n");
    let (_, _, file) = set(&["--cpus", "3"]);
    assert_eq!(file, "200000000 cpus=3\n");
    refused(&["--bandwidth", "off", "--cpus", "3"], "leave --cpus out");
    let (code, said, file) = set(&["--bandwidth", "off"]);
    assert_eq!((code, file.as_str()), (Some(0), "off\n"), "{said}");
}

#[test]
fn json_is_one_document() {
    let machine = small();
    for args in [
        &["group", "list", "--json"][..],
        &["--json", "group", "show", "core0"],
        &["rule", "list", "--json"],
        &["doctor", "--json"],
        &["top", "-n", "1", "--json"],
    ] {
        let out = output(machine.path(), args);
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(&out.stdout);
        assert!(parsed.is_ok(), "{args:?}: {out:?}");
    }
    let wrong = output(machine.path(), &["--json", "group", "show", "nobody"]);
    let error: serde_json::Value = serde_json::from_slice(&wrong.stderr).unwrap();
    assert!(error["error"].as_str().unwrap().contains("nobody"));
}

#[test]
fn a_commands_manual_page_is_printed() {
    let dir = TempDir::new().unwrap();
    let said = |args: &[&str]| {
        let mut man = soloist(dir.path(), args);
        man.current_dir(dir.path()).output().unwrap()
    };
    let page = String::from_utf8(said(&["man", "map", "show"]).stdout).unwrap();
    assert!(page.contains(".TH soloist-map-show 1"), "{page}");
    assert!(said(&["man", "run"]).stdout.starts_with(b".ie"));
    assert_eq!(said(&["man", "map", "shew"]).status.code(), Some(2));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Every page that a page refers to is written too, and has its examples.
#[test]
fn a_mistyped_command_makes_no_directory_of_pages() {
    let dir = TempDir::new().unwrap();
    let man = soloist(dir.path(), &["man", "grup"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8(man.stderr).unwrap();
    assert_eq!(man.status.code(), Some(2), "{said}");
    assert!(said.contains("did you mean \"group\"?"), "{said}");
    assert!(!dir.path().join("grup").exists());
}

#[test]
fn wrong_arguments_are_json_too_where_that_is_asked_for() {
    let machine = small();
    for args in [
        &["--json", "grup"][..],
        &["run", "--json", "--colr", "4"],
        &["--json", "man", "grup"],
    ] {
        let out = output(machine.path(), args);
        let said: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
        let said = said["error"].as_str().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(!said.contains("For more information"), "{said}");
    }
    // What stands after `--` is the command's.
    let out = output(machine.path(), &["run", "--colr", "4", "--", "x", "--json"]);
    assert!(out.stderr.starts_with(b"error: unexpected"), "{out:?}");
}

#[test]
fn manual_pages_are_made() {
    let dir = TempDir::new().unwrap();
    let man = output(dir.path(), &["man", &dir.path().display().to_string()]);
    assert!(man.status.success(), "{man:?}");
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let page = read("soloist-run.1");
    assert!(
        page.contains("bank\\-sets") && page.contains(".SH \"EXIT STATUS\"\n"),
        "{page}"
    );
    // A line each: nothing there is filled.
    assert!(
        page.contains(".SH EXAMPLES\n.nf\nsoloist run \\-\\- make \\-j4\nsoloist run"),
        "{page}"
    );
    let head = page.lines().find(|line| line.starts_with(".TH")).unwrap();
    assert!(
        head.contains(concat!("soloist ", env!("CARGO_PKG_VERSION"))),
        "{head}"
    );
    let mut pages = 0;
    for entry in fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        for line in read(&name)
            .lines()
            .filter(|line| line.starts_with("soloist\\-"))
        {
            let Some(other) = line.strip_suffix("(1)") else {
                continue;
            };
            let other = other.replace('\\', "");
            // Those of soloist-lab are written where that is.
            let of_lab = COMMANDS
                .iter()
                .any(|name| other.ends_with(&format!("-{name}")));
            let there = dir.path().join(format!("{other}.1")).exists();
            assert!(there || of_lab, "{name} refers to {other}");
            pages += 1;
        }
    }
    assert!(pages > 20, "{pages}");
}

/// What a shell is offered when `words` are typed, the last not finished.
fn completed(root: &Path, words: &[&str]) -> String {
    let mut shell = soloist(root, &["--"]);
    shell.args(words).env("COMPLETE", "bash");
    shell.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let out = shell.env("_CLAP_IFS", "\n").output().unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn names_are_completed() {
    let machine = small();
    for (words, wanted) in [
        (&["soloist", "map", "show", "-m", "opt"][..], "opteron-6128"),
        (&["soloist", "group", "show", ""], "core0"),
        (&["soloist", "run", "--group", "c"], "core0"),
        (&["soloist", "rule", "rm", "v"], "video"),
        (&["soloist", "bench", "lat"], "latency"),
        (&["soloist", "bench", "--corun", "b"], "bandwidth"),
        (&["soloist", "run", "--bank"], "--bank-sets"),
        (&["soloist", "man", "gr"], "group"),
    ] {
        let offered = completed(machine.path(), words);
        assert!(
            offered.lines().any(|line| line == wanted),
            "{words:?}: {offered}"
        );
    }
    // A file may stand for a name; of a command that is run, its program and files.
    fs::write(machine.path().join("mine.toml"), "").unwrap();
    let place = machine.path().join("mi").display().to_string();
    let file = machine.path().join("mine.toml").display().to_string();
    for (words, wanted) in [
        (&["soloist", "up", "--machine", &place][..], file.as_str()),
        (&["soloist", "run", "--", "basenam"], "basename"),
        (&["soloist", "run", "ls", &place], &file),
    ] {
        let offered = completed(machine.path(), words);
        assert_eq!(offered.trim(), wanted, "{words:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = output(machine.path(), &["completions", shell]).stdout;
        assert!(String::from_utf8(script).unwrap().contains("COMPLETE"));
    }
}

#[test]
fn what_is_saved_is_applied_already() {
    let machine = small();
    let file = machine.path().join("saved.toml").display().to_string();
    // The made-up map is no known machine's: who unloads the module now could not go back.
    let saved = output(machine.path(), &["save", &file]);
    assert_eq!(saved.status.code(), Some(1), "{saved:?}");
    let said = String::from_utf8(saved.stderr).unwrap();
    assert!(said.contains("`soloist apply` refuses"), "{said}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("[groups.core0]") && text.contains("[rules.video]"),
        "{text}"
    );
    let refused = output(machine.path(), &["apply", "--dry-run", &file]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    fs::write(&file, text.replace("machine = \"small\"\n", "")).unwrap();
    let plan = output(machine.path(), &["apply", "--dry-run", &file]);
    assert_eq!(
        String::from_utf8(plan.stdout).unwrap(),
        "nothing to change\n"
    );
    fs::write(
        &file,
        text.replace("exhaust = \"fail\"", "exhaust = \"often\""),
    )
    .unwrap();
    let said = |file: &str| {
        let wrong = output(machine.path(), &["apply", "--dry-run", file]);
        String::from_utf8(wrong.stderr).unwrap()
    };
    let wrong = said(&file);
    assert!(
        wrong.contains("saved.toml") && wrong.contains("often"),
        "{wrong}"
    );
    let missing = said("/nowhere.toml");
    assert!(
        missing.contains("`soloist save /nowhere.toml`"),
        "{missing}"
    );
}

#[test]
fn what_a_known_machine_has_is_saved_whole() {
    let machine = small();
    let known = soloist_machine::known::find("raspberry-pi-4").unwrap();
    let map = machine.path().join("sys/kernel/config/soloist/map");
    fs::write(map, known.addr_map().to_string()).unwrap();
    let saved = output(machine.path(), &["save", "-"]);
    assert!(saved.status.success(), "{saved:?}");
    assert!(saved.stderr.is_empty(), "{saved:?}");
}

#[test]
fn what_is_printed_as_json_is_saved_too() {
    let machine = small();
    let file = machine.path().join("saved.toml");
    let saved = output(
        machine.path(),
        &["save", "--json", &file.display().to_string()],
    );
    let said: serde_json::Value = serde_json::from_slice(&saved.stdout).unwrap();
    assert!(said["groups"]["core0"].is_object(), "{said}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("[groups.core0]"), "{text}");
}

/// What is refused is refused before anything is loaded or changed.
#[test]
fn what_can_not_be_changes_nothing() {
    let machine = small();
    let file = machine.path().join("other.toml");
    fs::write(&file, "machine = \"opteron-6128\"\nforce = true\n").unwrap();
    let apply = |root: &Path| {
        let out = output(root, &["apply", "--dry-run", file.to_str().unwrap()]);
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (status, said) = apply(machine.path());
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("in use by core0, video"), "{said}");
    // Without a module: the rule is at fault, not that nobody can load one here.
    let text = "machine = \"opteron-6128\"\n[rules.x]\npath = \"/x\"\ncolors = 99999\n";
    fs::write(&file, text).unwrap();
    let bare = TempDir::new().unwrap();
    let out = output(bare.path(), &["apply", "--force", file.to_str().unwrap()]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("[rules.x] colors 99999"), "{said}");
    // A process that is not there, beside one that is.
    fs::create_dir_all(machine.path().join("proc/77")).unwrap();
    let how = || {
        let group = machine
            .path()
            .join("sys/kernel/config/soloist/groups/core0");
        fs::read_to_string(group.join("exhaust")).unwrap()
    };
    let before = how();
    for option in ["--pid", "--tid"] {
        let args = [
            "group",
            "set",
            "core0",
            "--exhaust",
            "spill",
            "--pid",
            "77",
            option,
            "78",
        ];
        let out = output(machine.path(), &args);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(
            (out.status.code(), how()),
            (Some(1), before.clone()),
            "{said}"
        );
        assert!(said.contains(" 78"), "{said}");
    }
}

#[test]
fn an_incomplete_map_is_refused_by_apply_unless_forced() {
    let machine = small();
    let own = machine.path().join("own.toml");
    let known = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../machines/opteron-6128.toml"
    );
    let text = fs::read_to_string(known).unwrap();
    let incomplete = text.replace("trust = \"exact\"", "trust = \"incomplete\"");
    assert_ne!(incomplete, text);
    fs::write(&own, incomplete).unwrap();
    let file = machine.path().join("saved.toml");
    let apply = |force: &str, more: &[&str]| {
        let config = format!("machine = \"{}\"\n{force}", own.display());
        fs::write(&file, config).unwrap();
        let args = [&["apply", "--dry-run", file.to_str().unwrap()], more].concat();
        output(machine.path(), &args)
    };
    let refused = apply("", &[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("not this machine's map") && said.contains("incomplete"),
        "{said}"
    );
    for forced in [apply("", &["--force"]), apply("force = true", &[])] {
        let said = String::from_utf8(forced.stderr).unwrap();
        assert!(!said.contains("--force takes it"), "{said}");
        assert!(
            said.contains("soloist: opteron-6128: the map is incomplete"),
            "{said}"
        );
    }
}

#[test]
fn figures_are_openmetrics() {
    let machine = small();
    let text = String::from_utf8(output(machine.path(), &["metrics"]).stdout).unwrap();
    assert!(text.contains("# TYPE soloist_group_pages gauge"), "{text}");
    assert!(
        text.contains("soloist_group_pages{group=\"core0\"} 12\n"),
        "{text}"
    );
    assert!(
        text.contains("soloist_rule_matched_total{rule=\"video\"} 3\n"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"), "{text}");
    let file = machine.path().join("soloist.prom");
    let args = ["metrics", "--textfile", &file.display().to_string()];
    assert!(output(machine.path(), &args).status.success());
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

/// What was written when the module was there must not stand for today.
#[test]
fn without_the_module_old_figures_go() {
    let machine = small();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("soloist.prom");
    let args = ["metrics", "--textfile", &file.display().to_string()];
    assert!(output(machine.path(), &args).status.success());
    let figures = fs::read_to_string(&file).unwrap();
    assert!(figures.contains("\nsoloist_up 1\n"), "{figures}");
    assert!(figures.contains("soloist_group_pages{"), "{figures}");

    let none = TempDir::new().unwrap();
    let out = output(none.path(), &args);
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("soloist_up is 0"), "{said}");
    let figures = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = figures.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(lines, ["soloist_up 0"], "{figures}");
    assert!(figures.ends_with("# EOF\n"), "{figures}");
    // There is nothing to print.
    assert_eq!(output(none.path(), &["metrics"]).status.code(), Some(1));
}

/// Copies a program by another process: what this one has open for writing, a child that
/// another test starts just then has, too, and nobody can run it.
fn install(from: &Path, to: &Path) {
    let mut command = Command::new("install");
    command.args(["-m", "755"]).args([from, to]);
    assert!(command.status().unwrap().success());
}

/// `soloist-lab` beside the program runs the commands that it lacks, with the same words.
#[test]
fn commands_of_the_lab_are_handed_over() {
    let dir = TempDir::new().unwrap();
    let own = dir.path().join("soloist");
    install(env!("CARGO_BIN_EXE_soloist").as_ref(), &own);
    let run = |words: &[&str], ask: bool| {
        let mut command = Command::new(&own);
        command.args(words).env("PATH", "/nowhere");
        if ask {
            command.env("COMPLETE", "bash");
            command.env("_CLAP_COMPLETE_INDEX", (words.len() - 2).to_string());
        }
        let out = command.output().unwrap();
        let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
        (out.status.code(), said)
    };
    let (code, said) = run(&["lab", "list"], false);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("package soloist-lab"), "{said}");
    let (code, said) = run(&["compare", "--model", "--", "true"], false);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("`soloist compare --model`"), "{said}");

    // Its manual pages are the other package's: dpkg takes no file from two.
    let pages = dir.path().join("pages/");
    let pages = pages.to_str().unwrap();
    assert_eq!(run(&["man", pages], false), (Some(0), String::new()));
    assert!(fs::exists(format!("{pages}soloist-run.1")).unwrap());
    for lab in ["lab", "vm", "sim", "sweep", "plan", "trace"] {
        assert!(
            !fs::exists(format!("{pages}soloist-{lab}.1")).unwrap(),
            "{lab}"
        );
    }

    let lab = dir.path().join("soloist-lab");
    let script = dir.path().join("script");
    fs::write(&script, "#!/bin/sh\necho \"$0: $*\"\nexit 7\n").unwrap();
    install(&script, &lab);
    for words in [
        &["lab", "list", "--json"][..],
        &["--json", "vm", "--help"],
        &["help", "sim", "replay"],
        &["man", "trace"],
        &["plan", "nothing.toml"],
        &["sweep", "nothing.toml", "--json"],
        &["compare", "--recorded", "x"],
    ] {
        let wanted = format!("{}: {}\n", lab.display(), words.join(" "));
        assert_eq!(run(words, false), (Some(7), wanted));
    }
    let (code, said) = run(&["man", pages], false);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(&format!("soloist-lab: man {pages}\n")),
        "{said}"
    );
    let (_, said) = run(&["--", "soloist", "lab", "li"], true);
    assert!(said.ends_with("soloist-lab: -- soloist lab li\n"), "{said}");
    let (_, said) = run(&["run", "--", "lab"], false);
    assert!(!said.contains("soloist-lab"), "{said}");
}

/// With hidepid /proc does not show others' processes; they are there all the same.
#[test]
fn a_process_that_is_hidden_is_not_said_to_be_none() {
    let hidden = |args: &str| {
        let script = format!(
            "mount -t proc -o hidepid=2 proc /proc && \
             exec setpriv --reuid 65534 --regid 65534 --clear-groups {args}"
        );
        let out = std::process::Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .output();
        out.map(|out| String::from_utf8_lossy(&out.stderr).into_owned())
            .ok()
    };
    let program = env!("CARGO_BIN_EXE_soloist");
    // It takes root, and a program that others may read.
    if hidden(&format!("{program} --version")).is_none_or(|said| !said.is_empty()) {
        return;
    }
    for args in ["verify 1 -m zen2", "verify 1 -m zen2 --bank-sets 0"] {
        let said = hidden(&format!("{program} {args}")).unwrap();
        assert!(said.contains("process 1 needs root"), "{args}: {said}");
    }
    let said = hidden(&format!("{program} verify 999999999 -m zen2")).unwrap();
    assert!(said.contains("there is no process 999999999"), "{said}");
}
