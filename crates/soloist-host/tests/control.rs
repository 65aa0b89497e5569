//! Groups, rules and requests against a control interface in a directory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

use machine::{Machine, MAP};
use soloist_core::AddrMap;
use soloist_host::config::Config;
use soloist_host::control::{
    Bandwidth, Choice, ColorRequest, Control, Exhaust, Guard, Mode, RuleChange,
};
use soloist_host::observe::watch::Snapshot;
use soloist_host::observe::{events, Removed};
use soloist_host::HostError;

fn small() -> AddrMap {
    AddrMap::parse(MAP).unwrap()
}

fn control(machine: &Machine) -> Control {
    Control::open(&machine.host()).unwrap()
}

#[test]
fn without_the_module_the_way_out_is_named() {
    let error = Control::open(&Machine::new().host()).unwrap_err();
    assert!(matches!(error, HostError::NotLoaded));
    assert!(error.to_string().contains("soloist up"), "{error}");
}

#[test]
fn without_a_map_the_way_out_is_named() {
    let machine = Machine::loaded();
    machine.soloist("map", "\n");
    let error = control(&machine).map().unwrap_err();
    assert!(matches!(error, HostError::NoMap), "{error}");
}

#[test]
fn a_group_is_read() {
    let machine = Machine::loaded();
    let control = control(&machine);
    assert_eq!(control.map().unwrap(), small());
    let view = control.group("core0").unwrap().view().unwrap();
    assert_eq!(
        (view.bank_set.as_str(), view.mode.as_str()),
        ("2-3", "exclusive")
    );
    assert_eq!(view.tasks, [100, 101]);
    assert_eq!(view.stats["pages"], "12");
    assert_eq!(control.groups().unwrap().len(), 1);
    let missing = control.group("core1").unwrap_err();
    assert!(matches!(missing, HostError::NoSuch { .. }), "{missing}");
}

#[test]
fn groups_without_a_directory_are_read() {
    let machine = Machine::loaded();
    machine.soloist(
        "implicit",
        "group 3 0-1 any 12 2 a rule\ngroup 9 any 4 0 0 mmap\ntask 77 9\ntask 78 3\n\n\n",
    );
    let groups = control(&machine).implicit_groups(&small()).unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!((groups[0].id, groups[0].name.as_str()), (3, "a rule"));
    assert_eq!((groups[0].pages, groups[0].page_tables), (12, 2));
    assert_eq!(groups[0].tasks, [78]);
    assert!(groups[0].colors.holds(1, 5) && !groups[0].colors.holds(2, 5));
    assert_eq!(groups[1].tasks, [77]);
    assert!(groups[1].colors.holds(7, 4) && !groups[1].colors.holds(7, 5));
    for line in [
        "group 1",
        "group x any any 0 0 n",
        "task 5",
        "task 5 6",
        "other",
    ] {
        machine.soloist("implicit", line);
        let error = control(&machine).implicit_groups(&small()).unwrap_err();
        assert!(error.to_string().contains(line), "{error}");
    }
}

#[test]
fn a_group_is_changed_by_one_line_a_write() {
    let machine = Machine::loaded();
    let group = control(&machine).group("core0").unwrap();
    group.set_bank_set("4-5").unwrap();
    group.set_mode(Mode::Shareable).unwrap();
    group.set_exhaust(Exhaust::Spill).unwrap();
    group.set_reserve(64 << 20).unwrap();
    group.add_process(42).unwrap();
    assert_eq!(machine.attribute("core0", "bank_set"), "4-5\n");
    assert_eq!(machine.attribute("core0", "mode"), "shareable\n");
    assert_eq!(machine.attribute("core0", "exhaust"), "spill\n");
    assert_eq!(machine.attribute("core0", "reserve"), "67108864\n");
    // Whether memory is free is looked at, no more.
    group.try_reserve(8 << 20).unwrap();
    assert_eq!(machine.attribute("core0", "reserve"), "67108864\n");
    assert_eq!(machine.attribute("core0", "procs"), "42\n");
}

