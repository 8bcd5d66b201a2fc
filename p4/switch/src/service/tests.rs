//! Entries of controllers: decoded, encoded again, or rejected with the reason.

use namehop_p4_compile::description::Description;
use namehop_p4runtime::Message as _;
use namehop_p4runtime::info::{Object, P4Info};
use namehop_p4runtime::message::action::Param;
use namehop_p4runtime::message::field_match::FieldMatchType as FieldKind;
use namehop_p4runtime::message::field_match::{Exact, Lpm, Range, Ternary};
use namehop_p4runtime::message::table_action::Type as ActionKind;
use namehop_p4runtime::message::{Action, FieldMatch, TableAction, TableEntry};
use proptest::prelude::*;

use super::tables::Table;
use crate::objects::tests::description;

const ROUTE: &str = "I.route";
const MACS: &str = "I.macs";
const ACL: &str = "I.acl";

struct Known {
    description: Description,
    info: P4Info,
}

impl Known {
    fn new() -> Known {
        let description = description();
        Known { info: description.p4info().expect("p4info"), description }
    }

    fn table(&self, name: &str) -> Table<'_> {
        let place = self.info.tables.iter().position(|table| table.preamble().name == name).expect("the object exists");
        Table { info: &self.info.tables[place], described: &self.description.tables[place] }
    }

    fn action(&self, name: &str, values: &[&[u8]]) -> Option<TableAction> {
        let action = self.info.actions.iter().find(|action| action.preamble().name == name).expect("the object exists");
        let field = |(place, value): (usize, &&[u8])| Param { param_id: place as u32 + 1, value: value.to_vec() };
        let action = Action { action_id: action.preamble().id, params: values.iter().enumerate().map(field).collect() };
        Some(TableAction { r#type: Some(ActionKind::Action(action)) })
    }

    fn entry(&self, table: &str, matches: &[FieldMatch], priority: i32) -> TableEntry {
        TableEntry {
            table_id: self.table(table).info.preamble().id,
            r#match: matches.to_vec(),
            action: self.action("I.send", &[&[3], &[2, 0, 0, 0, 0, 1]]),
            priority,
            ..TableEntry::default()
        }
    }
}

fn exact(field_id: u32, value: &[u8]) -> FieldMatch {
    FieldMatch { field_id, field_match_type: Some(FieldKind::Exact(Exact { value: value.to_vec() })) }
}

fn prefix(field_id: u32, value: &[u8], length: i32) -> FieldMatch {
    FieldMatch { field_id, field_match_type: Some(FieldKind::Lpm(Lpm { value: value.to_vec(), prefix_len: length })) }
}

fn ternary(field_id: u32, value: &[u8], mask: &[u8]) -> FieldMatch {
    FieldMatch {
        field_id,
        field_match_type: Some(FieldKind::Ternary(Ternary { value: value.to_vec(), mask: mask.to_vec() })),
    }
}

fn range(field_id: u32, low: &[u8], high: &[u8]) -> FieldMatch {
    FieldMatch { field_id, field_match_type: Some(FieldKind::Range(Range { low: low.to_vec(), high: high.to_vec() })) }
}

#[test]
fn entries_are_written_as_they_are_read() {
    let known = Known::new();
    for (table, matches, priority) in [
        (ROUTE, vec![prefix(1, &[10, 0, 0, 0], 8)], 0),
        (ROUTE, vec![], 0),
        (ROUTE, vec![prefix(1, &[1], 32)], 0),
        (MACS, vec![exact(1, &[0]), exact(2, &[0xFF, 0xFF])], 0),
        (ACL, vec![ternary(1, &[10, 0, 0, 1], &[0xFF, 0, 0, 0xFF]), range(2, &[1], &[1, 0])], 7),
        (ACL, vec![range(2, &[0], &[5])], i32::MAX),
        (ACL, vec![], 1),
    ] {
        let given = known.entry(table, &matches, priority);
        let table = known.table(table);
        let shown = table.show(&table.entry(&given, true).expect("the entry is valid").0, None, &known.info.actions);
        assert_eq!(shown, given);
    }
    // Leading zeros of a value do not matter.
    let (given, table) = (known.entry(MACS, &[exact(1, &[0, 0, 7]), exact(2, &[0, 9])], 0), known.table(MACS));
    let shown = table.show(&table.entry(&given, true).expect("the entry is valid").0, None, &known.info.actions);
    assert_eq!(shown.r#match, [exact(1, &[7]), exact(2, &[9])]);
}

#[test]
fn what_is_wrong_is_named() {
    let known = Known::new();
    let table = [
        (ROUTE, vec![prefix(1, &[1], 33)], 0, "more than the key"),
        (ROUTE, vec![prefix(1, &[1], 0)], 0, "at least one bit"),
        (ROUTE, vec![prefix(1, &[10, 0, 0, 1], 8)], 0, "after the prefix"),
        (ROUTE, vec![prefix(1, &[1, 0, 0, 0, 0], 8)], 0, "32 bits"),
        (ROUTE, vec![exact(1, &[1])], 0, "match kind"),
        (ROUTE, vec![prefix(1, &[], 8)], 0, "at least one byte"),
        (ROUTE, vec![prefix(2, &[1], 32)], 0, "no key with id 2"),
        (ROUTE, vec![prefix(1, &[1], 32), prefix(1, &[1], 32)], 0, "duplicate"),
        (ROUTE, vec![], 1, "cannot have priorities"),
        (MACS, vec![exact(1, &[1])], 0, "hdr.h.c"),
        (ACL, vec![], 0, "priority"),
        (ACL, vec![], -1, "priority"),
        (ACL, vec![ternary(1, &[1], &[2])], 1, "mask excludes"),
        (ACL, vec![ternary(1, &[0], &[0])], 1, "omit the key"),
        (ACL, vec![range(2, &[5], &[4])], 1, "empty"),
        (ACL, vec![range(2, &[0], &[0xFF, 0xFF])], 1, "all values"),
    ];
    for (table, matches, priority, part) in table {
        let given = known.entry(table, &matches, priority);
        let error = known.table(table).entry(&given, true).expect_err(part);
        assert!(error.message().contains(part) && error.message().contains(table), "{part}: {}", error.message());
    }
    let empty = Some(TableAction { r#type: None });
    for (action, part) in [
        (None, "needs an action"),
        (empty, "empty"),
        (known.action("I.send", &[&[3]]), "2 parameters"),
        (known.action("I.send", &[&[2, 0], &[1]]), "9 bits"),
        (Some(TableAction { r#type: Some(ActionKind::ActionProfileMemberId(1)) }), "no action profile"),
    ] {
        let given = TableEntry { action, ..known.entry(ROUTE, &[], 0) };
        let error = known.table(ROUTE).entry(&given, true).expect_err(part);
        assert!(error.message().contains(part), "{part}: {}", error.message());
    }
}

proptest! {
    #[test]
    fn any_entry_is_read_or_refused(
        id in 0_u32..4,
        kind in 0..5,
        first in prop::collection::vec(any::<u8>(), 0..6),
        second in prop::collection::vec(any::<u8>(), 0..6),
        number in prop_oneof![Just(i32::MIN), Just(i32::MAX), -1..40_i32],
        param in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        KNOWN.with(|known| {
            let field = match kind {
                0 => exact(id, &first),
                1 => prefix(id, &first, number),
                2 => ternary(id, &first, &second),
                3 => range(id, &first, &second),
                _ => FieldMatch { field_id: id, field_match_type: None },
            };
            for name in [ROUTE, MACS, ACL] {
                let action = known.action("I.send", &[&param, &first]);
                let given = TableEntry { action, ..known.entry(name, std::slice::from_ref(&field), number) };
                let table = known.table(name);
                let Ok(entry) = table.entry(&given, true) else { continue };
                let shown = table.show(&entry.0, None, &known.info.actions);
                // The encoded entry decodes to the same entry.
                prop_assert_eq!(table.entry(&shown, true).expect("a shown entry is valid"), entry);
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_bytes_are_an_entry_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(given) = TableEntry::decode(&*bytes) {
            KNOWN.with(|known| for name in [ROUTE, MACS, ACL] {
                let _ = known.table(name).entry(&given, true);
            });
        }
    }
}

thread_local! {
    static KNOWN: Known = Known::new();
}
