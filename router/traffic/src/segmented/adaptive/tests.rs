//! Tests of the adaptive window: start, reaction to a queue, and measurement of the base round-trip time.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// A window and the current time of a test.
struct Flow {
    window: Adaptive,
    now: Instant,
}

impl Flow {
    fn new(first_flight: f64) -> Self {
        Flow { window: Adaptive::new(first_flight, 1000.0), now: Instant::now() }
    }

    /// Sends as many Interests as allowed now; returns their number.
    fn send(&mut self, in_flight: usize) -> usize {
        let mut sent = 0;
        while self.window.may_send(self.now, in_flight + sent) {
            self.window.on_send(self.now);
            sent += 1;
        }
        sent
    }

    /// Delivers a Data with this round-trip time.
    fn arrive(&mut self, rtt: Duration) {
        self.window.on_data(self.now, Some(self.now - rtt), Some(rtt));
    }

    /// Returns a flow that has received its first Data and a pair of Data with the gap `apart`.
    fn begun(first_flight: f64, rtt: Duration, apart: Duration) -> Self {
        let mut flow = Flow::new(first_flight);
        assert_eq!(flow.send(0), 1, "the first Interest is sent alone");
        flow.now += rtt;
        flow.arrive(rtt);
        assert_eq!(flow.send(0), 2, "two Interests are sent at once");
        flow.now += rtt;
        flow.arrive(rtt);
        flow.now += apart;
        flow.arrive(rtt + apart);
        flow
    }

    /// Simulates a round trip with eight samples.
    fn round(&mut self, rtt: Duration) {
        let ends = self.now + rtt;
        while self.now < ends {
            self.window.may_send(self.now, usize::MAX);
            self.now += rtt / 8;
            self.arrive(rtt);
        }
    }
}

#[test]
fn the_first_may_be_skipped() {
    let mut flow = Flow::new(10.0);
    flow.window.skip_first();
    assert_eq!(flow.send(0), 2, "two Interests are sent at once");
    flow.now += 100 * MS;
    flow.arrive(100 * MS);
    flow.now += 20 * MS;
    flow.arrive(120 * MS);
    assert_eq!((flow.window.size(), flow.window.phase), (4, Phase::Steady), "the path holds five");
}

#[test]
fn the_first_flight_is_what_the_path_holds_by_the_rate_of_the_first_data() {
    // The path holds five Interests.
    let flow = Flow::begun(10.0, 100 * MS, 20 * MS);
    assert_eq!((flow.window.size(), flow.window.phase), (4, Phase::Steady));
    // A fast path holds more than the first flight allows.
    let mut flow = Flow::begun(10.0, 100 * MS, MS / 10);
    assert_eq!((flow.window.size(), flow.window.phase), (10, Phase::Start));
    assert_eq!(flow.send(0), 1, "Interests must be paced");
    assert_eq!(flow.window.next_send(1), flow.window.next_send);
    assert!(flow.window.next_send(1).is_some_and(|at| at > flow.now && at < flow.now + 20 * MS));
    // One of the two was lost and retransmitted.
    let flow = Flow::begun(10.0, 100 * MS, 200 * MS);
    assert_eq!((flow.window.size(), flow.window.phase), (2, Phase::Start));
}

#[test]
fn losses_before_anything_is_known_do_not_shrink_the_window() {
    let mut flow = Flow::new(10.0);
    flow.send(0);
    flow.window.on_congestion(flow.now + 50 * MS, flow.now);
    assert_eq!((flow.window.size(), flow.window.phase), (1, Phase::First));
}

#[test]
fn the_window_grows_faster_and_faster_until_a_queue_shows() {
    let mut flow = Flow::begun(10.0, 100 * MS, 20 * MS);
    let sizes: Vec<f64> = (0..12)
        .map(|_| {
            flow.round(100 * MS);
            flow.window.size
        })
        .collect();
    let growth: Vec<f64> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(growth[10] > 2.0 * growth[1] && growth.iter().all(|more| *more > 0.0), "{sizes:.1?}");
    // A third of the Interests in flight is in the queue.
    let (before, decreases) = (flow.window.size, flow.window.decreases());
    let rounds = (1..7).find(|_| {
        flow.round(150 * MS);
        flow.window.decreases() > decreases
    });
    assert!(rounds.is_some_and(|rounds| rounds <= 5), "{rounds:?}");
    assert!(flow.window.size < before && flow.window.size > before / 2.0, "{before} {}", flow.window.size);
    // Interests sent before the reduction do not count again.
    let after = flow.window.size;
    let sent_at = flow.now - 300 * MS;
    for _ in 0..20 {
        flow.window.on_data(flow.now, Some(sent_at), Some(300 * MS));
    }
    assert_eq!(flow.window.size, after);
    flow.window.on_congestion(flow.now, sent_at);
    assert_eq!(flow.window.size, after);
    flow.window.on_congestion(flow.now, flow.now + MS);
    assert!(flow.window.size < after);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut flow = Flow::begun(10.0, 100 * MS, 20 * MS);
    let mut sizes = Vec::new();
    for _ in 0..40 {
        flow.now += 100 * MS;
        flow.arrive(100 * MS);
        sizes.push(flow.window.size);
    }
    assert!(sizes[3..].iter().all(|size| *size == sizes[2]), "{sizes:?}");
}

#[test]
fn only_a_round_trip_with_nothing_else_on_its_way_raises_the_base() {
    let mut flow = Flow::begun(10.0, 40 * MS, 10 * MS);
    // The path becomes longer.
    let mut rounds = 0;
    while flow.window.drain.is_none() {
        flow.round(200 * MS);
        rounds += 1;
        assert!(rounds < 20 && flow.window.path.base() == Some(40 * MS));
    }
    assert!(!flow.window.may_send(flow.now, 1), "the queue of the path must drain first");
    assert!(flow.window.next_send(1).is_some_and(|at| at > flow.now));
    flow.window.may_send(flow.now, 0);
    flow.now += 200 * MS;
    flow.arrive(200 * MS);
    assert_eq!(flow.window.path.base(), Some(200 * MS));
    let before = flow.window.size;
    for _ in 0..5 {
        flow.round(200 * MS);
    }
    assert!(flow.window.size > before, "the window must grow again");
}

#[test]
fn the_path_is_emptied_once_in_five_seconds() {
    let mut flow = Flow::begun(10.0, 50 * MS, 10 * MS);
    let mut drained = 0;
    for _ in 0..400 {
        flow.round(50 * MS);
        if matches!(flow.window.drain, Some(Drain::Until(_))) {
            drained += 1;
            flow.window.may_send(flow.now, 0);
        }
    }
    // In twenty seconds.
    assert!((3..=4).contains(&drained), "{drained}");
}
