//! Generates the functions that take a batch through the stages of a program whose packets go straight through (`way`
//! in the C code).

use std::collections::BTreeSet;
use std::fmt::Write;

/// With more stages than this, the sets of waiting packets are in an array.
const MOST_NAMED: usize = 4;

/// Takes a batch through the program in G-Opt's order: each packet runs until it needs memory, then the next packet
/// runs. Kalia et al., "Raising the Bar for Using GPUs in Software Packet Processing" (NSDI 2015), section 4.
const IN_TURNS: &str = "\
static void in_turns(struct p4_packet *packets, struct p4_frame *const *frames, unsigned count)
{
    union lane *lanes = (union lane *)packets;
    uint32_t stages[P4_BATCH] = {0};
    uint64_t left = count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
    for (unsigned lane = 0; left; lane = lane + 1 < count ? lane + 1 : 0) {
        if (!(left >> lane & 1))
            continue;
        stages[lane] = way(&lanes[lane].way.base, frames[lane], stages[lane]);
        if (!stages[lane])
            left &= ~(UINT64_C(1) << lane);
    }
}

";

/// Maximum number of stages, and of characters, with which the function for one packet is inlined into each stage.
const MOST_INLINE: (usize, usize) = (8, 40_000);

/// Local variables of the functions for one packet, besides the program's variables.
const LOCALS: &str = "    uint8_t *const data = p4_frame_data(frame);\n    uint64_t length = frame->length;\n    \
    struct p4_found found;\n    uint32_t came_in;\n    uint64_t position;\n    (void)s;\n    (void)data;\n    \
    (void)length;\n    \
    (void)found;\n    (void)came_in;\n";

/// True if the statements are too many to be duplicated.
pub(super) fn is_long(body: &str) -> bool {
    body.len() > MOST_INLINE.1
}

/// Declarations, statements, and the number of stages after the first one.
type Body = (String, String, usize);

/// The code of a program that packets pass straight through.
pub(super) struct Lanes {
    /// For packets that go together from lookup to lookup.
    pub staged: Option<Body>,
    /// For packets that go one by one.
    pub at_once: Option<Body>,
    /// The stages before which payloads are encrypted.
    pub ciphers: BTreeSet<usize>,
    /// Number of words of the longest key.
    pub key_words: u32,
    /// True if headers are rebuilt in the packet.
    pub appends: bool,
    /// True to generate the function for G-Opt's order.
    pub in_turns: bool,
}

impl Lanes {
    /// The functions for one packet and for a batch.
    pub(super) fn functions(&self) -> String {
        let mut text = String::new();
        if let Some((declarations, body, _)) = &self.at_once {
            let _ = write!(
                text,
                "/* One packet through all parts at once. Gives the port that it leaves by. */\n\
                 static P4_IN_PLACE uint16_t at_once(struct p4_packet *p, struct p4_frame *frame)\n{{\n\
                 {declarations}{LOCALS}    \
                 uint64_t key[{}];\n    struct p4_cursor cursor;\n    (void)key;\n    (void)cursor;\n    \
                 came_in = frame->port;\n{}{body}    return P4_DROPPED;\n}}\n\n",
                self.key_words,
                self.begin(body),
            );
        }
        if let Some((declarations, body, stages)) = &self.staged {
            let place = if *stages <= MOST_INLINE.0 && !is_long(body) { "P4_IN_PLACE" } else { "P4_APART" };
            let _ = write!(
                text,
                "/* One packet through all parts, from a stage to the next one, which is returned, or to its end, \
                 which is 0. */\n\
                 static {place} uint32_t way(struct p4_packet *p, struct p4_frame *frame, uint32_t stage)\n{{\n\
                 {declarations}{LOCALS}    \
                 switch (stage) {{\n    case 0:;\n    came_in = frame->port;\n    frame->port = P4_DROPPED;\n\
                 {}{body}    }}\n    return 0;\n}}\n\n",
                self.begin(body),
            );
        }
        text += "/* A packet has room for its state on either way. */\nunion lane {\n    struct packet packet;\n    \
            struct way way;\n};\n\n";
        let stages = self.staged.as_ref().map_or(0, |(.., stages)| *stages);
        text += &self.batch(stages);
        if self.in_turns && stages > 0 {
            text += IN_TURNS;
        }
        text
    }

