//! A directory served over the loopback forwarder, read by the fetcher and by single Interests.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use namehop_client::endpoint::{ExpressError, Response, RouteOptions};
use namehop_client::testing::Loopback;
use namehop_wire::Data;
use namehop_wire::builder::InterestBuilder;
use namehop_wire::data::content_type;
use namehop_wire::security::DigestSigner;
use namehop_wire::tlv::Reader;
use tempfile::TempDir;

use super::*;
use crate::segmented::{FetchOptions, InOrder, ObjectMetadata, fetch};

const SEGMENT_BYTES: usize = 100;

fn options() -> FileServerOptions {
    FileServerOptions {
        segment_bytes: SEGMENT_BYTES,
        freshness_ms: 1000,
        metadata_freshness_ms: 1,
        threads: 2,
        signer: Arc::new(DigestSigner),
    }
}

/// A served directory and a consumer.
struct Scene {
    folder: TempDir,
    server: FileServer,
    consumer: Endpoint,
    producer: Endpoint,
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = Loopback::new();
        let producer = hub.endpoint();
        let server = FileServer::start(&name("/F"), folder.path(), options()).unwrap();
        server.answer(&producer);
        producer.register_route(&name("/F"), &RouteOptions::default()).await.unwrap();
        Self { folder, server, consumer: hub.endpoint(), producer }
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn request(&self, name: &Name, can_be_prefix: bool) -> Result<Response, ExpressError> {
        self.request_within(name, can_be_prefix, 10_000).await
    }

    async fn request_within(
        &self,
        name: &Name,
        can_be_prefix: bool,
        lifetime_ms: u64,
    ) -> Result<Response, ExpressError> {
        let interest = InterestBuilder::new(name).can_be_prefix(can_be_prefix).must_be_fresh(can_be_prefix);
        self.consumer.request(interest.lifetime_ms(lifetime_ms)).await
    }

    async fn metadata(&self, uri: &str) -> Response {
        self.request(&name(uri).append_keyword("metadata"), true).await.unwrap_or_else(|error| panic!("{uri}: {error}"))
    }

    /// Returns the versioned name in the metadata of `uri`.
    async fn versioned(&self, uri: &str) -> Name {
        let metadata = self.metadata(uri).await;
        ObjectMetadata::read(&metadata.data().unwrap()).unwrap().name
    }

    async fn is_refused(&self, uri: &str) -> bool {
        let metadata = self.metadata(uri).await;
        let data = metadata.data().unwrap();
        data.content_type == content_type::NACK && data.content.is_empty()
    }

    async fn is_silent(&self, name: &Name) -> bool {
        matches!(self.request_within(name, false, 150).await, Err(ExpressError::Timeout { .. }))
    }

    async fn fetch(&self, uri: &str) -> Vec<u8> {
        let mut content = Vec::new();
        let mut output = InOrder::new(&mut content);
        fetch(&self.consumer, &name(uri), &mut output, &FetchOptions::default(), |_| {}).await.unwrap();
        content
    }
}

/// Returns the number in the metadata element of type `typ`.
fn number(data: &Data<'_>, typ: u32) -> Option<u64> {
    let mut reader = Reader::new(data.content);
    while !reader.is_empty() {
        let element = reader.read_element().unwrap();
        if element.typ == typ {
            return Some(namehop_wire::tlv::decode_nni(element.value).unwrap());
        }
    }
    None
}

#[tokio::test]
async fn files_and_listings_arrive_whole() {
    let scene = Scene::new().await;
    for size in [0usize, 1, 99, 100, 101, 5000] {
        let content: Vec<u8> = (0..size).map(|at| (at * 7 / 3) as u8).collect();
        scene.write(&format!("sub/{size}.bin"), &content);
        assert!(scene.fetch(&format!("/F/sub/{size}.bin")).await == content, "{size}");
    }
    let names: Vec<String> = (0..50).map(|number| format!("file with a long name {number:02}")).collect();
    for name in &names {
        scene.write(&format!("many/{name}"), "");
    }
    scene.write("many/zz/inside", "");
    symlink("/etc", scene.folder.path().join("many/link")).unwrap();
    let _socket = UnixListener::bind(scene.folder.path().join("many/socket")).unwrap();
    let expected: String = names.iter().map(|name| format!("{name}\0")).collect::<String>() + "zz/\0";
    assert!(expected.len() > 10 * SEGMENT_BYTES);
    // Without and with the keyword.
    assert_eq!(String::from_utf8(scene.fetch("/F/many").await).unwrap(), expected);
    assert_eq!(String::from_utf8(scene.fetch("/F/many/32=ls").await).unwrap(), expected);
    assert_eq!(scene.fetch("/F").await, b"many/\0sub/\0");
    scene.write("new", "");
    assert_eq!(scene.fetch("/F").await, b"many/\0new\0sub/\0", "a changed directory must get a new version");
}

