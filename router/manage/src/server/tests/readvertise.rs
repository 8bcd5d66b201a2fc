//! Readvertising through the server: when it sends commands, and the effects of their answers.

use std::time::Duration;

use namehop_client::nfd::{Element, ReadvertiseStatus, decode_items};
use namehop_face::socket::FaceEvent;
use namehop_wire::lp::NackReason;
use namehop_wire::{DataBuilder, Interest};

use super::*;
use crate::readvertise::{DaemonSettings, Destination};

/// A command that the server sent to the daemon.
struct Command {
    token: Vec<u8>,
    interest: Vec<u8>,
}

/// Creates a server that readvertises routes of clients. The face of the daemon is [`APP`]; routes lead to
/// [`NEIGHBOUR`].
fn readvertising() -> Fixture {
    let fixture = Fixture::new();
    fixture.management.readvertise_to(vec![Destination::daemon(DaemonSettings { origins: vec![65] })]);
    tokio::task::spawn_local(Rc::clone(&fixture.management).run());
    fixture
}

/// Returns the commands sent to the daemon, as text and as packets.
async fn sent(fixture: &Fixture) -> (Vec<String>, Vec<Command>) {
    tokio::time::sleep(Duration::from_millis(1)).await;
    let commands: Vec<Command> =
        fixture.take().into_iter().map(|sent| Command { token: sent.token, interest: sent.packet }).collect();
    let words = commands.iter().map(|command| {
        let name = Interest::decode(&command.interest).expect("an Interest").name.to_owned();
        assert!(super::name("/localhost/nlsr/rib").is_prefix_of(name.as_ref()));
        let parameters = ControlParameters::decode(name.get(4).expect("parameters").value).expect("parameters");
        let verb = String::from_utf8_lossy(name.get(3).expect("a verb").value).into_owned();
        let cost = parameters.cost.map(|cost| format!(" {cost}")).unwrap_or_default();
        format!("{verb} {}{cost}", parameters.name.expect("a name"))
    });
    (words.collect(), commands)
}

/// Accepts all commands until there are no more; returns them as text.
async fn accept_all(fixture: &Fixture) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let (words, commands) = sent(fixture).await;
        if words.is_empty() {
            return all;
        }
        all.extend(words);
        for command in commands {
            answer(fixture, &command);
        }
    }
}

fn answer(fixture: &Fixture, command: &Command) {
    let name = Interest::decode(&command.interest).expect("an Interest").name.to_owned();
    let content = ControlResponse::new(200, "OK").to_vec();
    let data = DataBuilder::new(name).content(content).sign(&DigestSigner).expect("a Data");
    let pit_token = PitToken::from_slice(&command.token).expect("the token of the command");
    let header = LpHeader { pit_token, incoming_face_id: Some(APP), ..LpHeader::default() };
    fixture.management.receive(&lp::encode_packet(&header, Some(&data)));
}

async fn register(fixture: &Fixture, prefix: &str, face: u64, origin: u64, cost: u64) {
    let parameters = ControlParameters { face_id: Some(face), origin: Some(origin), cost: Some(cost), ..named(prefix) };
    assert_eq!(command(fixture, "register", parameters).await, 200);
}

async fn unregister(fixture: &Fixture, prefix: &str, face: u64, origin: u64) {
    let parameters = ControlParameters { face_id: Some(face), origin: Some(origin), ..named(prefix) };
    assert_eq!(command(fixture, "unregister", parameters).await, 200);
}

/// Sends a command and takes only its answer; the server may have sent commands of its own before.
async fn command(fixture: &Fixture, verb: &str, parameters: ControlParameters) -> u64 {
    let interest = signed_command(names::localhost(), "rib", verb, &parameters.to_vec(), &DigestSigner);
    fixture.give(&interest, APP, b"token");
    fixture.take_by_token(b"token").expect("an immediate answer").response().code
}

async fn second() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[test]
fn client_routes_are_readvertised_when_a_daemon_is_there() {
    run(async {
        let fixture = readvertising();
        register(&fixture, "/client", NEIGHBOUR, 65, 7).await;
        register(&fixture, "/app", NEIGHBOUR, 0, 7).await;
        assert!(sent(&fixture).await.0.is_empty(), "no destination has a face yet");
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        assert_eq!(accept_all(&fixture).await, ["register /client 7"]);
        register(&fixture, "/client", APP, 65, 3).await;
        second().await;
        assert_eq!(accept_all(&fixture).await, ["register /client 3"]);
        unregister(&fixture, "/client", APP, 65).await;
        second().await;
        assert_eq!(accept_all(&fixture).await, ["register /client 7"]);
        unregister(&fixture, "/client", NEIGHBOUR, 65).await;
        second().await;
        assert_eq!(accept_all(&fixture).await, ["unregister /client"]);
        let status = fixture.management.readvertise_status();
        assert_eq!((status[0].face_ids.as_slice(), status[0].announced_prefixes), (&[APP][..], 0));
        assert_eq!((status[0].counters.announced, status[0].counters.withdrawn), (3, 1));
    });
}

#[test]
fn a_restarted_daemon_gets_all_prefixes_and_an_ended_one_gets_none() {
    run(async {
        let fixture = readvertising();
        for prefix in ["/a", "/b"] {
            register(&fixture, prefix, NEIGHBOUR, 65, 0).await;
        }
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        let mut first = accept_all(&fixture).await;
        first.sort();
        assert_eq!(first, ["register /a 0", "register /b 0"]);
        unregister(&fixture, "/localhost/nlsr", APP, 128).await;
        unregister(&fixture, "/a", NEIGHBOUR, 65).await;
        assert!(accept_all(&fixture).await.is_empty());
        assert!(fixture.management.readvertise_status()[0].face_ids.is_empty());
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        assert_eq!(accept_all(&fixture).await, ["register /b 0"]);
    });
}

