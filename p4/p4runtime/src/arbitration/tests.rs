//! Which controller becomes primary, in which role, and which controllers are notified.

use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::oneshot;
use tonic::Code;

use super::{Answer, Arbiter, MOST_ROLES, MOST_STREAMS, Primaries, Role};
use crate::message::stream_message_response::Update as Event;
use crate::message::{self, MasterArbitrationUpdate, Uint128};

fn join(arbiter: &Arbiter) -> (u64, Receiver<Answer>, oneshot::Receiver<()>) {
    let (sender, receiver) = channel(2);
    let (presence, gone) = oneshot::channel();
    (arbiter.join(sender, presence).expect("a stream is free"), receiver, gone)
}

fn update(low: u64) -> MasterArbitrationUpdate {
    let election_id = Some(Uint128 { high: 0, low }).filter(|_| low > 0);
    MasterArbitrationUpdate { device_id: 1, role: None, election_id, status: None }
}

/// Code and election id of each message to a controller.
fn told(receiver: &mut Receiver<Answer>) -> Vec<(Code, u64)> {
    let mut all = Vec::new();
    while let Ok(Ok(answer)) = receiver.try_recv() {
        let Some(Event::Arbitration(event)) = answer.update else { panic!("an arbitration") };
        let code = Code::from_i32(event.status.expect("a status").code);
        all.push((code, event.election_id.map_or(0, |id| id.low)));
    }
    all
}

#[test]
fn the_highest_election_id_is_primary_and_nobody_below_takes_over() {
    let (arbiter, default) = (Arbiter::new(1), Role::default());
    let (first, mut to_first, _one) = join(&arbiter);
    let (second, mut to_second, _two) = join(&arbiter);
    let (third, mut to_third, _three) = join(&arbiter);
    arbiter.arbitrate(first, &update(5)).expect("first");
    assert_eq!(told(&mut to_first), [(Code::Ok, 5)]);
    arbiter.arbitrate(third, &update(0)).expect("an arbitration without election id is accepted");
    assert_eq!(told(&mut to_third), [(Code::AlreadyExists, 5)]);
    arbiter.arbitrate(second, &update(3)).expect("second");
    assert_eq!((told(&mut to_second), told(&mut to_first).len()), (vec![(Code::AlreadyExists, 5)], 0));
    let id = |low| Some(Uint128 { high: 0, low });
    assert!(
        arbiter.is_primary(&default, id(5))
            && !arbiter.is_primary(&default, id(3))
            && !arbiter.is_primary(&default, None)
    );
    assert_eq!(arbiter.arbitrate(second, &update(5)).expect_err("taken").code(), Code::InvalidArgument);
    arbiter.leave(first, None);
    assert_eq!(told(&mut to_second), [(Code::NotFound, 5)]);
    assert!(!arbiter.is_primary(&default, id(5)) && !arbiter.is_primary(&default, None));
    // A controller with an id below the highest one ever used does not become primary.
    arbiter.arbitrate(second, &update(4)).expect("second");
    told(&mut to_third);
    assert_eq!((told(&mut to_second), arbiter.ready()), (vec![(Code::NotFound, 5)], Primaries::None));
    arbiter.arbitrate(second, &update(5)).expect("second");
    assert_eq!((told(&mut to_second), arbiter.ready()), (vec![(Code::Ok, 5)], Primaries::Ready));
    // The primary steps down.
    arbiter.arbitrate(second, &update(2)).expect("second");
    assert_eq!((told(&mut to_second), arbiter.ready()), (vec![(Code::NotFound, 5)], Primaries::None));
}

