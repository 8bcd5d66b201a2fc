//! What clients of management decode: datasets, notifications, answers, and metadata of versioned objects.

use std::fmt::Debug;

use namehop_manage::nfd::{
    ChannelStatus, CodecError, ControlResponse, CsInfo, DatasetItem, DropCount, FaceEventNotification, FaceQueryFilter,
    FaceStatus, FibEntry, GeneralStatus, ReadvertiseStatus, RibEntry, StrategyChoice, decode_items, encode_item,
};
use namehop_traffic::segmented::ObjectMetadata;
use namehop_wire::security::NullSigner;
use namehop_wire::tlv::Writer;
use namehop_wire::{Data, DataBuilder, Name};

/// The content of a dataset that is a list: its items encode to something that decodes to the same.
///
/// # Errors
/// When it is no such list.
pub(crate) fn list<T: DatasetItem + PartialEq + Debug>(content: &[u8]) -> Result<(), CodecError> {
    let items = decode_items::<T>(content)?;
    let mut writer = Writer::new();
    items.iter().for_each(|item| encode_item(item, &mut writer));
    assert_eq!(decode_items::<T>(writer.as_slice()).as_ref(), Ok(&items));
    Ok(())
}

/// Content of a dataset, taken for each of them.
pub fn datasets(bytes: &[u8]) {
    let _ = list::<FaceStatus>(bytes);
    let _ = list::<ChannelStatus>(bytes);
    let _ = list::<FibEntry>(bytes);
    let _ = list::<RibEntry>(bytes);
    let _ = list::<StrategyChoice>(bytes);
    let _ = list::<CsInfo>(bytes);
    let _ = list::<DropCount>(bytes);
    let _ = list::<ReadvertiseStatus>(bytes);
    if let Ok(status) = GeneralStatus::decode(bytes) {
        assert_eq!(GeneralStatus::decode(&status.to_vec()), Ok(status));
    }
}

/// A notification, an answer or a filter: what decodes encodes to something that decodes to the same.
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

/// Metadata of a versioned object: a Data, or the Content of one.
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
    // The name was in the packet, perhaps with the LENGTH of its element in fewer bytes than that of the Content.
    let Ok(again) = again else { return assert!(bytes.len() > 8000) };
    assert_eq!(ObjectMetadata::read(&Data::decode(&again).expect("own encoding")), Some(metadata));
}
