//! `namehop p4 digest`: takes the digests that a running program has reported.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use clap::Args;
use namehop_p4runtime::info::Object;
use serde_json::json;

use crate::control::answer::value_text;
use crate::control::values::Shape;
use crate::control::{Outcome, Remote, To};

/// Polling interval for digests.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Args)]
pub(crate) struct DigestArgs {
    /// Wait until this many digests were printed; 0 never stops
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    to: To,
}

/// Prints waiting digests, one per line; waits for more if a count is given.
pub(crate) fn run(args: &DigestArgs) -> Outcome<()> {
    let mut remote = Remote::connect(&args.to)?;
    let (mut taken, mut dropped) = (0, 0);
    loop {
        let left = args.count.filter(|count| *count > 0).map_or(u64::MAX, |count| count - taken);
        let answer = remote.client().take_reports(u32::try_from(left).unwrap_or(u32::MAX))?;
        let mut output = io::stdout().lock();
        for report in &answer.reports {
            let digest = remote.info.digests.iter().find(|digest| digest.preamble().id == report.digest_id);
            let Some(digest) = digest else { continue };
            let name = &digest.preamble().name;
            let shape = Shape::of(&remote.info, digest.type_spec.as_ref());
            let value = shape.map(|shape| shape.json(&report.value.clone().unwrap_or_default())).unwrap_or_default();
            if args.to.json {
                serde_json::to_writer(&mut output, &json!({"digest": name, "value": value}))
                    .map_err(io::Error::from)?;
                writeln!(output)?;
            } else {
                writeln!(output, "{name}: {}", value_text(&value))?;
            }
        }
        output.flush()?;
        if answer.dropped > dropped {
            dropped = answer.dropped;
            writeln!(
                io::stderr(),
                "{dropped} reports were dropped since the program started, because their queue was full"
            )?;
        }
        let count = answer.reports.len() as u64;
        taken += count;
        match args.count {
            None if count == 0 => return Ok(()),
            Some(wanted) if wanted > 0 && taken >= wanted => return Ok(()),
            _ if count == 0 => thread::sleep(PAUSE),
            _ => {}
        }
    }
}
