//! Tables.

use super::Checker;
use super::call::Given;
use super::infer::Bindings;
use super::scope::Entity;
use super::signature::Signature;
use crate::source::Span;
use crate::syntax::ast::{self, ActionRef, Declaration, Direction, Name, Property};
use crate::tree::{
    Argument, BoundAction, Entry, Expr, ExprKind, Function, InstanceRef, Key, LARGEST_PRIORITY, Table, TableAction,
    Target,
};
use crate::types::{Type, Types};
use crate::value::{self, Value};

/// How a program numbers its entries' priorities: which number wins, and the step between entries without one.
struct Order {
    largest_wins: bool,
    delta: u64,
}

impl<'a> Checker<'a> {
    pub(super) fn table(&mut self, declaration: &'a Declaration, written: &'a ast::Table) {
        let mut keys = Vec::new();
        for key in &written.keys {
            let value = self.expression(&key.value);
            let kind = key.kind.text.clone();
            if !self.types.match_kinds.contains(&kind) {
                self.error("unknown", key.kind.span, format!("unknown match kind '{kind}'"));
            }
            let ty = self.types.get(value.ty);
            if !matches!(
                ty,
                Type::Unknown
                    | Type::Bool
                    | Type::Bits { .. }
                    | Type::Enum(_)
                    | Type::New(_)
                    | Type::Error
                    | Type::Variable(_)
                    | Type::Varbit(_)
            ) {
                let message = format!("a value of type {} cannot be matched", self.types.show(value.ty));
                self.error("type", value.span, message);
            }
            let named = key.annotations.iter().find(|annotation| &*annotation.name == "name");
            let text = named.and_then(|annotation| annotation.text.clone());
            let name = text.unwrap_or_else(|| spelling(&key.value).into());
            if name.is_empty() {
                let help = "add a name for the control plane: write @name(\"…\") after the match kind";
                self.error_with_help("table", key.value.span, "the key is an expression and has no name", help);
            }
            keys.push(Key { value, kind, name });
        }
        let mut table = Table {
            name: declaration.name.text.clone(),
            naming: self.naming(declaration),
            keys,
            actions: Vec::new(),
            default: None,
            default_is_const: false,
            entries: Vec::new(),
            entries_are_const: false,
            size: None,
            implementation: None,
            counter: None,
            meter: None,
            support_timeout: false,
        };
        for action in &written.actions {
            self.table_action(action, &mut table);
        }
        let mut order = Order { largest_wins: true, delta: 1 };
        for property in &written.properties {
            self.property(property, &mut table, &mut order);
        }
        if table.default.is_none() {
            // Without a default action, nothing happens, as with NoAction.
            table.default = table
                .actions
                .iter()
                .position(|action| &*action.name == "NoAction")
                .map(|action| BoundAction { action, arguments: Vec::new() });
        }
        if let Some(entries) = &written.entries {
            table.entries_are_const = entries.is_const;
            let types: Vec<_> = table.keys.iter().map(|key| key.value.ty).collect();
            if types.is_empty() {
                self.error("table", declaration.name.span, "a table without keys cannot have entries");
                return;
            }
            for entry in &entries.list {
                let keys = self.key_sets(&entry.keys, &types);
                for (set, key) in keys.iter().zip(&table.keys) {
                    self.fits_kind(set, &key.kind);
                }
                if let Some(action) = self.bound_action(&entry.action, &table) {
                    if table.actions[action.action].default_only {
                        self.error(
                            "table",
                            entry.action.span,
                            "the action is marked @defaultonly, so entries cannot use it",
                        );
                    }
                    table.entries.push(Entry { keys, action, is_const: entry.is_const, priority: 0 });
                }
            }
            self.priorities(&entries.list, order, &mut table);
        }
        self.context.tables.push(table);
        let place = self.context.tables.len() - 1;
        self.declare(&declaration.name, Entity::Table(place));
    }

