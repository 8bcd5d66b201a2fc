//! Names that move from one worker to another while Interests are pending and Data is cached.

use super::*;

/// Returns the entry of a name in the name dispatch table.
fn entry_of(bench: &Bench, name: &Name) -> usize {
    bench.dispatch.entry_of(name.value()).expect("a name").0
}

/// Returns the frames that are sent for an Interest that arrives at worker 0.
fn ask(bench: &mut Bench, consumer: &Face, name: &Name, nonce: u32) -> Vec<(FaceId, PitToken, Vec<u8>)> {
    bench.give(0, consumer, &interest(name, nonce));
    bench.run();
    bench.sent()
}

fn version(name: &Name, content: &[u8]) -> Vec<u8> {
    DataBuilder::new(name).content(content).sign(&DigestSigner).expect("fits")
}

#[test]
fn nobody_gets_what_was_cached_before_names_were_elsewhere() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(0));
    bench.route("/a", &producer);
    let (name, beside) = (bench.name_of(1), bench.name_of(1).append_generic("beside"));
    let other: Name = (0..)
        .map(|number| format!("/a/other{number}").parse().expect("a name"))
        .find(|other: &Name| bench.dispatch.entry_of(other.value()).is_some_and(|(_, owner)| owner == 1))
        .expect("a name of this worker");
    let entry = entry_of(&bench, &name);
    for (nonce, name) in [&name, &beside, &other].into_iter().enumerate() {
        let [(_, token, _)] = ask(&mut bench, &consumer, name, nonce as u32 + 1)[..] else { panic!("one Interest") };
        bench.give(0, &producer, &with_token(token, &version(name, b"old")));
        bench.run();
        assert_eq!(bench.sent(), [(consumer.id(), PitToken::empty(), version(name, b"old"))]);
    }

    // Worker 2 has cached nothing under the name, and gets a newer version.
    assert!(bench.dispatch.move_entry(entry, 2));
    let asked = ask(&mut bench, &consumer, &name, 10);
    let [(face, token, _)] = asked[..] else { panic!("one Interest") };
    assert_eq!((face, token.as_slice()[0]), (producer.id(), 2));
    bench.give(0, &producer, &with_token(token, &version(&name, b"new")));
    bench.run();
    assert_eq!(bench.sent(), [(consumer.id(), PitToken::empty(), version(&name, b"new"))]);
    assert!(bench.dispatch.forget_former_owner(entry));

    // Before the entry moves back, worker 1 erases the old Data of this entry, and no other.
    let mut erased = bench.handles[1].start(|reply| WorkerCommand::CsEraseEntries([entry].into(), reply));
    bench.run();
    assert_eq!(erased.try_recv(), Ok(2));
    assert!(bench.dispatch.move_entry(entry, 1));
    let asked = ask(&mut bench, &consumer, &name, 11);
    assert!(
        matches!(&asked[..], [(face, _, _)] if *face == producer.id()),
        "the producer must receive the Interest: {asked:?}"
    );
    let answered = ask(&mut bench, &consumer, &other, 12);
    assert_eq!(answered, [(consumer.id(), PitToken::empty(), version(&other, b"old"))]);
}

#[test]
fn names_that_come_in_turns_are_all_counted() {
    let mut bench = Bench::new();
    let consumer = bench.face(0);
    // As many names as the sampling interval in packets.
    let names: Vec<Name> =
        (0..SAMPLED.get()).map(|number| format!("/turns/{number}").parse().expect("a name")).collect();
    for round in 0..60 {
        for name in &names {
            bench.give(0, &consumer, &interest(name, round + 1));
        }
        bench.run();
        bench.sent();
    }
    let mut balancer = namehop_engine::dispatch::Balancer::default();
    balancer.measure(bench.now, &bench.dispatch);
    let samples: u32 = balancer.loads().iter().map(|load| load.samples).sum();
    assert!((40..80).contains(&samples), "{samples} of {}", 60 * SAMPLED.get());
    let most = balancer.loads().iter().map(|load| load.samples).max();
    assert!(most < Some(10), "{:?}", balancer.loads());
}

#[test]
fn pending_interests_are_answered_after_their_names_were_moved() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(0));
    bench.route("/a", &producer);
    for (number, returns_token) in [(1, true), (3, false)] {
        let name = bench.name_of(number);
        let [(_, token, _)] = ask(&mut bench, &consumer, &name, number as u32)[..] else { panic!("one Interest") };
        assert!(bench.dispatch.move_entry(entry_of(&bench, &name), 2));
        let token = if returns_token { token } else { PitToken::empty() };
        bench.give(0, &producer, &with_token(token, &data(&name)));
        bench.run();
        assert_eq!(bench.sent(), [(consumer.id(), PitToken::empty(), data(&name))], "token: {returns_token}");
        // The new owner has no pending Interest, so the next Interest is forwarded.
        assert_eq!(ask(&mut bench, &consumer, &name, 100 + number as u32).len(), 1);
    }
}

#[test]
fn pending_interests_are_answered_after_their_prefix_was_divided() {
    for returns_token in [true, false] {
        let mut bench = Bench::new();
        let (consumer, producer) = (bench.face(0), bench.face(0));
        bench.route("/a", &producer);
        let prefix = bench.name_of(1);
        let names: Vec<Name> = (0..12).map(|number| prefix.clone().append_generic(format!("n{number}"))).collect();
        let tokens: Vec<PitToken> = names
            .iter()
            .enumerate()
            .map(|(nonce, name)| match ask(&mut bench, &consumer, name, nonce as u32)[..] {
                [(_, token, _)] => token,
                _ => panic!("one Interest"),
            })
            .collect();
        assert!(tokens.iter().all(|token| token.as_slice()[0] == 1));
        assert!(bench.dispatch.divide_entry(entry_of(&bench, &prefix)));
        for (name, token) in names.iter().zip(tokens) {
            let token = if returns_token { token } else { PitToken::empty() };
            bench.give(0, &producer, &with_token(token, &data(name)));
            bench.run();
            assert_eq!(bench.sent(), [(consumer.id(), PitToken::empty(), data(name))], "token: {returns_token}");
        }
        // Now the names belong to several workers. The first worker's cached Data is the newest while the name stays
        // there.
        let owner = |name: &Name| bench.dispatch.entry_of(name.value()).expect("a name").1;
        let owners: Vec<u8> = names.iter().map(owner).collect();
        assert!(owners.iter().any(|&owner| owner != 1), "{owners:?}");
        for ((nonce, name), owner) in (100..).zip(&names).zip(owners) {
            let sent = ask(&mut bench, &consumer, name, nonce);
            match owner {
                1 => assert_eq!(sent, [(consumer.id(), PitToken::empty(), data(name))]),
                _ => assert!(
                    matches!(&sent[..], [(face, token, _)] if *face == producer.id() && token.as_slice()[0] == owner)
                ),
            }
        }
    }
}
