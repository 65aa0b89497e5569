//! What is saved, and made true again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

use machine::{Machine, MAP};
use soloist_core::AddrMap;
use soloist_host::config::{plan, Config, GroupConfig, Step, Steps, Transaction, Wanted};
use soloist_host::control::{ColorRequest, Control, Exhaust};
use soloist_host::run::Seat;
use soloist_host::HostError;

fn loaded() -> Machine {
    let machine = Machine::loaded();
    machine.soloist("groups/core0/bandwidth", "500000000 reclaim=1 cpus=0-1\n");
    for (file, text) in [
        ("uid", "any"),
        ("path", "/usr/bin/x264"),
        ("colors", "2"),
        ("limit", "8 default"),
        ("user_limit", "3"),
        ("exhaust", "grow"),
        ("realtime", "0"),
        ("enabled", "1"),
        ("stats", "matched 0\n"),
    ] {
        machine.soloist(&format!("rules/video/{file}"), text);
    }
    machine
}

fn steps(machine: &Machine, config: &Config, prune: bool) -> Steps {
    let map = AddrMap::parse(MAP).unwrap();
    plan(config, Some(&control(machine)), &map, prune).unwrap()
}

fn control(machine: &Machine) -> Control {
    Control::open(&machine.host()).unwrap()
}

#[test]
fn what_is_saved_is_true_already() {
    let machine = loaded();
    let text = Config::now(&control(&machine)).unwrap().text().unwrap();
    let read = Config::parse(&text).unwrap();
    let group = &read.groups["core0"];
    assert_eq!(read.machine.as_deref(), Some("small"));
    assert_eq!(
        (group.bank_sets.as_str(), group.exhaust),
        ("2-3", Exhaust::Fail)
    );
    assert_eq!(group.bandwidth.as_deref(), Some("500MB/s"));
    assert_eq!(group.cpus.as_deref(), Some("0-1"));
    let rule = &read.rules["video"];
    assert_eq!(
        (rule.colors, rule.limit, rule.user_limit),
        (2, None, Some(3))
    );
    assert_eq!(steps(&machine, &read, true), Steps::default());
}

/// A system that finds no page would not live long.
#[test]
fn everything_else_spills_unless_the_file_says_otherwise() {
    let exhaust = |keys: &str| {
        let text = format!("[groups.rest]\nbank_sets = '0-1'\n{keys}");
        Config::parse(&text).unwrap().groups["rest"].exhaust
    };
    assert_eq!(exhaust("cgroup = 'everything-else'"), Exhaust::Spill);
    let list = "cgroup = ['/a.slice', 'everything-else']\n";
    assert_eq!(exhaust(list), Exhaust::Spill);
    assert_eq!(exhaust(&format!("{list}exhaust = 'fail'")), Exhaust::Fail);
    assert_eq!(exhaust("cgroup = '/a.slice'"), Exhaust::Fail);
}

#[test]
fn a_limit_that_is_left_out_is_the_default_again() {
    let machine = loaded();
    let text = "[rules.video]\npath = '/usr/bin/x264'\ncolors = 2\nlimit = 5";
    let plan = steps(&machine, &Config::parse(text).unwrap(), false);
    let told = told(&plan);
    for step in [
        "  rules/video/limit: default -> 5",
        "  rules/video/user_limit: 3 -> default",
    ] {
        assert!(told.iter().any(|line| line == step), "{step}: {told:?}");
    }
}

#[test]
fn a_rules_user_may_be_named() {
    let rule = |uid: &str| Config::parse(&format!("[rules.a]\npath = '/x'\nuid = '{uid}'"));
    for (uid, wanted) in [("root", "0"), ("7", "7"), ("registered", "registered")] {
        assert_eq!(rule(uid).unwrap().rules["a"].uid, wanted);
    }
}

