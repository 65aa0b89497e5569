//! Runs the detector on simulated memory, thousands of times, and counts how
//! often it is right, says that it isn't sure, or is wrong and sure.
//!
//! `recovery [FIRST..END] [KEY=VALUE...]` takes one run a seed, each with a map,
//! a layout of memory, a pool of pages and a noise of its own, and prints a table
//! by each of them and how often what is said to be certain is so. `map=`,
//! `layout=`, `pool=` and `noise=` keep one of them fixed; `show=wrong` (or `all`)
//! prints what was found. `save=FILE` keeps a line of JSON for every run and
//! leaves out those that are there: thousands of runs can be had in pieces, and
//! `minutes=N` ends a piece. It fails where a run was wrong and sure.

mod record;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::iter::{ParallelBridge, ParallelIterator};
use record::{Record, Table};
use run::Run;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut seeds = 0..100;
    let mut fixed = BTreeMap::new();
    for arg in std::env::args().skip(1) {
        if let Some((key, value)) = arg.split_once('=') {
            fixed.insert(key.to_owned(), value.to_owned());
        } else if let Some((first, end)) = arg.split_once("..") {
            seeds = first.parse()?..end.parse()?;
        } else {
            return Err(format!("`{arg}`: expected FIRST..END or KEY=VALUE").into());
        }
    }
    let save = fixed.remove("save");
    let show = fixed.remove("show").unwrap_or_default();
    let minutes: u64 = fixed
        .remove("minutes")
        .map_or(Ok(u64::MAX / 60), |m| m.parse())?;
    Run::new(0, &fixed)?;

    let mut done = BTreeSet::new();
    let mut table = Table::default();
    if let Some(path) = save.as_ref().filter(|path| Path::new(path).exists()) {
        for line in BufReader::new(File::open(path)?).lines() {
            let record: Record = serde_json::from_str(&line?)?;
            done.insert(record.seed);
            table.add(&record);
        }
    }
    let open = |path: &String| OpenOptions::new().create(true).append(true).open(path);
    let out = save.as_ref().map(open).transpose()?;
    let kept = Mutex::new((table, out));
    let until = Instant::now() + Duration::from_secs(minutes.min(1 << 30) * 60);
    let seeds = seeds
        .take_while(|_| Instant::now() < until)
        .filter(|seed| !done.contains(seed));
    seeds.par_bridge().try_for_each(|seed| {
        let run = Run::new(seed, &fixed)?;
        let (record, story) = run.go();
        if show == "all" || (show == "wrong" && record.is_wrong()) {
            println!("seed {seed}: {run:?}\n{story}");
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.add(&record);
        if let Some(out) = &mut kept.1 {
            writeln!(out, "{}", serde_json::to_string(&record)?)?;
        }
        Ok::<(), Failure>(())
    })?;
    let table = kept.into_inner().unwrap_or_else(PoisonError::into_inner).0;
    print!("{table}");
    match table.wrong {
        0 => Ok(()),
        wrong => Err(format!("{wrong} runs were wrong, and nothing said so").into()),
    }
}
