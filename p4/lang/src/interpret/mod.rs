//! The reference interpreter: runs the typed tree packet by packet, as the language specification and the v1model
//! architecture say. It is slow and simple, so that compiled code can be compared with it.

mod bits;
mod call;
mod cipher;
mod evaluate;
mod externs;
mod hash;
mod parser;
mod pipeline;
mod place;
mod statement;
pub mod table;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::tree::{Class, ExprKind, Instance, InstanceRef, Program, Shell};
use crate::types::{Ty, Type};
use crate::value::Value;
use bits::Bits;

pub use externs::show;
pub use pipeline::Sent;
use table::TableState;

/// Maximum number of instances of a program, over all levels.
const MAX_OBJECTS: usize = 100_000;
/// Maximum number of cells in all registers, counters and meters together.
const MAX_CELLS: u64 = 1 << 24;
/// Maximum number of statements executed for one packet; large values count more.
const MAX_STEPS: u64 = 1_000_000;
/// Maximum nesting depth of calls.
const MAX_CALLS: u32 = 200;

/// Why normal execution ends.
#[derive(Debug)]
pub enum Stop {
    /// `exit`
    Exit,
    /// The parser ends with this error.
    Reject(u32),
    /// The program cannot continue; the packet is lost.
    Failure(String),
}

/// A result of code that a packet may leave early.
pub type Run<T> = Result<T, Stop>;

/// The state of an instance.
pub enum Object {
    /// A register.
    Register {
        /// Type of its cells.
        element: Ty,
        /// Its cells.
        values: Vec<Value>,
    },
    /// Packets and bytes.
    Counter(Vec<(u64, u64)>),
    /// The colour that each cell returns.
    Meter(Vec<u64>),
    /// A parser or control.
    Unit(Unit),
    /// An instance without state.
    Other,
}

/// An instance of a parser or control, with what belongs to it.
pub struct Unit {
    class: Class,
    /// The control plane's name.
    pub path: String,
    constructed: Vec<Value>,
    instances: Vec<usize>,
    /// The state of its tables, in the order of the control.
    pub tables: Vec<TableState>,
    /// The members of value sets.
    pub value_sets: Vec<Vec<Vec<table::Match>>>,
}

/// Variables of the running code.
#[derive(Default)]
pub struct Frame {
    unit: usize,
    variables: Vec<Value>,
    locals: Vec<Value>,
}

/// Parameters of an action profile: its size, and for a selector its hash algorithm and the number of hash bits that
/// are used.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Number of members, or of slots of a selector.
    pub size: u64,
    /// Hash algorithm and number of hash bits of a selector.
    pub selector: Option<(u64, u32)>,
}

/// Requests of a program to the traffic manager.
#[derive(Default)]
struct Requests {
    clone: Option<(u64, Option<u64>)>,
    resubmit: Option<Option<u64>>,
    recirculate: Option<Option<u64>>,
    truncate: Option<u64>,
}

/// A switch that runs a program.
pub struct Switch<'p> {
    program: &'p Program,
    /// The state of all instances.
    pub objects: Vec<Object>,
    /// The instances of the six parts of the pipeline.
    parts: [usize; 6],
    globals: Vec<usize>,
    cells: u64,
    /// What counters and meters count, with the numbers of `CounterType` and `MeterType`.
    pub units: HashMap<usize, u64>,
    /// Action profiles and selectors.
    pub profiles: HashMap<usize, Profile>,
    /// Mirroring sessions, to a port or to a multicast group, each with the maximum length of its copies in bytes; 0
    /// means no limit.
    pub mirror_ports: HashMap<u64, (u64, u64)>,
    /// Sessions with copies to a multicast group: the group and the maximum length.
    pub mirror_groups: HashMap<u64, (u64, u64)>,
    /// Multicast groups: replication numbers and ports.
    pub groups: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Output of `log_msg` and `digest`, and packets that could not be processed.
    pub notes: Vec<String>,
    /// The packet, with its current payload; the number of bits parsed; the growth in bytes.
    input: Bits,
    position: usize,
    grown: usize,
    /// The part of the pipeline that is running.
    part: usize,
    output: Bits,
    requests: Requests,
    checksum_error: bool,
    steps: u64,
    calls: u32,
    random: u64,
    unsupported: HashSet<Arc<str>>,
}

