//! `soloist metrics`.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_host::observe::watch::Snapshot;
use soloist_host::observe::{openmetrics, MEDIA_TYPE};
use soloist_host::HostError;

use soloist_cli::{out, Ctx};

/// Print metrics in the OpenMetrics text format, or as JSON.
///
/// Covers groups, regulated CPUs, rules and the whole system. The share of pages in
/// colour needs the kernel's pagemap, which the socket's process may not read. For
/// Prometheus, soloist-metrics.socket serves the metrics (packaging/systemd), or
/// `--textfile` writes them for node_exporter.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    "soloist metrics",
    "soloist metrics --textfile /var/lib/prometheus/node-exporter/soloist.prom",
])]
pub struct MetricsArgs {
    /// Replace this file, for node_exporter's textfile collector. Without the module
    /// the file has soloist_up 0.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["http", "json"])]
    textfile: Option<PathBuf>,

    /// Answer one HTTP request on standard input, as a socket unit of systemd
    /// passes it.
    #[arg(long, conflicts_with = "json")]
    http: bool,
}

/// Runs `metrics`.
pub fn metrics(args: MetricsArgs, ctx: &Ctx) -> Result<ExitCode> {
    if args.http {
        return serve();
    }
    soloist_cli::check_files(&[("--textfile", args.textfile.as_deref())])?;
    let taken = take();
    if let Some(file) = &args.textfile {
        // What stands there is of another time: it must not stay.
        let figures = match &taken {
            Ok(snapshot) => Some(snapshot),
            Err(error) => {
                errln!("soloist: {error}: soloist_up is 0");
                None
            }
        };
        let text = openmetrics(figures)?;
        out::replace(file, &text).with_context(|| file.display().to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let snapshot = taken?;
    if ctx.json {
        ctx.print_json(&snapshot)?;
    } else {
        out::put(&openmetrics(Some(&snapshot))?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn take() -> Result<Snapshot, HostError> {
    let host = Host::live();
    let control = Control::open(&host)?;
    let mut snapshot = Snapshot::take(&control)?;
    snapshot.look(&host, &control);
    Ok(snapshot)
}

/// Answers one request, whatever it asks for; also when there is nothing to tell.
fn serve() -> Result<ExitCode> {
    for line in io::stdin().lock().lines().take(100) {
        if line.context("the request")?.trim().is_empty() {
            break;
        }
    }
    let told = Control::open(&Host::live())
        .and_then(|control| Snapshot::take(&control))
        .and_then(|snapshot| openmetrics(Some(&snapshot)));
    let (status, kind, body) = match told {
        Ok(text) => ("200 OK", MEDIA_TYPE, text),
        Err(error) => (
            "503 Service Unavailable",
            "text/plain",
            format!("{error}\n"),
        ),
    };
    let length = body.len();
    out::put(&format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))?;
    Ok(ExitCode::SUCCESS)
}