#[test]
fn a_refusal_carries_the_kernels_words() {
    let machine = Machine::loaded();
    machine.soloist("last_cmd_status", "bank set 9 is owned by core7\n");
    let at = "sys/kernel/config/soloist/groups/core0/auto";
    std::fs::remove_file(machine.path(at)).unwrap();
    machine.dir(at); // writing to a directory fails
    let group = control(&machine).group("core0").unwrap();
    let error = group.set_auto("4").unwrap_err().to_string();
    assert!(error.contains("groups/core0/auto = 4"), "{error}");
    assert!(error.contains("bank set 9 is owned by core7"), "{error}");
}

#[test]
fn names_that_leave_the_directory_are_refused() {
    let machine = Machine::loaded();
    let control = control(&machine);
    for name in ["", "..", "a/b", ".x", "-x", "a b", "ü"] {
        let error = control.create_group(name).unwrap_err();
        assert!(matches!(error, HostError::BadName(_)), "{name:?}: {error}");
    }
    let taken = control.create_group("core0").unwrap_err();
    assert!(matches!(taken, HostError::Exists { .. }), "{taken}");
}

#[test]
fn rules_are_made() {
    let machine = Machine::loaded();
    let rule = control(&machine).create_rule("video").unwrap();
    for file in [
        "uid", "path", "colors", "exhaust", "realtime", "enabled", "stats",
    ] {
        machine.soloist(&format!("rules/video/{file}"), "");
    }
    rule.change(&RuleChange {
        path: Some("/usr/bin/x264".to_owned()),
        uid: Some("1000".to_owned()),
        colors: Some(2),
        enabled: Some(true),
        ..RuleChange::default()
    })
    .unwrap();
    let view = rule.view().unwrap();
    assert_eq!(
        (view.path.as_str(), view.uid.as_str()),
        ("/usr/bin/x264", "1000")
    );
    assert_eq!((view.colors.as_str(), view.enabled), ("2", true));
}

#[test]
fn a_number_is_automatic_a_list_is_not() {
    assert_eq!("4".parse(), Ok(Choice::Count(4)));
    assert_eq!("4,".parse(), Ok(Choice::List("4".to_owned())));
    assert_eq!("4-4".parse(), Ok(Choice::List("4-4".to_owned())));
    assert_eq!("0-3,8".parse(), Ok(Choice::List("0-3,8".to_owned())));
    for wrong in ["", "0", "x", "-", "3-1", "1,,2"] {
        assert!(wrong.parse::<Choice>().is_err(), "{wrong:?}");
    }
}

/// What a request writes to the group `core0`.
fn written(request: &ColorRequest) -> Result<[String; 5], HostError> {
    let machine = Machine::loaded();
    machine.group("core0", "", "");
    let group = control(&machine).group("core0").unwrap();
    request.plan(&small())?.apply(&group, &small())?;
    Ok(["auto", "bank_set", "llc_color", "node", "exhaust"]
        .map(|file| machine.attribute("core0", file).trim().to_owned()))
}