impl<'p> Switch<'p> {
    /// Creates all instances of a checked program. The error says why it cannot run.
    pub fn new(program: &'p Program) -> Result<Self, String> {
        let mut switch = Switch {
            program,
            objects: Vec::new(),
            parts: [0; 6],
            globals: Vec::new(),
            cells: 0,
            units: HashMap::new(),
            profiles: HashMap::new(),
            mirror_ports: HashMap::new(),
            mirror_groups: HashMap::new(),
            groups: BTreeMap::new(),
            notes: Vec::new(),
            input: Bits::default(),
            position: 0,
            grown: 0,
            part: 0,
            output: Bits::default(),
            requests: Requests::default(),
            checksum_error: false,
            steps: 0,
            calls: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            unsupported: HashSet::new(),
        };
        let mut main = None;
        for instance in &program.instances {
            if let Class::Package(name) = &instance.class {
                if &*instance.name == "main" {
                    main = Some((name.clone(), instance));
                }
                switch.globals.push(usize::MAX);
                continue;
            }
            let object = switch.instantiate(instance, usize::MAX, "", false)?;
            switch.globals.push(object);
        }
        let Some((package, main)) = main else {
            return Err("the program has no 'main'".into());
        };
        if &*package != "V1Switch" || main.arguments.len() != 6 {
            return Err(format!("the architecture {package} is not supported; only V1Switch is"));
        }
        for (part, argument) in main.arguments.iter().enumerate() {
            let object = match argument.as_ref().map(|argument| &argument.kind) {
                Some(ExprKind::Construct(instance)) => switch.instantiate(instance, usize::MAX, "", true)?,
                _ => return Err("each part of V1Switch must be constructed in the argument list".into()),
            };
            switch.parts[part] = object;
        }
        Ok(switch)
    }

    fn instantiate(
        &mut self,
        instance: &'p Instance,
        owner: usize,
        path: &str,
        anonymous: bool,
    ) -> Result<usize, String> {
        if self.objects.len() >= MAX_OBJECTS {
            return Err(format!("the program has more than {MAX_OBJECTS} instances"));
        }
        let mut arguments = Vec::new();
        for argument in &instance.arguments {
            arguments.push(match argument.as_ref().map(|argument| &argument.kind) {
                None => Value::None,
                Some(ExprKind::Construct(inner)) => Value::Object(self.instantiate(inner, owner, path, true)?),
                Some(_) => {
                    let mut frame = Frame { unit: owner, ..Frame::default() };
                    let argument = argument.as_ref().ok_or("an argument is missing")?;
                    self.evaluate(&mut frame, argument).map_err(|_| "an argument of a constructor has no value")?
                }
            });
        }
        let own = match &instance.naming.name {
            Some(name) => name.trim_start_matches('.').to_owned(),
            None if path.is_empty() || anonymous => instance.name.to_string(),
            None => format!("{path}.{}", instance.name),
        };
        let place = self.objects.len();
        self.objects.push(Object::Other);
        let object = match &instance.class {
            Class::Extern(name) => {
                // The last constructor argument.
                if matches!(&**name, "counter" | "meter" | "direct_counter" | "direct_meter") {
                    self.units.insert(place, arguments.last().map_or(0, Value::number));
                }
                let number = |place: usize| arguments.get(place).map_or(0, Value::number);
                match &**name {
                    "action_profile" => drop(self.profiles.insert(place, Profile { size: number(0), selector: None })),
                    "action_selector" => {
                        let selector = Some((number(0), number(2) as u32));
                        self.profiles.insert(place, Profile { size: number(1), selector });
                    }
                    _ => {}
                }
                self.extern_object(name, instance, &arguments)?
            }
            Class::Package(_) => Object::Other,
            Class::Parser(number) => {
                let parser = &self.program.parsers[*number];
                let unit = self.make_unit(instance, &parser.shell, own, arguments, place)?;
                let value_sets = parser.value_sets.iter().map(|_| Vec::new()).collect();
                Object::Unit(Unit { value_sets, ..unit })
            }
            Class::Control(number) => {
                let control = &self.program.controls[*number];
                let mut unit = self.make_unit(instance, &control.shell, own, arguments, place)?;
                let tables =
                    control.tables.iter().map(|table| self.table_state(table, &unit)).collect::<Result<_, _>>();
                unit.tables = tables?;
                Object::Unit(unit)
            }
        };
        self.objects[place] = object;
        Ok(place)
    }

    fn make_unit(
        &mut self,
        instance: &'p Instance,
        shell: &'p Shell,
        path: String,
        constructed: Vec<Value>,
        place: usize,
    ) -> Result<Unit, String> {
        let unit = |instances| Unit {
            class: instance.class.clone(),
            path: path.clone(),
            constructed: constructed.clone(),
            instances,
            tables: Vec::new(),
            value_sets: Vec::new(),
        };
        // Arguments of inner constructors may refer to this unit's.
        let mut instances = Vec::new();
        for inner in &shell.instances {
            self.objects[place] = Object::Unit(unit(instances.clone()));
            instances.push(self.instantiate(inner, place, &path, false)?);
        }
        let made = unit(instances);
        self.objects[place] = Object::Unit(unit(made.instances.clone()));
        Ok(made)
    }

