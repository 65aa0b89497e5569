//! Which processors are threads of one core, and which share their last-level cache. Threads of
//! one core slow each other down without any memory.

use crate::machine::Host;
use soloist_core::cpu_list;

/// Where the kernel tells of processors.
const ROOT: &str = "/sys/devices/system/cpu";
/// Levels of cache at most.
const LEVELS: u32 = 8;

/// One processor of each core, in the order of `cpus`; all of them where that leaves no two.
#[must_use]
pub fn one_of_each_core(host: &Host, cpus: &[u32]) -> Vec<u32> {
    let mut chosen: Vec<u32> = Vec::new();
    for &cpu in cpus {
        let threads = threads(host, cpu);
        if !chosen.iter().any(|other| threads.contains(other)) {
            chosen.push(cpu);
        }
    }
    match chosen.len() < 2 {
        true => cpus.to_vec(),
        false => chosen,
    }
}

/// Says which of these are threads of one core; `None`: no two are.
#[must_use]
pub fn of_one_core(host: &Host, cpus: &[u32]) -> Option<String> {
    let pairs = cpus.iter().enumerate().filter_map(|(at, &cpu)| {
        let threads = threads(host, cpu);
        let other = cpus[at + 1..]
            .iter()
            .find(|other| threads.contains(other))?;
        Some(format!("{cpu} and {other}"))
    });
    let pairs: Vec<String> = pairs.collect();
    (!pairs.is_empty()).then(|| {
        format!(
            "threads of one core slow each other down without any memory: CPUs {}",
            pairs.join(", ")
        )
    })
}

/// The other threads of a processor's core, as far as they are online.
#[must_use]
pub fn siblings(host: &Host, cpu: u32) -> Vec<u32> {
    let all = threads(host, cpu).into_iter();
    all.filter(|&other| other != cpu).collect()
}

/// Of these, the processors whose last-level cache is that of `victim`; all where the kernel does
/// not say.
#[must_use]
pub fn in_cache_of(host: &Host, victim: u32, cpus: &[u32]) -> Vec<u32> {
    let shared = |level| {
        list(
            host,
            &format!("cpu{victim}/cache/index{level}/shared_cpu_list"),
        )
    };
    match (0..LEVELS).rev().find_map(shared) {
        Some(shared) => cpus
            .iter()
            .copied()
            .filter(|cpu| shared.contains(cpu))
            .collect(),
        None => cpus.to_vec(),
    }
}

/// The threads of a processor's core, itself too; it alone where the kernel does not say.
fn threads(host: &Host, cpu: u32) -> Vec<u32> {
    // The second name is that of kernels before 5.2.
    let names = ["core_cpus_list", "thread_siblings_list"];
    let mut lists = names
        .map(|name| list(host, &format!("cpu{cpu}/topology/{name}")))
        .into_iter();
    lists.find_map(|list| list).unwrap_or_else(|| vec![cpu])
}

fn list(host: &Host, file: &str) -> Option<Vec<u32>> {
    let text = host.text(&format!("{ROOT}/{file}"))?;
    Some(cpu_list(&text).ok()?.iter().collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Processors 0 to 7, whose threads and caches are as these lists say.
    fn machine(threads: &[&str], caches: &[&str]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        let write = |cpu: u32, file: &str, of: &str| {
            let file = root
                .path()
                .join(format!("sys/devices/system/cpu/cpu{cpu}/{file}"));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{of}\n")).unwrap();
        };
        for (lists, file) in [
            (threads, "topology/thread_siblings_list"),
            (caches, "cache/index3/shared_cpu_list"),
        ] {
            for of in lists {
                for cpu in cpu_list(of).unwrap().iter() {
                    write(cpu, file, of);
                    write(cpu, "cache/index0/shared_cpu_list", &cpu.to_string());
                }
            }
        }
        let host = Host::at(root.path());
        (root, host)
    }

    #[test]
    fn each_core_gives_one_and_a_cache_those_that_share_it() {
        let (_root, host) = machine(&["0,4", "1,5", "2,6", "3,7"], &["0-1,4-5", "2-3,6-7"]);
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(one_of_each_core(&host, &all), [0, 1, 2, 3]);
        assert_eq!(one_of_each_core(&host, &[6, 2, 1]), [6, 1]);
        assert_eq!(siblings(&host, 2), [6]);
        assert_eq!(in_cache_of(&host, 0, &[1, 2, 3]), [1]);
        assert_eq!(in_cache_of(&host, 2, &[0, 1, 3]), [3]);
        assert_eq!(of_one_core(&host, &[0, 1, 2, 3]), None);
        let said = of_one_core(&host, &[0, 1, 4]).unwrap();
        assert!(said.contains("CPUs 0 and 4"), "{said}");
    }

    /// One core, or a kernel that says nothing: what there is.
    #[test]
    fn where_there_is_no_choice_all_take_part() {
        let (_root, host) = machine(&["0-1"], &[]);
        assert_eq!(one_of_each_core(&host, &[0, 1]), [0, 1]);
        assert!(of_one_core(&host, &[0, 1]).is_some());
        let (_root, host) = machine(&[], &[]);
        assert_eq!(one_of_each_core(&host, &[0, 1, 2]), [0, 1, 2]);
        assert_eq!(in_cache_of(&host, 0, &[1, 2]), [1, 2]);
    }
}
