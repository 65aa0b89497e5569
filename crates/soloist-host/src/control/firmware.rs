//! What the machine's firmware says of addresses, asked through the module.

use crate::control::interface::Control;
use crate::HostError;

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

    /// Where places of memory channels lie: of each, a CPU of the channel's
    /// node, its number and an address within it; `None`: not translated.
    pub fn firmware_locate(
        &self,
        places: &[(u32, u32, u64)],
    ) -> Result<Vec<Option<u64>>, HostError> {
        self.ask_places("firmware/locate", places)
    }

    /// Registers of memory controllers of AMD's Zen (UMC): of each, AMD's number
    /// of the node, the channel's and the register; `None`: no answer.
    pub fn firmware_umc(
        &self,
        registers: &[(u32, u32, u64)],
    ) -> Result<Vec<Option<u64>>, HostError> {
        self.ask_places("firmware/umc", registers)
    }

    fn ask_places(
        &self,
        name: &str,
        places: &[(u32, u32, u64)],
    ) -> Result<Vec<Option<u64>>, HostError> {
        let mut all = Vec::with_capacity(places.len());
        for some in places.chunks(16) {
            let words: Vec<String> = some
                .iter()
                .map(|(of, channel, at)| format!("{of}:{channel}:{at:#x}"))
                .collect();
            self.write(name, &words.join(" "))?;
            let text = self.read(name)?;
            let told = |(line, word): (&str, &String)| {
                let (place, told) = line.split_once(' ')?;
                let hex = |told: &str| u64::from_str_radix(told.strip_prefix("0x")?, 16).ok();
                match told {
                    _ if place != word => None,
                    "error" => Some(None),
                    told => hex(told).map(Some),
                }
            };
            let answers: Option<Vec<_>> = text.lines().zip(&words).map(told).collect();
            match answers {
                Some(answers) if answers.len() == some.len() => all.extend(answers),
                _ => return Err(self.not_ours(name)),
            }
        }
        Ok(all)
    }

    fn not_ours(&self, name: &str) -> HostError {
        HostError::Unexpected {
            path: self.path(name),
            text: "not the answers to what was asked: does another program ask too?".into(),
        }
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