#[test]
fn groups_of_a_single_run_are_not_saved() {
    let machine = loaded();
    machine.group("run-1234", "5", "");
    machine.soloist("groups/run-1234/bandwidth", "off\n");
    // By `run --group job --create`: one lives, of the other the directory is left.
    for (name, state) in [("job", "1\n"), ("ended", "gone\n")] {
        machine.group(name, "6", "");
        machine.soloist(&format!("groups/{name}/bandwidth"), "off\n");
        machine.soloist(&format!("groups/{name}/ephemeral"), state);
    }
    let config = Config::now(&control(&machine)).unwrap();
    assert_eq!(config.groups.keys().collect::<Vec<_>>(), ["core0"]);
    // They are nobody's to remove either.
    assert_eq!(steps(&machine, &config, true), Steps::default());
}

/// One that its file names outlasts the run that made it.
#[test]
fn a_group_of_the_file_lasts() {
    let machine = loaded();
    machine.soloist("groups/core0/ephemeral", "1\n");
    let text = "[groups.core0]\nbank_sets = '2-3'\nmode = 'exclusive'\n\
                bandwidth = '500MB/s'\ncpus = '0-1'\n";
    let plan = steps(&machine, &Config::parse(text).unwrap(), false);
    assert_eq!(told(&plan), ["  groups/core0/ephemeral: 1 -> 0"]);
    // A refused command puts groups back, and these go as they did.
    let group = control(&machine).group("core0").unwrap();
    let before = GroupConfig::now(&group).unwrap();
    group.set_exhaust(Exhaust::Spill).unwrap();
    before.put_back(&control(&machine), &group).unwrap();
    assert_eq!(machine.attribute("core0", "exhaust").trim(), "fail");
    assert_eq!(machine.attribute("core0", "ephemeral").trim(), "1");
    // Nor does its run remove it then. Of files it can't, where there is no module.
    machine.soloist("groups/core0/members", "");
    let colors = ColorRequest {
        bank_sets: Some("2-3".to_owned()),
        ..ColorRequest::default()
    };
    let plan = colors.plan(&AddrMap::parse(MAP).unwrap()).unwrap();
    let mut seat = Seat::join(group);
    seat.plan = Some(plan);
    assert!(seat.leave(&machine.host()).is_err());
    machine.soloist("groups/core0/ephemeral", "0\n");
    assert_eq!(seat.leave(&machine.host()).unwrap(), None);
}

/// The guard needs no map, nor does a group without colours.
#[test]
fn what_has_no_colours_is_applied_without_a_map() {
    let machine = guarded();
    machine.dir("sys/module/soloist");
    machine.soloist("map", "\n");
    machine.soloist("guard/settings", FRESH);
    machine.soloist("guard/cpu0/bandwidth", "off\n");
    machine.soloist("guard/cpu0/stats", "stops 0\n");
    machine.soloist("groups/core0/bank_set", "\n");
    machine.soloist("groups/core0/bandwidth", "off\n");
    let applied = |text: &str| {
        let config = Config::parse(text).unwrap();
        let wanted = Wanted {
            config: &config,
            map: None,
            prune: false,
            force: false,
        };
        let host = machine.host();
        let transaction = Transaction::new(wanted, &host).unwrap();
        transaction.apply(&|_| ())
    };
    let text = "[guard]\nr_min = '1200000000'\n[cpus]\n0 = '200MB/s'\n\
                [groups.core0]\nmode = 'shareable'\n";
    let steps = told(&applied(text).unwrap());
    assert_eq!(
        steps,
        [
            "  guard/settings: r_min 0 -> 1200000000",
            "  groups/core0/mode: exclusive -> shareable",
            "  guard/cpu0/bandwidth: off -> 200000000",
        ]
    );
    for colored in [
        "[groups.core0]\nbank_sets = '1'",
        "[groups.core0]\nllc = '1'",
        "[groups.core0]\nreserve = '1M'",
        "[rules.a]\npath = '/x'",
    ] {
        let why = applied(colored).unwrap_err();
        assert!(matches!(why, HostError::NoMap), "{colored}: {why}");
    }
}

fn guarded() -> Machine {
    let machine = loaded();
    machine.soloist("guard/stats", "master -1\n");
    machine
}

/// As a module says that was just loaded.
const FRESH: &str = "event LLC-misses\nwrite_event none\nline 64\nperiod_us 1000\nr_min 0\n\
    write_r_min 0\npeak 0\nq_min 0\newma 192\nsharing none\ncount_kernel 1\nper_task 0\nby_bank 0\n";