#[test]
fn requests_become_commands() {
    let of = |request: ColorRequest| written(&request).unwrap();
    let list = |text: &str| Some(text.parse::<Choice>().unwrap());
    let none = ColorRequest::default;
    // Nothing said: one colour, and more as needed.
    assert_eq!(of(none())[0], "1");
    assert_eq!(of(none())[4], "grow");
    let apart = of(ColorRequest {
        realtime: true,
        ..none()
    });
    assert_eq!(
        (apart[0].as_str(), apart[4].as_str()),
        ("1 realtime", "fail")
    );
    let four = of(ColorRequest {
        colors: list("4"),
        node: Some("1".into()),
        ..none()
    });
    assert_eq!((four[0].as_str(), four[4].as_str()), ("4 node=1", "fail"));
    let near = of(ColorRequest {
        colors: list("2"),
        llc: list("3"),
        near: vec![1],
        realtime: true,
        ..none()
    });
    assert_eq!(near[0], "2 node=1 llc=3 realtime");
    let named = of(ColorRequest {
        colors: list("2-3,9"),
        llc: list("0-1"),
        ..none()
    });
    assert_eq!((named[1].as_str(), named[2].as_str()), ("2-3,9", "0-1"));
    let sets = of(ColorRequest {
        bank_sets: Some("5".into()),
        ..none()
    });
    assert_eq!(sets[1], "5");
    let cache = of(ColorRequest {
        llc: list("0,"),
        ..none()
    });
    assert_eq!((cache[1].as_str(), cache[2].as_str()), ("", "0"));
    let node = of(ColorRequest {
        node: Some("1".into()),
        exhaust: Some(Exhaust::Spill),
        ..none()
    });
    assert_eq!((node[3].as_str(), node[4].as_str()), ("1", "spill"));
}

#[test]
fn memory_becomes_colours() {
    let map = small(); // a bank set holds 8 MiB
    let mem = |mem: u64| ColorRequest {
        mem: Some(mem << 20),
        ..ColorRequest::default()
    };
    let plan = mem(20).plan(&map).unwrap();
    assert_eq!((plan.sets, plan.capacity_of_one), (3, 8 << 20));
    assert_eq!(written(&mem(20)).unwrap()[0], "3");
    // A sixteenth more, for what comes with a program.
    assert_eq!(mem(24).plan(&map).unwrap().sets, 4);
    let too_much = mem(129).plan(&map).unwrap_err().to_string();
    assert!(too_much.contains("small has 16"), "{too_much}");
    let all = ColorRequest {
        mem: Some(u64::MAX),
        ..ColorRequest::default()
    };
    let too_much = all.plan(&map).unwrap_err().to_string();
    assert!(too_much.contains("small has 16"), "{too_much}");
    let on_node = ColorRequest {
        node: Some("1".into()),
        ..mem(65)
    };
    assert!(on_node
        .plan(&map)
        .unwrap_err()
        .to_string()
        .contains("node 1 has 8"));
    let few = ColorRequest {
        colors: Some(Choice::Count(2)),
        ..mem(20)
    };
    assert!(few.plan(&map).unwrap_err().to_string().contains("need 3"));
    // Half of a bank set's LLC colours hold half of it.
    let llc = ColorRequest {
        llc: Some(Choice::Count(2)),
        ..mem(20)
    };
    assert_eq!(llc.plan(&map).unwrap().sets, 6);
}