    /// Sets the priorities of entries (language specification, section 14.2.1.4). An entry without a priority gets its
    /// predecessor's plus or minus `delta`; if no entry has one, the first entry gets the highest. If the program lets
    /// the smallest number win, the numbers are inverted, because the largest number wins in P4Runtime and in the rest
    /// of the compiler; 1 is the lowest.
    fn priorities(&mut self, written: &'a [ast::Entry], order: Order, table: &mut Table) {
        let given: Vec<_> = written
            .iter()
            .map(|entry| {
                let mut number = |value: &'a Option<_>| value.as_ref().and_then(|value| self.constant_number(value));
                (number(&entry.priority), number(&entry.rank))
            })
            .collect();
        let first_number = given.iter().position(|(number, _)| number.is_some());
        let has_ranks = given.iter().any(|(_, rank)| rank.is_some());
        if !table.keys.iter().any(|key| !matches!(&*key.kind, "exact" | "lpm" | "selector")) {
            if let Some(first) = first_number {
                let help = "remove the priority; the longest of several prefixes wins";
                let message = "only tables with ternary, range or optional keys can have priorities";
                self.error_with_help("table", written[first].action.span, message, help);
            }
            return;
        }
        match first_number {
            Some(first) if has_ranks => {
                let message = "the entries of a table must use either '@priority' or 'priority =', because with \
                    '@priority' the smallest number wins";
                return self.error("table", written[first].action.span, message);
            }
            Some(first) if first > 0 => {
                let message = "the first entry needs a priority, because others have one";
                return self.error("table", written[0].action.span, message);
            }
            // An invalid entry was reported before.
            _ if written.len() != table.entries.len() => return,
            _ => {}
        }
        let largest_wins = order.largest_wins && !has_ranks;
        let count = table.entries.len() as u64;
        let mut next = if largest_wins {
            count.saturating_sub(1).checked_mul(order.delta).and_then(|rest| rest.checked_add(1))
        } else {
            Some(1)
        };
        for (place, (entry, (number, rank))) in table.entries.iter_mut().zip(given).enumerate() {
            let number = if has_ranks { rank.or(Some(place as u64 + 1)) } else { number.or(next) };
            let priority = number.and_then(|number| i64::try_from(number).ok());
            let priority = priority.map(|number| if largest_wins { number } else { LARGEST_PRIORITY - number });
            let Some(priority) = priority.filter(|priority| (1..=LARGEST_PRIORITY).contains(priority)) else {
                let (least, most) = if largest_wins { (1, LARGEST_PRIORITY) } else { (0, LARGEST_PRIORITY - 1) };
                let message = format!("the priority of this entry is below {least} or above {most}");
                let help = "omitted priorities follow from the previous one and 'priority_delta'";
                return self.error_with_help("table", written[place].action.span, message, help);
            };
            entry.priority = priority;
            let (number, delta) = (number.unwrap_or_default(), order.delta);
            next = if largest_wins { number.checked_sub(delta) } else { number.checked_add(delta) };
        }
    }

    fn action_by_name(&self, name: &Name, global: bool) -> Option<(Target, &Function)> {
        match self.lookup(name, global)? {
            Entity::Action(number) => Some((Target::Action(number), &self.context.actions[number])),
            Entity::GlobalAction(number) => Some((Target::GlobalAction(number), &self.actions[number])),
            _ => None,
        }
    }

