//! From what a kernel's trace says ([`event`](crate::event)) to a
//! timeline of the tasks that are watched.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{parse, Event, Line, Parsed, State};
use crate::timeline::{Row, Timeline};
use crate::track::{Timing, Track};
use crate::watch::{kept_name, Watch};

/// Periods that an excerpt of a record is long.
const EXCERPT_PERIODS: u64 = 8;

/// Reads a trace, line by line.
#[derive(Debug)]
pub struct Observer {
    watch: Watch,
    origin_ps: u64,
    tasks: Vec<Observed>,
    /// Threads that were made, or began another program, while we watched.
    born: BTreeSet<u32>,
    /// Where a thread stands in `tasks`.
    place: BTreeMap<u32, usize>,
    stops: BTreeMap<u32, Vec<(u64, u64)>>,
    stopped: BTreeMap<u32, u64>,
    lost: u64,
    unread: u64,
}

/// A task that was seen.
#[derive(Debug)]
struct Observed {
    pid: u32,
    name: String,
    track: Track,
}

/// A task's part in a [`Record`], in the order of the timeline's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Thread id.
    pub pid: u32,
    /// The timing of its jobs.
    pub timing: Option<Timing>,
    /// When it ended in the record, picoseconds.
    pub ended_ps: Option<u64>,
    /// Times that it could have gone on, but what is as urgent or more ran.
    pub preempted: u64,
    /// Times that it gave way to another of its real-time priority.
    pub yielded: u64,
    /// Time that its scheduling class held it back, picoseconds; the row's throttled time
    /// contains it.
    pub held_ps: u64,
    /// Times that it continued on another core.
    pub migrated: u64,
}

/// A record of what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Jobs; times from the origin on.
    pub timeline: Timeline,
    /// More of each task, by row.
    pub tasks: Vec<Seen>,
    /// Events that the trace says are lost; there may be more.
    pub lost: u64,
    /// Lines that should have been understood.
    pub unread: u64,
}

impl Record {
    /// From when to when an excerpt shows something, picoseconds: eight of the
    /// longest period, around the first miss if there is one; all where nobody has
    /// a period. Jobs that were released before `skip_ps` don't count.
    #[must_use]
    pub fn excerpt(&self, skip_ps: u64) -> (u64, u64) {
        let end = self.timeline.end_ps;
        let periods = self.tasks.iter().filter_map(|t| t.timing);
        let Some(longest) = periods.map(|t| t.period_ps).max() else {
            return (0, end);
        };
        let jobs = self.timeline.jobs.iter();
        let counted = jobs.filter(|j| j.deadline_ps.is_some() && j.release_ps >= skip_ps);
        let mut counted = counted.peekable();
        let begin = counted.peek().map_or(0, |job| job.release_ps);
        let miss = counted.find(|job| job.missed());
        let from = miss.map_or(begin, |job| {
            job.release_ps.saturating_sub(longest).max(begin)
        });
        (from, (from + EXCERPT_PERIODS * longest).min(end))
    }
}

impl Observer {
    /// Begins; `origin_ps` is the trace clock's time that becomes 0.
    #[must_use]
    pub fn new(watch: Watch, origin_ps: u64) -> Self {
        let names = watch.names.into_iter();
        let names = names.map(|(name, timing)| (kept_name(&name), timing));
        Self {
            watch: Watch {
                names: names.collect(),
                ..watch
            },
            origin_ps,
            tasks: Vec::new(),
            born: BTreeSet::new(),
            place: BTreeMap::new(),
            stops: BTreeMap::new(),
            stopped: BTreeMap::new(),
            lost: 0,
            unread: 0,
        }
    }

    /// Watches a thread too, by its id.
    pub fn watch_thread(&mut self, id: u32, timing: Option<Timing>) {
        self.watch.threads.insert(id, timing);
    }

    /// Reads the next line.
    pub fn read(&mut self, line: &str) {
        match parse(line) {
            Parsed::Line(line) => self.take(&line),
            Parsed::Lost(events) => self.lost += events.max(1),
            Parsed::Unread => self.unread += 1,
            Parsed::Other => {}
        }
    }