#[test]
fn whoever_does_not_read_is_cut_off() {
    let arbiter = Arbiter::new(1);
    let (slow, _kept, mut gone) = join(&arbiter);
    arbiter.arbitrate(slow, &update(1)).expect("first");
    assert!(gone.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
    arbiter.arbitrate(slow, &update(2)).expect("the queue has room");
    assert_eq!(arbiter.ready(), Primaries::Full(slow));
    arbiter.arbitrate(slow, &update(3)).expect("the arbitration is accepted and the slow stream closed");
    assert!(gone.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
    assert_eq!(arbiter.ready(), Primaries::None);
}

#[test]
fn other_devices_and_too_many_are_refused() {
    let arbiter = Arbiter::new(1);
    let (client, _receiver, _gone) = join(&arbiter);
    let other = MasterArbitrationUpdate { device_id: 2, ..update(1) };
    assert_eq!(
        arbiter.arbitrate(client, &other).expect_err("an unknown device must be refused").code(),
        Code::NotFound
    );
    arbiter.arbitrate(client, &update(1)).expect("the device's own id is accepted");
    assert_eq!(
        arbiter.arbitrate(client, &other).expect_err("another device must be refused").code(),
        Code::FailedPrecondition
    );
    let mut kept: Vec<_> = (1..MOST_STREAMS).map(|_| join(&arbiter)).collect();
    // Streams without an arbitration are evicted, the oldest first.
    for silent in &mut kept {
        let next = join(&arbiter);
        arbiter.arbitrate(next.0, &update(0)).expect("the arbitration is accepted");
        let (_, mut evicted, mut its_end) = std::mem::replace(silent, next);
        let told = evicted.try_recv().expect("a reason").expect_err("an end");
        assert_eq!(told.code(), Code::ResourceExhausted);
        assert!(its_end.try_recv().is_err_and(|end| end == oneshot::error::TryRecvError::Closed));
    }
    let (sender, _receiver) = channel(1);
    let refused = arbiter.join(sender, oneshot::channel().0).expect_err("too many");
    assert_eq!((refused.code(), kept.len()), (Code::ResourceExhausted, MOST_STREAMS - 1));
}

fn in_role(low: u64, id: u64, name: &str) -> MasterArbitrationUpdate {
    MasterArbitrationUpdate { role: Some(message::Role { id, config: None, name: name.to_owned() }), ..update(low) }
}

#[test]
fn each_role_has_a_primary_controller_of_its_own() {
    let arbiter = Arbiter::new(1);
    let (default, mut to_default, _one) = join(&arbiter);
    let (named, mut to_named, _two) = join(&arbiter);
    let (numbered, mut to_numbered, _three) = join(&arbiter);
    let (backup, mut to_backup, _four) = join(&arbiter);
    // The same election id in three roles.
    arbiter.arbitrate(default, &update(7)).expect("default");
    arbiter.arbitrate(named, &in_role(7, 0, "routing")).expect("named");
    arbiter.arbitrate(numbered, &in_role(7, 3, "")).expect("numbered");
    arbiter.arbitrate(backup, &in_role(6, 0, "routing")).expect("backup");
    for receiver in [&mut to_default, &mut to_named, &mut to_numbered] {
        assert_eq!(told(receiver), [(Code::Ok, 7)], "messages for other roles must not arrive");
    }
    assert_eq!(told(&mut to_backup), [(Code::AlreadyExists, 7)]);
    let role = |id, name: &str| Role { id, name: name.to_owned() };
    let id = |low| Some(Uint128 { high: 0, low });
    assert!(arbiter.is_primary(&role(0, "routing"), id(7)) && !arbiter.is_primary(&role(0, "routing"), id(6)));
    assert!(arbiter.is_primary(&role(3, ""), id(7)) && !arbiter.is_primary(&role(4, ""), id(7)));
    assert!([default, named, numbered].iter().all(|client| arbiter.has_primary_stream(*client)));
    assert!(!arbiter.has_primary_stream(backup));
    assert_eq!(
        arbiter.check_role(&role(0, "nobody")).expect_err("an unknown role must be refused").code(),
        Code::NotFound
    );
    // The program's messages go to all primaries.
    assert_eq!(arbiter.ready(), Primaries::Ready);
    arbiter.send_to_primaries(&Event::Packet(message::PacketIn::default()));
    for receiver in [&mut to_default, &mut to_named, &mut to_numbered] {
        let answer = receiver.try_recv().expect("a packet").expect("the stream has no error");
        assert_eq!(answer.update, Some(Event::Packet(message::PacketIn::default())));
    }
    assert!(to_backup.try_recv().is_err());
    // One disconnects, and the controllers of its role are notified.
    arbiter.leave(named, None);
    let answer = to_backup.try_recv().expect("told").expect("the stream has no error");
    let Some(Event::Arbitration(event)) = answer.update else { panic!("an arbitration") };
    assert_eq!(event.role.map(|role| role.name).as_deref(), Some("routing"));
    assert_eq!((told(&mut to_default), told(&mut to_numbered)), (vec![], vec![]));
}

#[test]
fn a_stream_keeps_its_role_and_roles_have_no_configuration() {
    let arbiter = Arbiter::new(1);
    let (client, _receiver, _gone) = join(&arbiter);
    let mut configured = in_role(1, 0, "routing");
    configured.role.as_mut().expect("the update has a role").config = Some(prost_types::Any::default());
    let code = |update: &MasterArbitrationUpdate| arbiter.arbitrate(client, update).expect_err("refused").code();
    assert_eq!(code(&configured), Code::InvalidArgument);
    assert_eq!(code(&in_role(1, 0, &"x".repeat(257))), Code::InvalidArgument);
    arbiter.arbitrate(client, &in_role(1, 0, "routing")).expect("its role");
    assert_eq!(code(&in_role(1, 0, "other")), Code::FailedPrecondition);
    assert_eq!(code(&update(1)), Code::FailedPrecondition);
    arbiter.arbitrate(client, &in_role(2, 0, "routing")).expect("the same role");
}

#[test]
fn roles_without_controllers_make_room_for_others() {
    let arbiter = Arbiter::new(1);
    let (kept, _receiver, _gone) = join(&arbiter);
    arbiter.arbitrate(kept, &in_role(1, 0, "kept")).expect("its role");
    for number in 1..=2 * MOST_ROLES as u64 {
        let (client, _receiver, _gone) = join(&arbiter);
        arbiter.arbitrate(client, &in_role(1, number, "")).expect("a stream is free");
        arbiter.leave(client, None);
    }
    assert!(arbiter.state().roles.len() <= MOST_ROLES && arbiter.has_primary_stream(kept));
}
