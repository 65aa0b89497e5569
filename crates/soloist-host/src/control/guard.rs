//! The guard: bandwidth reserved on processors (docs/reference/guard.md).

use std::fs;

use serde::Serialize;
use soloist_core::cpu_list;

use crate::control::bandwidth::{format_rate, Bandwidth};
use crate::control::group::Group;
use crate::control::interface::{Control, KeyValues};
use crate::control::traffic::check_events_here;
use crate::HostError;

/// The event that counts traffic where nobody has named one (kernel/compat/raw_event.h).
const TRAFFIC: &str = match cfg!(target_arch = "aarch64") {
    true => "bus-accesses",
    false => "LLC-misses",
};

/// What counts as traffic where nobody has said otherwise (kernel/guard/state.c);
/// the event's own line size comes with it.
const COUNTED: [(&str, &str); 3] = [
    ("event", TRAFFIC),
    ("write_event", "none"),
    ("write_r_min", "0"),
];

const NOTHING: [(&str, &str); 3] = [
    ("r_min", "0"),
    ("write_event", "none"),
    ("write_r_min", "0"),
];

/// Settings of a module that was just loaded, all others being 0
/// (kernel/guard/state.c).
const FRESH: [(&str, &str); 8] = [
    ("event", TRAFFIC),
    ("write_event", "none"),
    ("line", "64"),
    ("period_us", "1000"),
    ("ewma", "192"),
    ("sharing", "none"),
    ("count_kernel", "1"),
    ("stop", "anywhere"),
];

/// The guard of a loaded module.
#[derive(Debug, Clone)]
pub struct Guard {
    control: Control,
}

/// All that can be read of the guard.
#[derive(Debug, Clone, Serialize)]
pub struct GuardView {
    /// Settings, as in `guard/settings`.
    pub settings: KeyValues,
    /// Counters of the whole.
    pub stats: KeyValues,
    /// Every possible processor.
    pub cpus: Vec<GuardCpu>,
}

/// One processor.
#[derive(Debug, Clone, Serialize)]
pub struct GuardCpu {
    /// Its number.
    pub cpu: u32,
    /// What is reserved: `off`, or as in `guard/cpuN/bandwidth`.
    pub bandwidth: String,
    /// Counters.
    pub stats: KeyValues,
    /// It is online, has a reservation, and runs without limit: the kernel could not make
    /// it ready, or its counter lost its place.
    pub unregulated: bool,
}

impl Guard {
    /// The guard; refused where the module has none.
    pub fn open(control: &Control) -> Result<Self, HostError> {
        control.read("guard/settings")?;
        Ok(Self {
            control: control.clone(),
        })
    }

    /// Settings.
    pub fn settings(&self) -> Result<KeyValues, HostError> {
        self.control.key_values("guard/settings")
    }

    /// Has nobody set anything?
    pub(crate) fn are_fresh(settings: &KeyValues) -> bool {
        let fresh = |key: &str| FRESH.iter().find(|(name, _)| *name == key);
        settings
            .iter()
            .all(|(key, value)| value == fresh(key).map_or("0", |(_, value)| value))
    }

    /// Changes settings, all of `pairs` or none.
    pub fn set(&self, pairs: &[(&str, String)]) -> Result<(), HostError> {
        let named = pairs.iter().map(|(key, value)| (*key, value.as_str()));
        check_events_here(self.control.host(), named)?;
        let lines: Vec<String> = pairs.iter().map(|(k, v)| format!("{k} {v}")).collect();
        self.control.write("guard/settings", &lines.join("\n"))
    }

    /// Changes settings, then what is reserved on processors (`None`: nothing); all
    /// of it or none.
    pub fn change(
        &self,
        pairs: &[(&str, String)],
        limits: &[(u32, Option<Bandwidth>)],
    ) -> Result<(), HostError> {
        let _alone = self.control.alone()?;
        let before = self.view()?;
        let set = |pairs: &[(&str, String)]| match pairs {
            [] => Ok(()),
            pairs => self.set(pairs),
        };
        set(pairs)?;
        for (at, (cpu, want)) in limits.iter().enumerate() {
            let Err(error) = self.reserve(*cpu, want.as_ref()) else {
                continue;
            };
            for (done, _) in limits[..at].iter().rev() {
                let old = before.cpus.iter().find(|old| old.cpu == *done);
                let old = old.and_then(|old| Bandwidth::of_kernel(&old.bandwidth));
                let _ = self.reserve(*done, old.map(|(bandwidth, _)| bandwidth).as_ref());
            }
            let old = before.settings.iter();
            let old: Vec<_> = old
                .map(|(key, value)| (key.as_str(), value.clone()))
                .collect();
            if !pairs.is_empty() {
                let _ = set(&old);
            }
            return Err(error);
        }
        Ok(())
    }

