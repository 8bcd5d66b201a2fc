//! `namehop capture`: writes frames that a router receives and sends to a file for Wireshark and tshark.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use namehop_client::controller::ClientError;
use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{CaptureStream, CapturedFrame, ControlParameters, FaceQueryFilter, names::module};
use namehop_manage::route_file::FaceSelector;
use namehop_wire::{MAX_PACKET_SIZE, Name};
use tokio::time::{Instant, sleep};

use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::pcapng::PcapngWriter;
use crate::signing::CommandSigningArgs;
use crate::units::parse_duration;

/// Pause after a poll that returned no frames.
const PAUSE: Duration = Duration::from_millis(50);
/// How long after the end earlier frames are still fetched.
const LAST_TAKES: Duration = Duration::from_secs(2);

/// Write frames that the router receives and sends to a pcapng file for Wireshark and tshark. Frames are NDNLPv2
/// packets, Interests and Data as on their links, with an interface per face. Workers copy frames without waiting;
/// frames that do not fit are dropped, counted and reported. Ctrl-C ends the capture
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop capture -w all.pcapng
  namehop capture --face 300 --name /example --duration 30s -w one.pcapng
  namehop capture --sample 0.001 --snaplen 200 --count 10000 -w sample.pcapng
  namehop capture -w - | tshark -r -")]
pub struct CaptureArgs {
    /// File to write, replaced if it exists; - is standard output
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    write: PathBuf,
    /// Capture only frames of this face, given by its number or its peer's address
    #[arg(long, value_name = "FACE")]
    face: Option<FaceSelector>,
    /// Capture packets with names under this prefix; of fragmented packets, the first fragment. Names under /localhost,
    /// which are commands to this router, match only a prefix under /localhost. Frames without a name, such as
    /// acknowledgements, match only /
    #[arg(long, value_name = "PREFIX", default_value = "/")]
    name: Name,
    /// Capture each frame with this probability: above 0 and up to 1, in steps of 0.000001
    #[arg(long, value_name = "P", default_value = "1", value_parser = parse_probability)]
    sample: u64,
    /// End after this many frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[arg(long, value_name = "BYTES", default_value_t = MAX_PACKET_SIZE as u32,
        value_parser = clap::value_parser!(u32).range(1..=MAX_PACKET_SIZE as i64),
        help = format!("Keep at most this many bytes of each frame, up to {MAX_PACKET_SIZE}"))]
    snaplen: u32,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

/// Parses a probability into millionths.
fn parse_probability(text: &str) -> Result<u64, String> {
    let millionths = text.parse::<f64>().ok().map(|probability| (probability * 1e6).round());
    match millionths {
        Some(millionths) if (1.0..=1e6).contains(&millionths) => Ok(millionths as u64),
        _ => Err("a probability must be from 0.000001 to 1".to_owned()),
    }
}

/// Result of a capture.
#[derive(Default)]
struct Outcome {
    written: u64,
    lost: u64,
}

impl CaptureArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        block_on(async {
            let manager = Manager::connect_with_signer(connection, self.signing.signer()?).await?;
            manager.only_namehop("captures").await?;
            let face_id = match &self.face {
                Some(which) => Some(manager.existing_face(which).await?.face_id),
                None => None,
            };
            let mut file = PcapngWriter::new(self.open()?, self.snaplen).map_err(|error| self.not_written(&error))?;
            let parameters = ControlParameters {
                name: Some(self.name.clone()),
                face_id,
                count: Some(self.sample),
                mtu_bytes: Some(self.snaplen.into()),
                ..ControlParameters::default()
            };
            manager.command(module::CAPTURE, "start", &parameters).await?;
            let mut outcome = Outcome::default();
            // Signal handlers are installed before the user is told about Ctrl-C.
            let ended = tokio::select! {
                biased;
                () = interrupted() => Ok(()),
                ended = self.follow(&manager, &mut file, &mut outcome) => ended,
            };
            let _ = manager.command(module::CAPTURE, "stop", &ControlParameters::default()).await;
            let flushed = file.flush().map_err(|error| self.not_written(&error));
            eprintln!(
                "{} frames captured, {} dropped because the capture buffer was full",
                outcome.written, outcome.lost
            );
            ended.and(flushed)
        })
    }

    fn open(&self) -> Result<Box<dyn Write>, Failure> {
        if self.write.as_os_str() == "-" {
            return Ok(Box::new(BufWriter::new(io::stdout())));
        }
        let file = File::create(&self.write).map_err(|error| self.not_written(&error))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    fn not_written(&self, error: &io::Error) -> Failure {
        Failure::failed(format!("cannot write {}: {error}", self.write.display()))
    }

    /// Writes frames until the count is reached, the time is over, or the router ends the capture.
    async fn follow(
        &self,
        manager: &Manager,
        file: &mut PcapngWriter<Box<dyn Write>>,
        outcome: &mut Outcome,
    ) -> Result<(), Failure> {
        eprintln!("capturing frames under {}: stop with Ctrl-C", self.name);
        let end = self.duration.and_then(|duration| Instant::now().checked_add(duration));
        let mut stream = CaptureStream::default();
        loop {
            let now = Instant::now();
            let is_over = end.is_some_and(|end| now >= end);
            let (frames, has_more) = match manager.datasets().take_captured(&mut stream).await {
                Ok(taken) => taken,
                Err(ClientError::Refused(response)) if response.code == status_code::NOT_FOUND => {
                    return Err(Failure::failed(
                        "the router ended the capture: another client stopped it, or no frames were fetched for 10 \
                         seconds",
                    ));
                }
                Err(error) => return Err(Failure::from(error).context("capture/take")),
            };
            if frames.iter().any(|frame| frame.length > 0 && !file.has_face(frame.face)) {
                self.add_faces(manager, file, &frames).await?;
            }
            for frame in &frames {
                match self.write(file, frame, outcome) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    Err(error) => return Err(self.not_written(&error)),
                }
            }
            if end.is_some_and(|end| now >= end + LAST_TAKES) {
                return Ok(());
            }
            if !has_more {
                match file.flush() {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    flushed => flushed.map_err(|error| self.not_written(&error))?,
                }
                if is_over {
                    return Ok(());
                }
                sleep(PAUSE).await;
            }
        }
    }

    /// Writes one frame. Returns true if more frames are to follow.
    fn write(
        &self,
        file: &mut PcapngWriter<Box<dyn Write>>,
        frame: &CapturedFrame,
        outcome: &mut Outcome,
    ) -> io::Result<bool> {
        file.note_lost(frame.lost);
        outcome.lost += frame.lost;
        if frame.length > 0 {
            file.write(frame)?;
            outcome.written += 1;
        }
        Ok(self.count.is_none_or(|count| outcome.written < count))
    }

    /// Adds interfaces for new faces in these frames, with the addresses of their peers.
    async fn add_faces(
        &self,
        manager: &Manager,
        file: &mut PcapngWriter<Box<dyn Write>>,
        frames: &[CapturedFrame],
    ) -> Result<(), Failure> {
        for frame in frames.iter().filter(|frame| frame.length > 0) {
            if !file.has_face(frame.face) {
                // Query by number: a cached list of all faces may be older than this face.
                let filter = FaceQueryFilter { face_id: Some(frame.face), ..FaceQueryFilter::default() };
                let status = manager.datasets().query_faces(&filter).await?.pop();
                // A face that is already destroyed has only its number.
                file.add_face(frame.face, status.as_ref().map_or("", |face| &face.uri))
                    .map_err(|error| self.not_written(&error))?;
            }
        }
        Ok(())
    }
}
