//! Traced packets: the response of the command `trace/take`. Namehop's own addition to the NFD management protocol. The
//! TLV-TYPE numbers are from the range for application use.

use namehop_wire::tlv::Writer;

use super::codec::{CodecError, DatasetItem, Fields};

/// TLV-TYPE of one packet.
const TRACED_PACKET: u32 = 180;
const TIME_NS: u32 = 181;
const WORKER: u32 = 182;
const FACE: u32 = 183;
const SUBJECT: u32 = 184;
const NAME: u32 = 185;
const STEP: u32 = 186;
const STAGE: u32 = 187;
const TEXT: u32 = 188;

/// Maximum size of a text, in bytes; longer texts are cut.
const LONGEST_TEXT: usize = 500;
/// Maximum size of a name in a trace, in bytes; longer names are cut.
const LONGEST_NAME: usize = 2_000;

/// The decisions about one packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TracedPacket {
    /// Time on a clock that all workers share, in nanoseconds.
    pub time_ns: u64,
    /// Index of the worker that processed the packet.
    pub worker: u64,
    /// Id of the incoming face; 0 if no packet came in.
    pub face: u64,
    /// `interest`, `data`, `nack`, `pending` or `timeout`.
    pub subject: String,
    /// Name of the packet.
    pub name: String,
    /// The decisions, in order.
    pub steps: Vec<TracedStep>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TracedStep {
    /// Stage of forwarding: `packet`, `pit`, `cs`, `fib`, `strategy`, `send` or `drop`.
    pub stage: String,
    /// The decision, as text.
    pub text: String,
}

impl TracedPacket {
    /// Cuts long texts, so that the packet fits into a response.
    pub fn cut(&mut self) {
        cut(&mut self.name, LONGEST_NAME);
        self.steps.iter_mut().for_each(|step| cut(&mut step.text, LONGEST_TEXT));
    }
}

fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        let end = (0..=longest).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

impl DatasetItem for TracedPacket {
    const TYPE: u32 = TRACED_PACKET;

    fn encode_value(&self, writer: &mut Writer) {
        writer.nni(TIME_NS, self.time_ns).nni(WORKER, self.worker).nni(FACE, self.face);
        writer.element(SUBJECT, self.subject.as_bytes()).element(NAME, self.name.as_bytes());
        for step in &self.steps {
            writer.nested(STEP, |writer| {
                writer.element(STAGE, step.stage.as_bytes()).element(TEXT, step.text.as_bytes());
            });
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        let step = |value| {
            let fields = Fields::parse(value)?;
            Ok(TracedStep { stage: fields.required_text(STAGE, "stage")?, text: fields.required_text(TEXT, "text")? })
        };
        Ok(TracedPacket {
            time_ns: fields.required_number(TIME_NS, "time")?,
            worker: fields.required_number(WORKER, "worker")?,
            face: fields.required_number(FACE, "face")?,
            subject: fields.required_text(SUBJECT, "subject")?,
            name: fields.required_text(NAME, "name")?,
            steps: fields.all(STEP).map(step).collect::<Result<_, CodecError>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode_items, encode_items};
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        let step = TracedStep { stage: "pit".to_owned(), text: "not pending".to_owned() };
        let whole = TracedPacket {
            time_ns: 7,
            worker: 1,
            face: 256,
            subject: "interest".to_owned(),
            name: "/A".to_owned(),
            steps: vec![step.clone(), TracedStep { stage: "send".to_owned(), ..step }],
        };
        let packets = [whole.clone(), TracedPacket { steps: Vec::new(), ..whole }];
        assert_eq!(decode_items::<TracedPacket>(&encode_items(packets.clone())), Ok(packets.to_vec()));
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        let text = "ä".repeat(LONGEST_TEXT);
        let mut packet =
            TracedPacket { steps: vec![TracedStep { text, ..TracedStep::default() }], ..TracedPacket::default() };
        packet.name = "x".repeat(LONGEST_NAME);
        packet.cut();
        assert_eq!(packet.steps[0].text, format!("{}…", "ä".repeat(LONGEST_TEXT / 2)));
        assert_eq!(packet.name.len(), LONGEST_NAME);
    }
}