    fn extern_object(&mut self, name: &str, instance: &Instance, arguments: &[Value]) -> Result<Object, String> {
        let size = arguments.first().map_or(0, Value::number);
        if !matches!(name, "register" | "counter" | "meter") {
            return Ok(match name {
                "direct_counter" => Object::Counter(Vec::new()),
                "direct_meter" => Object::Meter(Vec::new()),
                _ => Object::Other,
            });
        }
        self.cells = self.cells.saturating_add(size);
        if self.cells > MAX_CELLS {
            return Err(format!("registers, counters and meters have more than {MAX_CELLS} cells"));
        }
        let size = size as usize;
        Ok(match name {
            "register" => {
                let element = match self.program.types.get(instance.ty) {
                    Type::Extern { arguments, .. } => arguments.first().copied(),
                    _ => None,
                };
                let element = element.ok_or("a register has no type")?;
                if self.cells.saturating_mul(self.program.types.leaves(element)) > MAX_CELLS {
                    return Err(format!("registers have more than {MAX_CELLS} cells"));
                }
                Object::Register { element, values: vec![self.program.types.zero(element); size] }
            }
            "counter" => Object::Counter(vec![(0, 0); size]),
            _ => Object::Meter(vec![0; size]),
        })
    }

    fn unit_of(&self, frame: &Frame) -> Option<&Unit> {
        match self.objects.get(frame.unit) {
            Some(Object::Unit(unit)) => Some(unit),
            _ => None,
        }
    }

    fn object_of(&self, frame: &Frame, instance: InstanceRef) -> Run<usize> {
        let found = match instance {
            InstanceRef::Global(place) => self.globals.get(place).copied(),
            InstanceRef::Member(place) => self.unit_of(frame).and_then(|unit| unit.instances.get(place).copied()),
        };
        found.ok_or_else(|| Stop::Failure("an instance is missing".into()))
    }

    fn step(&mut self) -> Run<()> {
        self.spend(1)
    }

    fn spend(&mut self, steps: u64) -> Run<()> {
        self.steps += steps;
        if self.steps > MAX_STEPS {
            return Err(Stop::Failure(format!("a packet takes more than {MAX_STEPS} steps")));
        }
        Ok(())
    }
}

impl Unit {
    /// The number of the control, if this is a control.
    pub fn control(&self) -> Option<usize> {
        match self.class {
            Class::Control(number) => Some(number),
            _ => None,
        }
    }
}

impl Switch<'_> {
    /// Names and object numbers of all declared instances.
    pub fn extern_paths(&self) -> Vec<(String, usize)> {
        self.externs().into_iter().map(|(_, path, object)| (path, object)).collect()
    }

    /// Like `extern_paths`, with the declarations.
    pub fn externs(&self) -> Vec<(&Instance, String, usize)> {
        let named = |instance: &Instance, path: &str| match &instance.naming.name {
            Some(name) => name.trim_start_matches('.').to_owned(),
            None if path.is_empty() => instance.name.to_string(),
            None => format!("{path}.{}", instance.name),
        };
        let mut all = Vec::new();
        for (instance, object) in self.program.instances.iter().zip(&self.globals) {
            all.push((instance, named(instance, ""), *object));
        }
        for object in &self.objects {
            let Object::Unit(unit) = object else { continue };
            let shell = match unit.class {
                Class::Parser(number) => &self.program.parsers[number].shell,
                Class::Control(number) => &self.program.controls[number].shell,
                _ => continue,
            };
            for (instance, object) in shell.instances.iter().zip(&unit.instances) {
                all.push((instance, named(instance, &unit.path), *object));
            }
        }
        all
    }
}

/// Queries of the lowering.
impl<'p> Switch<'p> {
    /// The instance of one of the six parts.
    pub fn part_object(&self, part: usize) -> usize {
        self.parts[part]
    }

    /// Returns a parser or control; `None` if the object is something else.
    pub fn unit(&self, object: usize) -> Option<&Unit> {
        match self.objects.get(object) {
            Some(Object::Unit(unit)) => Some(unit),
            _ => None,
        }
    }

    /// A value set of an instance of a parser.
    pub fn value_set(&self, (owner, place): (usize, usize)) -> Option<&'p crate::tree::ValueSet> {
        match self.unit(owner)?.class {
            Class::Parser(parser) => self.program.parsers[parser].value_sets.get(place),
            _ => None,
        }
    }

    /// The instance that a parser or control refers to.
    pub fn instance(&self, unit: usize, instance: InstanceRef) -> Option<usize> {
        match instance {
            InstanceRef::Global(place) => self.globals.get(place).copied(),
            InstanceRef::Member(place) => self.unit(unit)?.instances.get(place).copied(),
        }
    }
}

impl Unit {
    /// Returns the declaration that it is an instance of.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// A constructor argument.
    pub fn constructed(&self, number: usize) -> Option<&Value> {
        self.constructed.get(number)
    }
}
