//! Ports that read frames from a capture file and write another one (libpcap's format, draft-ietf-opsawg-pcap, for
//! Ethernet).
//!
//! A file is read as fast as its frames are processed; none is dropped. Reading starts one second after the port, so
//! that faces and routes exist by then. Frames are written as they are sent. A slow or full disk never blocks a worker:
//! frames that cannot be written are dropped and counted.

mod format;
mod writer;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::encapsulation::VLAN_HEADER_BYTES;
use namehop_face::address::MacAddress;
use namehop_face::uri::{FaceUriError, Hardware, PortOptions, PortScheme, PortUri, UriParser};
use namehop_packet::BufferPool;
use namehop_packet::size::LARGE_BYTES;

use crate::BURST;
use crate::drivers::{Access, Device, Driver, NO_TRAITS, OpenError, OpenPort, Opener, Spread, Wishes, boxed};
use crate::error::DpdkError;
use crate::losses::Losses;
use crate::relay::{Again, Inlet, Line, RelayPort, RelayQueue};
use format::{Reader, Record};
use writer::Writer;

const EXPECTED: &str = "the absolute path of a capture to read, one to write, or both, as in \
     pcap:///in.pcap?out=/out.pcap or pcap://?out=/out.pcap, optionally followed by &mac=08:00:27:01:dd:01";
/// Delay from the start of a port to its first frame.
const START_PAUSE: Duration = Duration::from_secs(1);
/// Pause until the worker has taken frames, or a buffer is free again.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// Longest frame, in bytes, including the Ethernet header.
pub const MAX_FRAME_BYTES: usize = LARGE_BYTES;