    fn table_action(&mut self, written: &'a ActionRef, table: &mut Table) {
        let Some((action, function)) = self.action_by_name(&written.name, written.global) else {
            self.error("unknown", written.name.span, format!("unknown action '{}'", written.name.text));
            return;
        };
        let parameters = function.parameters.clone();
        let name = written.name.text.clone();
        if table.actions.iter().any(|other| other.name == name) {
            self.error("duplicate", written.span, format!("the action '{name}' is already in the list"));
            return;
        }
        // Bind the parameters with a direction, or as many as there are arguments.
        let directed = parameters.iter().filter(|parameter| parameter.direction != Direction::None).count();
        let count = directed.max(written.arguments.len()).min(parameters.len());
        let given = self.given(&written.arguments);
        let signature = Signature { parameters: parameters[..count].to_vec(), ..Signature::default() };
        let signature = Signature { returns: Some(Types::VOID), ..signature };
        let Some((bound, _)) = self.bind(&signature, Bindings::new(), Vec::new(), given, &written.name, written.span)
        else {
            return;
        };
        let default_only = written.annotations.iter().any(|annotation| &*annotation.name == "defaultonly");
        for parameter in &parameters[count..] {
            let ty = self.types.stripped(parameter.ty);
            let settable = self.types.width(ty).is_some() && self.types.components(ty).is_none();
            if !settable
                && !matches!(self.types.get(ty), Type::Unknown | Type::Enum(_) | Type::Error | Type::Variable(_))
            {
                let message = format!(
                    "the control plane cannot set the parameter '{}' of type {}",
                    parameter.name,
                    self.types.show(parameter.ty)
                );
                self.error("table", written.span, message);
            }
        }
        let table_only = written.annotations.iter().any(|annotation| &*annotation.name == "tableonly");
        table.actions.push(TableAction { action, name, bound, default_only, table_only });
    }

    /// Binds an action of the table, with values for the parameters that the control plane would set.
    fn bound_action(&mut self, written: &'a ActionRef, table: &Table) -> Option<BoundAction> {
        let given = self.given(&written.arguments);
        self.bind_action(&written.name, given, table, written.span)
    }

    fn bind_action(&mut self, name: &Name, mut given: Vec<Given>, table: &Table, span: Span) -> Option<BoundAction> {
        let Some(place) = table.actions.iter().position(|action| action.name == name.text) else {
            let message = format!("'{}' is not in the list of the table's actions", name.text);
            self.error_with_help("table", name.span, message, "add it to 'actions = { … }'");
            return None;
        };
        let action = &table.actions[place];
        let parameters = match &action.action {
            Target::Action(number) => self.context.actions[*number].parameters.clone(),
            Target::GlobalAction(number) => self.actions[*number].parameters.clone(),
            _ => return None,
        };
        let bound = action.bound.len();
        let rest = parameters[bound..].to_vec();
        // The arguments that the list of actions binds are repeated here.
        if given.len() > rest.len() && given.len() >= bound {
            given.drain(..bound);
        }
        let signature = Signature { variables: Vec::new(), parameters: rest, returns: Some(Types::VOID) };
        let (arguments, _) = self.bind(&signature, Bindings::new(), Vec::new(), given, name, span)?;
        let arguments: Vec<Expr> = arguments.into_iter().filter_map(|Argument { value, .. }| value).collect();
        for argument in &arguments {
            if argument.ty != Types::UNKNOWN
                && self.constant(argument).is_none()
                && !self.depends_on_constructor(argument)
            {
                let help = "only parameters with a direction can be bound to other values, in the list of actions";
                self.error_with_help("constant", argument.span, "this value is not constant", help);
            }
        }
        Some(BoundAction { action: place, arguments })
    }

    /// Checks that masks and ranges fit the match kind.
    fn fits_kind(&mut self, set: &Expr, kind: &str) {
        let wrong = match &set.kind {
            ExprKind::Mask(..) => !matches!(kind, "ternary" | "lpm"),
            ExprKind::Range(..) => kind != "range",
            ExprKind::DontCare => kind == "exact",
            _ => false,
        };
        if wrong {
            self.error("table", set.span, format!("a key of kind '{kind}' does not match sets of this form"));
        }
        let ExprKind::Mask(_, mask) = &set.kind else { return };
        if let (Some(Value::Int(mask)), Some((width, _))) = (self.constant(mask), self.types.representation(set.ty))
            && kind == "lpm"
        {
            let rest = value::mask(width) - &mask;
            if (&rest & (&rest + 1)) != 0.into() {
                self.error("table", set.span, "the mask of a prefix must start with all its ones");
            }
        }
    }

