//! The metrics of workers.

use std::fmt;

use namehop_client::nfd::{QueueStatus, WorkerStatus};
use prometheus_client::metrics::MetricType;

use super::render::Metrics;

/// Reads a counter of a queue.
type FramesOf = fn(&QueueStatus) -> u64;

/// Writes the metrics of each worker, labelled with its index.
pub(super) fn workers(metrics: &mut Metrics<'_>, workers: &[WorkerStatus]) -> fmt::Result {
    type Value = fn(&WorkerStatus) -> u64;
    let counters: [(&str, &str, Value); 4] = [
        ("worker_packets", "Network-layer packets forwarded by a worker", |worker| worker.packets),
        ("worker_handed_in", "Packets dispatched to a worker by other workers", |worker| worker.handover.handed_in),
        ("worker_handed_out", "Packets dispatched by a worker to other workers", |worker| worker.handover.handed_out),
        ("worker_congestion_marks", "Packets marked as congested because they waited for a worker", |worker| {
            worker.handover.congestion_marks
        }),
    ];
    let numbers: Vec<String> = (0..workers.len()).map(|number| number.to_string()).collect();
    for (name, help, value) in counters {
        metrics.family(name, help, MetricType::Counter, |family| {
            workers
                .iter()
                .zip(&numbers)
                .try_for_each(|(worker, number)| family.line(&[("worker", number)], value(worker)))
        })?;
    }
    let help = "Packets dropped because the ring from this worker to another one was full";
    metrics.family("worker_handover_drops", help, MetricType::Counter, |family| {
        workers.iter().zip(&numbers).try_for_each(|(worker, number)| {
            let drops = &worker.handover;
            let kinds =
                [("interest", drops.dropped_interests), ("data", drops.dropped_data), ("nack", drops.dropped_nacks)];
            kinds.iter().try_for_each(|&(kind, count)| family.line(&[("worker", number), ("kind", kind)], count))
        })
    })?;
    let of_queues: [(&str, &str, FramesOf); 2] = [
        ("port_queue_received_frames", "Frames received on a queue of a port", |queue| queue.received_frames),
        ("port_queue_sent_frames", "Frames sent on a queue of a port", |queue| queue.sent_frames),
    ];
    for (name, help, value) in of_queues {
        metrics.family(name, help, MetricType::Counter, |family| {
            workers.iter().zip(&numbers).try_for_each(|(worker, number)| {
                worker.queues.iter().try_for_each(|queue| {
                    let queue_number = queue.queue.to_string();
                    let labels = [("port", queue.port.as_str()), ("queue", &queue_number), ("worker", number)];
                    family.line(&labels, value(queue))
                })
            })
        })?;
    }
    let help = "Faces whose frames the network card steers to a queue";
    metrics.family("port_queue_steered_faces", help, MetricType::Gauge, |family| {
        workers.iter().zip(&numbers).try_for_each(|(worker, number)| {
            worker.queues.iter().try_for_each(|queue| {
                let queue_number = queue.queue.to_string();
                let labels = [("port", queue.port.as_str()), ("queue", &queue_number), ("worker", number)];
                family.line(&labels, queue.steered_faces)
            })
        })
    })?;
    metrics.family("worker_busy_seconds", "Time that a worker was busy", MetricType::Counter, |family| {
        workers
            .iter()
            .zip(&numbers)
            .try_for_each(|(worker, number)| family.line_f64(&[("worker", number)], worker.busy.as_secs_f64()))
    })
}
