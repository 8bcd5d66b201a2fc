//! Answers: Data signed with DigestSha256, in link-layer packets that return the PIT token. All are marked as not to be
//! cached, because an answer is valid only when given, and a million answers would evict everything else.

use namehop_client::nfd::ControlResponse;
use namehop_client::nfd::numbers::status_code;
use namehop_wire::data::content_type;
use namehop_wire::lp::{self, CACHE_POLICY_NO_CACHE, LpHeader, PitToken};
use namehop_wire::security::DigestSigner;
use namehop_wire::{ComponentRef, DataBuilder, MAX_PACKET_SIZE, Name, NameRef};

use super::{ControlPlane, Management, NotSaved};

/// FreshnessPeriod of every Data that the server sends, in milliseconds.
pub(super) const FRESHNESS_MS: u64 = 1000;

/// Bytes reserved for the link header of an answer: LpPacket, PIT token, CachePolicy, Fragment.
const LINK_HEADER_BYTES: usize = 64;

/// Name and PIT token of the Interest to be answered.
#[derive(Debug, Clone)]
pub(super) struct ReplyTo {
    pub(super) name: Name,
    pub(super) token: PitToken,
}

/// Builds a Data of the server; `None` if it would be too large for a link packet.
pub(super) fn data(
    name: NameRef<'_>,
    content_type: u64,
    content: &[u8],
    final_block_id: Option<ComponentRef<'_>>,
) -> Option<Vec<u8>> {
    let mut builder = DataBuilder::new(name).content_type(content_type).freshness_ms(FRESHNESS_MS).content(content);
    if let Some(component) = final_block_id {
        builder = builder.final_block_id(component);
    }
    builder.sign(&DigestSigner).ok().filter(|packet| packet.len() <= MAX_PACKET_SIZE - LINK_HEADER_BYTES)
}

/// Returns the response to a command that was refused because its change could not be saved.
pub(super) fn not_saved(error: &NotSaved) -> ControlResponse {
    ControlResponse::new(status_code::INTERNAL_ERROR, error.to_string())
}

impl<C: ControlPlane> Management<C> {
    /// Sends a Data that answers the Interest with this token.
    pub(super) fn send(&self, token: PitToken, data: &[u8]) {
        let header = LpHeader { pit_token: token, cache_policy: Some(CACHE_POLICY_NO_CACHE), ..LpHeader::default() };
        (self.output)(lp::encode_packet(&header, Some(data)));
    }

    /// Answers a command.
    pub(super) fn respond(&self, to: &ReplyTo, response: &ControlResponse) {
        tracing::debug!(name = %to.name, code = response.code, text = response.text, "command answered");
        self.send_response(to, response, content_type::BLOB);
    }

    /// Refuses a dataset request.
    pub(super) fn reject_dataset(&self, to: &ReplyTo, response: &ControlResponse) {
        self.send_response(to, response, content_type::NACK);
    }

    fn send_response(&self, to: &ReplyTo, response: &ControlResponse, content_type: u64) {
        let whole = data(to.name.as_ref(), content_type, &response.to_vec(), None);
        // A body repeats long names of the command. Without it, the answer fits wherever the command did.
        let shorter = |text: &str| {
            data(to.name.as_ref(), content_type, &ControlResponse::new(response.code, text).to_vec(), None)
        };
        // A text, too, may repeat parts of the request.
        let fitting =
            whole.or_else(|| shorter(&response.text)).or_else(|| shorter("the text of the answer is too long"));
        if let Some(data) = fitting {
            self.send(to.token, &data);
        }
    }
}
