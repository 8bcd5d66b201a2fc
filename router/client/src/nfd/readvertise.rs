//! Status of readvertising: `status/readvertise`. Namehop's own addition to the NFD management protocol. One item for
//! each configured routing daemon and gateway, available or not.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use namehop_wire::Name;
use namehop_wire::tlv::{Writer, decode_nni, types::nfd};

use super::codec::{CodecError, DatasetItem, Fields, put_name};

/// Announcements to a routing daemon or gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadvertiseStatus {
    /// `daemon` or `gateway`.
    pub destination: String,
    /// Name prefix of the commands that are sent to it, before the verb.
    pub command_prefix: Name,
    /// Faces through which it is reached; empty if it is not available.
    pub face_ids: Vec<u64>,
    /// Prefixes that are announced to it, and accepted.
    pub announced_prefixes: u64,
    /// Prefixes still to be announced, or announced again.
    pub waiting_prefixes: u64,
    /// Prefixes that it refused. The router retries them at increasing intervals.
    pub refused_prefixes: u64,
    /// Prefixes still to be withdrawn.
    pub withdrawing_prefixes: u64,
    /// Counters since the start.
    pub counters: ReadvertiseCounters,
    /// The last command that failed.
    pub last_error: Option<ReadvertiseError>,
}

/// Counters of the commands to a routing daemon or gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadvertiseCounters {
    /// Announcements that it accepted, including repeated ones.
    pub announced: u64,
    /// Withdrawals that it accepted.
    pub withdrawn: u64,
    /// Commands that it refused.
    pub refused: u64,
    /// Commands that came back as a Nack.
    pub nacked: u64,
    /// Commands that were not answered.
    pub timed_out: u64,
    /// Prefixes that were left out because there were too many.
    pub left_out: u64,
}

/// A failed command to a routing daemon or gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadvertiseError {
    /// The prefix of the command.
    pub prefix: Name,
    /// The reason, as text; a refusal begins with its status code.
    pub reason: String,
    /// Age of the failure, in milliseconds.
    pub age_ms: u64,
}

/// TLV-TYPE of one item.
const READVERTISE_STATUS: u32 = 131;
const DESTINATION: u32 = 132;
const ANNOUNCED_PREFIXES: u32 = 133;
const WAITING_PREFIXES: u32 = 134;
const REFUSED_PREFIXES: u32 = 135;
const WITHDRAWING_PREFIXES: u32 = 136;
const ANNOUNCED: u32 = 137;
const WITHDRAWN: u32 = 138;
const REFUSED: u32 = 139;
const NACKED: u32 = 140;
const TIMED_OUT: u32 = 141;
const LEFT_OUT: u32 = 142;
const LAST_ERROR: u32 = 143;
const REASON: u32 = 144;
const AGE_MS: u32 = 145;

impl DatasetItem for ReadvertiseStatus {
    const TYPE: u32 = READVERTISE_STATUS;

    fn encode_value(&self, writer: &mut Writer) {
        put_name(writer, &self.command_prefix);
        writer.element(DESTINATION, self.destination.as_bytes());
        for &face_id in &self.face_ids {
            writer.nni(nfd::FACE_ID, face_id);
        }
        writer.nni(ANNOUNCED_PREFIXES, self.announced_prefixes);
        writer.nni(WAITING_PREFIXES, self.waiting_prefixes);
        writer.nni(REFUSED_PREFIXES, self.refused_prefixes);
        writer.nni(WITHDRAWING_PREFIXES, self.withdrawing_prefixes);
        let ReadvertiseCounters { announced, withdrawn, refused, nacked, timed_out, left_out } = self.counters;
        writer.nni(ANNOUNCED, announced).nni(WITHDRAWN, withdrawn).nni(REFUSED, refused);
        writer.nni(NACKED, nacked).nni(TIMED_OUT, timed_out).nni(LEFT_OUT, left_out);
        if let Some(error) = &self.last_error {
            writer.nested(LAST_ERROR, |writer| {
                put_name(writer, &error.prefix);
                writer.element(REASON, error.reason.as_bytes()).nni(AGE_MS, error.age_ms);
            });
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        let number = |typ| fields.required_number(typ, "a ReadvertiseStatus counter");
        Ok(ReadvertiseStatus {
            destination: fields.required_text(DESTINATION, "Destination")?,
            command_prefix: fields.required_name()?,
            face_ids: fields.all(nfd::FACE_ID).map(decode_nni).collect::<Result<_, _>>()?,
            announced_prefixes: number(ANNOUNCED_PREFIXES)?,
            waiting_prefixes: number(WAITING_PREFIXES)?,
            refused_prefixes: number(REFUSED_PREFIXES)?,
            withdrawing_prefixes: number(WITHDRAWING_PREFIXES)?,
            counters: ReadvertiseCounters {
                announced: number(ANNOUNCED)?,
                withdrawn: number(WITHDRAWN)?,
                refused: number(REFUSED)?,
                nacked: number(NACKED)?,
                timed_out: number(TIMED_OUT)?,
                left_out: number(LEFT_OUT)?,
            },
            last_error: fields.find(LAST_ERROR).map(decode_error).transpose()?,
        })
    }
}

fn decode_error(value: &[u8]) -> Result<ReadvertiseError, CodecError> {
    let fields = Fields::parse(value)?;
    Ok(ReadvertiseError {
        prefix: fields.required_name()?,
        reason: fields.required_text(REASON, "Reason")?,
        age_ms: fields.required_number(AGE_MS, "AgeMs")?,
    })
}
