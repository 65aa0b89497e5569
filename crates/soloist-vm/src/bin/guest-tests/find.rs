//! The tests in tests/guest that are wanted.

use std::fs;
use std::path::{Path, PathBuf};

use soloist_vm::{Row, TestPlan};

use super::{Args, Failure};

/// How many of `tests` the kernel of a row runs.
pub fn tests_of(plan: &TestPlan, row: &Row, tests: &[(String, PathBuf)]) -> usize {
    let runs = |(test, _): &&(String, PathBuf)| plan.runs(&row.kernel, test);
    tests.iter().filter(runs).count()
}

/// Name and file of every test, in order; a test that also runs on busy machines once
/// for each.
pub fn find_tests(
    args: &Args,
    root: &Path,
    plan: &TestPlan,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    let only = &args.tests;
    let long = args.all || args.long || only.iter().any(|test| test.contains('@'));
    let ways = |name: &str, file: &Path, tests: &mut Vec<(String, PathBuf)>| {
        let ways = plan.ways(name, long).into_iter();
        tests.extend(ways.map(|way| (way, file.to_owned())));
    };
    let mut tests = Vec::new();
    for area in sorted_dir(&root.join("tests/guest"))? {
        let Some(area_name) = area.file_name().and_then(|n| n.to_str()).map(str::to_owned) else {
            continue;
        };
        if !area.is_dir() || area_name == "lib" {
            continue;
        }
        for file in sorted_dir(&area)? {
            let Some(stem) = file.file_stem().and_then(|n| n.to_str()) else {
                continue;
            };
            let name = format!("{area_name}/{stem}");
            let built = root.join("build/tests/guest").join(&name);
            match file.extension().and_then(|e| e.to_str()) {
                Some("c") if built.exists() => ways(&name, &built, &mut tests),
                Some("c") => return Err(format!("{name} is not built: make -C tests/guest").into()),
                Some("sh") => ways(&name, &file, &mut tests),
                _ => {}
            }
        }
    }
    let wanted = |name: &str| {
        only.is_empty()
            || only.iter().any(|o| {
                o == name
                    || name
                        .strip_prefix(o.as_str())
                        .is_some_and(|r| r.starts_with(['/', '@']))
            })
    };
    if let Some(unknown) = only.iter().find(|o| {
        !tests
            .iter()
            .any(|(n, _)| n == *o || n.starts_with(&format!("{o}/")))
    }) {
        let known: Vec<&str> = tests.iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!("no test '{unknown}' (known: {})", known.join(", ")).into());
    }
    tests.retain(|(name, _)| wanted(name));
    Ok(tests)
}

fn sorted_dir(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
