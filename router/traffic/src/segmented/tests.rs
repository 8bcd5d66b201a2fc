//! Publisher and fetcher over the loopback forwarder, with and without faults.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use namehop_client::endpoint::{Answer, Endpoint, ExpressError, RouteOptions};
use namehop_client::testing::{Faults, Loopback};
use namehop_wire::builder::{DataBuilder, InterestBuilder};
use namehop_wire::lp::NackReason;
use namehop_wire::security::{DigestSigner, HmacSigner, Signer};

use super::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn options(segment_bytes: usize) -> PublishOptions {
    PublishOptions {
        segment_bytes,
        freshness_ms: 10_000,
        metadata_freshness_ms: 10,
        version: None,
        signer: Arc::new(DigestSigner),
    }
}

/// Returns content in which neighbouring bytes differ.
fn bytes(length: usize) -> Vec<u8> {
    (0..length as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

async fn publish(hub: &Loopback, content: Vec<u8>, options: PublishOptions) -> (Endpoint, Arc<PublishedObject>) {
    let endpoint = hub.endpoint();
    let object = Arc::new(PublishedObject::new(&name("/O"), Content::Memory(content), options).unwrap());
    object.publish(&endpoint);
    endpoint.register_route(&name("/O"), &RouteOptions::default()).await.unwrap();
    (endpoint, object)
}

async fn get(hub: &Loopback, uri: &str, options: &FetchOptions) -> Result<(Vec<u8>, FetchReport), FetchError> {
    let mut output = Vec::new();
    let report = fetch(&hub.endpoint(), &name(uri), &mut InOrder::new(&mut output), options, |_| {}).await?;
    Ok((output, report))
}

/// Time-outs short enough for tests.
fn impatient() -> FetchOptions {
    let rto = RtoBounds {
        initial: Duration::from_millis(50),
        min: Duration::from_millis(20),
        max: Duration::from_millis(200),
    };
    FetchOptions { rto, lifetime_ms: 300, discovery_retries: 1, ..FetchOptions::default() }
}

#[tokio::test]
async fn objects_of_all_sizes_arrive_whole() {
    for size in [0usize, 1, 99, 100, 101, 5000] {
        let hub = Loopback::new();
        let (_endpoint, object) = publish(&hub, bytes(size), options(100)).await;
        let (output, report) = get(&hub, "/O", &FetchOptions::default()).await.unwrap();
        assert_eq!(output, bytes(size));
        assert_eq!(report.name, *object.versioned_name());
        assert_eq!(report.segments, (size as u64).div_ceil(100).max(1));
        assert_eq!((report.discovery, report.unverified), (DiscoveryMethod::Metadata, 0));
        assert_eq!((object.counters().metadata, object.counters().bytes), (1, size as u64));
    }
}

#[tokio::test]
async fn twelve_megabytes_arrive_quickly() {
    let hub = Loopback::new();
    let content = bytes(12 << 20);
    let (_endpoint, _object) = publish(&hub, content.clone(), options(8000)).await;
    let (output, report) = get(&hub, "/O", &FetchOptions::default()).await.unwrap();
    assert!(output == content);
    assert_eq!((report.bytes, report.counts.timeouts), (12 << 20, 0));
    assert!(report.elapsed < Duration::from_secs(10), "{report:?}");
}

#[tokio::test]
async fn losses_and_marks_are_overcome_by_every_window() {
    for window in [WindowKind::Adaptive, WindowKind::Cubic, WindowKind::Aimd, WindowKind::Fixed] {
        let hub = Loopback::with_faults(Faults { lose_every: 50, mark_every: 70, ..Faults::default() });
        let content = bytes(200_000);
        let (_endpoint, _object) = publish(&hub, content.clone(), options(500)).await;
        let mut seen = Vec::new();
        let mut output = Vec::new();
        let options = FetchOptions { window, ..impatient() };
        let mut in_order = InOrder::new(&mut output);
        let report =
            fetch(&hub.endpoint(), &name("/O"), &mut in_order, &options, |progress| seen.push(progress)).await.unwrap();
        assert!(output == content);
        let counts = report.counts;
        assert!(counts.retransmissions >= 4 && counts.congestion_marks >= 3, "{report:?}");
        assert!(
            report.window_decreases > 0 && report.window_decreases <= counts.retransmissions + counts.congestion_marks
        );
        let losses = counts.overtaken + counts.timeouts + counts.nacks;
        assert_eq!((counts.data, counts.interests), (400, 400 + losses + counts.unneeded()), "{counts:?}");
        assert_eq!(losses, counts.retransmissions, "each loss must be retransmitted once: {counts:?}");
        assert!(report.rtt_ns.len() > 300 && report.rtt_ns.max() >= report.rtt_ns.value_at_quantile(0.5));
        let last = seen.last().unwrap();
        assert_eq!((last.bytes, last.total_segments), (200_000, Some(400)));
        assert!(seen.is_sorted_by_key(|progress| progress.bytes));
    }
}

#[tokio::test]
async fn the_version_may_be_given_or_found_by_prefix() {
    let hub = Loopback::new();
    let (_endpoint, object) = publish(&hub, bytes(300), PublishOptions { version: Some(7), ..options(100) }).await;
    assert_eq!(object.versioned_name().to_string(), "/O/v=7");
    let (output, report) = get(&hub, "/O/v=7", &impatient()).await.unwrap();
    assert_eq!((output, report.discovery), (bytes(300), DiscoveryMethod::Given));
    let by_prefix = FetchOptions { discovery: Discovery::Prefix, ..impatient() };
    let (output, report) = get(&hub, "/O", &by_prefix).await.unwrap();
    assert_eq!((output, report.discovery), (bytes(300), DiscoveryMethod::Prefix));
    let (output, report) = get(&hub, "/O/v=7/seg=2", &impatient()).await.unwrap();
    assert_eq!((output, report.segments), (bytes(300)[200..].to_vec(), 1));
}

#[tokio::test]
async fn metadata_found_by_prefix_is_not_taken_for_the_object() {
    let hub = Loopback::new();
    let producer = hub.endpoint();
    producer.produce(&name("/O"), |request| {
        // Answers as a cache with metadata does: metadata precedes segments in canonical order.
        let (data_name, content) = match request.interest.name.len() {
            1 => (name("/O/32=metadata/v=1/seg=0"), name("/O/v=7").to_element()),
            _ => (request.interest.name.to_owned(), b"whole".to_vec()),
        };
        let last = Name::new().append_segment(0);
        let data = DataBuilder::new(data_name).content(content).final_block_id(last.last().unwrap());
        Answer::Data(data.sign(&DigestSigner).unwrap())
    });
    producer.register_route(&name("/O"), &RouteOptions::default()).await.unwrap();
    let by_prefix = FetchOptions { discovery: Discovery::Prefix, ..impatient() };
    let (output, report) = get(&hub, "/O", &by_prefix).await.unwrap();
    assert_eq!((output.as_slice(), report.name), (b"whole".as_slice(), name("/O/v=7")));
    assert_eq!(report.discovery, DiscoveryMethod::Prefix);
}

#[tokio::test]
async fn metadata_is_only_a_hint_where_the_object_ends() {
    for expected_last in [0, 1, 2, 9, u64::MAX] {
        let hub = Loopback::new();
        let producer = hub.endpoint();
        producer.produce(&name("/O"), move |request| {
            let requested = request.interest.name.to_owned();
            let data = match requested.last().and_then(|last| last.as_segment()) {
                Some(segment) if segment <= 2 => {
                    let end = Name::new().append_segment(2);
                    DataBuilder::new(requested).content([segment as u8; 10]).final_block_id(end.last().unwrap())
                }
                Some(_) => return Answer::None,
                None => {
                    let end = Name::new().append_segment(expected_last);
                    let metadata = ObjectMetadata { name: name("/O/v=7"), final_block: Some(end) };
                    DataBuilder::new(name("/O/32=metadata/v=1/seg=0")).content(metadata.content())
                }
            };
            Answer::Data(data.sign(&DigestSigner).unwrap())
        });
        producer.register_route(&name("/O"), &RouteOptions::default()).await.unwrap();
        let (output, report) = get(&hub, "/O", &impatient()).await.unwrap();
        assert_eq!((output.len(), report.segments, report.counts.timeouts), (30, 3, 0), "{expected_last}");
    }
}

#[tokio::test]
async fn without_metadata_auto_discovery_falls_back_to_the_prefix() {
    let hub = Loopback::new();
    let producer = hub.endpoint();
    producer.produce(&name("/S"), |request| {
        if request.interest.name.len() > 1 {
            return Answer::None;
        }
        let (only, last) = (name("/S/only"), name("/only"));
        let data = DataBuilder::new(only).content("whole").final_block_id(last.last().unwrap());
        Answer::Data(data.sign(&DigestSigner).unwrap())
    });
    producer.register_route(&name("/S"), &RouteOptions::default()).await.unwrap();
    let (output, report) = get(&hub, "/S", &FetchOptions { discovery_retries: 0, ..impatient() }).await.unwrap();
    assert_eq!((output.as_slice(), report.name.to_string()), (b"whole".as_slice(), "/S/only".to_owned()));
}

/// Creates a producer of Data with these names and FinalBlockIds. A prefix is answered with the first Data under it.
async fn parts(hub: &Loopback, parts: &[(&str, &str)]) -> Endpoint {
    let parts: Vec<(Name, Option<Name>)> =
        parts.iter().map(|(part, end)| (name(part), (!end.is_empty()).then(|| name(end)))).collect();
    let producer = hub.endpoint();
    producer.produce(&name("/P"), move |request| {
        let requested = request.interest.name;
        let fits = |part: &Name| {
            part.as_ref() == requested || request.interest.can_be_prefix && requested.is_prefix_of(part.as_ref())
        };
        let Some((number, (part, end))) = parts.iter().enumerate().find(|(_, (part, _))| fits(part)) else {
            return Answer::None;
        };
        let data = DataBuilder::new(part.clone()).content([number as u8; 10]);
        let data = match end.as_ref().and_then(|end| end.last()) {
            Some(end) => data.final_block_id(end),
            None => data,
        };
        Answer::Data(data.sign(&DigestSigner).unwrap())
    });
    producer.register_route(&name("/P"), &RouteOptions::default()).await.unwrap();
    producer
}

/// Options that give up after a few unanswered Interests.
fn hasty() -> FetchOptions {
    FetchOptions { discovery_retries: 0, max_attempts: 2, ..impatient() }
}

#[tokio::test]
async fn objects_with_marked_versions_and_segments_arrive_whole() {
    let last = "/%00%02";
    for named in [
        ["/P/%FD%01/%00%00", "/P/%FD%01/%00%01", "/P/%FD%01/%00%02"],
        ["/P/%00%00", "/P/%00%01", "/P/%00%02"],
        // Only the version has the other form.
        ["/P/v=1/%00%00", "/P/v=1/%00%01", "/P/v=1/%00%02"],
    ] {
        for ends in [[last, last, last], ["", "", last]] {
            let hub = Loopback::new();
            let list: Vec<(&str, &str)> = named.into_iter().zip(ends).collect();
            let _producer = parts(&hub, &list).await;
            let (output, report) = get(&hub, "/P", &hasty()).await.unwrap();
            assert_eq!((output.len(), report.segments), (30, 3), "{named:?} {ends:?}");
        }
    }
    let hub = Loopback::new();
    let _producer = parts(&hub, &[("/P/%FD%01/%00%00", "/%00%01"), ("/P/%FD%01/%00%01", "/%00%01")]).await;
    let (output, report) = get(&hub, "/P/%FD%01", &hasty()).await.unwrap();
    assert_eq!((output.len(), report.discovery), (20, DiscoveryMethod::Given));
    let (output, report) = get(&hub, "/P/%FD%01/%00%01", &hasty()).await.unwrap();
    assert_eq!((output.len(), report.segments), (10, 1));
}

/// A fetch that may have retrieved only a part is an error for every naming of the parts.
#[tokio::test]
async fn parts_that_are_named_in_other_ways_are_never_taken_for_the_whole() {
    for (list, is_known) in [
        (&[("/P/1", "/3"), ("/P/2", "/3"), ("/P/3", "/3")][..], false),
        (&[("/P/part0", ""), ("/P/part1", "")], false),
        (&[("/P/%FB%00", "/%FB%0A"), ("/P/%FB%0A", "/%FB%0A")], false),
        (&[("/P/%FE%00", ""), ("/P/%FE%01", "")], false),
        (&[("/P/off=0", ""), ("/P/off=10", "")], false),
        (&[("/P/%FD%01", "/%FD%02")], false),
        // The FinalBlockId has another form than the segments, or is missing.
        (&[("/P/seg=0", "/%00%01"), ("/P/seg=1", "/%00%01")], false),
        (&[("/P/%00%00", "/seg=1"), ("/P/%00%01", "/seg=1")], false),
        (&[("/P/seg=0", ""), ("/P/seg=1", "")], false),
        (&[("/P/seg=1", "/seg=1")], false),
        // The object is complete.
        (&[("/P/only", "/only")], true),
        (&[("/P", "")], true),
        (&[("/P/%FD%01", "")], true),
        (&[("/P/v=1", "")], true),
        (&[("/P/%FB%00", "/%FB%00")], true),
    ] {
        let hub = Loopback::new();
        let _producer = parts(&hub, list).await;
        let result = get(&hub, "/P", &hasty()).await.map(|(output, _)| output.len());
        assert_eq!(result.as_ref().ok(), is_known.then_some(&10), "{list:?}: {result:?}");
    }
}

/// Segments without content do not end the object.
#[tokio::test]
async fn empty_segments_do_not_end_an_object() {
    let hub = Loopback::new();
    let producer = hub.endpoint();
    producer.produce(&name("/E"), |request| {
        let Some(segment) = request.interest.name.last().and_then(|last| last.as_segment()) else {
            return Answer::None;
        };
        let content: &[u8] = if segment == 1 { b"all" } else { b"" };
        let last = Name::new().append_segment(2);
        let data =
            DataBuilder::new(request.interest.name.to_owned()).content(content).final_block_id(last.last().unwrap());
        Answer::Data(data.sign(&DigestSigner).unwrap())
    });
    producer.register_route(&name("/E"), &RouteOptions::default()).await.unwrap();
    let (output, report) = get(&hub, "/E/v=1", &hasty()).await.unwrap();
    assert_eq!((output.as_slice(), report.segments), (b"all".as_slice(), 3));
}

#[tokio::test]
async fn an_absent_object_is_reported_as_what_it_is() {
    let hub = Loopback::new();
    let error = get(&hub, "/none", &impatient()).await.unwrap_err();
    assert!(matches!(error, FetchError::Discovery(ExpressError::Nack(NackReason::NO_ROUTE))), "{error}");
    let (_endpoint, _object) = publish(&hub, bytes(10), options(100)).await;
    let error = get(&hub, "/O/v=1", &FetchOptions { max_attempts: 2, ..impatient() }).await.unwrap_err();
    assert!(matches!(error, FetchError::Segment { segment: 0, attempts: 2, .. }) && error.is_timeout(), "{error}");
    let producer = hub.endpoint();
    producer.produce(&name("/N"), |request| {
        let is_metadata = request.interest.can_be_prefix;
        let name = request.interest.name.to_owned();
        let name = if is_metadata { name.append_version(1).append_segment(0) } else { name };
        let data = DataBuilder::new(name).content_type(3).sign(&DigestSigner).unwrap();
        Answer::Data(data)
    });
    producer.register_route(&name("/N"), &RouteOptions::default()).await.unwrap();
    // The metadata is a Nack as well, so discovery does not wait for a time-out.
    for uri in ["/N/v=1", "/N"] {
        let error = get(&hub, uri, &impatient()).await.unwrap_err();
        assert!(matches!(error, FetchError::ProducerNack(_)), "{error}");
    }
}

#[tokio::test]
async fn only_nacks_count_against_a_missing_route() {
    for (nacks, is_fetched) in [(3, true), (4, false)] {
        let hub = Loopback::new();
        let producer = hub.endpoint();
        let requests = AtomicU32::new(0);
        producer.produce(&name("/N"), move |request| match requests.fetch_add(1, Ordering::Relaxed) {
            0..3 => Answer::None,
            number if number < 3 + nacks => Answer::Nack(NackReason::NO_ROUTE),
            _ => {
                let name = request.interest.name.to_owned();
                let last = name.as_ref().last().expect("a segment");
                Answer::Data(DataBuilder::new(name.clone()).final_block_id(last).sign(&DigestSigner).unwrap())
            }
        });
        producer.register_route(&name("/N"), &RouteOptions::default()).await.unwrap();
        let result = get(&hub, "/N/v=1", &FetchOptions { max_attempts: 20, ..impatient() }).await;
        assert_eq!(result.is_ok(), is_fetched, "{nacks}: {:?}", result.err());
    }
}

#[tokio::test]
async fn wrong_signatures_are_refused() {
    /// Signs with the right type but wrong bytes.
    struct Liar;
    impl Signer for Liar {
        fn signature_type(&self) -> u64 {
            0
        }
        fn key_locator(&self) -> Option<namehop_wire::KeyLocator<'_>> {
            None
        }
        fn sign(&self, _: &[&[u8]]) -> Result<Vec<u8>, namehop_wire::security::SecurityError> {
            Ok(vec![0; 32])
        }
    }
    let hub = Loopback::new();
    let (_endpoint, _object) =
        publish(&hub, bytes(300), PublishOptions { signer: Arc::new(Liar), ..options(100) }).await;
    let error = get(&hub, "/O", &impatient()).await.unwrap_err();
    assert!(matches!(error, FetchError::Verification { .. }), "{error}");
    let careless = FetchOptions { verification: Verification::None, ..impatient() };
    assert_eq!(get(&hub, "/O", &careless).await.unwrap().1.unverified, 3);
}

#[tokio::test]
async fn keys_are_verified_when_given() {
    let hub = Loopback::new();
    let signer = Arc::new(HmacSigner::new(b"secret", name("/key")));
    let (_endpoint, _object) = publish(&hub, bytes(300), PublishOptions { signer, ..options(100) }).await;
    let with = |verification| FetchOptions { verification, ..impatient() };
    assert_eq!(get(&hub, "/O", &with(Verification::by_secret(b"secret"))).await.unwrap().1.unverified, 0);
    assert_eq!(get(&hub, "/O", &with(Verification::Digest)).await.unwrap().1.unverified, 3);
    let error = get(&hub, "/O", &with(Verification::by_secret(b"wrong"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Verification { .. }), "{error}");
}

#[tokio::test]
async fn files_are_read_as_segments_are_requested() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes(1050)).unwrap();
    let hub = Loopback::new();
    let endpoint = hub.endpoint();
    let content = Content::open(file.path()).unwrap();
    let object = Arc::new(PublishedObject::new(&name("/O"), content, options(100)).unwrap());
    assert_eq!((object.segment_count(), object.size_bytes()), (11, 1050));
    object.publish(&endpoint);
    endpoint.register_route(&name("/O"), &RouteOptions::default()).await.unwrap();
    assert_eq!(get(&hub, "/O", &impatient()).await.unwrap().0, bytes(1050));
    assert!(Content::open(file.path().parent().unwrap()).is_err());
}

