//! Groups by the command line, against a made-up machine: what is refused, in
//! which words, and what is told.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::process::CommandExt;
use std::path::Path;

mod machine;

use machine::{small, soloist, with_real_processes};

/// Status and what was said on both streams.
fn say(root: &Path, args: &[&str]) -> (i32, String) {
    let out = soloist(root, args).output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// Who writes what CAT or PALLOC take would get other colours than meant.
#[test]
fn a_mask_is_refused_with_the_list_that_it_means() {
    let machine = small();
    let flags: [&[&str]; 8] = [
        &["group", "set", "core0", "--bank-sets"],
        &["group", "set", "core0", "--colors"],
        &["group", "set", "core0", "--llc"],
        &["group", "set", "core0", "--node"],
        &["group", "set", "core0", "--cpus"],
        &["run", "--bank-sets"],
        &["run", "--cpus"],
        &["verify", "1", "--bank-sets"],
    ];
    for flag in flags {
        for (mask, list) in [
            ("0x3", "write 0-1"),
            ("0XF", "write 0-3"),
            ("0,0xc", "write 2-3"),
        ] {
            let end: &[&str] = if flag[0] == "run" {
                &["--", "true"]
            } else {
                &[]
            };
            let (status, said) = say(machine.path(), &[flag, &[mask], end].concat());
            assert!(
                status == 2 && said.contains("a mask") && said.contains(list),
                "{flag:?} {mask}: {status}, {said}"
            );
        }
    }
}

/// A process of this machine that is a member of `core0`.
fn with_a_task(machine: &tempfile::TempDir) -> std::process::Child {
    with_real_processes(machine);
    let child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    put(
        machine,
        "groups/core0/members",
        &format!("{}\n", child.id()),
    );
    child
}

fn put(machine: &tempfile::TempDir, file: &str, text: &str) {
    let path = machine.path().join("sys/kernel/config/soloist").join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn write(machine: &tempfile::TempDir, text: &str) -> String {
    let path = machine.path().join("a.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Its tasks would go on beside everybody else, unnoticed.
#[test]
fn a_group_with_tasks_is_not_removed_unless_forced() {
    let machine = small();
    let mut task = with_a_task(&machine);
    let who = format!("core0 (1 task: {} sleep)", task.id());
    let empty = write(&machine, "");
    for args in [
        &["group", "rm", "core0"][..],
        &["apply", "--prune", &empty],
        &["apply", "--prune", "--dry-run", &empty],
    ] {
        let (status, said) = say(machine.path(), args);
        assert!(
            status == 1 && said.contains(&who) && said.contains("--force"),
            "{args:?}: {status}, {said}"
        );
    }
    // It is tried; a directory of files can't be removed.
    let (_, said) = say(machine.path(), &["group", "rm", "--force", "core0"]);
    assert!(said.contains("rmdir groups/core0"), "{said}");
    let (status, said) = say(
        machine.path(),
        &["apply", "--prune", "--dry-run", "--force", &empty],
    );
    assert!(status == 0 && said.contains("- groups/core0"), "{said}");
    task.kill().unwrap();
    task.wait().unwrap();
}

/// It may be a typo, and the command would run in one colour, unnoticed.
#[test]
fn a_group_to_run_in_is_made_only_if_asked_for() {
    let machine = small();
    for more in [&[][..], &["--colors", "2"]] {
        let args = [&["run", "--group", "cor0"], more, &["--", "true"]].concat();
        let (status, said) = say(machine.path(), &args);
        assert!(
            status == 1
                && said.contains("no group \"cor0\" (did you mean \"core0\"?)")
                && said.contains("there are core0")
                && said.contains("--create"),
            "{args:?}: {status}, {said}"
        );
    }
    assert!(!machine
        .path()
        .join("sys/kernel/config/soloist/groups/cor0")
        .exists());
    // It is made; a directory has no attributes.
    let args = ["run", "--create", "--group", "cor0", "--", "true"];
    let (_, said) = say(machine.path(), &args);
    assert!(said.contains("groups/cor0/"), "{said}");
    let joined = ["run", "--create", "--group", "core0", "--", "true"];
    assert_eq!(say(machine.path(), &joined).0, 0);
    assert_eq!(say(machine.path(), &["run", "--create", "--", "true"]).0, 2);
}

/// So is one whose maker was killed before it marked the group as its own.
#[test]
fn a_group_without_colours_or_tasks_is_told_and_not_taken_for_one_that_was_made() {
    let machine = small();
    let (_, said) = say(machine.path(), &["doctor"]);
    assert!(!said.contains("groups without colours"), "{said}");
    for (file, text) in [
        ("bank_set", "\n"),
        ("llc_color", "\n"),
        ("reserve", "0\n"),
        ("bandwidth", "off\n"),
        ("exhaust", "fail\n"),
        ("tasks", ""),
        ("members", ""),
        ("stats", "tasks 0\n"),
    ] {
        put(&machine, &format!("groups/left/{file}"), text);
    }
    let (_, said) = say(machine.path(), &["doctor"]);
    assert!(
        said.contains("groups without colours") && said.contains("`soloist group rm left`"),
        "{said}"
    );
    let args = ["run", "--create", "--group", "left", "--", "true"];
    let (status, said) = say(machine.path(), &args);
    assert!(
        status == 1 && said.contains("group left has no colours and no task"),
        "{status}, {said}"
    );
    // A run that asks for no colours may join it.
    let joined = ["run", "--group", "left", "--", "true"];
    assert_eq!(say(machine.path(), &joined).0, 0);
}

#[test]
fn a_cgroup_is_named_by_its_path_or_its_directory() {
    let machine = small();
    let tree = machine.path().join("sys/fs/cgroup");
    std::fs::create_dir_all(tree.join("part1/inner")).unwrap();
    std::fs::write(tree.join("part1/cgroup.procs"), "").unwrap();
    let bound = || {
        let file = "sys/kernel/config/soloist/groups/core0/cgroup";
        std::fs::read_to_string(machine.path().join(file))
            .unwrap()
            .trim()
            .to_owned()
    };
    put(&machine, "groups/core0/cgroup", "");
    for (given, path) in [
        ("/part1", "/part1"),
        ("/part1/", "/part1"),
        ("/sys/fs/cgroup/part1", "/part1"),
        ("/sys/fs/cgroup/part1/inner/", "/part1/inner"),
        ("/part1/cgroup.procs", "/part1"),
        ("/sys/fs/cgroup/part1/cgroup.procs", "/part1"),
    ] {
        let (status, said) = say(
            machine.path(),
            &["group", "set", "core0", "--cgroup", given],
        );
        assert_eq!((status, bound().as_str()), (0, path), "{given}: {said}");
        let file = write(&machine, &format!("[groups.core0]\ncgroup = \"{given}\"\n"));
        let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
        assert!(status == 0 && !said.contains("/cgroup:"), "{given}: {said}");
    }
    put(&machine, "groups/core0/cgroup", "/part1\n");
    for given in [
        "/none",
        "/sys/fs/cgroup/none",
        "/part1/none/cgroup.procs",
        "nix",
        "/",
    ] {
        let (status, said) = say(
            machine.path(),
            &["group", "set", "core0", "--cgroup", given],
        );
        assert!(
            status == 2 && said.contains("cgroup"),
            "{given}: {status}, {said}"
        );
        assert_eq!(bound(), "/part1");
        let file = write(
            &machine,
            &format!("\n[groups.core0]\ncgroup = \"{given}\"\n"),
        );
        let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
        assert!(
            status == 2 && said.contains("a.toml:3: [groups.core0] cgroup"),
            "{given}: {said}"
        );
    }
    // What systemd makes when it starts, and what is said to come, may be missing.
    for text in [
        "cgroup = \"/video.slice\"",
        "cgroup = \"/none\"\ncgroup_later = true",
    ] {
        let file = write(&machine, &format!("[groups.core0]\n{text}\n"));
        let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
        assert!(
            status == 0 && said.contains("there is no cgroup /"),
            "{text}: {said}"
        );
    }
    let later = ["group", "set", "core0", "--cgroup", "/none", "--later"];
    assert_eq!(say(machine.path(), &later).0, 0);
    let (_, said) = say(machine.path(), &["group", "show", "core0"]);
    assert!(said.contains("/none, which is not there now"), "{said}");
    let (_, said) = say(machine.path(), &["save", "-"]);
    assert!(said.contains("cgroup_later = true"), "{said}");
}

/// What `save` writes of a group of several cgroups, `apply` takes.
#[test]
fn a_group_may_have_several_cgroups() {
    let machine = small();
    let tree = machine.path().join("sys/fs/cgroup");
    for name in ["a", "b", "c"] {
        std::fs::create_dir_all(tree.join(name)).unwrap();
        std::fs::write(tree.join(name).join("cgroup.procs"), "").unwrap();
    }
    put(&machine, "groups/core0/cgroup", "");
    let file = "sys/kernel/config/soloist/groups/core0/cgroup";
    let bound = || std::fs::read_to_string(machine.path().join(file)).unwrap();
    let set = ["group", "set", "core0", "--cgroup"];
    let two = [&set[..], &["/b", "--cgroup", "/sys/fs/cgroup/a/"]].concat();
    assert_eq!(say(machine.path(), &two).0, 0);
    assert_eq!(bound().trim(), "/b\n/a");
    let (_, said) = say(machine.path(), &["group", "show", "core0"]);
    assert!(
        said.contains("cgroup       /a\ncgroup       /b\n"),
        "{said}"
    );
    let (_, said) = say(machine.path(), &["group", "show", "core0", "--json"]);
    let json: String = said.split_whitespace().collect();
    assert!(json.contains(r#""cgroups":["/a","/b"]"#), "{said}");
    let file = write(&machine, "");
    // No file of this made-up machine is known.
    assert_eq!(say(machine.path(), &["save", &file]).0, 1);
    let saved = std::fs::read_to_string(&file).unwrap();
    let list = saved.split("cgroup = ").nth(1).unwrap_or_default();
    let list: String = list.split_whitespace().collect();
    assert!(list.starts_with("[\"/a\",\"/b\",]"), "{saved}");
    assert!(!saved.contains("cgroup_later"), "{saved}");
    let file = write(&machine, &saved.replace("machine = ", "# "));
    let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
    assert!(status == 0 && !said.contains("/cgroup:"), "{said}");
    // Another one.
    put(&machine, "groups/core0/cgroup", "/a\n/c\n");
    let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
    assert!(
        status == 0 && said.contains("groups/core0/cgroup: /a, /c -> /a, /b"),
        "{said}"
    );
    for (wrong, place) in [
        ("cgroup = [\"/a\", \"b\"]", "2: [groups.core0] cgroup"),
        ("cgroup = 7", "2: "),
        ("colours = \"0\"", "2: unknown field"),
        (
            "[groups.x]\ncgroup = [\"/a\", \"/b\"]\n[groups.y]\ncgroup = [\"/c\", \"/b\"]",
            "5: [groups.y] cgroup: /b is group x's",
        ),
    ] {
        let file = write(&machine, &format!("[groups.core0]\n{wrong}\n"));
        let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
        assert!(status == 2 && said.contains(place), "{wrong}: {said}");
    }
    let mixed = [&two[..], &["--cgroup", "none"]].concat();
    let (status, said) = say(machine.path(), &mixed);
    assert!(status == 2 && said.contains("none is alone"), "{said}");
    assert_eq!(say(machine.path(), &[&set[..], &["none"]].concat()).0, 0);
    assert_eq!(bound().trim(), "");
}

/// All that needs no kernel to be known, with its line.
#[test]
fn what_a_file_alone_refutes_is_found_by_a_dry_run() {
    let machine = small();
    for (text, at) in [
        ("\nmachine = \"nosuch\"\n", "2: nosuch: no such machine"),
        (
            "[groups.a]\nbank_sets = \"0-3\"\nmode = \"exclusive\"\n[groups.b]\nbank_sets = \"2-5\"\nmode = \"exclusive\"\n",
            "5: [groups.b] bank_sets 2-5: bank sets 2-3 are group a's too",
        ),
        (
            "[groups.a]\nbank_sets = \"0-3\"\n[groups.b]\nmode = \"exclusive\"\nbank_sets = \"3\"\n",
            "5: [groups.b] bank_sets 3: bank sets 3 are group a's too, and b is exclusive",
        ),
        (
            "[groups.a]\nllc = \"0\"\nmode = \"exclusive\"\n[groups.b]\nbank_sets = \"3\"\nllc = \"0-1\"\n",
            "6: [groups.b] llc 0-1: LLC colours 0 are",
        ),
        ("[groups.a]\nbank_sets = \"0x3\"\n", "2: [groups.a] bank_sets 0x3: \"0x3\": a mask; write 0-1"),
        ("[groups.a]\nbank_sets = \"9-3\"\n", "2: [groups.a] bank_sets"),
        ("[groups.a]\nbank_sets = \"99\"\n", "2: [groups.a] bank_sets 99"),
        ("[groups.a]\nbank_sets = \"0\"\nllc = \"99\"\n", "3: [groups.a] llc 99"),
        ("[groups.a]\nbank_sets = \"0\"\nllc = \"4\"\n", "3: [groups.a] llc: no page of small"),
        ("[groups.a]\nbank_sets = \"0\"\nreserve = \"1G\"\n", "3: [groups.a] reserve: 1 GiB"),
        ("[groups.a]\nreserve = \"x\"\n", "2: [groups.a] reserve"),
        ("[groups.a]\nmode = \"both\"\n", "2: "),
        ("[groups.a]\nbanks = \"1\"\n", "2: "),
        ("\n[guard]\nevent = \"LLC-mises\"\n", "3: [guard] event: LLC-mises: no such event (did you mean \"LLC-misses\"?)"),
        ("[guard]\nwrite_event = \"x\"\n", "2: [guard] write_event"),
        ("[guard]\nrmin = \"1\"\n", "2: [guard] rmin: no such setting (did you mean \"r_min\"?)"),
        ("[guard]\nperiod_us = \"5\"\n", "2: [guard] period_us: `5`: expected a number from 10 to 1000000"),
        ("[guard]\nline = \"65\"\n", "2: [guard] line: `65`: expected a power of two"),
        ("[guard]\nsharing = \"all\"\n", "2: [guard] sharing"),
        ("[guard]\nr_min = \"9\"\npeak = \"5\"\n", "2: [guard] r_min: 9 is above the peak"),
        (
            "[cpus]\n2 = \"5MB/s\"\n[groups.a]\nbank_sets = \"0\"\nbandwidth = \"1MB/s\"\ncpus = \"1-2\"\n",
            "6: [groups.a] cpus: CPU 2 already has a reservation, of [cpus] 2",
        ),
        (
            "[guard]\nr_min = \"10000000\"\n[cpus]\n0 = \"6MB/s\"\n1 = \"6MB/s\"\n",
            "2: [guard] r_min: 10000000 bytes per second, less than the reservations' sum",
        ),
        (
            "[groups.a]\ncgroup = \"/x.slice\"\n[groups.b]\ncgroup = \"/x.slice/\"\n",
            "4: [groups.b] cgroup: /x.slice is group a's",
        ),
        ("[rules.a]\npath = \"x\"\n", "2: [rules.a] path"),
        ("[rules.a]\npath = \"/x\"\ncolors = 99\n", "3: [rules.a] colors 99"),
    ] {
        let file = write(&machine, text);
        let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
        assert!(
            status == 2 && said.contains(&format!("a.toml:{at}")),
            "{text}: {status}, {said}"
        );
    }
    let good =
        "[guard]\nevent = \"r08b0\"\nr_min = \"12000000\"\n[cpus]\n0 = \"6MB/s\"\n1 = \"6MB/s\"\n";
    let file = write(&machine, good);
    put(&machine, "guard/stats", "");
    put(&machine, "guard/settings", "event LLC-misses\nr_min 0\n");
    let (status, said) = say(machine.path(), &["apply", "--dry-run", &file]);
    assert_eq!(status, 0, "{said}");
}

/// A cpuset that allows other nodes than the colours': the kernel only counts.
#[test]
fn tasks_whose_cpuset_contradicts_their_group_are_named() {
    let machine = small();
    let tree = machine.path().join("sys/fs/cgroup/part1");
    std::fs::create_dir_all(&tree).unwrap();
    std::fs::write(tree.join("cgroup.threads"), "77\n78\n").unwrap();
    for (tid, comm, nodes) in [(77, "stray", "1"), (78, "right", "0-1")] {
        let dir = machine.path().join(format!("proc/{tid}"));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("comm"), format!("{comm}\n")).unwrap();
        let status = format!("Tgid:\t{tid}\nMems_allowed_list:\t{nodes}\n");
        std::fs::write(dir.join("status"), status).unwrap();
    }
    put(&machine, "groups/core0/cgroup", "/part1\n");
    put(&machine, "groups/core0/members", "78\n");
    let words = "1 task of group core0 runs out of its colours: its cpuset.mems allows no memory \
                 on node 0, where these are: 77 stray (node 1)";
    for args in [
        &["group", "show", "core0"][..],
        &["group", "set", "core0", "--exhaust", "grow"],
        &["doctor"],
    ] {
        let (_, said) = say(machine.path(), args);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let (_, said) = say(machine.path(), &["group", "show", "core0", "--json"]);
    assert!(said.contains("\"command\": \"stray\""), "{said}");
}

/// Status and words of a shell's `end` in core0, which counts `stats` meanwhile.
fn counting(machine: &tempfile::TempDir, stats: &str, end: &str) -> (i32, String) {
    let file = "sys/kernel/config/soloist/groups/core0/stats";
    let file = machine.path().join(file).display().to_string();
    let script = format!("printf '{stats}' > '{file}'; {end}");
    let args = ["run", "--group", "core0", "--", "sh", "-c", &script];
    say(machine.path(), &args)
}

/// The reason that a command died of is told, and not another one.
#[test]
fn a_command_that_its_own_policy_killed_is_told_so() {
    let machine = small();
    let stats = "exhausted 5\\ncontradicted 5\\nspilled 0\\n";
    let (status, said) = counting(&machine, stats, "kill -BUS $$");
    assert!(
        status == 135 && said.contains("no memory on node 0") && !said.contains("no page left"),
        "{status}, {said}"
    );
}

/// Page tables never come from movable memory: that is no lack of colours.
#[test]
fn page_tables_out_of_color_for_movable_memory_are_told_so() {
    let machine = small();
    let zones = "Node 0, zone   Normal\n  pages free 9\n        managed  4096\n\
                 Node 0, zone  Movable\n  pages free 9\n        managed  512\n\
                 Node 1, zone  Movable\n  pages free 9\n        managed  99\n";
    std::fs::create_dir_all(machine.path().join("proc")).unwrap();
    std::fs::write(machine.path().join("proc/zoneinfo"), zones).unwrap();
    let (_, said) = counting(&machine, "exhausted 0\\nspilled 7\\n", "true");
    assert!(
        said.contains("7 of its page tables") && said.contains("movable memory, which 2 MiB"),
        "{said}"
    );
    let (_, said) = say(machine.path(), &["doctor"]);
    assert!(said.contains("movable memory"), "{said}");
}

/// From a container the kernel counts tasks of the host, and does not list them.
#[test]
fn tasks_of_other_pid_namespaces_are_in_use_too() {
    let machine = small();
    put(&machine, "groups/core0/members", "\n");
    put(&machine, "groups/core0/stats", "tasks 2\npages 12\n");
    std::fs::create_dir_all(machine.path().join("sys/module/soloist")).unwrap();
    let rm = say(machine.path(), &["group", "rm", "core0"]);
    assert_eq!(rm.0, 1, "{rm:?}");
    let words = "in use by core0 (2 tasks: 2 of other pid namespaces)";
    assert!(rm.1.contains(words), "{rm:?}");
    let down = say(machine.path(), &["down"]);
    assert_eq!(down.0, 1, "{down:?}");
    assert!(down.1.contains("in use by core0 (2 tasks)"), "{down:?}");
}

/// Does the process have this file open?
fn has_open(pid: u32, file: &Path) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = files.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    links.into_iter().any(|link| link == file)
}

/// A command that puts back what it began would make half of it anew.
#[test]
fn down_waits_for_a_command_in_the_middle_of_a_change() {
    let machine = small();
    let soloist_dir = machine.path().join("sys/kernel/config/soloist");
    let rule = soloist_dir.join("rules/video");
    for dir in [soloist_dir.join("groups/core0"), rule.clone()] {
        std::fs::remove_dir_all(dir).unwrap();
    }
    std::fs::create_dir(&rule).unwrap();
    std::fs::create_dir_all(machine.path().join("sys/module/soloist")).unwrap();
    let map = soloist_dir.join("map").canonicalize().unwrap();
    let change = std::fs::File::open(&map).unwrap();
    rustix::fs::flock(&change, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut down = soloist(machine.path(), &["down"]).spawn().unwrap();
    // It has the map open now and then to read it, and all the time while it waits.
    let mut waits = 0;
    while waits < 5 {
        assert!(down.try_wait().unwrap().is_none(), "it did not wait");
        waits = if has_open(down.id(), &map) {
            waits + 1
        } else {
            0
        };
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(rule.exists());
    drop(change);
    assert!(down.wait().unwrap().success());
    assert!(!rule.exists());
}

/// The group's counters are of all tasks that it ever had.
#[test]
fn what_a_group_counted_before_killed_no_command() {
    let machine = small();
    let stats = "pages 12\nspilled 5\nexhausted 3\ncontradicted 0\n";
    put(&machine, "groups/core0/stats", stats);
    let (status, said) = counting(&machine, &stats.replace('\n', "\\n"), "kill -9 $$");
    assert_eq!(status, 137, "{said}");
    for words in ["was killed", "out of colour"] {
        assert!(!said.contains(words), "{said}");
    }
    // What it counts meanwhile did.
    let (status, said) = counting(&machine, "exhausted 4\\nspilled 5\\n", "kill -9 $$");
    assert_eq!(status, 137, "{said}");
    let words = "the command was killed: its colours";
    assert!(said.contains(words), "{said}");
}

/// Some servers start programs so; then the kernel forgets how a child ended.
#[test]
fn the_status_is_passed_on_though_sigchld_was_ignored() {
    let machine = small();
    let args = ["run", "--group", "core0", "--", "sh", "-c", "exit 3"];
    let mut command = soloist(machine.path(), &args);
    // SAFETY: one system call, no allocation.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            Ok(())
        });
    }
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(3), "{out:?}");
}

/// mkdir makes groups of names that `soloist group create` does not.
#[test]
fn a_group_of_any_name_is_found_and_not_saved_in_vain() {
    let machine = small();
    for file in std::fs::read_dir(
        machine
            .path()
            .join("sys/kernel/config/soloist/groups/core0"),
    )
    .unwrap()
    .flatten()
    {
        let text = std::fs::read_to_string(file.path()).unwrap();
        let name = file.file_name().into_string().unwrap();
        put(&machine, &format!("groups/two words/{name}"), &text);
    }
    put(&machine, "groups/two words/bank_set", "6-7");
    let (status, said) = say(machine.path(), &["group", "show", "two words"]);
    assert!(status == 0 && said.contains("two words (id 1)"), "{said}");
    // `soloist apply` would refuse the whole file, at boot too.
    let file = machine.path().join("saved.toml");
    let (status, said) = say(machine.path(), &["save", file.to_str().unwrap()]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("[groups.\"two words\"]"), "{said}");
    assert!(!file.exists());
}

/// As `soloist top` counts them.
#[test]
fn what_the_guard_counts_of_writes_is_shown() {
    let machine = small();
    let settings = "event bus-accesses\nwrite_event bus-writes\nperiod_us 1000\nr_min 0\n";
    put(&machine, "guard/settings", settings);
    put(&machine, "guard/stats", "stalled 0\n");
    put(
        &machine,
        "guard/cpu0/bandwidth",
        "500000000 write=400000000\n",
    );
    let counts = "used_bytes 1000000\nused_write_bytes 400000000\ndonated_write_bytes 2000000\n\
                  beyond_bytes 0\nbeyond_write_bytes 30000000\nstops 3\n";
    put(&machine, "guard/cpu0/stats", counts);
    let status = || say(machine.path(), &["guard", "status"]).1;
    let said = status();
    assert!(
        said.starts_with("event bus-accesses, write event bus-writes, period"),
        "{said}"
    );
    let row = |said: &str| {
        let row = said.lines().last().unwrap_or_default();
        let cells = row
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        row(&said)[1..7],
        [
            "500 MB/s, write 400 MB/s",
            "1.0 MB, write 400.0 MB",
            "0.0 MB, write 2.0 MB",
            "0.0 MB, write 0.0 MB",
            "0.0 MB, write 30.0 MB",
            "3",
        ]
    );
    // One counter counts both.
    put(
        &machine,
        "guard/settings",
        &settings.replace("bus-writes", "none"),
    );
    let said = status();
    assert!(said.starts_with("event bus-accesses, period"), "{said}");
    assert_eq!(row(&said)[2], "1.0 MB");
}

/// A look may come late: a rate is of the time that passed, not of the interval.
#[test]
fn a_late_look_at_the_guard_tells_no_higher_rate() {
    use std::io::{BufRead, BufReader, Read};

    let machine = small();
    put(
        &machine,
        "guard/settings",
        "event LLC-misses\nperiod_us 1000\nr_min 0\nsharing none\n",
    );
    put(&machine, "guard/stats", "stalled 0\n");
    put(&machine, "guard/cpu0/bandwidth", "off\n");
    put(&machine, "guard/cpu0/stats", "used_bytes 0\n");
    let mut child = soloist(
        machine.path(),
        &["guard", "status", "--watch", "1", "-n", "2"],
    )
    .stdout(std::process::Stdio::piped())
    .spawn()
    .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    put(&machine, "guard/cpu0/stats", "used_bytes 300000000\n");
    let signal = |name: &str| {
        let kill = std::process::Command::new("kill")
            .args([name, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    };
    signal("-STOP");
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal("-CONT");
    out.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let used = text
        .split(" MB/s")
        .next()
        .and_then(|text| text.rsplit(' ').next());
    let used: f64 = used.unwrap().parse().unwrap();
    assert!(used > 0.0 && used <= 150.0, "{text}");
}
