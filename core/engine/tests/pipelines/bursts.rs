//! Bursts of any length: each packet is handled once and in order, for any group size.

use namehop_engine::EngineConfig;

use crate::router::*;

fn lines(sent: &[Sent]) -> Vec<String> {
    sent.iter().map(Sent::line).collect()
}

#[test]
fn every_packet_of_a_burst_has_its_turn_in_its_order() {
    for lookahead in [1, 7, 32, 64] {
        for count in [1, 2, 63, 64, 65, 127, 128, 129, 200, 257, 300] {
            let mut router = Router::with_default_route_and(EngineConfig { lookahead, ..EngineConfig::default() });
            let uri = |number: u32| format!("/A/{number}");
            router.recv_together((0..count).map(|number| (CONSUMER, interest(&uri(number)).nonce(number + 1))));
            let asked = router.sent();
            let expected: Vec<String> =
                (0..count).map(|number| format!("I300 {} n{}", uri(number), number + 1)).collect();
            assert_eq!(lines(&asked), expected, "{count} Interests, lookahead {lookahead}");
            // Every other one is found by its token, with unsolicited Data in between.
            let answers = (0..count).zip(&asked).flat_map(|(number, asked)| {
                let answer = data(&uri(number)).packet();
                let answer = if number % 2 == 0 { answer.token(&asked.token()) } else { answer };
                [(PRODUCER, answer), (PRODUCER, data(&format!("/B/{number}")).packet())]
            });
            router.recv_together(answers);
            let expected: Vec<String> = (0..count).map(|number| format!("D256 {}", uri(number))).collect();
            assert_eq!(lines(&router.sent()), expected, "{count} Data packets, lookahead {lookahead}");
            assert_eq!(router.pit_len(), 0);
        }
    }
}
