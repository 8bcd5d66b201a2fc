//! Checks the answers of the management server: they match the Interests, and clients can decode their contents.

use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{
    ChannelStatus, CodecError, ControlResponse, CsInfo, DropCount, Element, FaceEventNotification, FaceStatus,
    FibEntry, GeneralStatus, ReadvertiseStatus, Record, RibEntry, StrategyChoice,
};
use namehop_wire::data::content_type;
use namehop_wire::lp::LpPacket;
use namehop_wire::security::{DigestVerifier, verify_data};
use namehop_wire::{Data, Interest, MAX_PACKET_SIZE};

use super::TOKEN_BYTES;
use super::requests::COMMANDS;
use crate::fib_file::load;
use crate::messages::list;

/// Permitted status codes of answers.
const CODES: [u64; 10] = [
    status_code::OK,
    status_code::BAD_REQUEST,
    status_code::FORBIDDEN,
    status_code::NOT_FOUND,
    status_code::NOT_ACCEPTABLE,
    status_code::CONFLICT,
    status_code::GONE,
    status_code::PREFIX_TOO_LONG,
    status_code::INTERNAL_ERROR,
    status_code::TIMEOUT,
];

/// A Data that the server sent.
pub struct Answer<'a> {
    data: Data<'a>,
    /// Index of the Interest that it answers; `None` for answers to other frames.
    index: Option<usize>,
}

impl<'a> Answer<'a> {
    pub fn read(frame: &'a [u8]) -> Self {
        let packet = LpPacket::decode(frame).expect("a frame");
        let fragment = packet.fragment.expect("a packet in it");
        assert!(fragment.len() <= MAX_PACKET_SIZE);
        let data = Data::decode(fragment).expect("a Data");
        verify_data(&data, &DigestVerifier).expect("a right digest");
        let index = match *packet.pit_token.as_slice() {
            [b'#', a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d]) as usize),
            ref token => {
                assert_ne!(token.len(), TOKEN_BYTES);
                None
            }
        };
        Answer { data, index }
    }

    /// Checks the answer. Returns the index of the Interest that it answers.
    pub fn check(&self, asked: &[Vec<u8>]) -> Option<usize> {
        let name = self.data.name;
        assert_eq!(self.data.freshness_ms, Some(1000), "{name}");
        if let Some(index) = self.index {
            let interest = Interest::decode(&asked[index]).expect("an Interest");
            assert!(interest.matches_data(&self.data), "{name} does not answer {}", interest.name);
        }
        let component = |index| name.get(index).map_or(&b""[..], |component| component.value);
        let is_command =
            COMMANDS.iter().any(|(module, verb)| (module.as_bytes(), verb.as_bytes()) == (component(2), component(3)));
        if is_command || self.data.content_type == content_type::NACK {
            self.check_response();
        } else {
            self.check_dataset(component(2), component(3)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        self.index
    }

    fn check_response(&self) {
        let response = ControlResponse::decode(self.data.content).expect("a ControlResponse");
        assert!(CODES.contains(&response.code), "{}", response.code);
        assert!(!response.text.is_empty());
        response.parameters().expect("ControlParameters");
    }

    fn check_dataset(&self, module: &[u8], verb: &[u8]) -> Result<(), CodecError> {
        let content = self.data.content;
        if (module, verb) == (b"faces", b"events") {
            return FaceEventNotification::decode(content).map(drop);
        }
        let last = self.data.final_block_id.and_then(|component| component.as_segment()).expect("a FinalBlockId");
        if last != 0 {
            // Only a dataset of one segment can be decoded here.
            return Ok(());
        }
        match (module, verb) {
            (b"status", b"general") => GeneralStatus::from_content(content).map(drop),
            (b"status", b"drops") => list::<DropCount>(content),
            (b"status", b"readvertise") => list::<ReadvertiseStatus>(content),
            (b"faces", b"list" | b"query") => list::<FaceStatus>(content),
            (b"faces", b"channels") => list::<ChannelStatus>(content),
            (b"fib", b"list") => list::<FibEntry>(content),
            (b"rib", b"list") => list::<RibEntry>(content),
            (b"strategy-choice", b"list" | b"loaded") => list::<StrategyChoice>(content),
            (b"cs", b"info") => list::<CsInfo>(content),
            (b"fib", b"snapshot") => {
                load(content).expect("a file of FIB entries");
                Ok(())
            }
            _ => panic!("no such dataset: {}", self.data.name),
        }
    }
}
