//! Traced packets: the response of the command `trace/take`. Namehop's own addition to the NFD management protocol. The
//! TLV-TYPE numbers are from the range for application use.

use serde::Serialize;
use utoipa::ToSchema;

use super::record::records;

/// Maximum size of a text, in bytes; longer texts are cut.
const LONGEST_TEXT: usize = 500;
/// Maximum size of a name in a trace, in bytes; longer names are cut.
const LONGEST_NAME: usize = 2_000;

records! {
    /// The decisions about one packet.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct TracedPacket(180) {
        /// Time on a clock that all workers share, in nanoseconds.
        time_ns: u64 = 181,
        /// Index of the worker that processed the packet.
        worker: u64 = 182,
        /// Id of the incoming face; 0 if no packet came in.
        face: u64 = 183,
        /// `interest`, `data`, `nack`, `pending` or `timeout`.
        subject: String = 184,
        /// Name of the packet.
        name: String = 185,
        /// The decisions, in order.
        steps: Vec<TracedStep> = 186,
    }

    /// One decision.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
    pub struct TracedStep {
        /// Stage of forwarding: `packet`, `pit`, `cs`, `fib`, `strategy`, `send` or `drop`.
        stage: String = 187,
        /// The decision, as text.
        text: String = 188,
    }
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