#[test]
fn contradictions_are_refused_with_their_flag() {
    let none = ColorRequest::default;
    let list = |text: &str| Some(text.parse::<Choice>().unwrap());
    let cases = [
        (
            ColorRequest {
                colors: list("99,"),
                ..none()
            },
            "--colors",
        ),
        (
            ColorRequest {
                bank_sets: Some("16".into()),
                ..none()
            },
            "--bank-sets 16",
        ),
        (
            ColorRequest {
                bank_sets: Some("9".into()),
                node: Some("0".into()),
                ..none()
            },
            "on node 1",
        ),
        (
            ColorRequest {
                colors: list("2,"),
                llc: list("2"),
                ..none()
            },
            "--llc 2",
        ),
        (
            ColorRequest {
                colors: list("2"),
                llc: list("2,"),
                ..none()
            },
            "--bank-sets",
        ),
        (
            ColorRequest {
                colors: list("2"),
                llc: list("9"),
                ..none()
            },
            "8 LLC colours",
        ),
        (
            ColorRequest {
                llc: list("2"),
                ..none()
            },
            "of how many banks",
        ),
        (
            ColorRequest {
                colors: list("2,"),
                llc: list("4,"),
                ..none()
            },
            "other banks",
        ),
        (
            ColorRequest {
                colors: list("2,"),
                mem: Some(1 << 30),
                ..none()
            },
            "--mem 1 GiB",
        ),
        (
            ColorRequest {
                node: Some("7".into()),
                ..none()
            },
            "--node 7",
        ),
        (
            ColorRequest {
                bank_sets: Some("1".into()),
                realtime: true,
                ..none()
            },
            "--realtime",
        ),
        (
            ColorRequest {
                colors: list("17"),
                ..none()
            },
            "has 16",
        ),
    ];
    for (request, words) in cases {
        let error = request.plan(&small()).unwrap_err();
        assert!(matches!(error, HostError::Request(_)), "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

/// Arm's driver would count it as 0 for ever: a Raspberry Pi 4 has no L3.
#[test]
fn an_event_that_the_cores_lack_is_refused() {
    let machine = Machine::loaded();
    machine.soloist("guard/settings", "event LLC-misses\n");
    let info = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd08\n";
    machine.file("proc/cpuinfo", info);
    let guard = Guard::open(&control(&machine)).unwrap();
    let set = |event: &str| guard.set(&[("event", event.to_owned())]);
    let error = set("L3D_CACHE_REFILL").unwrap_err().to_string();
    assert!(
        error.contains("Cortex-A72 (CPUs 0) does not count it"),
        "{error}"
    );
    assert!(machine
        .read("sys/kernel/config/soloist/guard/settings")
        .contains("LLC-misses"));
    set("L2D_CACHE_REFILL").unwrap();
}

#[test]
fn limits_are_set_all_or_none() {
    let machine = Machine::loaded();
    let files = [
        "guard/settings",
        "guard/cpu0/bandwidth",
        "guard/cpu1/bandwidth",
    ];
    machine.soloist("guard/stats", "master -1\n");
    machine.soloist(files[0], "event LLC-misses\nr_min 5\n");
    for (cpu, bandwidth) in [(0, "7000000 reclaim=1\n"), (1, "off\n")] {
        machine.soloist(&format!("guard/cpu{cpu}/bandwidth"), bandwidth);
        machine.soloist(&format!("guard/cpu{cpu}/stats"), "stops 0\n");
    }
    let guard = Guard::open(&control(&machine)).unwrap();
    let want: Bandwidth = "9MB/s".parse().unwrap();
    let pairs = [("r_min", "8".to_owned())];
    let limits = [(0, Some(want)), (1, Some(want)), (9, Some(want))];
    let error = guard.change(&pairs, &limits).unwrap_err().to_string();
    assert!(error.contains("there is no CPU 9"), "{error}");
    let now = || files.map(|file| machine.read(&format!("sys/kernel/config/soloist/{file}")));
    assert_eq!(now(), ["event LLC-misses\nr_min 5\n", "7000000\n", "off\n"]);
    guard.change(&pairs, &limits[..2]).unwrap();
    assert_eq!(now(), ["r_min 8\n", "9000000\n", "9000000\n"]);
}

#[test]
fn one_is_no_plural() {
    let machine = Machine::loaded();
    let look = |exhausted: &str, spilled: &str| {
        let stats = format!("pages 12\nexhausted {exhausted}\nspilled {spilled}\n");
        machine.soloist("groups/core0/stats", &stats);
        machine.soloist("groups/core0/bandwidth", "off\n");
        Snapshot::take(&control(&machine)).unwrap()
    };
    let (before, now) = (look("1", "1"), look("2", "3"));
    let told: Vec<String> = events(&before, &now, &[])
        .iter()
        .map(|e| e.to_string())
        .collect();
    assert!(
        told[0].ends_with("core0: 1 request found no page in its colours"),
        "{told:?}"
    );
    assert!(
        told[1].ends_with("core0: 2 pages handed out of colour"),
        "{told:?}"
    );
}

/// The module counts a page that leaves its colours for its group and for the system.
#[test]
fn a_page_out_of_its_colours_is_told_once() {
    let machine = Machine::loaded();
    let look = |group: &str, system: &str| {
        machine.soloist("groups/core0/stats", &format!("pages 12\nmoved {group}\n"));
        machine.soloist("groups/core0/bandwidth", "off\n");
        machine.soloist("stats", &format!("groups 1\nmoved {system}\n"));
        Snapshot::take(&control(&machine)).unwrap()
    };
    let told = |system: &str| -> Vec<String> {
        let (before, now) = (look("1", "1"), look("6", system));
        let events = events(&before, &now, &[]);
        events.iter().map(|event| event.to_string()).collect()
    };
    let [core0] = told("6").try_into().unwrap();
    assert!(
        core0.ends_with("core0: 5 pages moved out of its colours"),
        "{core0}"
    );
    let [_, system] = told("8").try_into().unwrap();
    assert!(
        system.ends_with("system: 2 pages moved out of colour"),
        "{system}"
    );
}

fn with_a_rule() -> Machine {
    let machine = Machine::loaded();
    machine.soloist("groups/core0/bandwidth", "off\n");
    for (file, text) in [
        ("uid", "any"),
        ("path", "/usr/bin/x264"),
        ("colors", "2"),
        ("exhaust", "grow"),
        ("realtime", "0"),
        ("enabled", "1"),
    ] {
        machine.soloist(&format!("rules/video/{file}"), text);
    }
    machine
}

/// The kernel takes any path, a file of ours does not.
#[test]
fn a_path_that_is_no_utf_8_is_shown_but_not_saved() {
    let machine = with_a_rule();
    let path = "sys/kernel/config/soloist/rules/video/path";
    machine.bytes(path, b"/usr/bin/caf\xe9\n");
    machine.soloist("rules/video/stats", "matched 3\n");
    let rules = control(&machine).rules().unwrap();
    assert_eq!(rules[0].view().unwrap().path, "/usr/bin/caf\u{fffd}");
    let why = Config::now(&control(&machine)).unwrap_err().to_string();
    assert!(
        why.contains("rules/video/path") && why.contains("utf-8"),
        "{why}"
    );
}

/// The kernel counts a refusal by a limit in both.
#[test]
fn a_limit_of_a_rule_is_told_as_one() {
    let machine = with_a_rule();
    let look = |refused: u64, limited: u64| {
        let stats = format!("matched 3\nrefused {refused}\nlimited {limited}\nheld 4\n");
        machine.soloist("rules/video/stats", &stats);
        Snapshot::take(&control(&machine)).unwrap()
    };
    let (first, second, third) = (look(0, 0), look(2, 2), look(3, 2));
    let told = |before: &Snapshot, now: &Snapshot| -> Vec<String> {
        let events = events(before, now, &[]);
        events
            .iter()
            .map(|e| e.to_string()[10..].to_owned())
            .collect()
    };
    assert_eq!(
        told(&first, &second),
        ["rule video: 2 programs ran uncoloured: a limit was reached, or no colours were free"]
    );
    assert_eq!(
        told(&second, &third),
        ["rule video: 1 program ran uncoloured: no colours were free"]
    );
}

/// The kernel takes any name; what can't be named must not be passed over.
#[test]
fn a_name_that_is_no_utf_8_is_told() {
    use std::os::unix::ffi::OsStrExt;

    let machine = Machine::loaded();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    let groups = machine.path("sys/kernel/config/soloist/groups");
    std::fs::create_dir(groups.join(name)).unwrap();
    let why = control(&machine).groups().unwrap_err().to_string();
    assert!(
        why.contains("groups/caf\\xE9") && why.contains("rmdir"),
        "{why}"
    );
}

/// Counters are looked at once a second; a `soloist run` may take a hundredth.
#[test]
fn a_removed_group_tells_its_last_figures() {
    let line = |name: &str, implicit, spilled| {
        format!("  sh-71 [001] ...1.  9.005: soloist_group_removed: group=3 implicit={implicit} exhausted=0 spilled={spilled} grown=0 moved=0 name={name}")
    };
    let removed = |line: &str| Removed::of_line(line).unwrap();
    let machine = Machine::loaded();
    machine.group("run 7", "2", "");
    machine.soloist("groups/run 7/stats", "pages 12\nspilled 4\n");
    machine.soloist("groups/run 7/bandwidth", "off\n");
    let before = Snapshot::take(&control(&machine)).unwrap();
    // Made anew, and no less spilled than before.
    machine.soloist("groups/run 7/stats", "pages 12\nspilled 9\n");
    let now = Snapshot::take(&control(&machine)).unwrap();
    let gone = [("run 7", 0, 6), ("run 7", 0, 1), ("nap", 1, 0)]
        .map(|(name, implicit, spilled)| removed(&line(name, implicit, spilled)));
    let told: Vec<String> = events(&before, &now, &gone)
        .iter()
        .map(|e| e.to_string()[10..].to_owned())
        .collect();
    assert_eq!(
        told,
        [
            "run 7: 2 pages handed out of colour",
            "run 7: gone",
            "run 7: 1 page handed out of colour",
            "run 7: made and gone",
            "nap#3: made and gone",
            "run 7: made, bank sets 2",
            "run 7: 9 pages handed out of colour",
        ]
    );
    assert_eq!(
        Removed::of_line("sh-71 [001] ...1. 9.0: soloist_cpu_stop: cpu=1"),
        None
    );
}

/// Of a `soloist run` that was killed, the next command removes the directory.
#[test]
fn a_group_of_which_the_directory_is_left_is_no_new_one() {
    let machine = Machine::loaded();
    machine.group("run 7", "2", "");
    machine.soloist("groups/run 7/stats", "pages 12\nspilled 4\n");
    machine.soloist("groups/run 7/bandwidth", "off\n");
    let before = Snapshot::take(&control(&machine)).unwrap();
    machine.soloist("groups/run 7/ephemeral", "gone\n");
    machine.soloist("groups/run 7/stats", "pages 12\nspilled 9\n");
    let now = Snapshot::take(&control(&machine)).unwrap();
    let line = "  sh-71 [001] ...1.  9.005: soloist_group_removed: group=3 implicit=0 exhausted=0 spilled=9 grown=0 moved=0 name=run 7";
    let removed = [Removed::of_line(line).unwrap()];
    let told = |before, removed: &[Removed]| -> Vec<String> {
        let events = events(before, &now, removed);
        events
            .iter()
            .map(|e| e.to_string()[10..].to_owned())
            .collect()
    };
    let pages = "run 7: 5 pages handed out of colour";
    assert_eq!(told(&before, &removed), [pages, "run 7: gone"]);
    // Without a trace, and in the looks after that.
    assert_eq!(told(&before, &[]), ["run 7: gone"]);
    assert_eq!(told(&now, &[]), [""; 0]);
}

#[test]
fn a_new_group_is_told_with_its_colours() {
    for (sets, llc, wanted) in [
        ("", "", "no colours yet"),
        ("", "0-3", "LLC colours 0-3"),
        ("2-3", "0-3", "bank sets 2-3, LLC colours 0-3"),
    ] {
        let machine = Machine::loaded();
        let before = Snapshot::take(&control(&machine)).unwrap();
        machine.group("new", sets, "");
        machine.soloist("groups/new/llc_color", llc);
        machine.soloist("groups/new/bandwidth", "off\n");
        let now = Snapshot::take(&control(&machine)).unwrap();
        let told: Vec<String> = events(&before, &now, &[])
            .iter()
            .map(|e| e.to_string())
            .collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].ends_with(&format!("new: made, {wanted}")),
            "{told:?}"
        );
    }
}

/// A program names its threads: no such name writes lines or moves a terminal's cursor.
#[test]
fn names_of_tasks_are_one_line_of_plain_text() {
    let machine = Machine::new();
    machine.file("proc/7/comm", "x\r\u{1b}[2Jall\nfine é\n");
    let said = soloist_host::machine::named(&machine.host(), &[7]);
    assert_eq!(said, "7 x\\r\\u{1b}[2Jall\\nfine é");
}
