//! Processors that a user names, in the order in which they are named.

use soloist_core::{cpu_list, NumList};

use crate::machine::host::Host;
use crate::machine::task::allowed_cpus;
use crate::machine::topology;
use crate::HostError;

/// The processors of `list`, in its order, each once; without a list all that this process
/// may use.
///
/// # Errors
/// When the list can't be read or is empty, or when it names one that this machine lacks.
pub fn named_cpus(host: &Host, list: Option<&str>) -> Result<Vec<u32>, HostError> {
    let Some(list) = list else {
        return Ok(allowed_cpus().iter().collect());
    };
    let wrong = |why: String| HostError::Request(format!("--cpus {list}: {why}"));
    let parse = |part: &str| cpu_list(part).map_err(|e| wrong(e.to_string()));
    parse(list)?;
    let mut cpus: Vec<u32> = Vec::new();
    for part in list.split(',') {
        for cpu in parse(part)?.iter() {
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
        }
    }
    if cpus.is_empty() {
        return Err(wrong("it names no CPU".to_owned()));
    }
    let online = host.text("/sys/devices/system/cpu/online");
    let Some(online) = online.and_then(|text| cpu_list(&text).ok()) else {
        return Ok(cpus);
    };
    let missing: NumList = cpus
        .iter()
        .copied()
        .filter(|&cpu| !online.contains(cpu))
        .fold(NumList::new(soloist_core::MAX_CPUS), |mut all, cpu| {
            all.insert(cpu);
            all
        });
    match missing.iter().count() {
        0 => Ok(cpus),
        n => Err(wrong(format!(
            "there is no CPU {missing}{}; this machine has {online}",
            if n > 1 { " among them" } else { "" }
        ))),
    }
}

/// How many processors the memory node of `cpu` has; 0 where the kernel does not say.
#[must_use]
pub fn processors_beside(host: &Host, cpu: u32) -> usize {
    let nodes = topology(host).cpus_of_nodes();
    let own = nodes.into_iter().find(|cpus| cpus.contains(&cpu));
    own.map_or(0, |cpus| cpus.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// A machine of these processors, a node each list.
    fn machine(nodes: &[&str]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        let system = root.path().join("sys/devices/system");
        std::fs::create_dir_all(system.join("cpu")).unwrap();
        std::fs::write(system.join("cpu/online"), nodes.join(",") + "\n").unwrap();
        for (node, cpus) in nodes.iter().enumerate() {
            let folder = system.join(format!("node/node{node}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("cpulist"), format!("{cpus}\n")).unwrap();
            let row: Vec<&str> = (0..nodes.len())
                .map(|to| if to == node { "10" } else { "20" })
                .collect();
            std::fs::write(folder.join("distance"), row.join(" ")).unwrap();
        }
        let last = nodes.len() - 1;
        std::fs::write(system.join("node/online"), format!("0-{last}\n")).unwrap();
        let host = Host::at(root.path());
        (root, host)
    }

    #[test]
    fn processors_are_in_the_order_that_names_them() {
        let (_root, host) = machine(&["0-5"]);
        let named = |list| named_cpus(&host, Some(list));
        assert_eq!(named("1,0").unwrap(), [1, 0]);
        assert_eq!(named("5,0-2,1").unwrap(), [5, 0, 1, 2]);
        for (list, why) in [
            ("1,,0", "--cpus 1,,0: "),
            ("x", "--cpus x: "),
            ("", "it names no CPU"),
            ("99", "there is no CPU 99; this machine has 0-5"),
            (
                "0,6-7",
                "there is no CPU 6-7 among them; this machine has 0-5",
            ),
        ] {
            let said = named(list).unwrap_err().to_string();
            assert!(said.contains(why), "{list}: {said}");
        }
    }

    #[test]
    fn processors_of_a_node_are_counted() {
        let (_root, host) = machine(&["0-63", "64-127"]);
        assert_eq!(processors_beside(&host, 70), 64);
        let (_root, host) = machine(&["0-3"]);
        assert_eq!(processors_beside(&host, 0), 4);
        assert_eq!(processors_beside(&host, 9), 0);
    }
}