    fn take(&mut self, line: &Line) {
        let at = line.at_ps.saturating_sub(self.origin_ps);
        match line.event {
            Event::Switch {
                prev,
                state,
                next,
                prev_name,
                next_name,
            } => {
                if let Some(track) = self.track(prev, prev_name, at) {
                    track.leaves(at, state);
                }
                if state == State::Dead {
                    // The kernel may give its id to another.
                    self.place.remove(&prev);
                    self.born.remove(&prev);
                    self.watch.threads.remove(&prev);
                }
                if let Some(track) = self.track(next, next_name, at) {
                    track.runs(at, line.cpu);
                }
            }
            Event::Wake { pid, name, cpu } => {
                if let Some(track) = self.track(pid, name, at) {
                    track.wakes(at, cpu);
                }
            }
            Event::Fork { parent, child } => {
                self.born.insert(child);
                if !self.watch.children {
                    return;
                }
                if let Some(&timing) = self.watch.threads.get(&parent) {
                    self.watch.threads.insert(child, timing);
                }
            }
            Event::Rename { pid, name } => {
                let known = self.place.get(&pid).copied();
                if let Some(place) = known.filter(|&p| self.tasks[p].name != name) {
                    self.renamed(place, name, at);
                }
                if known.is_none() && self.watch.names.contains_key(name) {
                    self.born.insert(pid);
                }
            }
            Event::Exit { pid } => {
                if let Some(&place) = self.place.get(&pid) {
                    self.tasks[place].track.ends(at);
                }
            }
            Event::Stop { cpu } => {
                self.stopped.insert(cpu, at);
            }
            Event::Go { cpu, stood_ps } => {
                let since = self.stopped.remove(&cpu);
                let since = since.unwrap_or(at.saturating_sub(stood_ps));
                self.stops.entry(cpu).or_default().push((since, at));
            }
        }
    }

    /// The watched task with this id; it may have another name than before.
    fn track(&mut self, pid: u32, name: &str, at: u64) -> Option<&mut Track> {
        if pid == 0 {
            return None;
        }
        let known = self.place.get(&pid).copied();
        if let Some(place) = known.filter(|&p| self.tasks[p].name != name) {
            self.renamed(place, name, at);
        }
        match self.place.get(&pid) {
            Some(&place) => Some(&mut self.tasks[place].track),
            None => self.begin(pid, name),
        }
    }

    /// A thread that is watched by its id is the same under its new name. What a command starts
    /// is another program then, which has begun in earnest: it is followed anew. One that is
    /// watched by its name is the task no longer. The jobs of these two end here.
    fn renamed(&mut self, place: usize, name: &str, at: u64) {
        let task = &mut self.tasks[place];
        let timing = self.watch.threads.get(&task.pid);
        if timing.is_some() && !self.watch.children {
            name.clone_into(&mut task.name);
            return;
        }
        task.track.ends(at);
        match timing.filter(|_| !task.track.tells()) {
            // Nobody asks what a shell did between fork(2) and execve(2).
            Some(&timing) => {
                name.clone_into(&mut task.name);
                task.track = Track::new(timing, true);
            }
            None => {
                self.place.remove(&task.pid);
                self.born.insert(task.pid);
            }
        }
    }

    /// Follows a thread from here on, if it is watched.
    fn begin(&mut self, pid: u32, name: &str) -> Option<&mut Track> {
        let by_id = self.watch.threads.get(&pid);
        let timing = *by_id.or_else(|| self.watch.names.get(name))?;
        if self.watch.except.iter().any(|except| except == name) {
            return None;
        }
        self.place.insert(pid, self.tasks.len());
        self.tasks.push(Observed {
            pid,
            name: name.to_owned(),
            track: Track::new(timing, self.born.contains(&pid)),
        });
        self.tasks.last_mut().map(|task| &mut task.track)
    }

    /// Ends; `end_ps` by the trace's clock.
    #[must_use]
    pub fn finish(mut self, end_ps: u64) -> Record {
        let end = end_ps.saturating_sub(self.origin_ps);
        for (cpu, since) in self.stopped {
            self.stops.entry(cpu).or_default().push((since, end));
        }
        let except = &self.watch.except;
        self.tasks.retain(|task| !except.contains(&task.name));
        self.tasks
            .sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
        let names: Vec<String> = self.tasks.iter().map(|t| t.name.clone()).collect();
        let mut record = Record {
            timeline: Timeline {
                end_ps: end,
                ..Timeline::default()
            },
            tasks: Vec::new(),
            lost: self.lost,
            unread: self.unread,
        };
        for (
            number,
            Observed {
                pid,
                name,
                mut track,
            },
        ) in self.tasks.into_iter().enumerate()
        {
            let ended_ps = track.ended_ps;
            let alone = names.iter().filter(|other| **other == name).count() == 1;
            let jobs = track.finish(end).into_iter();
            record.timeline.jobs.extend(jobs.map(|mut job| {
                job.task = number;
                job
            }));
            record.timeline.rows.push(Row {
                name: if alone { name } else { format!("{name}-{pid}") },
                cores: track.cores.iter().copied().collect(),
                throttled: track.throttled(&self.stops),
            });
            record.tasks.push(Seen {
                pid,
                timing: track.timing,
                ended_ps,
                preempted: track.preempted,
                yielded: track.yielded,
                held_ps: track.held.iter().map(|(from, to)| to - from).sum(),
                migrated: track.migrated,
            });
        }
        let jobs = &mut record.timeline.jobs;
        jobs.sort_by_key(|j| (j.release_ps, j.task));
        record
    }
}
