//! `namehop trace`: shows the router's decisions about single packets, step by step.

use std::cell::Cell;
use std::time::Duration;

use clap::Args;
use namehop_client::controller::ClientError;
use namehop_client::nfd::numbers::{MAX_TRACED_PACKETS, status_code};
use namehop_client::nfd::{ControlParameters, names::module};
use namehop_manage::views::TracedPacketView;
use namehop_wire::Name;
use tokio::time::{Instant, sleep};

use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output;
use crate::signing::CommandSigningArgs;

/// Pause between polls of the router.
const PAUSE: Duration = Duration::from_millis(100);

/// Show the router's decisions about packets, step by step: the packet's fields, whether it was pending or cached, its
/// route and strategy, where it is sent, why it was dropped; and pending Interests that were not answered. Tracing does
/// not change how packets are handled. The router ends a trace that is not read for 10 seconds
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop trace --name /example/video
  namehop trace --name / --count 100 --seconds 60 --json")]
pub struct TraceArgs {
    /// Trace packets with names under this prefix. Names under /localhost, which are commands to this router, match
    /// only a prefix under /localhost
    #[arg(long, value_name = "PREFIX")]
    name: Name,
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=MAX_TRACED_PACKETS),
        help = format!("End after this many packets, at most {MAX_TRACED_PACKETS}")
    )]
    count: u64,
    /// End after this many seconds, even with fewer packets
    #[arg(long, value_name = "S", default_value = "30")]
    seconds: f64,
    /// Print JSON: one line per packet
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

impl TraceArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let end = Duration::try_from_secs_f64(self.seconds).ok().and_then(|time| Instant::now().checked_add(time));
        let end = end.ok_or_else(|| Failure::usage("--seconds must be a number of seconds, 0 or more"))?;
        block_on(async {
            let manager = Manager::connect_with_signer(connection, self.signing.signer()?).await?;
            manager.only_namehop("traces of packets").await?;
            let parameters = ControlParameters {
                name: Some(self.name.clone()),
                count: Some(self.count),
                ..ControlParameters::default()
            };
            manager.command(module::TRACE, "start", &parameters).await?;
            let shown = Cell::new(0);
            // Signal handlers are installed before the user is told about Ctrl-C.
            let (ended, is_interrupted) = tokio::select! {
                biased;
                () = interrupted() => (Ok(()), true),
                ended = self.follow(&manager, end, &shown) => (ended, false),
            };
            // A trace with all its packets has ended by itself.
            if shown.get() < self.count {
                let _ = manager.command(module::TRACE, "stop", &ControlParameters::default()).await;
            }
            ended?;
            if shown.get() == 0 && !self.json {
                let meanwhile =
                    if is_interrupted { "so far".to_owned() } else { format!("in {} seconds", self.seconds) };
                output::line(format!("no packet under {} {meanwhile}", self.name))?;
            }
            Ok(())
        })
    }

    /// Shows and counts packets until the count is reached or the time is over.
    async fn follow(&self, manager: &Manager, end: Instant, shown: &Cell<u64>) -> Result<(), Failure> {
        eprintln!("tracing packets under {}: stop with Ctrl-C", self.name);
        let mut first_ns = None;
        while shown.get() < self.count {
            let packets = match manager.datasets().take_traced().await {
                Ok(packets) => packets,
                Err(ClientError::Refused(response)) if response.code == status_code::NOT_FOUND => break,
                Err(error) => return Err(Failure::from(error).context("trace/take")),
            };
            if packets.is_empty() {
                if Instant::now() >= end {
                    break;
                }
                sleep(PAUSE).await;
            }
            for packet in packets {
                let first_ns = *first_ns.get_or_insert(packet.time_ns);
                self.show(&TracedPacketView::new(packet, first_ns))?;
                shown.set(shown.get() + 1);
            }
        }
        Ok(())
    }

    fn show(&self, packet: &TracedPacketView) -> Result<(), Failure> {
        if self.json {
            return output::json_line(packet);
        }
        let from = packet.face.map_or_else(String::new, |face| format!(" from face {face}"));
        let mut text =
            format!("{:+.6} s  {} {}{from}, worker {}", packet.time_s, packet.subject, packet.name, packet.worker);
        for step in &packet.steps {
            text.push_str(&format!("\n    {:<9} {}", step.stage, step.text));
        }
        output::line(text)
    }
}
