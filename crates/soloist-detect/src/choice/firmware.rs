//! The firmware's map, asked for through the module.

use soloist_host::control::{ChannelAddress, Control, FirmwareModule, UmcRegister};
use soloist_host::machine::{memory_ranges, Host};
use soloist_host::run::HeldSignals;
use soloist_machine::Trust;

use crate::choice::finding::{about, Candidate, Finding, Source};
use soloist_map::sources::firmware;
use soloist_map::sources::firmware::channel::Channel;
use soloist_map::sources::firmware::zen::{self, Locator, Zen};
use soloist_map::sources::firmware::{umc, Decoder, Values};

/// The firmware behind the module's control interface, until a signal comes.
struct Loaded<'a> {
    control: Control,
    components: Vec<String>,
    signals: &'a HeldSignals,
}

impl Decoder for Loaded<'_> {
    fn components(&self) -> &[String] {
        &self.components
    }

    fn decode(&mut self, addresses: &[u64]) -> Result<Vec<Option<Values>>, String> {
        let ask = || {
            self.control
                .firmware_decode(addresses, self.components.len())
        };
        let values = self.signals.check().and_then(|()| ask());
        values.map_err(|error| error.to_string())
    }
}

/// AMD's library behind the module's control interface, until a signal comes.
struct Library<'a> {
    control: Control,
    signals: &'a HeldSignals,
}

impl Locator for Library<'_> {
    fn locate(&mut self, places: &[ChannelAddress]) -> Result<Vec<Option<u64>>, String> {
        let ask = || self.control.firmware_locate(places);
        let addresses = self.signals.check().and_then(|()| ask());
        addresses.map_err(|error| error.to_string())
    }
}

/// What the firmware was asked for.
enum Asked {
    /// All that a map needs.
    Whole(firmware::Found),
    /// Channels, how many places were not translated, of how many, and why banks are
    /// not known; else they are, by registers.
    Channels(firmware::Found, (usize, usize), Option<String>),
}

pub(crate) fn from_firmware(host: &Host, seed: u64) -> Finding {
    let (found, way, open) = match ask_firmware(host, seed) {
        Err(why) => return Finding::nothing(Source::Firmware, why),
        Ok(Asked::Whole(found)) => (found, "the firmware's translation (ADXL)", None),
        Ok(Asked::Channels(found, lost, why)) => {
            (found, "Linux' library for Zen (amd_atl)", Some((lost, why)))
        }
    };
    let mut says = extent(&found);
    if let Some(((lost, all), why)) = &open {
        let banks = match why {
            Some(why) => format!("channels only ({why})"),
            None => "channels, and banks by registers whose reading no such machine has proved \
                     (soloist map check)"
                .into(),
        };
        says = format!("{banks}, {says}; {lost} of {all} places are not translated");
    }
    let trust = match found.exact {
        true => Trust::Exact,
        false => Trust::Incomplete,
    };
    let mut notes = vec![format!("From {way}: {says}.")];
    notes.extend(found.notes);
    notes.push("Cache colours are not the firmware's to tell: soloist map llc.".into());
    let candidate = Some(Candidate {
        about: about(host, "firmware", trust, &says),
        map: found.map,
        notes,
    });
    let (map, channels) = match open {
        None => (candidate, None),
        Some(_) => (None, candidate),
    };
    Finding {
        from: Source::Firmware,
        found: format!("{trust}: {says}"),
        nodes: found.nodes,
        map,
        channels,
    }
}

/// How far a map from firmware is shown.
fn extent(found: &firmware::Found) -> String {
    let held: usize = found.nodes.iter().map(|node| node.held.0).sum();
    let all: usize = found.nodes.iter().map(|node| node.held.1).sum();
    let mut says = format!(
        "solved from {} translations; {held} of {all} fresh ones are as the map says",
        found.asked
    );
    for node in &found.nodes {
        if let Some(why) = &node.unsolved {
            says.push_str(&format!("; node {} has no map: {why}", node.node));
        } else if node.untranslated > 0 {
            says.push_str(&format!(
                "; node {}: {} addresses are not translated",
                node.node, node.untranslated
            ));
        }
    }
    says
}

/// A register of a channel's memory controller.
fn register(control: &Control, channel: &Channel, at: u32) -> Result<u32, String> {
    let values = control
        .firmware_umc(&[UmcRegister {
            node: channel.node,
            channel: channel.number,
            address: at,
        }])
        .map_err(|error| error.to_string())?;
    let value = values.first().copied().flatten();
    value
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| format!("the memory controller's register {at:#x} can't be read"))
}

fn ask_firmware(host: &Host, seed: u64) -> Result<Asked, String> {
    let control = Control::open(host).map_err(|_| {
        "only the kernel may ask it: load the module (soloist up) and try again".to_owned()
    })?;
    // Else the module that is loaded here would stay.
    let signals = HeldSignals::hold();
    let _asks = FirmwareModule::load(host).map_err(|error| error.to_string())?;
    let components = control
        .firmware_components()
        .map_err(|error| error.to_string())?;
    let memory = memory_ranges(host);
    if !components.is_empty() {
        let mut loaded = Loaded {
            control,
            components,
            signals: &signals,
        };
        let found = firmware::find(&mut loaded, &memory, seed).map_err(|error| error.to_string());
        return found.map(Asked::Whole);
    }
    let none = |why: String| {
        format!("it translates no addresses (no ACPI ADXL here, or in this kernel); {why}")
    };
    let channels = zen::channels(host).map_err(none)?;
    let banks = umc::of_channels(&channels, |channel, at| register(&control, channel, at));
    let library = Library {
        control,
        signals: &signals,
    };
    let mut zen = Zen::new(library, channels);
    let why = match banks {
        Ok(banks) => {
            zen = zen.with_banks(banks);
            None
        }
        Err(why) => Some(why),
    };
    let found = firmware::find(&mut zen, &memory, seed).map_err(|error| none(error.to_string()))?;
    Ok(Asked::Channels(found, zen.untranslated, why))
}
