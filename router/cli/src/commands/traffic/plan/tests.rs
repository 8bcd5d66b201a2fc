//! Tests of plan files: accepted settings, and errors for rejected ones.

use super::*;

#[test]
fn errors_name_the_line_and_what_to_do() {
    let mut wrong = Vec::new();
    for (text, line, said) in [
        ("\nduraton = \"1s\"", 2, "unknown field"),
        ("[[consumer]]\nrate = 5\nwindow = 3\n[[consumer.pattern]]\nprefix = \"/a\"", 1, "remove one"),
        ("[[consumer]]\nrate = 0\n[[consumer.pattern]]\nprefix = \"/a\"", 1, "between 0.001"),
        ("[[consumer]]\n", 1, "[[consumer.pattern]]"),
        ("[[consumer]]\n[[consumer.pattern]]\nprefix = \"/%zz\"", 3, "prefix"),
        ("[[consumer]]\n[[consumer.pattern]]\nprefix = \"/a\"\nzipf = 0.8", 1, "names = NUMBER"),
        ("[[consumer]]\n[[consumer.pattern]]\nprefix = \"/a\"\nlifetime = \"4\"\nhop_limit = 256", 5, "256"),
        ("[[producer]]\nlink = \"ethernet://x\"", 2, "forms: unix:///path"),
        ("[[producer]]\nlink = \"ether://x\"", 2, "brackets"),
        (
            "[[consumer]]\nlink = \"ether://[02:00:00:00:00:01]\"\n[[consumer.pattern]]\nprefix = \"/a\"",
            1,
            "local = \"dev://INTERFACE\"",
        ),
        ("[[consumer]]\nmtu = 1500\n[[consumer.pattern]]\nprefix = \"/a\"", 1, "give link = URI"),
        (
            "[[producer]]\nlink = \"memif:///x?id=0\"\nregister = true\n[[producer.pattern]]\nprefix = \"/a\"",
            1,
            "namehop route add",
        ),
        (
            "[[producer]]\n[[producer.pattern]]\nprefix = \"/a\"\n[[producer.pattern.reply]]\nnack = \"x\"",
            5,
            "no-route",
        ),
        (
            "[[producer]]\n[[producer.pattern]]\nprefix = \"/a\"\nreply = [{silent = true, payload = 5}]",
            1,
            "for Data only",
        ),
        ("[[producer]]\n[[producer.pattern]]\nprefix = \"/a\"\nreply = [{payload = 9000}]", 1, "does not fit"),
    ] {
        let (message, at) = match toml::from_str::<Plan>(text) {
            Ok(_) => ("accepted".to_owned(), None),
            Err(error) => {
                let at = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
                (error.to_string(), at)
            }
        };
        if !message.contains(said) || at != Some(line) {
            wrong.push(format!("{text}\nline {at:?}: {message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn plans_mean_what_they_say() {
    let text = r#"
        duration = "10s"
        [[consumer]]
        rate = 500
        poisson = true
        seed = 7
        [[consumer.pattern]]
        prefix = "/a"
        names = 100
        zipf = 0.9
        weight = 3
        forwarding_hint = ["/x", "/y"]
        [[consumer.pattern]]
        prefix = "/b"
        workload = "web"
        lifetime = "500ms"
        [[producer]]
        link = "tcp4://192.0.2.1"
        register = false
        [[producer.pattern]]
        prefix = "/a"
        reply = [
            { weight = 9, payload = 5, freshness = "1s", suffix = "/s" },
            { nack = "no-route", delay = "3ms" },
            { silent = true },
        ]
    "#;
    let plan: Plan = toml::from_str(text).unwrap();
    assert_eq!(plan.duration, Some(Duration::from_secs(10)));
    let link: TransportUri = "/run/nfd/nfd.sock".parse().unwrap();
    let consumer = plan.consumer[0].config("c".to_owned(), &link).unwrap();
    assert_eq!((consumer.link.to_string(), consumer.plan.seed), (link.to_string(), 7));
    assert_eq!(consumer.plan.pacing, Pacing::Rate { per_second: 500.0, poisson: true, max_in_flight: 65_536 });
    let [first, second] = &consumer.plan.patterns[..] else { panic!("two patterns") };
    assert_eq!((first.weight, first.names.clone()), (3, Names::Zipf { names: 100, alpha: 0.9 }));
    assert_eq!((first.forwarding_hint.len(), first.lifetime), (2, Duration::from_secs(4)));
    assert_eq!(second.lifetime, Duration::from_millis(500));
    assert!(matches!(second.names, Names::Workload(WorkloadShape { kind: WorkloadKind::Web, seed: 7, .. })));
    let producer = plan.producer[0].config("p".to_owned(), &link).unwrap();
    assert_eq!((producer.link.to_string().as_str(), producer.registers), ("tcp4://192.0.2.1:6363", false));
    let [data, nack, silence] = &producer.patterns[0].replies[..] else { panic!("three replies") };
    let shape = DataShape { suffix: "/s".parse().unwrap(), freshness_ms: 1000, payload_bytes: 5 };
    assert_eq!((data.weight, &data.kind), (9, &ReplyKind::Data(shape)));
    assert_eq!((&nack.kind, nack.delay), (&ReplyKind::Nack(NackReason::NO_ROUTE), Duration::from_millis(3)));
    assert_eq!(silence.kind, ReplyKind::Silence);
}
