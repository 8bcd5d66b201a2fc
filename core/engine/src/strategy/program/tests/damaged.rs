//! Tests of damaged object files of the SDK: they are refused, or behave the same as native code and interpreted,
//! within the limits of programs.

use std::ops::Range;
use std::sync::Arc;

use namehop_ebpf::Code;
use namehop_ebpf::instruction::INSTRUCTION_BYTES;
use namehop_ebpf::object_file::ObjectFile;
use namehop_ebpf::testing::{Random, sdk};

use super::object;
use crate::strategy::program::StrategyProgram;
use crate::strategy::program::helpers::INTERFACE;
use crate::strategy::program::manifest::PROGRAM_SECTION;
use crate::strategy::registry::full_name;
use crate::strategy::tests::{A, Action, B, C, D, E, Mock};
use crate::strategy::{StrategyInstance, StrategyRegistry, Trigger};
use namehop_packet::FaceId;
use namehop_wire::lp::NackReason;

/// Opcode of a call.
const CALL: u8 = 0x85;

/// Returns all object files of the SDK.
fn objects() -> Vec<Vec<u8>> {
    ["strategies", "examples"]
        .iter()
        .flat_map(|folder| {
            let files = std::fs::read_dir(sdk().join(folder)).expect("a folder of the SDK");
            files.map(move |file| format!("{folder}/{}", file.expect("a file").file_name().to_string_lossy()))
        })
        .map(|path| object(&path))
        .collect()
}

/// Returns the position of the instructions in an object file. They are found by the first pair without a call, since
/// calls are relocated.
fn instructions(object: &[u8]) -> Range<usize> {
    let file = ObjectFile::parse(object).expect("an object file");
    let program = file.program(PROGRAM_SECTION, INTERFACE.helpers).expect("a program");
    let encoded: Vec<u8> = program.iter().flat_map(|instruction| instruction.to_bytes()).collect();
    let is_call = |at: &usize| program[*at].code == CALL || program[*at + 1].code == CALL;
    let before = (0..program.len()).find(|at| !is_call(at)).expect("two consecutive instructions that are not calls")
        * INSTRUCTION_BYTES;
    let pair = &encoded[before..before + 2 * INSTRUCTION_BYTES];
    let found = object.windows(pair.len()).position(|bytes| bytes == pair).expect("the file contains the instructions");
    found - before..found - before + encoded.len()
}

fn strategy(program: Arc<StrategyProgram>) -> Option<StrategyInstance> {
    let name = full_name(program.name()).ok()?;
    let mut registry = StrategyRegistry::default();
    registry.insert(program).ok()?;
    registry.parse(name.as_ref()).ok()
}

/// Applies random events to a strategy. Returns all its actions, and the state that it leaves behind.
fn happen(strategy: &StrategyInstance, mut random: Random) -> (Vec<Vec<Action>>, String) {
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    let faces: [FaceId; 5] = [A, B, C, D, E];
    let mut done = Vec::new();
    for _ in 0..24 {
        let face = faces[random.below(faces.len())];
        mock.random = random.draw();
        done.push(match random.below(9) {
            0..=2 => mock.interest(strategy, face),
            3 => mock.data(strategy, face),
            4 => mock.nack(strategy, face, [NackReason::CONGESTION, NackReason::NO_ROUTE][random.below(2)]),
            5 => mock.event(strategy, Trigger::Timer),
            6 => mock.event(
                strategy,
                [Trigger::OnDroppedInterest(face), Trigger::BeforeExpirePendingInterest][random.below(2)],
            ),
            7 => {
                mock.pass_ms(random.below(40) as u64);
                Vec::new()
            }
            _ => {
                mock.new_entry();
                Vec::new()
            }
        });
    }
    (done, format!("{:?} {:?} {:?}", mock.in_records, mock.out_records, mock.pit_scratch))
}

#[test]
fn damaged_programs_do_the_same_in_all_forms() {
    let count = std::env::var("NAMEHOP_EBPF_OBJECTS").map_or(4_000, |count| count.parse().expect("a number"));
    let mut random = Random::new(std::env::var("NAMEHOP_EBPF_SEED").map_or(1, |seed| seed.parse().expect("a number")));
    let objects: Vec<_> = objects().into_iter().map(|object| (instructions(&object), object)).collect();
    let (mut passed, mut refused) = (0, 0);
    for number in 0..count {
        let (instructions, object) = &objects[random.below(objects.len())];
        let mut damaged = object.clone();
        for _ in 0..1 + random.below(3) {
            // Three of four damages hit an instruction.
            let at = match random.below(4) {
                0 => random.below(damaged.len()),
                _ => instructions.start + random.below(instructions.len()),
            };
            damaged[at] = if random.below(2) == 0 { random.draw() as u8 } else { damaged[at] ^ 1 << random.below(8) };
        }
        let Ok(native) = StrategyProgram::load(&damaged, None) else {
            refused += 1;
            continue;
        };
        let interpreted =
            StrategyProgram::load_as(&damaged, None, Code::interpreted).expect("the object can be loaded again");
        let (Some(native), Some(interpreted)) = (strategy(native), strategy(interpreted)) else {
            refused += 1;
            continue;
        };
        passed += 1;
        let seed = random.draw();
        let (first, second) = (happen(&native, Random::new(seed)), happen(&interpreted, Random::new(seed)));
        assert_eq!(first, second, "object {number} of seed {seed}");
    }
    assert!(passed > count / 20 && refused > count / 20, "{passed} programs passed, {refused} were refused");
}