#[test]
fn the_fib_says_where_a_daemon_is() {
    run(async {
        let fixture = readvertising();
        register(&fixture, "/a", NEIGHBOUR, 65, 0).await;
        // Neither route leads to the daemon: one is to another host, the other covers all of `/localhost`.
        register(&fixture, "/localhost/nlsr", NEIGHBOUR, 128, 0).await;
        let everything = ControlParameters { flags: Some(0), ..named("/localhost") };
        assert_eq!(command(&fixture, "register", everything).await, 200);
        assert!(accept_all(&fixture).await.is_empty());
        unregister(&fixture, "/localhost/nlsr", NEIGHBOUR, 128).await;
        assert!(accept_all(&fixture).await.is_empty());
        let next_hop = ControlParameters { face_id: Some(APP), ..named("/localhost/nlsr/rib") };
        let interest = signed_command(names::localhost(), "fib", "add-nexthop", &next_hop.to_vec(), &DigestSigner);
        fixture.give(&interest, APP, b"token");
        assert_eq!(fixture.take_by_token(b"token").expect("an answer").response().code, 200);
        assert_eq!(accept_all(&fixture).await, ["register /a 0"]);
    });
}

#[test]
fn the_end_of_an_application_withdraws_its_prefixes() {
    run(async {
        let fixture = readvertising();
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        register(&fixture, "/a", NEIGHBOUR, 65, 0).await;
        assert_eq!(accept_all(&fixture).await, ["register /a 0"]);
        second().await;
        let face = fixture.router().face(testing::NEIGHBOUR).expect("the face exists");
        fixture.management.face_event(&FaceEvent::Destroyed(face));
        let withdrawn = accept_all(&fixture).await;
        assert!(withdrawn.contains(&"unregister /a".to_owned()), "{withdrawn:?}");
    });
}

#[test]
fn an_expired_route_is_withdrawn() {
    run(async {
        let fixture = readvertising();
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        let expiring = ControlParameters {
            face_id: Some(NEIGHBOUR),
            origin: Some(65),
            expiration_period_ms: Some(5_000),
            ..named("/a")
        };
        assert_eq!(command(&fixture, "register", expiring).await, 200);
        assert_eq!(accept_all(&fixture).await, ["register /a 0"]);
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(accept_all(&fixture).await, ["unregister /a"]);
    });
}

#[test]
fn a_command_that_is_lost_or_comes_back_is_sent_again() {
    run(async {
        let fixture = readvertising();
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        register(&fixture, "/a", NEIGHBOUR, 65, 0).await;
        let (words, commands) = sent(&fixture).await;
        assert_eq!(words, ["register /a 0"]);
        let nack = LpHeader {
            pit_token: PitToken::from_slice(&commands[0].token).expect("a token"),
            nack: Some(NackReason::NO_ROUTE),
            ..LpHeader::default()
        };
        fixture.management.receive(&lp::encode_packet(&nack, Some(&commands[0].interest)));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (words, again) = sent(&fixture).await;
        assert_eq!(words, ["register /a 0"]);
        assert_ne!(again[0].interest, commands[0].interest, "a repeated command is signed again");
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert_eq!(accept_all(&fixture).await, ["register /a 0"]);
        let counters = fixture.management.readvertise_status()[0].counters;
        assert_eq!((counters.nacked, counters.timed_out, counters.announced), (1, 1, 1));
    });
}

#[test]
fn the_dataset_reports_progress() {
    run(async {
        let fixture = readvertising();
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        register(&fixture, "/a", NEIGHBOUR, 65, 0).await;
        assert_eq!(accept_all(&fixture).await, ["register /a 0"]);
        let query = InterestBuilder::new(names::localhost_verb("status", "readvertise"));
        let query = query.can_be_prefix(true).must_be_fresh(true).build().expect("built");
        fixture.give(&query, APP, b"query");
        let sent = fixture.wait_for_one().await;
        let reported: Vec<ReadvertiseStatus> = decode_items(sent.data().content).expect("a list");
        assert_eq!(reported, fixture.management.readvertise_status());
        assert_eq!(
            (reported.len(), reported[0].announced_prefixes, reported[0].face_ids.as_slice()),
            (1, 1, &[APP][..])
        );
    });
}

#[test]
fn answers_to_nothing_are_ignored() {
    run(async {
        let fixture = readvertising();
        for token in
            [&b""[..], b"\x00", b"\x00\x00\x00\x00\x00\x00\x00\x00\x00", b"\x07\x00\x00\x00\x00\x00\x00\x00\x01"]
        {
            let header = LpHeader { pit_token: PitToken::from_slice(token).expect("short"), ..LpHeader::default() };
            fixture.management.receive(&lp::encode_packet(&header, Some(b"\x06\x00")));
        }
        assert!(sent(&fixture).await.0.is_empty());
    });
}

#[test]
fn a_link_that_is_up_again_gets_all_prefixes() {
    run(async {
        let fixture = readvertising();
        register(&fixture, "/localhost/nlsr", APP, 128, 0).await;
        register(&fixture, "/a", NEIGHBOUR, 65, 0).await;
        assert_eq!(accept_all(&fixture).await, ["register /a 0"]);
        let face = fixture.router().face(testing::APP).expect("the face exists");
        fixture.management.face_event(&FaceEvent::Up(face));
        assert_eq!(accept_all(&fixture).await.iter().filter(|words| *words == "register /a 0").count(), 1);
    });
}