    fn property(&mut self, property: &'a Property, table: &mut Table, order: &mut Order) {
        match &*property.name.text {
            "default_action" => {
                let (name, arguments) = match &property.value.kind {
                    ast::ExprKind::Name { name, .. } => (name, &[][..]),
                    ast::ExprKind::Call { function, arguments, .. } => match &function.kind {
                        ast::ExprKind::Name { name, .. } => (name, &**arguments),
                        _ => return self.error("table", property.value.span, "expected an action"),
                    },
                    _ => return self.error("table", property.value.span, "expected an action"),
                };
                let given = self.given(arguments);
                table.default = self.bind_action(name, given, table, property.value.span);
                if let Some(default) = &table.default
                    && table.actions[default.action].table_only
                {
                    self.error(
                        "table",
                        property.value.span,
                        "the action is marked @tableonly, so it cannot be the default",
                    );
                }
                table.default_is_const = property.is_const;
            }
            "size" => {
                let value = self.expression(&property.value);
                match self.argument_number(&value) {
                    Some(size) => table.size = Some(size),
                    None if value.ty == Types::UNKNOWN => {}
                    None => self.error("constant", value.span, "the size of a table must be a constant number"),
                }
            }
            "implementation" => table.implementation = self.object_property(property),
            "counters" => table.counter = self.object_property(property),
            "meters" => table.meter = self.object_property(property).map(|meter| (meter, None)),
            "largest_priority_wins" => {
                let value = self.expression(&property.value);
                let value = self.coerce(value, Types::BOOL);
                order.largest_wins = !matches!(self.constant(&value), Some(Value::Bool(false)));
            }
            "priority_delta" => {
                order.delta = self.constant_number(&property.value).unwrap_or(1);
                if order.delta == 0 {
                    self.error("constant", property.value.span, "'priority_delta' must be at least 1");
                }
            }
            "support_timeout" => {
                let value = self.expression(&property.value);
                let value = self.coerce(value, Types::BOOL);
                table.support_timeout = matches!(self.constant(&value), Some(Value::Bool(true)));
            }
            "junk" | "const_entries" => drop(self.expression(&property.value)),
            other => {
                let message = format!("the table property '{other}' is unknown and has no effect");
                self.diagnostics.warning("table", property.name.span, message);
                self.expression(&property.value);
            }
        }
    }

    /// A property that names an extern instance or constructs one.
    fn object_property(&mut self, property: &'a Property) -> Option<Expr> {
        let value = self.expression(&property.value);
        if value.ty == Types::UNKNOWN {
            return None;
        }
        if !matches!(self.types.get(value.ty), Type::Extern { .. }) {
            self.error("type", value.span, "expected an instance of an extern");
            return None;
        }
        let ExprKind::Construct(instance) = value.kind else { return Some(value) };
        let shell = self.context.shell.get_or_insert_default();
        shell.instances.push(*instance);
        let kind = ExprKind::Instance(InstanceRef::Member(shell.instances.len() - 1));
        Some(Expr { kind, ..value })
    }
}

/// The name of a key: its expression as written.
fn spelling(expr: &ast::Expr) -> String {
    match &expr.kind {
        ast::ExprKind::Name { name, .. } => name.text.to_string(),
        ast::ExprKind::Member(base, name) => format!("{}.{}", spelling(base), name.text),
        ast::ExprKind::Index(base, index) => format!("{}[{}]", spelling(base), spelling(index)),
        ast::ExprKind::Int(literal) => literal.value.to_string(),
        ast::ExprKind::Call { function, .. } => match &function.kind {
            ast::ExprKind::Member(base, name) if &*name.text == "isValid" => format!("{}.$valid$", spelling(base)),
            _ => spelling(function),
        },
        ast::ExprKind::Slice(base, high, low) => format!("{}[{}:{}]", spelling(base), spelling(high), spelling(low)),
        ast::ExprKind::Cast(_, inner) => spelling(inner),
        // A field with a mask.
        ast::ExprKind::Binary(ast::Binary::BitAnd, inner, mask) if matches!(mask.kind, ast::ExprKind::Int(_)) => {
            spelling(inner)
        }
        _ => String::new(),
    }
}
