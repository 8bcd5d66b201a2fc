//! Capture: the frames in it, and its end.

use namehop_client::nfd::{CaptureStream, CapturedFrame, Element};
use namehop_face::capture::Direction;
use namehop_wire::MAX_PACKET_SIZE;

use super::*;

fn request(count: u64) -> ControlParameters {
    ControlParameters { count: Some(count), ..named("/A") }
}

async fn start(fixture: &Fixture, parameters: &ControlParameters) -> u64 {
    fixture.command("capture", "start", parameters).await.code
}

async fn take(fixture: &Fixture, position: u64) -> ControlResponse {
    let parameters = ControlParameters { count: Some(position), ..ControlParameters::default() };
    fixture.command("capture", "take", &parameters).await
}

/// Records Interests as received by a worker.
fn receive(fixture: &Fixture, names: &[String]) {
    let frames: Vec<Vec<u8>> =
        names.iter().map(|text| InterestBuilder::new(name(text)).build().expect("an Interest")).collect();
    if let Some(recorder) = &mut *fixture.router().captured.borrow_mut() {
        recorder.record(Direction::Received, &frames, |frame| (FaceId(256), frame));
    }
}

/// Reads all frames captured so far.
async fn take_all(fixture: &Fixture, stream: &mut CaptureStream) -> Vec<CapturedFrame> {
    let mut all = Vec::new();
    loop {
        let response = take(fixture, stream.position()).await;
        assert_eq!(response.code, 200);
        match stream.add(&response.body).expect("a piece") {
            (frames, true) => all.extend(frames),
            (_, false) => return all,
        }
    }
}

#[test]
fn what_is_no_capture_is_refused() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(take(&fixture, 0).await.code, 404);
        for (parameters, code) in [
            (named("/A"), 400),
            (request(0), 400),
            (request(1_000_001), 400),
            (request(u64::MAX), 400),
            (ControlParameters { face_id: Some(9_999), ..request(1) }, 404),
            (ControlParameters { face_id: Some(u64::MAX), ..request(1) }, 404),
            (ControlParameters { face_id: Some(APP), mtu_bytes: Some(u64::MAX), ..request(1_000_000) }, 200),
            (request(1), 409),
        ] {
            assert_eq!(start(&fixture, &parameters).await, code, "{parameters:?}");
        }
        for position in [1, u64::MAX] {
            assert_eq!(take(&fixture, position).await.code, 400, "{position}");
        }
        assert_eq!(fixture.command("capture", "stop", &ControlParameters::default()).await.code, 200);
        assert!(fixture.router().captured.borrow().is_none());
        assert_eq!(take(&fixture, 0).await.code, 404);
    });
}

#[test]
fn frames_are_sent_in_pieces_that_can_be_requested_twice() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(start(&fixture, &request(1_000_000)).await, 200);
        let mut stream = CaptureStream::default();
        assert_eq!(take_all(&fixture, &mut stream).await, []);
        let names: Vec<String> = (0..400).map(|number| format!("/A/{number}/{}", "x".repeat(100))).collect();
        receive(&fixture, &names);
        receive(&fixture, &["/B".to_owned(), format!("/A/{}", "y".repeat(8_000))]);
        let (first, again) = (take(&fixture, 0).await, take(&fixture, 0).await);
        assert_eq!(first, again);
        assert!(first.body.len() < MAX_PACKET_SIZE - 1_000);
        let frames = take_all(&fixture, &mut stream).await;
        assert_eq!((frames.len(), frames[400].bytes.len() as u64), (401, frames[400].length));
        assert!(frames.iter().all(|frame| frame.face == 256 && !frame.is_sent && frame.lost == 0));
        assert!(frames.is_sorted_by_key(|frame| frame.unix_ns));
        receive(&fixture, &names[..1]);
        assert_eq!(take_all(&fixture, &mut stream).await.len(), 1);
    });
}

#[test]
fn what_was_lost_is_said() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(start(&fixture, &request(1_000_000)).await, 200);
        let long = vec![format!("/A/{}", "x".repeat(8_000)); 1_000];
        receive(&fixture, &long);
        let frames = take_all(&fixture, &mut CaptureStream::default()).await;
        let lost: u64 = frames.iter().map(|frame| frame.lost).sum();
        let captured = frames.iter().filter(|frame| frame.length > 0).count() as u64;
        assert!(lost > 0 && captured > 0);
        assert_eq!(lost + captured, 1_000);
    });
}

#[test]
fn frames_of_a_capture_do_not_enter_the_next_one() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(start(&fixture, &request(1_000_000)).await, 200);
        receive(&fixture, &["/A/1".to_owned()]);
        let control = ControlParameters { count: Some(0), ..ControlParameters::default() };
        // While the first capture's frames are collected, it is stopped and another one starts.
        for (verb, parameters) in
            [("take", &control), ("stop", &ControlParameters::default()), ("start", &request(1_000_000))]
        {
            let interest = signed_command(names::localhost(), "capture", verb, &parameters.to_vec(), &DigestSigner);
            fixture.give(&interest, APP, verb.as_bytes());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut codes: Vec<_> =
            fixture.take().into_iter().map(|sent| (sent.token.clone(), sent.response().code)).collect();
        codes.sort();
        assert_eq!(codes, [(b"start".to_vec(), 200), (b"stop".to_vec(), 200), (b"take".to_vec(), 404)]);
        receive(&fixture, &["/A/2".to_owned()]);
        let frames = take_all(&fixture, &mut CaptureStream::default()).await;
        assert_eq!(frames.len(), 1, "only the frame of the second capture");
    });
}

#[test]
fn requests_at_the_same_time_lose_no_frames() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(start(&fixture, &request(1_000_000)).await, 200);
        receive(&fixture, &["/A/1".to_owned()]);
        let parameters = ControlParameters { count: Some(0), ..ControlParameters::default() };
        for token in [b"1", b"2"] {
            let interest = signed_command(names::localhost(), "capture", "take", &parameters.to_vec(), &DigestSigner);
            fixture.give(&interest, APP, token);
        }
        receive(&fixture, &["/A/2".to_owned()]);
        tokio::time::sleep(Duration::from_millis(100)).await;
        fixture.sent.borrow_mut().clear();
        let frames = take_all(&fixture, &mut CaptureStream::default()).await;
        assert_eq!(frames.len(), 2);
    });
}

#[test]
fn a_capture_without_a_reader_ends() {
    run(async {
        let fixture = Fixture::new();
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        assert_eq!(start(&fixture, &request(5)).await, 200);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(9)).await;
            assert_eq!(take(&fixture, 0).await.code, 200);
        }
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(take(&fixture, 0).await.code, 404);
        assert!(fixture.router().captured.borrow().is_none());
        assert_eq!(start(&fixture, &request(5)).await, 200, "another capture can start");
    });
}
