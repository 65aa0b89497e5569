//! What the machine's firmware says of addresses, asked through the module.

use crate::control::interface::Control;
use crate::HostError;

/// An address within a memory channel, as a CPU of the channel's node numbers channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelAddress {
    /// A CPU of the channel's node.
    pub cpu: u32,
    /// The channel's number.
    pub channel: u32,
    /// The address within it.
    pub address: u64,
}

/// A register of a memory controller of AMD's Zen (UMC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UmcRegister {
    /// AMD's number of the node.
    pub node: u32,
    /// The channel's number.
    pub channel: u32,
    /// The register's address.
    pub address: u32,
}

impl Control {
    /// Names of what the machine's firmware translates an address to; empty:
    /// it translates none.
    pub fn firmware_components(&self) -> Result<Vec<String>, HostError> {
        Ok(lines(&self.read("firmware/components")?))
    }

    /// What the firmware says of each address: a value for each component, as
    /// far as it has one; `None` where it does not translate the address.
    pub fn firmware_decode(
        &self,
        addresses: &[u64],
        components: usize,
    ) -> Result<Vec<Option<Vec<Option<u64>>>>, HostError> {
        let mut all = Vec::with_capacity(addresses.len());
        for some in addresses.chunks(addresses_at_once(components)) {
            let words: Vec<String> = some.iter().map(|a| format!("{a:#x}")).collect();
            self.write("firmware/decode", &words.join(" "))?;
            let text = self.read("firmware/decode")?;
            let answers: Option<Vec<_>> = text.lines().map(answer).collect();
            match answers {
                Some(answers) if answers.iter().map(|a| a.0).eq(some.iter().copied()) => {
                    all.extend(answers.into_iter().map(|(_, values)| values));
                }
                _ => return Err(self.not_ours("firmware/decode")),
            }
        }
        Ok(all)
    }

    /// Where addresses within memory channels lie; `None`: not translated.
    pub fn firmware_locate(
        &self,
        places: &[ChannelAddress],
    ) -> Result<Vec<Option<u64>>, HostError> {
        let words = places
            .iter()
            .map(|at| format!("{}:{}:{:#x}", at.cpu, at.channel, at.address));
        self.ask_each("firmware/locate", &words.collect::<Vec<_>>())
    }

    /// What registers of memory controllers hold; `None`: no answer.
    pub fn firmware_umc(&self, registers: &[UmcRegister]) -> Result<Vec<Option<u64>>, HostError> {
        let words = registers
            .iter()
            .map(|at| format!("{}:{}:{:#x}", at.node, at.channel, at.address));
        self.ask_each("firmware/umc", &words.collect::<Vec<_>>())
    }

    fn ask_each(&self, name: &str, asked: &[String]) -> Result<Vec<Option<u64>>, HostError> {
        let mut all = Vec::with_capacity(asked.len());
        for words in asked.chunks(16) {
            self.write(name, &words.join(" "))?;
            let text = self.read(name)?;
            let answer_to = |(line, word): (&str, &String)| {
                let (asked, answer) = line.split_once(' ')?;
                let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
                match answer {
                    _ if asked != word => None,
                    "error" => Some(None),
                    answer => hex(answer).map(Some),
                }
            };
            let answers: Option<Vec<_>> = text.lines().zip(words).map(answer_to).collect();
            match answers {
                Some(answers) if answers.len() == words.len() => all.extend(answers),
                _ => return Err(self.not_ours(name)),
            }
        }
        Ok(all)
    }

    fn not_ours(&self, name: &str) -> HostError {
        HostError::unexpected(
            &self.path(name),
            "not the answers to what was asked: does another program ask too?",
        )
    }
}

/// How many addresses the module takes in one write: their answers fit a page.
fn addresses_at_once(components: usize) -> usize {
    (4096 / (20 + 19 * components)).clamp(1, 16)
}

/// An address and its components: numbers, `-` for none, or `error`.
fn answer(line: &str) -> Option<(u64, Option<Vec<Option<u64>>>)> {
    let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut words = line.split_whitespace();
    let address = number(words.next()?)?;
    let rest: Vec<&str> = words.collect();
    if rest == ["error"] {
        return Some((address, None));
    }
    let values: Option<Vec<Option<u64>>> = rest
        .into_iter()
        .map(|word| match word {
            "-" => Some(None),
            word => number(word).map(Some),
        })
        .collect();
    Some((address, Some(values?)))
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
