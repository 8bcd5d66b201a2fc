//! Client and server over the loopback forwarder.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use namehop_client::endpoint::{Endpoint, ExpressError, RouteOptions};
use namehop_client::testing::{Faults, Loopback};
use namehop_wire::lp::NackReason;
use namehop_wire::security::DigestSigner;

use super::*;

fn config(count: u64) -> PingConfig {
    PingConfig {
        prefix: "/P".parse().unwrap(),
        interval: Duration::from_millis(2),
        lifetime: Duration::from_millis(100),
        count: Some(count),
        start: Some(1),
        identifier: None,
        allow_stale: false,
    }
}

async fn server(hub: &Loopback) -> (Endpoint, Arc<PingServer>) {
    let endpoint = hub.endpoint();
    let options = ServeOptions { content: vec![1; 10], freshness_ms: 1000, signer: Arc::new(DigestSigner) };
    let server = Arc::new(PingServer::new(options));
    server.answer(&endpoint, &"/P".parse().unwrap());
    endpoint.register_route(&"/P".parse().unwrap(), &RouteOptions::default()).await.unwrap();
    (endpoint, server)
}

#[tokio::test]
async fn every_probe_is_answered() {
    let hub = Loopback::new();
    let (_server, counters) = server(&hub).await;
    let mut events = Vec::new();
    let report = ping(&hub.endpoint(), &config(10), pending(), |event| events.push(event.clone())).await;
    assert_eq!((report.sent, report.received, report.timeouts, report.nacks, report.duplicates), (10, 10, 0, 0, 0));
    assert_eq!(counters.answered(), 10);
    assert!(matches!(events[0], PingEvent::Data { sequence: 1, content_bytes: 10, .. }));
    let rtt = report.rtt.unwrap();
    assert!(rtt.min_ms <= rtt.mean_ms && rtt.mean_ms <= rtt.max_ms && rtt.deviation_ms <= rtt.max_ms);
    assert_eq!(report.loss_percent(), 0.0);
}

#[tokio::test]
async fn losses_and_duplicates_are_counted() {
    let hub = Loopback::with_faults(Faults { lose_every: 4, duplicate_every: 2, ..Faults::default() });
    let (_server, _) = server(&hub).await;
    let report = ping(&hub.endpoint(), &config(20), pending(), |_| {}).await;
    assert_eq!((report.sent, report.received, report.timeouts), (20, 15, 5));
    assert_eq!(report.duplicates, 7);
    assert_eq!(report.loss_percent(), 25.0);
}

#[tokio::test]
async fn without_a_route_there_are_nacks() {
    let hub = Loopback::new();
    let mut reasons = Vec::new();
    let report = ping(&hub.endpoint(), &config(3), pending(), |event| reasons.push(event.clone())).await;
    assert_eq!((report.nacks, report.received), (3, 0));
    assert!(reasons.iter().all(|event| matches!(event, PingEvent::Nack { reason: NackReason::NO_ROUTE, .. })));
    assert_eq!((report.loss_percent(), report.rtt), (100.0, None));
}

#[tokio::test]
async fn stopping_ends_an_endless_series() {
    let hub = Loopback::new();
    let (_server, _) = server(&hub).await;
    let endless = PingConfig { count: None, identifier: Some("me".to_owned()), start: None, ..config(0) };
    let stop = tokio::time::sleep(Duration::from_millis(50));
    let report = ping(&hub.endpoint(), &endless, stop, |_| {}).await;
    assert!(report.sent > 2 && report.received > 0 && report.timeouts == 0, "{report:?}");
}

#[tokio::test]
async fn a_lost_connection_ends_the_series_with_what_was_measured() {
    let hub = Loopback::new();
    let (_server, _) = server(&hub).await;
    let consumer = hub.endpoint();
    let endless = PingConfig { count: None, ..config(0) };
    let closing = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        consumer.close().await;
    };
    let (report, ()) = tokio::join!(ping(&consumer, &endless, pending(), |_| {}), closing);
    assert!(report.received > 0 && report.rtt.is_some(), "{report:?}");
    assert!(matches!(report.broken, Some(ExpressError::Closed(_))), "{report:?}");
}