#[tokio::test]
async fn metadata_say_what_there_is() {
    let scene = Scene::new().await;
    scene.write("file", [7; 250]);
    let changed = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    let file = fs::File::options().write(true).open(scene.folder.path().join("file")).unwrap();
    file.set_modified(changed).unwrap();
    let response = scene.metadata("/F/file").await;
    let data = response.data().unwrap();
    assert!(name("/F/file/32=metadata").is_prefix_of(data.name));
    assert_eq!((data.content_type, data.freshness_ms), (content_type::BLOB, Some(1)));
    let metadata = ObjectMetadata::read(&data).unwrap();
    assert_eq!(metadata.name, name("/F/file/v=1700000000123456789"));
    assert_eq!(metadata.final_block, Some(Name::new().append_segment(2)));
    assert_eq!((number(&data, 0xF500), number(&data, 0xF502)), (Some(100), Some(250)));
    assert_eq!(number(&data, 0xF504).map(|mode| mode & 0o170_000), Some(0o100_000));
    assert_eq!(number(&data, 0xF50C), Some(1_700_000_000_123_456_789));
    assert!(number(&data, 0xF506) > Some(1_700_000_000_000_000_000) && number(&data, 0xF50A).is_some());

    let response = scene.metadata("/F").await;
    let data = response.data().unwrap();
    let metadata = ObjectMetadata::read(&data).unwrap();
    assert!(name("/F/32=ls").is_prefix_of(metadata.name.as_ref()));
    assert_eq!(metadata.final_block, None);
    assert_eq!((number(&data, 0xF500), number(&data, 0xF502)), (None, None));
    assert_eq!(number(&data, 0xF504).map(|mode| mode & 0o170_000), Some(0o040_000));
}

#[tokio::test]
async fn nothing_outside_and_nothing_special_is_served() {
    let scene = Scene::new().await;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    scene.write("file", "x");
    let at = |path: &str| scene.folder.path().join(path);
    symlink(outside.path(), at("folder-link")).unwrap();
    symlink(outside.path().join("secret"), at("file-link")).unwrap();
    symlink("file", at("inside-link")).unwrap();
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    for uri in [
        "/F/folder-link/secret",
        "/F/file-link",
        "/F/inside-link",
        "/F/pipe",
        "/F/socket",
        "/F/nothing",
        "/F/file/below",
        "/F/file/32=ls",
    ] {
        assert!(scene.is_refused(uri).await, "{uri}");
        let segment = name(uri).append_version(1).append_segment(0);
        assert!(scene.is_silent(&segment).await, "{uri}");
    }
    for uri in ["/F/...../secret/32=metadata", "/F/%2Fetc/32=metadata", "/F/file"] {
        assert!(
            matches!(scene.request_within(&name(uri), true, 150).await, Err(ExpressError::Timeout { .. })),
            "{uri}"
        );
    }
    let long = "a".repeat(255);
    assert!(scene.is_refused(&format!("/F/{}", [long.as_str(); 30].join("/"))).await);
    let interests = scene.producer.counters().in_interests;
    let counters = scene.server.stop(&scene.producer).await;
    assert_eq!((counters.nacks, counters.missing, counters.unrecognized), (9, 8, 3), "{counters:?}");
    assert_eq!(interests, 9 + 8 + 3, "every Interest must be counted exactly once");
}

#[tokio::test]
async fn segments_are_of_the_requested_version() {
    let scene = Scene::new().await;
    scene.write("file", [1; 250]);
    let before = scene.versioned("/F/file").await;
    assert!(scene.request(&before.clone().append_segment(2), false).await.is_ok());
    assert!(scene.is_silent(&before.clone().append_segment(3)).await);
    // The file changes in place and gets another size; then another file of the same size replaces it.
    scene.write("file", [2; 150]);
    assert!(scene.is_silent(&before.clone().append_segment(0)).await);
    let after = scene.versioned("/F/file").await;
    assert_ne!(before, after);
    assert!(scene.is_silent(&before.append_segment(0)).await);
    assert_eq!(scene.request(&after.clone().append_segment(0), false).await.unwrap().data().unwrap().content, [2; 100]);
    scene.write("other", [3; 150]);
    fs::rename(scene.folder.path().join("other"), scene.folder.path().join("file")).unwrap();
    let replaced = scene.versioned("/F/file").await;
    assert_eq!(scene.request(&replaced.append_segment(0), false).await.unwrap().data().unwrap().content, [3; 100]);
    assert!(scene.is_silent(&after.append_segment(0)).await);
    let counters = scene.server.counters();
    assert_eq!((counters.other_version, counters.behind_end, counters.segments), (3, 1, 3), "{counters:?}");
    assert_eq!((counters.metadata, counters.bytes), (3, 50 + 100 + 100));
}

#[tokio::test]
async fn more_files_than_stay_open_are_served() {
    let scene = Scene::new().await;
    for number in 0..200 {
        scene.write(&format!("{number}"), format!("content {number}"));
    }
    for number in (0..200).chain(0..200) {
        assert_eq!(scene.fetch(&format!("/F/{number}")).await, format!("content {number}").as_bytes());
    }
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let start = |path: &str, segment_bytes| {
        let options = FileServerOptions { segment_bytes, ..options() };
        FileServer::start(&name("/F"), &folder.path().join(path), options).err()
    };
    assert!(matches!(start("file", 100), Some(FileServerError::Directory(_))));
    assert!(matches!(start("nothing", 100), Some(FileServerError::Directory(_))));
    assert!(matches!(start("", 0), Some(FileServerError::NoSegmentSize)));
    assert!(matches!(start("", 8790), Some(FileServerError::TooLarge(8790))));
    assert!(matches!(start("", usize::MAX), Some(FileServerError::TooLarge(_))));
    assert!(start("", 8000).is_none());
}
