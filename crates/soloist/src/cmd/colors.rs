//! The colour flags that `run`, `group` and `verify` share.

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use soloist_core::{cpu_list, AddrMap};
use soloist_host::control::{Choice, ColorPlan, ColorRequest, Exhaust, Mode, Text};
use soloist_host::machine::{nearest_memory, node_of_cpu, Host};

/// Which colours, and how many.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Colours")]
pub struct ColorArgs {
    /// Bank sets, a number (`4`: any four free ones), or bank colours, a list (`4-7`; `4,`
    /// is colour 4 only).
    #[arg(long, value_name = "N|LIST")]
    pub colors: Option<Choice>,

    /// Bank colours by bank set, the banks that one page touches: a list.
    #[arg(long, value_name = "LIST", conflicts_with = "colors")]
    pub bank_sets: Option<String>,

    /// Cache (LLC) colours: a number, with `--colors N` or `--mem SIZE`, or a list.
    #[arg(long, value_name = "N|LIST")]
    pub llc: Option<Choice>,

    /// Memory nodes to take colours from; without `--colors`, all their banks.
    #[arg(long, value_name = "LIST")]
    pub node: Option<String>,

    /// Memory that the program needs, such as 512M: take enough colours for that and a
    /// sixteenth more.
    #[arg(long, value_name = "SIZE", value_parser = soloist_core::parse_size)]
    pub mem: Option<u64>,

    /// What to do when the colours have no page left: `fail` (a signal), `grow` (take
    /// another free colour) or `spill` (take any page of the node, and count it).
    /// Default: `grow` without a colour flag, otherwise `fail`. `group set`
    /// keeps the present one.
    #[arg(long, value_name = "HOW", value_parser = exhaust())]
    pub exhaust: Option<Exhaust>,

    /// Give it a private memory controller, if there are enough.
    #[arg(long)]
    pub realtime: bool,
}

impl ColorArgs {
    /// Checked against `map`; what is not said of `exhaust` stays as it is `now`.
    pub fn plan(&self, map: &AddrMap, now: Option<Exhaust>) -> Result<ColorPlan> {
        let mut request = self.as_request();
        request.exhaust = request.exhaust.or(now);
        Ok(request.plan(map)?)
    }

    /// No colour flag was given.
    pub fn is_empty(&self) -> bool {
        let request = ColorRequest {
            near: Vec::new(),
            ..self.as_request()
        };
        request.is_empty()
    }

    /// For a command that is to run on `cpus`, or else on a node that has colours
    /// for it.
    pub fn request(&self, host: &Host, map: &AddrMap, cpus: Option<&str>) -> Result<ColorRequest> {
        let mut near = Vec::new();
        if let (Some(cpus), None) = (cpus, &self.node) {
            let on: Vec<u32> = cpu_list(cpus)?
                .iter()
                .filter_map(|cpu| node_of_cpu(host, cpu))
                .collect();
            near = nearest_memory(host, map, &on);
        }
        Ok(ColorRequest {
            near,
            ..self.as_request()
        })
    }

    fn as_request(&self) -> ColorRequest {
        ColorRequest {
            colors: self.colors.clone(),
            bank_sets: self.bank_sets.clone(),
            llc: self.llc.clone(),
            node: self.node.clone(),
            mem: self.mem,
            realtime: self.realtime,
            exhaust: self.exhaust,
            near: Vec::new(),
        }
    }
}

/// Takes `fail`, `grow`, `spill`.
pub fn exhaust() -> impl TypedValueParser<Value = Exhaust> {
    PossibleValuesParser::new(["fail", "grow", "spill"]).try_map(|text| text.parse::<Exhaust>())
}

/// Takes `private`, `shared`.
pub fn text() -> impl TypedValueParser<Value = Text> {
    PossibleValuesParser::new(["private", "shared", "all"]).try_map(|text| text.parse::<Text>())
}

/// Takes `shareable`, `exclusive`.
pub fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["shareable", "exclusive"]).try_map(|text| text.parse::<Mode>())
}