    /// Initialization of a packet.
    fn begin(&self, body: &str) -> String {
        let mut text = String::from("    position = 0;\n");
        if body.contains("p->steps") {
            text += "    p->steps = 0;\n";
        }
        if body.contains("p4_cipher_frame") {
            text += "    p->grown = 0;\n";
        }
        if self.appends {
            text += "    p->output.length = 0;\n";
        }
        text
    }

    /// The function that takes packets through the program, one by one or all together.
    fn batch(&self, stages: usize) -> String {
        let mut text = if stages > 0 { together(stages, &self.ciphers) } else { String::new() };
        text += "static void burst(struct p4_packet *packets, struct p4_frame *const *frames, unsigned count)\n{\n";
        if stages > 0 {
            let when = match (&self.at_once, self.ciphers.is_empty()) {
                (None, _) => String::new(),
                (Some(_), true) => format!("if ({SEVERAL} && {LARGE}) "),
                // Payloads are encrypted together even if the tables are small.
                (Some(_), false) => format!("if ({SEVERAL}) "),
            };
            let _ = writeln!(text, "    {when}{{\n        together(packets, frames, count);\n        return;\n    }}");
        }
        if self.at_once.is_some() {
            text += "    for (unsigned lane = 0; lane < count; lane++)\n        \
                     frames[lane]->port = at_once(&((union lane *)packets)->way.base, frames[lane]);\n";
        }
        text + "}\n\n"
    }
}

/// Packets go together if a packet has others to wait with, and if lookups have to wait for memory.
const SEVERAL: &str = "count > 1";
const LARGE: &str = "!p4_all_small(tables, sizeof tables / sizeof *tables)";

/// Generates the function that takes all packets through the first stage, and then, for each stage, the set of packets
/// that wait for it. Before some stages, payloads are encrypted. It is a separate function, because inlining it makes
/// the caller slower.
fn together(stages: usize, ciphers: &BTreeSet<usize>) -> String {
    let waiting =
        |stage: usize| if stages <= MOST_NAMED { format!("waiting{stage}") } else { format!("waiting[{stage}]") };
    let mark = match stages {
        ..=MOST_NAMED => (1..=stages)
            .map(|stage| format!("waiting{stage} |= (uint64_t)(next == {stage}) << lane"))
            .collect::<Vec<_>>()
            .join("; "),
        _ => "waiting[next] |= UINT64_C(1) << lane".to_owned(),
    };
    let sets: Vec<String> = (1..=stages).map(|stage| format!("waiting{stage} = 0")).collect();
    let sets = match stages {
        ..=MOST_NAMED => format!("    uint64_t {};\n", sets.join(", ")),
        _ => format!("    uint64_t waiting[{}] = {{0}};\n", stages + 1),
    };
    let mut text = format!(
        "static P4_APART void together(struct p4_packet *packets, struct p4_frame *const *frames, unsigned count)\n\
         {{\n    \
         union lane *lanes = (union lane *)packets;\n\
         {sets}    for (unsigned lane = 0; lane < count; lane++) {{\n        \
         const uint32_t next = way(&lanes[lane].way.base, frames[lane], 0);\n        {mark};\n    }}\n    do {{\n",
    );
    let again: Vec<String> = (1..=stages).map(waiting).collect();
    for stage in 1..=stages {
        let set = waiting(stage);
        let (open, close) = if ciphers.contains(&stage) {
            (format!("        while ({set}) {{\n            p4_cipher_all();\n"), "        }\n")
        } else {
            (format!("        while ({set})\n"), "")
        };
        let _ = write!(
            text,
            "{open}            for (uint64_t rest = p4_taken(&{set}); rest; rest &= rest - 1) {{\n                \
             const unsigned lane = (unsigned)__builtin_ctzll(rest);\n                \
             const uint32_t next = way(&lanes[lane].way.base, frames[lane], {stage});\n                \
             {mark};\n            }}\n{close}"
        );
    }
    let _ = write!(text, "    }} while ({});\n}}\n\n", again.join(" | "));
    text
}
