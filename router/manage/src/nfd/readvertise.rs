//! Who is told of this router's routes: `status/readvertise`, Namehop's own addition to the NFD management protocol. One
//! item for each routing daemon and gateway that the configuration allows for, whether it is there or not.
//!
//! Forwarders without it do not answer. The numbers are those of application use.

use namehop_wire::Name;
use namehop_wire::tlv::{Writer, decode_nni, types::nfd};

use super::codec::{CodecError, DatasetItem, Fields, put_name};

/// What a routing daemon or gateway has been told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadvertiseStatus {
    /// `daemon` or `gateway`.
    pub destination: String,
    /// Prefix of the commands that are sent to it, which their verb follows.
    pub command_prefix: Name,
    /// Faces through which it is reached; none when nobody is there.
    pub face_ids: Vec<u64>,
    /// Prefixes that it accepted.
    pub announced_prefixes: u64,
    /// Prefixes that it is yet to be told of, or told again.
    pub waiting_prefixes: u64,
    /// Prefixes that it refused. They are tried again, less and less often.
    pub refused_prefixes: u64,
    /// Prefixes that are yet to be withdrawn.
    pub withdrawing_prefixes: u64,
    /// What happened so far.
    pub counters: ReadvertiseCounters,
    /// What went wrong last.
    pub last_error: Option<ReadvertiseError>,
}

/// What happened between this router and a routing daemon or gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadvertiseCounters {
    /// Announcements that it accepted, repeated ones among them.
    pub announced: u64,
    /// Withdrawals that it accepted.
    pub withdrawn: u64,
    /// Commands that it refused.
    pub refused: u64,
    /// Commands that came back as a Nack.
    pub nacked: u64,
    /// Commands without an answer.
    pub timed_out: u64,
    /// Prefixes that were not taken because there were too many.
    pub left_out: u64,
}

/// A command to a routing daemon or gateway that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadvertiseError {
    /// The prefix that it was about.
    pub prefix: Name,
    /// What was wrong, in words; a refusal begins with its status code.
    pub reason: String,
    /// How long ago that was, in milliseconds.
    pub age_ms: u64,
}

/// TYPE of one item.
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
        let number = |typ| fields.required_number(typ, "a number of ReadvertiseStatus");
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
