//! `soloist completions`: scripts by which shells ask what may come next.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;

use crate::{out, Ctx, Misuse};

/// Print a completion script for a shell.
///
/// It also completes names of machines, kernels, groups, rules and experiments.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist completions bash >/usr/share/bash-completion/completions/soloist",
])]
pub struct Args {
    /// The shell.
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    pub shell: String,
}

/// Runs the command.
pub fn run(args: Args, _ctx: &Ctx) -> Result<ExitCode> {
    let script = script(&args.shell)?;
    out::put(&script)?;
    Ok(ExitCode::SUCCESS)
}

fn script(name: &str) -> Result<String> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(name)
        .ok_or_else(|| Misuse(format!("{name}: no such shell")))?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "soloist", "soloist", "soloist", &mut script)?;
    let script = String::from_utf8(script)?;
    Ok(match name {
        "bash" => script.replace(BASH_REGISTERS, "-F _soloist soloist") + BASH,
        "zsh" => script.replace(ZSH_REGISTERS, ZSH),
        _ => script,
    })
}

const BASH_REGISTERS: &str = "-F _clap_complete_soloist soloist";

/// Bash splits words at `=`, and writes names with spaces as they are unless it is
/// told that they are files.
const BASH: &str = r#"
_soloist() {
    local words=() word at cut= current=$2
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        at=$((${#words[@]} - 1))
        if [[ $COMP_WORDBREAKS == *=* && $at -gt 0 ]] &&
            [[ ${words[at]} == --*= || ($word == = && ${words[at]} == --*) ]]; then
            words[at]+=$word
            cut=${words[at]%%=*}=
        else
            words+=("$word")
            cut=
        fi
    done
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    _clap_complete_soloist "$1" "$cut${current#=}" "$3"
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    for word in "${COMPREPLY[@]}"; do
        if [[ $word == *[[:space:]]* && -e $word ]]; then compopt -o filenames; fi
    done
}
"#;

const ZSH_REGISTERS: &str = "compdef _clap_dynamic_completer_soloist soloist";

/// As a file of `fpath` the script is a function's text, which the first completion
/// runs; else it registers one.
const ZSH: &str = r#"if [ "$funcstack[1]" = _soloist ]; then
    _clap_dynamic_completer_soloist "$@"
else
    compdef _clap_dynamic_completer_soloist soloist
fi"#;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// That they work is tests/shells/run's to show.
    #[test]
    fn what_clap_writes_is_found_and_changed() {
        let bash = script("bash").unwrap();
        assert!(!bash.contains(BASH_REGISTERS), "{bash}");
        assert_eq!(bash.matches("-F _soloist soloist").count(), 2, "{bash}");
        let zsh = script("zsh").unwrap();
        assert_eq!(zsh.matches(ZSH).count(), 1, "{zsh}");
        assert_eq!(zsh.matches(ZSH_REGISTERS).count(), 1, "{zsh}");
        assert!(zsh.starts_with("#compdef soloist\n"), "{zsh}");
    }
}
