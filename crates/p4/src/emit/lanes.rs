//! The functions that take a batch through the stages of a program whose packets go straight through (`way` in the C text).

use std::fmt::Write;

/// With more stages, the sets of packets that wait are in an array.
const MOST_NAMED: usize = 4;

/// Takes a batch through the program in the order of G-Opt: each packet goes on until it asks for memory, then it is the turn of the next
/// one. Kalia et al., "Raising the Bar for Using GPUs in Software Packet Processing" (NSDI 2015), section 4.
const IN_TURNS: &str = "\
static void in_turns(struct p4_packet *packets, struct p4_frame *frames, unsigned count)
{
    union lane *lanes = (union lane *)packets;
    uint32_t stages[P4_BATCH] = {0};
    uint64_t left = count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
    for (unsigned lane = 0; left; lane = lane + 1 < count ? lane + 1 : 0) {
        if (!(left >> lane & 1))
            continue;
        stages[lane] = way(&lanes[lane].way.base, &frames[lane], stages[lane]);
        if (!stages[lane])
            left &= ~(UINT64_C(1) << lane);
    }
}

";

/// The function for a batch, and, where it is wanted, the one that takes packets in turns.
pub(super) fn functions(stages: usize, in_turns: bool) -> String {
    let mut text = String::from(
        "/* A packet has room for its state on either way. */\nunion lane {\n    struct packet packet;\n    struct way way;\n};\n\n",
    );
    text += &batch(stages);
    if in_turns {
        text += IN_TURNS;
    }
    text
}

/// A function that takes all packets through the first stage, and then sets of those that wait for a stage through that.
fn batch(stages: usize) -> String {
    let waiting =
        |stage: usize| if stages <= MOST_NAMED { format!("waiting{stage}") } else { format!("waiting[{stage}]") };
    let mark = match stages {
        0 => "(void)next".to_owned(),
        1..=MOST_NAMED => (1..=stages)
            .map(|stage| format!("waiting{stage} |= (uint64_t)(next == {stage}) << lane"))
            .collect::<Vec<_>>()
            .join("; "),
        _ => "waiting[next] |= UINT64_C(1) << lane".to_owned(),
    };
    let sets: Vec<String> = (1..=stages).map(|stage| format!("waiting{stage} = 0")).collect();
    let sets = match stages {
        0 => String::new(),
        1..=MOST_NAMED => format!("    uint64_t {};\n", sets.join(", ")),
        _ => format!("    uint64_t waiting[{}] = {{0}};\n", stages + 1),
    };
    let mut text = format!(
        "static void burst(struct p4_packet *packets, struct p4_frame *frames, unsigned count)\n{{\n    \
         union lane *lanes = (union lane *)packets;\n{sets}    \
         for (unsigned lane = 0; lane < count; lane++) {{\n        const uint32_t next = way(&lanes[lane].way.base, &frames[lane], 0);\n        {mark};\n    }}\n",
    );
    if stages > 0 {
        let again: Vec<String> = (1..=stages).map(waiting).collect();
        text += "    do {\n";
        for stage in 1..=stages {
            let set = waiting(stage);
            let _ = write!(
                text,
                "        while ({set})\n            for (uint64_t rest = p4_taken(&{set}); rest; rest &= rest - 1) {{\n                \
                 const unsigned lane = (unsigned)__builtin_ctzll(rest);\n                \
                 const uint32_t next = way(&lanes[lane].way.base, &frames[lane], {stage});\n                {mark};\n            }}\n"
            );
        }
        let _ = writeln!(text, "    }} while ({});", again.join(" | "));
    }
    text + "}\n\n"
}