    /// Numbers of the processors.
    pub fn cpus(&self) -> Result<Vec<u32>, HostError> {
        let path = self.control.path("guard");
        let entries = fs::read_dir(&path).map_err(|e| HostError::io(&path, e))?;
        let mut cpus: Vec<u32> = entries
            .filter_map(Result::ok)
            .filter_map(|e| e.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
            .collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Reads everything.
    pub fn view(&self) -> Result<GuardView, HostError> {
        let online = self.control.host().text("/sys/devices/system/cpu/online");
        let online = online.and_then(|list| cpu_list(&list).ok());
        let is_online = |cpu| online.as_ref().is_none_or(|online| online.contains(cpu));
        let view_cpu = |cpu| {
            let text = self.control.read(&format!("guard/cpu{cpu}/bandwidth"))?;
            let bandwidth = text.trim().to_owned();
            let stats = self.control.key_values(&format!("guard/cpu{cpu}/stats"))?;
            let ready = stats.get("ready").is_none_or(|ready| ready == "1");
            Ok(GuardCpu {
                cpu,
                unregulated: bandwidth != "off" && !ready && is_online(cpu),
                bandwidth,
                stats,
            })
        };
        Ok(GuardView {
            settings: self.settings()?,
            stats: self.control.key_values("guard/stats")?,
            cpus: self
                .cpus()?
                .into_iter()
                .map(view_cpu)
                .collect::<Result<_, HostError>>()?,
        })
    }

    /// Reserves on one processor; `None`: takes its reservation away.
    pub fn reserve(&self, cpu: u32, want: Option<&Bandwidth>) -> Result<(), HostError> {
        let last = self.cpus()?.last().copied().unwrap_or(0);
        if cpu > last {
            return Err(HostError::Request(format!(
                "there is no CPU {cpu}: this machine has CPUs 0-{last}"
            )));
        }
        let text = want.map_or_else(|| "off".to_owned(), Bandwidth::to_string);
        self.control
            .write(&format!("guard/cpu{cpu}/bandwidth"), &text)
    }

    /// Reserves for a group, on `cpus` together; `None`: takes it away.
    pub fn reserve_group(
        &self,
        group: &Group,
        want: Option<(&Bandwidth, &str)>,
    ) -> Result<(), HostError> {
        let text = want.map_or_else(
            || "off".to_owned(),
            |(bandwidth, cpus)| format!("{bandwidth} cpus={cpus}"),
        );
        let file = format!("groups/{}/bandwidth", group.name());
        self.control.write(&file, &text)
    }

    /// Takes all reservations away, those of groups too, and what was set to
    /// count: the next reservation counts traffic, whatever was tried before.
    /// Figures of the machine (`r_min`, `peak`) stay.
    pub fn off(&self) -> Result<(), HostError> {
        self.control
            .each_group(|group| self.reserve_group(group, None))?;
        for cpu in self.cpus()? {
            self.reserve(cpu, None)?;
        }
        let now = self.settings()?;
        let differs = COUNTED
            .iter()
            .any(|(key, value)| now.get(*key).is_some_and(|v| v != value));
        if differs {
            let pairs = COUNTED.map(|(key, value)| (key, value.to_owned()));
            // Without a PMU (a virtual machine) that can't be counted; then
            // nothing can be reserved before somebody says what counts.
            let nothing = || self.set(&NOTHING.map(|(key, value)| (key, value.to_owned())));
            self.set(&pairs).or_else(|_| nothing())?;
        }
        Ok(())
    }
}

impl GuardView {
    /// Why limits do not hold, for people: `CPU 1 is not regulated: it runs without limit`.
    pub fn unregulated(&self) -> Option<String> {
        let cpus = self.cpus.iter().filter(|cpu| cpu.unregulated);
        let cpus: Vec<String> = cpus.map(|cpu| cpu.cpu.to_string()).collect();
        match cpus.as_slice() {
            [] => None,
            [cpu] => Some(format!("CPU {cpu} is not regulated: it runs without limit")),
            cpus => Some(format!(
                "CPUs {} are not regulated: they run without limit",
                cpus.join(", ")
            )),
        }
    }
}

impl GuardCpu {
    /// What is reserved, for people: `500 MB/s write=200 MB/s`.
    pub fn reserved(&self) -> String {
        let rate = |text: &str| text.parse().ok().map(format_rate);
        let words = self.bandwidth.split(' ');
        // What is so unless one says otherwise.
        let words = words.filter(|word| *word != "reclaim=1");
        let word = |word: &str| match word.split_once('=') {
            Some(("write", text)) => rate(text).map(|rate| format!("write {rate}")),
            Some(_) => None,
            None => rate(word),
        };
        let words: Vec<String> = words
            .map(|text| word(text).unwrap_or_else(|| text.to_owned()))
            .collect();
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_shown_in_one_unit() {
        let shown = |bandwidth: &str| {
            let bandwidth = bandwidth.to_owned();
            let stats = KeyValues::new();
            GuardCpu {
                cpu: 0,
                bandwidth,
                stats,
                unregulated: false,
            }
            .reserved()
        };
        assert_eq!(shown("off"), "off");
        assert_eq!(
            shown("500000000 write=1200000 reclaim=0"),
            "500 MB/s, write 1.2 MB/s, reclaim=0"
        );
        assert_eq!(shown("500000000 reclaim=1"), "500 MB/s");
        assert_eq!(shown("weight=3"), "weight=3");
        assert_eq!(shown("4096"), "4.096 kB/s");
    }
}
