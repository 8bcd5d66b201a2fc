//! Packet trace: the packets in it, and its end.

use namehop_client::nfd::{TracedPacket, TracedStep, decode_items};
use namehop_engine::trace::{PacketTrace, TraceStep, TraceSubject};
use namehop_packet::{DropReason, FaceId, Timestamp};

use super::*;

fn packet(time_ns: u64) -> PacketTrace {
    let steps = vec![TraceStep::NotPending, TraceStep::Dropped(DropReason::PitFull)];
    let (subject, name) = (TraceSubject::Interest, "/A/1".parse().expect("a name"));
    PacketTrace { time: Timestamp(time_ns), subject, face: FaceId(256), name, steps }
}

async fn start(fixture: &Fixture, count: u64) -> u64 {
    let parameters = ControlParameters { count: Some(count), ..named("/A") };
    fixture.command("trace", "start", &parameters).await.code
}

async fn take(fixture: &Fixture) -> (u64, Vec<u64>) {
    let response = fixture.command("trace", "take", &ControlParameters::default()).await;
    let packets = decode_items::<TracedPacket>(&response.body).expect("packets");
    (response.code, packets.iter().map(|packet| packet.time_ns).collect())
}

/// Returns the number of packets that the workers shall trace.
fn wanted(fixture: &Fixture) -> Option<u64> {
    fixture.router().traced.borrow().as_ref().map(|request| request.count)
}

#[test]
fn the_tracing_client_gets_packets_up_to_its_limit() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(take(&fixture).await, (404, vec![]), "no trace was started");
        for (count, code) in [(0, 400), (1_001, 400), (2, 200), (2, 409)] {
            assert_eq!(start(&fixture, count).await, code, "{count}");
        }
        assert_eq!((wanted(&fixture), take(&fixture).await), (Some(2), (200, vec![])));
        // Each of two workers has traced the requested number.
        for (worker, time_ns) in [(0, 5), (1, 6), (1, 7), (0, 8)] {
            fixture.management.traced(worker, &packet(time_ns));
        }
        tokio::task::yield_now().await;
        assert_eq!(wanted(&fixture), None, "tracing stops at the requested number");
        let response = fixture.command("trace", "take", &ControlParameters::default()).await;
        let packets = decode_items::<TracedPacket>(&response.body).expect("packets");
        let step = |stage: &str, text: &str| TracedStep { stage: stage.to_owned(), text: text.to_owned() };
        let first = TracedPacket {
            time_ns: 5,
            worker: 0,
            face: 256,
            subject: "interest".to_owned(),
            name: "/A/1".to_owned(),
            steps: vec![step("pit", "not pending: new entry"), step("drop", "pit-full")],
        };
        assert_eq!(packets, [first.clone(), TracedPacket { time_ns: 6, worker: 1, ..first }]);
        assert_eq!(take(&fixture).await, (404, vec![]), "all packets were read");
        assert_eq!(start(&fixture, 1).await, 200, "another trace can start");
    });
}

#[test]
fn what_does_not_fit_into_one_response_comes_with_the_next() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(start(&fixture, 300).await, 200);
        let mut large = packet(0);
        large.steps = vec![TraceStep::Delegation(format!("/{}", "x".repeat(7_000)).parse().expect("a name")); 100];
        fixture.management.traced(0, &large);
        (1..300).for_each(|time_ns| fixture.management.traced(0, &packet(time_ns)));
        let (mut responses, mut times) = (0, Vec::new());
        while let (200, packets) = take(&fixture).await {
            responses += 1;
            times.extend(packets);
        }
        assert_eq!(times, (0..300).collect::<Vec<u64>>());
        assert!(responses > 2, "{responses} responses");
    });
}

#[test]
fn a_trace_ends_when_stopped_or_without_a_reader() {
    run(async {
        let fixture = Fixture::new();
        assert_eq!(start(&fixture, 5).await, 200);
        assert_eq!(fixture.command("trace", "stop", &ControlParameters::default()).await.code, 200);
        assert_eq!((wanted(&fixture), take(&fixture).await), (None, (404, vec![])));
        tokio::task::spawn_local(Rc::clone(&fixture.management).run());
        assert_eq!(start(&fixture, 5).await, 200);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(9)).await;
            assert_eq!(take(&fixture).await, (200, vec![]));
        }
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!((wanted(&fixture), take(&fixture).await), (None, (404, vec![])));
        fixture.management.traced(0, &packet(1));
        assert_eq!(take(&fixture).await, (404, vec![]));
    });
}
