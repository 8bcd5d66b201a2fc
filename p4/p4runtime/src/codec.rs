//! The gRPC codec: encodes and decodes messages with Prost, and refuses messages that would take much more memory than
//! their encoded form.
//!
//! An entry of a list takes two bytes in a message if it is empty, and up to a few hundred once it is decoded. Without
//! this limit, a request of 16 MiB could take some gigabytes.

use std::marker::PhantomData;

use prost::bytes::Buf;
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstDecoder, ProstEncoder};

use crate::shape::{self, LARGEST, Shape};

/// Encodes `E`, and decodes `D` if its lists take at most `most_bytes` of memory.
pub(crate) struct BoundedCodec<E, D> {
    most_bytes: usize,
    messages: PhantomData<(E, D)>,
}

impl<E, D> BoundedCodec<E, D> {
    pub(crate) fn new(most_bytes: usize) -> Self {
        BoundedCodec { most_bytes, messages: PhantomData }
    }
}

impl<E, D> Codec for BoundedCodec<E, D>
where
    E: Message + Send + 'static,
    D: Name + Default + Send + 'static,
{
    type Encode = E;
    type Decode = D;
    type Encoder = ProstEncoder<E>;
    type Decoder = BoundedDecoder<D>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder { shape: shape::of::<D>(), most_bytes: self.most_bytes, decoder: ProstDecoder::default() }
    }
}

/// Decodes `D` if its lists take at most `most_bytes` of memory.
pub(crate) struct BoundedDecoder<D> {
    shape: &'static Shape,
    most_bytes: usize,
    decoder: ProstDecoder<D>,
}

impl<D: Message + Default> Decoder for BoundedDecoder<D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        // Tonic collects the whole message in one buffer.
        check_size(self.shape, message.chunk(), self.most_bytes)?;
        self.decoder.decode(message)
    }
}

/// Checks that the lists of an encoded message take at most `most_bytes` of memory.
fn check_size(shape: &'static Shape, message: &[u8], most_bytes: usize) -> Result<(), Status> {
    // Each entry of a list has at least two bytes, so most messages need no closer look.
    if message.len() / 2 * LARGEST <= most_bytes {
        return Ok(());
    }
    let size = shape::size(shape, message);
    if size <= most_bytes {
        return Ok(());
    }
    Err(Status::resource_exhausted(format!(
        "the message of {} bytes would take {size} bytes of memory, and the limit is {most_bytes}: send smaller \
         batches",
        message.len()
    )))
}

#[cfg(test)]
mod tests {
    use std::iter;

    use prost::Message as _;
    use tonic::Code;

    use super::{LARGEST, check_size};
    use crate::dispatch::{REQUEST_BYTES, REQUEST_MEMORY};
    use crate::message::entity::Entity as Kind;
    use crate::message::field_match::{Exact, FieldMatchType};
    use crate::message::table_action::Type as ActionKind;
    use crate::message::{
        Action, Entity, FieldMatch, P4Data, SetForwardingPipelineConfigRequest, TableAction, TableEntry, Update,
        WriteRequest, action::Param,
    };
    use crate::shape::{self, Shape};

    /// A field with the tag and these contents.
    fn field(tag: u8, contents: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag << 3 | 2];
        prost::encoding::encode_varint(contents.len() as u64, &mut bytes);
        bytes.extend(contents);
        bytes
    }

    #[test]
    fn lists_of_empty_messages_are_refused_at_any_depth() {
        let (write, set) = (shape::of::<WriteRequest>(), shape::of::<SetForwardingPipelineConfigRequest>());
        let cases: [(&str, &'static Shape, &[u8], u8); 6] = [
            ("updates", write, &[], 4),
            ("keys", write, &[4, 2, 2], 2),
            ("replicas", write, &[4, 2, 9, 1], 2),
            ("actions of a set", write, &[4, 2, 2, 3, 4], 1),
            ("members of a group", write, &[4, 2, 4], 3),
            ("tables", set, &[5, 1], 2),
        ];
        let room = REQUEST_BYTES - 64;
        for (what, shape, path, tag) in cases {
            let empty = [tag << 3 | 2, 0].repeat(room / 2);
            let request = path.iter().rev().fold(empty, |inner, tag| field(*tag, &inner));
            let refused = check_size(shape, &request, REQUEST_MEMORY).expect_err(what);
            assert_eq!(refused.code(), Code::ResourceExhausted, "{what}");
            assert!(refused.message().contains("send smaller batches"), "{what}: {}", refused.message());
        }
    }

    #[test]
    fn messages_within_too_many_messages_are_refused() {
        let nested = |depth: usize| (0..depth).fold(Vec::new(), |inner, _| field(5, &field(1, &inner)));
        P4Data::decode(&*nested(40)).expect("Prost decodes 100 messages within messages");
        let deep = nested(2000);
        P4Data::decode(&*deep).expect_err("too deep");
        assert!(shape::size(shape::of::<P4Data>(), &deep) <= 100 * LARGEST);
    }

    #[test]
    fn a_request_full_of_small_entries_is_accepted() {
        let key = FieldMatchType::Exact(Exact { value: vec![10, 0, 0, 1] });
        let params = vec![Param { param_id: 1, value: vec![7] }];
        let action = Action { action_id: 0x0123_4567, params };
        let entry = TableEntry {
            table_id: 0x0223_4567,
            r#match: vec![FieldMatch { field_id: 1, field_match_type: Some(key) }],
            action: Some(TableAction { r#type: Some(ActionKind::Action(action)) }),
            ..TableEntry::default()
        };
        let entity = Some(Entity { entity: Some(Kind::TableEntry(entry)) });
        let update = field(4, &Update { r#type: 1, entity }.encode_to_vec());
        let request: Vec<u8> = iter::repeat_n(update.clone(), REQUEST_BYTES / update.len()).flatten().collect();
        check_size(shape::of::<WriteRequest>(), &request, REQUEST_MEMORY).expect("real entries fit");
    }
}