#[test]
fn settings_of_the_guard_are_saved_once_there_are_any() {
    let machine = guarded();
    let saved = |settings: &str| {
        machine.soloist("guard/settings", settings);
        Config::now(&control(&machine)).unwrap().guard
    };
    assert!(saved(FRESH).is_empty());
    // Nothing can be reserved yet, but somebody has said something.
    let told = saved(&FRESH.replace("peak 0", "peak 9000"));
    assert_eq!(
        (told["peak"].as_str(), told["r_min"].as_str()),
        ("9000", "0")
    );
    assert!(!saved(&FRESH.replace("r_min 0", "r_min 5")).is_empty());
}

/// An event brings its own line: what the file says of the line comes after it.
#[test]
fn a_line_that_an_event_would_change_is_written_with_it() {
    let machine = guarded();
    let settings = FRESH.replace("LLC-misses", "page-faults");
    machine.soloist("guard/settings", &settings);
    let mut config = Config::now(&control(&machine)).unwrap();
    machine.soloist("guard/settings", FRESH);
    let written = |config: &Config| match &steps(&machine, config, false).steps[..] {
        [Step::Write { new, .. }] => new.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(written(&config), "event page-faults\nline 64");
    config.guard.remove("line");
    assert_eq!(written(&config), "event page-faults");
}

#[test]
fn what_differs_is_a_step() {
    let machine = loaded();
    let mut config = Config::now(&control(&machine)).unwrap();
    config.groups.get_mut("core0").unwrap().exhaust = Exhaust::Spill;
    config.rules.clear();
    let write = Step::Write {
        path: "groups/core0/exhaust".to_owned(),
        old: "fail".to_owned(),
        new: "spill".to_owned(),
    };
    let kept = steps(&machine, &config, false);
    assert_eq!(
        (kept.steps, kept.others),
        (vec![write], vec!["rules/video".to_owned()])
    );
    let pruned = steps(&machine, &config, true);
    assert!(matches!(&pruned.steps[1], Step::Remove { path } if path == "rules/video"));
    pruned.steps[0]
        .to_string()
        .contains("fail -> spill")
        .then_some(())
        .unwrap();
}

/// As the kernel's palette does: an exclusive owner must be alone.
fn is_allowed(groups: &std::collections::BTreeMap<String, (String, String)>) -> bool {
    let sets = |list: &str| -> Vec<u32> {
        soloist_core::NumList::parse(list, 64)
            .unwrap()
            .iter()
            .collect()
    };
    groups.iter().all(|(name, (own, mode))| {
        let others = groups.iter().filter(|(other, _)| *other != name);
        mode == "shareable"
            || others
                .into_iter()
                .all(|(_, (list, _))| sets(own).iter().all(|s| !sets(list).contains(s)))
    })
}

#[test]
fn exclusive_groups_swap_their_colors() {
    let machine = loaded();
    machine.group("left", "4", "");
    machine.group("right", "6-7", "");
    for name in ["left", "right"] {
        machine.soloist(&format!("groups/{name}/mode"), "exclusive");
        machine.soloist(&format!("groups/{name}/bandwidth"), "off\n");
    }
    let mut config = Config::now(&control(&machine)).unwrap();
    config.groups.get_mut("left").unwrap().bank_sets = "7".to_owned();
    config.groups.get_mut("right").unwrap().bank_sets = "4-5".to_owned();
    let mut groups: std::collections::BTreeMap<String, (String, String)> =
        [("left", "4"), ("right", "6-7"), ("core0", "2-3")]
            .map(|(name, sets)| (name.to_owned(), (sets.to_owned(), "exclusive".to_owned())))
            .into();
    let steps = steps(&machine, &config, false).steps;
    for step in &steps {
        let Step::Write { path, new, .. } = step else {
            panic!("{step}");
        };
        let (name, attribute) = path
            .strip_prefix("groups/")
            .unwrap()
            .split_once('/')
            .unwrap();
        let group = groups.get_mut(name).unwrap();
        match attribute {
            "bank_set" => group.0.clone_from(new),
            _ => group.1.clone_from(new),
        }
        assert!(is_allowed(&groups), "{step}: {groups:?}");
    }
    assert_eq!(groups["left"], ("7".to_owned(), "exclusive".to_owned()));
    assert_eq!(groups["right"], ("4-5".to_owned(), "exclusive".to_owned()));
    assert!(!steps.iter().any(|step| step.to_string().contains("core0")));
}

/// `zebra` can't be written: in a directory of files no attributes appear.
#[test]
fn a_refusal_takes_everything_back() {
    let machine = loaded();
    let mut config = Config::now(&control(&machine)).unwrap();
    let mut zebra = config.groups["core0"].clone();
    zebra.bank_sets = "5".to_owned();
    config.groups.insert("zebra".to_owned(), zebra);
    config.groups.get_mut("core0").unwrap().exhaust = Exhaust::Spill;
    let plan = steps(&machine, &config, false);
    assert!(plan.apply(&control(&machine)).is_err());
    assert_eq!(machine.attribute("core0", "exhaust").trim(), "fail");
    assert!(!machine
        .path("sys/kernel/config/soloist/groups/zebra")
        .exists());
}

/// The first rule that matches counts: they are made as they are written.
#[test]
fn rules_keep_the_order_of_the_file() {
    let machine = loaded();
    let text = "[rules.x264]\npath = \"/usr/bin/x264\"\n[rules.bin]\npath = \"/usr/bin/*\"\n";
    let config = Config::parse(text).unwrap();
    let made: Vec<String> = steps(&machine, &config, false)
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Make { path } => Some(path.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(made, ["rules/x264", "rules/bin"]);
    let saved = config.text().unwrap();
    assert!(
        saved.find("rules.x264").unwrap() < saved.find("rules.bin").unwrap(),
        "{saved}"
    );

    for (name, order) in [("bin", 1), ("x264", 2)] {
        let dir = format!("sys/kernel/config/soloist/rules/{name}");
        for (file, value) in [
            ("path", "/usr/bin/*"),
            ("uid", "any"),
            ("colors", "1"),
            ("exhaust", "grow"),
            ("realtime", "0"),
            ("enabled", "1"),
            ("stats", &format!("matched 0\nrefused 0\norder {order}\n")),
        ] {
            machine.file(&format!("{dir}/{file}"), value);
        }
    }
    let names = control(&machine).rules().unwrap();
    let names: Vec<&str> = names.iter().map(|rule| rule.name()).collect();
    assert_eq!(names[names.len() - 2..], ["bin", "x264"]);
    let map = control(&machine).map().unwrap();
    let refused = plan(&config, Some(&control(&machine)), &map, false).unwrap_err();
    assert!(
        refused.to_string().contains("soloist rule rm bin"),
        "{refused}"
    );
}

/// Any command may remove a group that is called as those of `soloist run`.
#[test]
fn a_lasting_group_is_not_called_as_those_of_a_run() {
    let refused = Config::parse("[groups.run-1]\nbank_sets = \"0\"\n").unwrap_err();
    assert!(refused.message.contains("take another name"), "{refused}");
    assert!(Config::parse("[groups.run-fast]\nbank_sets = \"0\"\n").is_ok());
}

/// Ctrl-C midway leaves no half of a configuration.
#[test]
fn a_signal_takes_everything_back() {
    let machine = loaded();
    let mut config = Config::now(&control(&machine)).unwrap();
    config.groups.get_mut("core0").unwrap().exhaust = Exhaust::Spill;
    let mut ours = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set; the signal is this thread's alone.
    let ours = unsafe {
        libc::sigemptyset(ours.as_mut_ptr());
        libc::sigaddset(ours.as_mut_ptr(), libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, ours.as_ptr(), std::ptr::null_mut());
        libc::raise(libc::SIGTERM);
        ours.assume_init()
    };
    let done = steps(&machine, &config, false).apply(&control(&machine));
    let mut signal = 0;
    // SAFETY: a valid set; it came, so nothing waits.
    unsafe { libc::sigwait(&raw const ours, &raw mut signal) };
    assert_eq!(signal, libc::SIGTERM, "it is not lost");
    let words = done.unwrap_err().to_string();
    assert!(words.contains("are as they were: a signal"), "{words}");
    assert_eq!(machine.attribute("core0", "exhaust").trim(), "fail");
}

/// A group that was removed can't come back: it is named. `b` can't be removed,
/// where there is no module: its directory is not empty. `c` went by itself.
#[test]
fn what_was_removed_before_a_refusal_is_named() {
    let machine = loaded();
    for name in ["a", "b", "c"] {
        machine.group(name, "6", "");
        machine.soloist(&format!("groups/{name}/bandwidth"), "off\n");
        machine.soloist(&format!("groups/{name}/mode"), "shareable\n");
    }
    let mut config = Config::now(&control(&machine)).unwrap();
    config.groups.retain(|name, _| name == "core0");
    let plan = steps(&machine, &config, true);
    let of = |name: &str| machine.path(&format!("sys/kernel/config/soloist/groups/{name}"));
    std::fs::remove_dir_all(of("c")).unwrap();
    std::fs::remove_dir_all(of("a")).unwrap();
    std::fs::create_dir(of("a")).unwrap();
    let why = plan.apply(&control(&machine)).unwrap_err().to_string();
    let wanted = "as they were but that groups/a is gone: rmdir groups/b";
    assert!(why.contains(wanted), "{why}");
    std::fs::remove_dir_all(of("b")).unwrap();
    plan.apply(&control(&machine)).unwrap();
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, words) in [
        ("[groups.a]\nbank_set = '0'", "bank_set"),
        ("[groups.a]\nmode = 'both'", "line 2"),
        ("[groups.a]\nreserve = '1X'", "[groups.a] reserve"),
        ("[groups.a]\nbandwidth = '1MB/s'", "without cpus"),
        (
            "[groups.a]\nbandwidth = 'x'\ncpus = '0'",
            "[groups.a] bandwidth",
        ),
        ("[rules.a]\ncolors = 1", "path"),
        ("[rules.a]\npath = '/x'\nuid = 'no-such-user'", "line 3"),
        ("[cpus]\nx = '1MB/s'", "[cpus] x"),
        ("[cpus]\n01 = '1MB/s'", "[cpus] 01"),
        ("[groups.'a b']\nbank_sets = '0'", "[groups.\"a b\"]"),
        ("[groups.'../x']", "is no name"),
        ("[groups.a]\ncgroup = 'video'", "[groups.a] cgroup"),
        (
            "[groups.a]\nbandwidth = '1MB/s'\ncpus = 'x'",
            "[groups.a] cpus",
        ),
        ("[rules.'/']\npath = '/x'", "is no name"),
        ("[rules.a]\npath = 'x'", "[rules.a] path"),
        ("[rules.a]\npath = '/x'\ncolors = 0", "[rules.a] colors"),
        ("[rules.a]\npath = '/x'\nlimit = 0", "[rules.a] limit"),
    ] {
        let why = Config::parse(text).unwrap_err();
        assert!(why.to_string().contains(words), "{text}: {why}");
    }
    let machine = guarded();
    machine.soloist("guard/settings", FRESH);
    machine.soloist("guard/cpu1/bandwidth", "off\n");
    machine.soloist("guard/cpu1/stats", "stops 0\n");
    let map = AddrMap::parse(MAP).unwrap();
    // What only the machine and its map can tell.
    for (text, words) in [
        ("[groups.a]\nbank_sets = '99'", "[groups.a] bank_sets 99"),
        (
            "[guard]\nrmin = '5'",
            "[guard] rmin: no such setting (did you mean \"r_min\"?)",
        ),
        ("[cpus]\n9 = '1MB/s'", "[cpus]: there is no CPU 9"),
        (
            "[groups.a]\nbandwidth = '1MB/s'\ncpus = '1-2'",
            "[groups.a] cpus: there is no CPU 2",
        ),
        (
            "[rules.a]\npath = '/x'\ncolors = 99",
            "[rules.a] colors 99: small has 16",
        ),
    ] {
        let config = Config::parse(text).unwrap();
        let why = plan(&config, Some(&control(&machine)), &map, false).unwrap_err();
        assert!(why.to_string().contains(words), "{text}: {why}");
    }
}

/// The steps as they are printed.
fn told(steps: &Steps) -> Vec<String> {
    steps.steps.iter().map(ToString::to_string).collect()
}

/// A processor has one reservation, and their sum has a limit: what changes
/// hands is given up first.
#[test]
fn reservations_and_cgroups_change_hands() {
    let machine = guarded();
    machine.soloist("guard/settings", FRESH);
    for (cpu, text) in [(0, "off"), (1, "off"), (2, "7000000 reclaim=1"), (3, "off")] {
        machine.soloist(&format!("guard/cpu{cpu}/bandwidth"), text);
        machine.soloist(&format!("guard/cpu{cpu}/stats"), "stops 0\n");
    }
    for (name, sets, cpus, cgroup) in [("left", "4", "0", "/a"), ("right", "6", "3", "/b")] {
        machine.group(name, sets, "");
        let reserved = format!("5000000 reclaim=1 cpus={cpus}\n");
        machine.soloist(&format!("groups/{name}/bandwidth"), &reserved);
        machine.soloist(&format!("groups/{name}/cgroup"), cgroup);
    }
    let mut config = Config::now(&control(&machine)).unwrap();
    assert_eq!(config.cpus["2"], "7MB/s");
    for (name, cpus, cgroup) in [("left", "3", "/b"), ("right", "0", "/a")] {
        let group = config.groups.get_mut(name).unwrap();
        (group.cpus, group.cgroups) = (Some(cpus.to_owned()), vec![cgroup.to_owned()]);
    }
    let swap = steps(&machine, &config, false);
    assert_eq!(
        told(&swap),
        [
            "  groups/left/bandwidth: 5000000 cpus=0 -> off",
            "  groups/right/bandwidth: 5000000 cpus=3 -> off",
            "  groups/left/cgroup: /a -> ",
            "  groups/right/cgroup: /b -> ",
            "  groups/left/bandwidth: off -> 5000000 cpus=3",
            "  groups/left/cgroup: /b",
            "  groups/right/bandwidth: off -> 5000000 cpus=0",
            "  groups/right/cgroup: /a",
        ]
    );
    // One of several goes to another group; those that stay are not given up.
    machine.soloist("groups/left/cgroup", "/c\n/a\n");
    let group = config.groups.get_mut("left").unwrap();
    group.cgroups = vec!["/c".to_owned()];
    let mut handed = told(&steps(&machine, &config, false));
    handed.retain(|step| step.contains("cgroup"));
    assert_eq!(
        handed,
        [
            "  groups/left/cgroup: /a, /c -> /c",
            "  groups/right/cgroup: /b -> /a",
        ]
    );
    machine.soloist("groups/left/cgroup", "/a\n");
    // Less can be reserved: that is said when less is.
    let mut less = Config::now(&control(&machine)).unwrap();
    less.guard.insert("r_min".to_owned(), "6".to_owned());
    less.groups.remove("left");
    less.cpus.clear();
    let pruned = told(&steps(&machine, &less, true));
    assert_eq!(
        pruned,
        [
            "  groups/left/bandwidth: 5000000 cpus=0 -> off",
            "  guard/cpu2/bandwidth: 7000000 -> off",
            "  guard/settings: r_min 0 -> 6",
            "- groups/left",
        ]
    );
    let kept = steps(&machine, &less, false);
    assert_eq!(kept.others, ["guard/cpu2", "groups/left"]);
}

/// A group that is pruned goes last, its colours before.
#[test]
fn colors_of_a_pruned_group_are_taken_over() {
    let machine = loaded();
    machine.soloist("groups/core0/reserve", "4096\n");
    let text = "[groups.other]\nbank_sets = '3'\nmode = 'exclusive'";
    let config = Config::parse(text).unwrap();
    let all = told(&steps(&machine, &config, true));
    assert_eq!(
        all[..5],
        [
            "  groups/core0/reserve: 4096 -> 0",
            "  groups/core0/bank_set: 2-3 -> ",
            "+ groups/other",
            "  groups/other/bank_set: 3",
            "  groups/other/mode: shareable -> exclusive",
        ]
    );
    let apart = Config::parse(&text.replace("'3'", "'5'")).unwrap();
    let kept = told(&steps(&machine, &apart, true));
    assert!(
        !kept.iter().any(|step| step.contains("core0/bank_set")),
        "{kept:?}"
    );
}

#[test]
fn a_rate_in_equal_parts_is_true_already() {
    let machine = loaded();
    machine.soloist("groups/core0/bandwidth", "99999999 reclaim=1 cpus=0-2\n");
    let mut config = Config::now(&control(&machine)).unwrap();
    let group = &config.groups["core0"];
    assert_eq!(group.bandwidth.as_deref(), Some("100MB/s"));
    assert_eq!(told(&steps(&machine, &config, false)), [""; 0]);
    group_rate(&mut config, "100000001");
    assert_eq!(told(&steps(&machine, &config, false)), [""; 0]);
    group_rate(&mut config, "100000002");
    assert_eq!(
        told(&steps(&machine, &config, false)),
        ["  groups/core0/bandwidth: 100000000 cpus=0-2 -> 100000002 cpus=0-2"]
    );
}

fn group_rate(config: &mut Config, rate: &str) {
    config.groups.get_mut("core0").unwrap().bandwidth = Some(rate.to_owned());
}

#[test]
fn without_a_module_all_is_to_be_done() {
    let text = "[guard]\nr_min = '9'\n[groups.a]\nbank_sets = '1'\n[rules.b]\npath = '/x'";
    let map = AddrMap::parse(MAP).unwrap();
    let plan = plan(&Config::parse(text).unwrap(), None, &map, true).unwrap();
    assert_eq!(
        told(&plan)[..4],
        [
            "  guard/settings: r_min 9",
            "+ groups/a",
            "  groups/a/bank_set: 1",
            "+ rules/b",
        ]
    );
}

/// Each is written once: what the kernel says of it then is the same.
#[test]
fn what_is_true_in_other_words_is_left_alone() {
    let machine = guarded();
    machine.soloist("guard/settings", FRESH);
    machine.soloist("groups/core0/cgroup", "/a.slice\n");
    machine.soloist("rules/video/path", "/usr/bin/x264 \n");
    machine.soloist("rules/video/uid", "7\n");
    let saved = Config::now(&control(&machine)).unwrap();
    assert_eq!(saved.rules["video"].path, "/usr/bin/x264 ");
    let group = "cgroup = ['/a.slice', '/a.slice']\nbandwidth = '500MB/s'\ncpus = '0-1'\n";
    let text = format!(
        "[guard]\nperiod_us = '+01000'\n\
         [groups.core0]\nbank_sets = '3,2'\nmode = 'exclusive'\n{group}\
         [rules.video]\npath = '/usr/bin/x264 '\nuid = '007'\ncolors = 2\nuser_limit = 3\n"
    );
    let config = Config::parse(&text).unwrap();
    assert_eq!(told(&steps(&machine, &config, false)), [""; 0]);
}

/// The kernel takes a line for a cgroup.
#[test]
fn a_cgroup_is_one_line() {
    let text = "[groups.a]\nbank_sets = '0'\ncgroup = \"/a.slice\\n/b.slice\"\n";
    let why = Config::parse(text).unwrap_err().to_string();
    assert!(
        why.contains("[groups.a] cgroup: \"/a.slice\\n/b.slice\""),
        "{why}"
    );
}

/// Two that are applied at once leave one of them, whole.
#[test]
fn two_are_applied_one_after_the_other() {
    let machine = loaded();
    machine.dir("sys/module/soloist");
    machine.soloist("groups/core0/bandwidth", "off\n");
    let of = |sets: &str, exhaust: &str, text: &str, reserve: &str| {
        format!(
            "[groups.core0]\nbank_sets = '{sets}'\nexhaust = '{exhaust}'\n\
             text = '{text}'\nreserve = '{reserve}'\n"
        )
    };
    let texts = [
        of("0", "grow", "all", "4K"),
        of("1", "spill", "shared", "8K"),
    ];
    let configs = texts.map(|text| Config::parse(&text).unwrap());
    for turn in 0..50 {
        std::thread::scope(|scope| {
            for config in &configs {
                scope.spawn(|| {
                    let wanted = Wanted {
                        config,
                        map: None,
                        prune: false,
                        force: false,
                    };
                    let host = machine.host();
                    let transaction = Transaction::new(wanted, &host).unwrap();
                    transaction.apply(&|_| ()).unwrap();
                });
            }
        });
        let now = &Config::now(&control(&machine)).unwrap().groups["core0"];
        let is_whole = configs.iter().any(|config| config.groups["core0"] == *now);
        assert!(is_whole, "{turn}: {now:?}");
    }
}

/// The map is loaded first: it goes back as well, as it was written. Where there was none, one
/// is there now. `a` can't be written, as in [`a_refusal_takes_everything_back`].
#[test]
fn a_refusal_takes_the_map_back() {
    let refused = |before: &str| {
        let machine = loaded();
        machine.dir("sys/module/soloist");
        let interface = machine.path("sys/kernel/config/soloist");
        std::fs::remove_dir_all(interface.join("groups/core0")).unwrap();
        std::fs::remove_dir_all(interface.join("rules/video")).unwrap();
        machine.soloist("map", before);
        let config = Config::parse("[groups.a]\nbank_sets = '0'\n").unwrap();
        let wanted = Wanted {
            config: &config,
            map: Some(AddrMap::parse(&MAP.replace("small", "other")).unwrap()),
            prune: false,
            force: false,
        };
        let host = machine.host();
        let transaction = Transaction::new(wanted, &host).unwrap();
        let why = transaction.apply(&|_| ()).unwrap_err().to_string();
        assert!(!interface.join("groups/a").exists());
        (why, machine.read("sys/kernel/config/soloist/map"))
    };
    let before = format!("# mine\n{MAP}");
    let (why, map) = refused(&before);
    assert_eq!(map, before, "{why}");
    assert!(!why.contains("stays"), "{why}");
    let (why, map) = refused("\n");
    assert!(map.contains("name other"), "{map}");
    let wanted = "but the map of other stays loaded: there was none before";
    assert!(why.contains(wanted), "{why}");
}

/// Wherever it was killed, the next one makes all of the file true.
#[test]
fn what_was_killed_midway_is_finished_by_the_next() {
    let text = "[groups.core0]\nbank_sets = '4-5'\nmode = 'exclusive'\nbandwidth = '100MB/s'\n\
                cpus = '2'\ncgroup = '/b.slice'\n\
                [groups.core1]\nbank_sets = '2-3'\nmode = 'exclusive'\nreserve = '8K'\n\
                bandwidth = '200MB/s'\ncpus = '0-1'\ncgroup = '/a.slice'\n\
                [rules.video]\npath = '/usr/bin/x265'\ncolors = 3\nuser_limit = 3\n";
    let wanted = Config::parse(text).unwrap();
    let before = || {
        let machine = guarded();
        machine.soloist("guard/settings", FRESH);
        machine.group("core1", "4-5", "");
        machine.soloist("groups/core1/bandwidth", "300000000 reclaim=1 cpus=2\n");
        machine.soloist("groups/core0/cgroup", "/a.slice\n");
        machine.soloist("groups/core1/cgroup", "/b.slice\n");
        machine
    };
    let all = steps(&before(), &wanted, false).steps;
    assert!(all.len() > 12, "{all:?}");
    for done in 0..=all.len() {
        let machine = before();
        let apply = |steps: &[Step]| {
            let steps = Steps {
                steps: steps.to_vec(),
                others: Vec::new(),
            };
            steps.apply(&control(&machine)).unwrap();
        };
        apply(&all[..done]);
        apply(&steps(&machine, &wanted, false).steps);
        let left = steps(&machine, &wanted, false).steps;
        assert_eq!(left, [], "after {done} of {all:?}");
    }
}
