//! The client with the real management server, directly and over an endpoint.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use namehop_client::controller::*;
use namehop_client::endpoint::Endpoint;
use namehop_client::nfd::names::module;
use namehop_client::nfd::{ControlParameters, FaceEventKind, FaceQueryFilter};
use namehop_face::socket::FaceEvent;
use namehop_packet::FaceId;
use namehop_wire::security::{DigestSigner, unix_time_ms};
use namehop_wire::tlv::frame_length;
use namehop_wire::{DataBuilder, Interest, Name};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::ControlPlane;
use crate::server::tests::{APP, Fixture, NEIGHBOUR, name, run};

/// Passes Interests directly to the server of a fixture.
#[derive(Clone)]
struct Direct {
    fixture: Rc<Fixture>,
    count: Rc<Cell<u32>>,
    /// Number of next Interests to lose.
    lost: Rc<Cell<u32>>,
    most_pending: Rc<Cell<(u32, u32)>>,
}

impl Direct {
    fn new() -> Self {
        Direct {
            fixture: Rc::new(Fixture::new()),
            count: Rc::default(),
            lost: Rc::default(),
            most_pending: Rc::default(),
        }
    }
}

impl Express for Direct {
    async fn express(&self, interest: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        let decoded = Interest::decode(&interest)?;
        let lifetime_ms = decoded.lifetime_or_default_ms();
        self.count.set(self.count.get() + 1);
        let token = self.count.get().to_be_bytes();
        let (pending, most) = self.most_pending.get();
        self.most_pending.set((pending + 1, most.max(pending + 1)));
        if self.lost.get() > 0 {
            self.lost.set(self.lost.get() - 1);
        } else {
            tokio::time::sleep(Duration::from_millis(2)).await;
            self.fixture.give(&interest, APP, &token);
        }
        let mut answer = Err(ClientError::Timeout { lifetime_ms });
        for _ in 0..lifetime_ms {
            if let Some(sent) = self.fixture.take_by_token(&token) {
                answer = Ok(sent.packet);
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let (pending, most) = self.most_pending.get();
        self.most_pending.set((pending - 1, most));
        let answer = answer?;
        let data = namehop_wire::Data::decode(&answer)?;
        assert!(decoded.matches_data(&data), "{} does not answer {}", data.name, decoded.name);
        Ok(answer)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn next_signature_time_ms(&self) -> u64 {
        unix_time_ms() + u64::from(self.count.get())
    }
}

fn named(prefix: &str) -> ControlParameters {
    ControlParameters { name: Some(name(prefix)), ..ControlParameters::default() }
}

#[test]
fn commands_are_answered_or_refused() {
    run(async {
        let direct = Direct::new();
        let controller = Controller::new(direct.clone());
        let done = controller.command(module::RIB, "register", &named("/A")).await.expect("registered");
        assert_eq!((done.face_id, done.flags), (Some(APP), Some(1)));
        assert_eq!(direct.fixture.fib("/A"), [(256, 0)]);
        let missing = ControlParameters { face_id: Some(9999), ..named("/A") };
        match controller.command(module::FIB, "add-nexthop", &missing).await {
            Err(ClientError::Refused(response)) => assert_eq!(response.code, 410),
            other => panic!("{other:?}"),
        }
        match controller.announce(b"nonsense").await {
            Err(ClientError::Refused(response)) => assert_eq!(response.code, 400),
            other => panic!("{other:?}"),
        }
        let timeout = controller.command(module::RIB, "frobnicate", &named("/A")).await;
        assert!(matches!(timeout, Err(ClientError::Timeout { .. })));
    });
}

#[test]
fn datasets_come_whole_even_when_interests_are_lost() {
    run(async {
        let direct = Direct::new();
        let controller = Controller::new(direct.clone());
        for i in 0..2000 {
            let parameters = named(&format!("/a-prefix-with-a-long-name/{i}"));
            controller.command(module::RIB, "register", &parameters).await.expect("registered");
        }
        assert_eq!(controller.rib().await.expect("the RIB").len(), 2000);
        let fib = controller.fib().await.expect("the FIB");
        assert!(fib.iter().all(|entry| entry.next_hops[0].face_id == APP) && fib.len() == 2000);

        assert_eq!(controller.faces().await.expect("faces").len(), 2);
        let filter = FaceQueryFilter { face_id: Some(NEIGHBOUR), ..FaceQueryFilter::default() };
        assert_eq!(controller.query_faces(&filter).await.expect("faces").len(), 1);
        assert_eq!(controller.channels().await.expect("channels").len(), 2);
        assert_eq!(controller.strategies().await.expect("strategies").len(), 1);
        assert_eq!(controller.cs_info().await.expect("the Content Store").capacity, 65536);
        assert_eq!(controller.status().await.expect("the status").fib_entries, 2000);

        let dataset = namehop_client::nfd::names::localhost_verb(module::RIB, "list");
        let whole = controller.fetch(&dataset).await.expect("fetched");
        let lossy = Lossy(direct);
        assert_eq!(Controller::new(lossy).fetch(&dataset).await.expect("fetched").len(), whole.len());
    });
}

/// Loses every third segment on its first request.
struct Lossy(Direct);

impl Express for Lossy {
    async fn express(&self, interest: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        if self.0.count.get() % 3 == 2 {
            self.0.lost.set(1);
        }
        self.0.express(interest).await
    }

    fn is_local(&self) -> bool {
        true
    }

    fn next_signature_time_ms(&self) -> u64 {
        self.0.next_signature_time_ms()
    }
}

/// A forwarder that reports the last segment number only in the last segment.
struct LastOnLast;

impl Express for LastOnLast {
    async fn express(&self, interest: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        let interest = Interest::decode(&interest)?;
        let segment = interest.name.last().and_then(|component| component.as_segment()).unwrap_or(0);
        assert!(segment < 5, "no segment beyond the end is requested");
        let name: Name = name("/localhost/nfd/fib/list/v=7").append_segment(segment);
        let mut builder = DataBuilder::new(name.clone()).content([segment as u8; 3]);
        if segment == 4
            && let Some(last) = name.last()
        {
            builder = builder.final_block_id(last);
        }
        Ok(builder.sign(&DigestSigner)?)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn next_signature_time_ms(&self) -> u64 {
        1
    }
}

#[test]
fn the_end_of_a_dataset_may_arrive_late() {
    run(async {
        let content = Controller::new(LastOnLast).fetch(&name("/localhost/nfd/fib/list")).await.expect("fetched");
        assert_eq!(content, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
    });
}

#[test]
fn events_are_followed_without_losing_any() {
    run(async {
        let direct = Direct::new();
        let fixture = Rc::clone(&direct.fixture);
        let face = fixture.router().faces().get(FaceId(257)).expect("exists");
        let happen = tokio::task::spawn_local(async move {
            tokio::time::sleep(Duration::from_secs(100)).await;
            for _ in 0..3 {
                fixture.management.face_event(&FaceEvent::Down(Arc::clone(&face)));
                fixture.management.face_event(&FaceEvent::Up(Arc::clone(&face)));
                tokio::time::sleep(Duration::from_secs(200)).await;
            }
        });
        let controller = Controller::new(direct);
        let mut events = controller.face_events();
        for _ in 0..3 {
            assert_eq!(events.next().await.expect("an event").kind, FaceEventKind::Down);
            assert_eq!(events.next().await.expect("an event").kind, FaceEventKind::Up);
        }
        happen.abort();
    });
}

#[test]
fn an_endpoint_carries_it_over_a_stream() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let fixture = Fixture::new();
        tokio::task::spawn_local(async move {
            let mut input = Vec::new();
            loop {
                let mut chunk = [0; 4096];
                tokio::select! {
                    read = far.read(&mut chunk) => match read {
                        Ok(count) if count > 0 => input.extend_from_slice(&chunk[..count]),
                        _ => return,
                    },
                    () = tokio::time::sleep(Duration::from_millis(1)) => {}
                }
                while let Ok(Some(length)) = frame_length(&input)
                    && length <= input.len()
                {
                    let frame: Vec<u8> = input.drain(..length).collect();
                    let packet = namehop_wire::lp::LpPacket::decode(&frame).expect("a frame");
                    fixture.give(packet.fragment.expect("a packet"), APP, packet.pit_token.as_slice());
                }
                for sent in fixture.take() {
                    far.write_all(&sent.packet).await.expect("written");
                }
            }
        });
        let controller = Controller::new(Endpoint::from_stream(near));
        let done = controller.command(module::RIB, "register", &named("/A")).await.expect("registered");
        assert_eq!(done.face_id, Some(APP));
        assert_eq!(controller.rib().await.expect("the RIB").len(), 1);
    });
}

#[test]
fn a_closed_connection_is_reported_once() {
    run(async {
        let (near, far) = tokio::io::duplex(1 << 16);
        drop(far);
        let error =
            Controller::new(Endpoint::from_stream(near)).rib().await.expect_err("a closed connection is an error");
        assert_eq!(error.to_string(), "the connection to the forwarder is closed: closed by the forwarder");
    });
}

/// A forwarder that sends a dataset without end.
#[derive(Clone)]
struct Endless;

impl Express for Endless {
    async fn express(&self, interest: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        let interest = Interest::decode(&interest)?;
        let name = match interest.can_be_prefix {
            true => interest.name.to_owned().append_version(1).append_segment(0),
            false => interest.name.to_owned(),
        };
        let builder = DataBuilder::new(&name).content([0; 8000]);
        Ok(builder.sign(&namehop_wire::security::DigestSigner).expect("signed"))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn next_signature_time_ms(&self) -> u64 {
        unix_time_ms()
    }
}

#[test]
fn a_dataset_without_end_is_not_read_for_ever() {
    run(async {
        let fetched = Controller::new(Endless).fetch(&name("/localhost/nfd/rib/list")).await;
        assert!(matches!(fetched, Err(ClientError::TooLong { .. })));
    });
}