/// Opens a port that reads from the file `input` and replaces the content of the file `output`.
///
/// # Errors
/// Fails if a file cannot be opened, or if `input` is not a capture of Ethernet frames.
pub fn open(
    input: Option<&Path>,
    output: Option<&Path>,
    pool: &BufferPool,
) -> Result<(RelayPort, RelayQueue), DpdkError> {
    let input = input.map(|path| {
        // O_NONBLOCK, because opening a pipe would block.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).and_then(ordinary);
        let reader = file.and_then(|file| Reader::new(BufReader::new(file)));
        reader.map_err(|error| DpdkError::Unusable(format!("cannot read the capture {}: {error}", path.display())))
    });
    let output = output.map(|path| {
        let mut options = OpenOptions::new();
        // Do not follow a symbolic link to another file.
        options.write(true).create(true).truncate(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options
            .open(path)
            .and_then(ordinary)
            .and_then(Writer::new)
            .map_err(|error| DpdkError::Unusable(format!("cannot write the capture {}: {error}", path.display())))
    });
    let scratch = vec![0; MAX_FRAME_BYTES].into_boxed_slice();
    let line = Files { input: input.transpose()?, output: output.transpose()?, first_at: None, scratch, read: None };
    RelayPort::open(line, "pcap", pool)
}

/// Returns the file if it is a regular file.
fn ordinary(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

struct Files {
    /// `None` once it has been read to its end.
    input: Option<Reader<BufReader<File>>>,
    output: Option<Writer>,
    /// When to read the first frame.
    first_at: Option<Instant>,
    /// The frame that was read last, and its length while the ring has no room for it.
    scratch: Box<[u8]>,
    read: Option<usize>,
}

impl Line for Files {
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn receive(&mut self, inlet: &mut Inlet<'_>) -> io::Result<Again> {
        let Some(input) = &mut self.input else { return Ok(Again::Never) };
        if !inlet.is_started() {
            return Ok(Again::Never);
        }
        let first_at = *self.first_at.get_or_insert_with(|| Instant::now() + START_PAUSE);
        let pause = first_at.saturating_duration_since(Instant::now());
        if !pause.is_zero() {
            return Ok(Again::After(pause));
        }
        for _ in 0..BURST {
            if let Some(length) = self.read {
                if inlet.room() == 0 {
                    return Ok(Again::After(FULL_PAUSE));
                }
                let Some(frame) = inlet.pool().copy_of(&self.scratch[..length]) else {
                    return Ok(Again::After(FULL_PAUSE));
                };
                inlet.push(frame);
                self.read = None;
            }
            match input.next(&mut self.scratch) {
                Ok(Some(Record::Frame(length))) => self.read = Some(length),
                Ok(Some(Record::Incomplete)) => inlet.lost_malformed(),
                Ok(None) => {
                    tracing::info!("reached the end of the capture");
                    self.input = None;
                    return Ok(Again::Never);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read the rest of the capture");
                    self.input = None;
                    return Ok(Again::Never);
                }
            }
        }
        Ok(Again::AtOnce)
    }

    fn send(&mut self, frame: &[u8]) -> usize {
        self.output.as_mut().map_or(0, |output| output.push(SystemTime::now(), frame))
    }

    fn flush(&mut self) -> usize {
        self.output.as_mut().map_or(0, Writer::flush)
    }
}

/// Default hardware address; constant, so that the same capture gives the same frames.
const ADDRESS: MacAddress = [0x02, 0, 0, 0, 0, 0x01];

/// The driver of captures.
pub static DRIVER: Driver = Driver {
    scheme: PortScheme {
        name: "pcap",
        parse: |parser, text| Ok((Captures::parse(parser, text)?.to_string(), PortOptions::default())),
        separator: None,
        can_be_bare: false,
    },
    form: "pcap:///IN?out=/OUT",
    meaning: "captures",
    traits: NO_TRAITS,
    access: |_| Access::Files,
    open: open_uri,
};

/// The files and the hardware address in a URI.
struct Captures {
    /// Path of the capture to read.
    input: Option<String>,
    /// Path of the capture to write.
    output: Option<String>,
    /// Hardware address of the port.
    address: Option<MacAddress>,
}

impl Captures {
    fn parse(parser: &UriParser<'_>, text: &str) -> Result<Captures, FaceUriError> {
        let path = |text: &str| match text.contains(['?', '&']) {
            true => parser.refuse(format!("`{text}` contains a character that is not allowed here"), EXPECTED),
            false => parser.path(text, EXPECTED),
        };
        let (input, options) = text.split_once('?').unwrap_or((text, ""));
        let (output, address) = match options.strip_prefix("out=") {
            None => (None, options),
            Some(rest) => {
                let (output, address) = rest.split_once('&').unwrap_or((rest, ""));
                (Some(path(output)?), address)
            }
        };
        let address = match address.strip_prefix("mac=") {
            Some(address) => Some(parser.device_address(address, EXPECTED)?),
            None if address.is_empty() => None,
            None => return parser.refuse(format!("`{address}` is not an option of a capture"), EXPECTED),
        };
        let input = if input.is_empty() { None } else { Some(path(input)?) };
        if input.is_none() && output.is_none() {
            return parser.refuse("neither a capture to read nor one to write is given", EXPECTED);
        }
        Ok(Captures { input, output, address })
    }
}

impl fmt::Display for Captures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.input.as_deref().unwrap_or_default())?;
        let mut separator = '?';
        if let Some(output) = &self.output {
            write!(f, "{separator}out={output}")?;
            separator = '&';
        }
        match self.address {
            Some(address) => write!(f, "{separator}mac={}", Hardware(address)),
            None => Ok(()),
        }
    }
}

fn open_uri(opener: &mut Opener, port: &PortUri, _: &Wishes) -> Result<OpenPort, OpenError> {
    let Captures { input, output, address } = Captures::parse(&UriParser::new(port.device()), port.device())?;
    let [input, output] = [&input, &output].map(|path| path.as_deref().map(Path::new));
    let (port, queue) = open(input, output, &opener.pool)?;
    Ok(OpenPort {
        device: Box::new(port),
        queues: boxed([queue]),
        spread: Spread::OneQueue,
        address: address.unwrap_or(ADDRESS),
        mtu_bytes: MAX_FRAME_BYTES - VLAN_HEADER_BYTES,
    })
}

impl Device for RelayPort {
    fn is_up(&self) -> bool {
        !self.has_ended()
    }

    fn losses(&self) -> Losses {
        RelayPort::losses(self)
    }

    fn start(&self) {
        RelayPort::start(self);
    }

    fn is_done(&self) -> bool {
        RelayPort::is_done(self)
    }
}