#[tokio::test]
async fn interests_for_other_things_stay_unanswered() {
    let hub = Loopback::new();
    let (_endpoint, object) = publish(&hub, bytes(300), PublishOptions { version: Some(7), ..options(100) }).await;
    let consumer = hub.endpoint();
    for uri in ["/O/v=7/seg=3", "/O/v=8/seg=0", "/O/32=metadata", "/O/v=7", "/O/x"] {
        let request = consumer.request(InterestBuilder::new(name(uri)).lifetime_ms(30)).await;
        assert!(matches!(request, Err(ExpressError::Timeout { .. })), "{uri}");
    }
    assert_eq!(object.counters().unanswered, 5);
    assert!(object.idle_time() < Duration::from_secs(5));
}

#[test]
fn sizes_that_cannot_work_are_refused() {
    let refuse = |segment_bytes| {
        let content = Content::Memory(bytes(20_000));
        PublishedObject::new(&name("/O"), content, options(segment_bytes)).err().unwrap()
    };
    assert_eq!(refuse(0), PublishError::NoSegmentSize);
    assert_eq!(refuse(8790), PublishError::TooLarge { segment_bytes: 8790 });
    // The number of the last segment is a byte longer than the one before it.
    let fits = |segments: usize, segment_bytes: usize| {
        let content = Content::Memory(vec![0; segments * segment_bytes]);
        PublishedObject::new(&name("/O"), content, options(segment_bytes)).is_ok()
    };
    let largest = (8000..8800).rev().find(|&bytes| fits(256, bytes)).unwrap();
    assert!(!fits(257, largest) && fits(257, largest - 2));
}
