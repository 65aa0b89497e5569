//! A configuration is made true in order: all that can be refused is refused first, then the
//! module and the map are loaded, then the steps are taken, all or none.

use soloist_core::AddrMap;

use crate::config::difference::plan;
use crate::config::file::Config;
use crate::config::steps::Steps;
use crate::control::{load, wants_map, Control, ModuleChoice};
use crate::machine::Host;
use crate::HostError;

/// A configuration and how to apply it.
pub struct Wanted<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The map of the machine that it names.
    pub map: Option<AddrMap>,
    /// Remove what the configuration does not name.
    pub prune: bool,
    /// Remove groups although they have tasks.
    pub force: bool,
}

/// A wanted configuration beside what is loaded.
pub struct Transaction<'a> {
    wanted: Wanted<'a>,
    host: &'a Host,
    control: Option<Control>,
    /// The map that is loaded.
    loaded: Option<AddrMap>,
}

impl<'a> Transaction<'a> {
    /// Looks at what is loaded on `host`.
    ///
    /// # Errors
    /// Where only root may see it.
    pub fn new(wanted: Wanted<'a>, host: &'a Host) -> Result<Self, HostError> {
        let control = Control::open(host).ok();
        let loaded = match control.as_ref().map(Control::map) {
            Some(Err(error @ HostError::NeedsRoot(_))) => return Err(error),
            loaded => loaded.and_then(Result::ok),
        };
        Ok(Self {
            wanted,
            host,
            control,
            loaded,
        })
    }

    /// The map that will be loaded; `None`: the configuration names no machine, and nothing
    /// is loaded.
    #[must_use]
    pub fn map(&self) -> Option<&AddrMap> {
        self.wanted.map.as_ref().or(self.loaded.as_ref())
    }

    /// The name of the map that is to be loaded first; `None`: it is.
    #[must_use]
    pub fn loads(&self) -> Option<String> {
        let map = self.map().filter(|map| self.loaded.as_ref() != Some(map));
        map.map(AddrMap::name)
    }

    /// Returns in words which part is to be loaded first; `None`: none.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        let map = self.loads().map(|map| format!("module and map of {map}"));
        let module = || self.control.is_none().then(|| "module".to_owned());
        map.or_else(module)
    }

    /// Returns the steps that make the configuration true, and takes none.
    ///
    /// # Errors
    /// When groups hold another map, the machine can't have a value, or a group that would
    /// be removed has tasks.
    pub fn plan(&self) -> Result<Steps, HostError> {
        if let (Some(control), Some(map)) = (&self.control, self.map()) {
            wants_map(control, map)?;
        }
        self.steps(self.control.as_ref())
    }

    /// Loads module and map if need be, and takes all steps or none; those that were taken.
    /// Where none is, the map that was loaded before is again. `say` hears of each part of
    /// loading that takes time.
    ///
    /// # Errors
    /// Those of [`Transaction::plan`], of loading, and what the kernel refuses.
    pub fn apply(&self, say: &dyn Fn(&str)) -> Result<Steps, HostError> {
        if self.map().is_none() && self.wanted.config.needs_map() {
            return Err(HostError::NoMap);
        }
        let before = self.control.as_ref().map(Control::map_text).transpose()?;
        let module = ModuleChoice::default();
        let loaded = load(self.host, &module, self.wanted.map.as_ref(), say)?;
        let control = Control::open(self.host)?;
        let _alone = control.alone()?;
        self.take_steps(&control).map_err(|error| {
            let written = loaded.map.filter(|_| loaded.map_written);
            match written {
                Some(map) => put_back(&control, before.flatten(), map, error),
                None => error,
            }
        })
    }

    fn take_steps(&self, control: &Control) -> Result<Steps, HostError> {
        let steps = self.steps(Some(control))?;
        steps.apply(control)?;
        Ok(steps)
    }

    /// Returns the steps; refuses to remove groups that have tasks, unless forced.
    fn steps(&self, control: Option<&Control>) -> Result<Steps, HostError> {
        let config = self.wanted.config;
        let steps = plan(config, control, self.map(), self.wanted.prune);
        let steps = steps.map_err(|error| config.located(error))?;
        let used = match control.filter(|_| !self.wanted.force) {
            Some(control) => steps.in_use(self.host, control)?,
            None => Vec::new(),
        };
        match used.is_empty() {
            true => Ok(steps),
            false => Err(HostError::InUse(used)),
        }
    }
}

/// Writes the map's text of `before` again in the place of `map`. Returns `error`, and says so
/// where `map` stays.
fn put_back(control: &Control, before: Option<String>, map: String, error: HostError) -> HostError {
    let why = match before.map(|text| control.write("map", &text)) {
        Some(Ok(())) => return error,
        Some(Err(refused)) => refused.to_string(),
        None => "there was none before".to_owned(),
    };
    HostError::MapStays {
        error: Box::new(error),
        map,
        why,
    }
}
