//! Workers on their own threads, which fall asleep repeatedly while commands and packets arrive: none is overlooked.

use tokio::time::{sleep, timeout};

use super::super::super::{Idling, WorkerHandles, serve};
use super::*;

const ROUNDS: usize = 400;
/// Far longer than any step takes.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn commands_reach_all_workers_and_packets_their_owners_while_workers_fall_asleep() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(1));
    bench.route("/a", &producer);
    let handles = WorkerHandles::new(std::mem::take(&mut bench.handles));
    let workers = std::mem::take(&mut bench.workers);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let commands = async {
        for round in 0..ROUNDS {
            let name: Name = format!("/a/n{round}").parse().expect("a name");
            bench.give(round % WORKERS, &consumer, &interest(&name, round as u32 + 1));
            bench.rings[round % WORKERS].from_datagrams.wake();
            let face = bench.face(round % WORKERS);
            timeout(LIMIT, handles.add_face(Arc::clone(&face))).await.expect("in time").expect("workers");
            // Some workers sleep by now, others still poll.
            sleep(Duration::from_micros(10 * (round % 16) as u64)).await;
            bench.table.remove(face.id());
            timeout(LIMIT, handles.remove_face(face.id())).await.expect("in time").expect("workers");
        }
        let all_have_arrived = async {
            loop {
                let statuses = handles.statuses().await.expect("workers");
                let packets: u64 = statuses.iter().map(|status| status.packets).sum();
                if packets == ROUNDS as u64 {
                    return statuses;
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        let statuses = timeout(LIMIT, all_have_arrived).await.expect("no packet is lost");
        assert!(statuses.iter().all(|status| status.packets > 0), "every worker must receive packets: {statuses:?}");
        let handed = |count: fn(&HandoverCounters) -> u64| -> u64 {
            statuses.iter().map(|status| count(&status.handover)).sum()
        };
        assert_eq!(handed(|counters| counters.handed_out), handed(|counters| counters.handed_in));
        assert!(handed(|counters| counters.handed_in) > 0);
        handles.shutdown();
    };
    let processors = vec![None; WORKERS];
    let longest_pause = Duration::from_millis(5);
    let idling = Idling { always_polls: false, poll_for: Duration::from_micros(20), longest_pause };
    let (served, ()) = runtime.block_on(async { tokio::join!(serve(workers, processors, idling), commands) });
    served.expect("threads");
    assert_eq!(bench.sent().len(), ROUNDS);
    assert_eq!(bench.pool.in_use(), 0);
}
