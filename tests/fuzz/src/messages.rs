//! Messages that management clients decode: datasets, notifications, responses, and metadata of versioned objects.

use std::fmt::Debug;

use namehop_client::nfd::{
    ChannelStatus, CodecError, ControlResponse, CsInfo, DropCount, Element, FaceEventNotification, FaceQueryFilter,
    FaceStatus, FibEntry, GeneralStatus, ReadvertiseStatus, Record, RibEntry, StrategyChoice, decode_items,
};
use namehop_traffic::segmented::ObjectMetadata;
use namehop_wire::security::NullSigner;
use namehop_wire::tlv::Writer;
use namehop_wire::{Data, DataBuilder, Name};

/// Checks the content of a list dataset: its items decode, encode and decode to the same items.
///
/// # Errors
/// The content is not such a list.
pub(crate) fn list<T: Element + PartialEq + Debug>(content: &[u8]) -> Result<(), CodecError> {
    let items = decode_items::<T>(content)?;
    let mut writer = Writer::new();
    items.iter().for_each(|item| item.encode(&mut writer));
    assert_eq!(decode_items::<T>(writer.as_slice()).as_ref(), Ok(&items));
    Ok(())
}

/// Checks the content as each of the datasets.
pub fn datasets(bytes: &[u8]) {
    let _ = list::<FaceStatus>(bytes);
    let _ = list::<ChannelStatus>(bytes);
    let _ = list::<FibEntry>(bytes);
    let _ = list::<RibEntry>(bytes);
    let _ = list::<StrategyChoice>(bytes);
    let _ = list::<CsInfo>(bytes);
    let _ = list::<DropCount>(bytes);
    let _ = list::<ReadvertiseStatus>(bytes);
    if let Ok(status) = GeneralStatus::from_content(bytes) {
        assert_eq!(GeneralStatus::from_content(&status.to_content()), Ok(status));
    }
}

/// Checks notifications, filters and responses: encoding and decoding a decoded message gives the same message.
pub fn management_messages(bytes: &[u8]) {
    if let Ok(event) = FaceEventNotification::decode(bytes) {
        assert_eq!(FaceEventNotification::decode(&event.to_vec()), Ok(event));
    }
    if let Ok(filter) = FaceQueryFilter::decode(bytes) {
        assert_eq!(FaceQueryFilter::decode(&filter.to_vec()), Ok(filter));
    }
    if let Ok(response) = ControlResponse::decode(bytes) {
        let _ = response.parameters();
        assert_eq!(ControlResponse::decode(&response.to_vec()), Ok(response));
    }
}

/// Checks metadata of a versioned object, given as a Data or as its Content.
pub fn rdr_metadata(bytes: &[u8]) {
    let packet;
    let data = match Data::decode(bytes) {
        Ok(data) => data,
        Err(_) => {
            let name: Name = "/a/32=metadata/v=1/seg=0".parse().expect("a name");
            let Ok(built) = DataBuilder::new(name).content(bytes).sign(&NullSigner) else { return };
            packet = built;
            Data::decode(&packet).expect("own encoding")
        }
    };
    let Some(metadata) = ObjectMetadata::read(&data) else { return };
    let again = DataBuilder::new(data.name).content(metadata.content()).sign(&NullSigner);
    // The packet contained these elements, possibly with a shorter encoding of their TLV-LENGTHs than that of the
    // Content.
    let Ok(again) = again else { return assert!(bytes.len() > 8000) };
    assert_eq!(ObjectMetadata::read(&Data::decode(&again).expect("own encoding")), Some(metadata));
}
