//! Generates the access of the traffic manager to a program's metadata.

use std::collections::BTreeMap;
use std::fmt::Write;

use namehop_p4_lang::syntax::StructKind;
use namehop_p4_lang::types::Ty;

use super::Emitter;
use super::types::Declarations;
use crate::ir::Var;

impl Emitter<'_> {
    /// A field of the standard metadata in C, if the program has it.
    fn standard(&self, name: &str) -> Option<String> {
        let ty = self.program.variables[Var::STANDARD].ty;
        let info = self.types.structure(ty)?;
        let place = info.fields.iter().position(|(field, _)| &**field == name)?;
        Some(format!("s->standard.{}", Declarations::field(self.types, ty, place)))
    }

    pub(super) fn glue(&mut self) -> String {
        let mut text = String::new();
        let assign = |emitter: &Self, list: &[(&str, &str)]| {
            list.iter().fold(String::new(), |mut text, (field, value)| {
                if let Some(field) = emitter.standard(field) {
                    let _ = writeln!(text, "    {field} = {value};");
                }
                text
            })
        };
        let open = "    struct packet *s = (struct packet *)p;\n    (void)s;\n";
        let clear: String = Var::OF_PACKET
            .into_iter()
            .map(|variable| format!("    memset(&{0}, 0, sizeof {0});\n", self.names[variable]))
            .collect();
        let _ = write!(text, "static void clear(struct p4_packet *p)\n{{\n{open}{clear}}}\n\n");
        let begin = assign(
            self,
            &[
                ("ingress_port", "port & 511"),
                ("packet_length", "(uint32_t)p->length"),
                ("instance_type", "(uint32_t)kind"),
            ],
        );
        let _ = write!(
            text,
            "static void begin_ingress(struct p4_packet *p, uint64_t port, uint64_t kind)\n{{\n{open}{begin}}}\n\n"
        );
        let begin = assign(
            self,
            &[
                ("egress_port", "port & 511"),
                ("egress_spec", "0"),
                ("egress_rid", "replica & 0xffff"),
                ("instance_type", "(uint32_t)kind"),
            ],
        );
        let _ = write!(
            text,
            "static void begin_egress(struct p4_packet *p, uint64_t port, uint64_t replica, uint64_t kind)\n\
             {{\n{open}{begin}}}\n\n"
        );
        let error = assign(self, &[("parser_error", "p->error")]);
        let _ = write!(
            text,
            "static void after_parser(struct p4_packet *p)\n{{\n{open}    if (!p->rejected) return;\n{error}}}\n\n"
        );
        let error = assign(self, &[("checksum_error", "1")]);
        let _ = write!(
            text,
            "static void after_verify(struct p4_packet *p)\n{{\n{open}    if (!p->checksum_error) return;\n\
             {error}}}\n\n"
        );
        for (function, field) in
            [("egress_spec", "egress_spec"), ("multicast_group", "mcast_grp"), ("ingress_port", "ingress_port")]
        {
            let value = self.standard(field).unwrap_or_else(|| "0".into());
            let _ = write!(
                text,
                "static uint64_t {function}(const struct p4_packet *p)\n{{\n    \
                 const struct packet *s = (const struct packet \
                 *)p;\n    (void)s;\n    return {value};\n}}\n\n"
            );
        }
        text + &self.preserve()
    }

    /// Copies the fields of a field list; all others are zero.
    fn preserve(&mut self) -> String {
        let ty = self.program.variables[Var::METADATA].ty;
        let name = self.type_name(ty);
        let mut lists: BTreeMap<u64, String> = BTreeMap::new();
        self.listed(ty, "metadata", &mut Vec::new(), &mut lists);
        let mut cases = String::new();
        for (list, body) in lists {
            let _ = write!(cases, "    case {list}:\n{body}        break;\n");
        }
        format!(
            "static void preserve(struct p4_packet *to, const struct p4_packet *from, uint64_t list, bool listed)\n\
             {{\n    \
             struct packet *s = (struct packet *)to;\n    \
             {name} metadata = ((const struct packet *)from)->metadata;\n    \
             (void)metadata;\n    memset(&s->metadata, 0, sizeof s->metadata);\n    if (!listed)\n        return;\n    \
             switch (list) {{\n{cases}    default:\n        break;\n    }}\n}}\n\n"
        )
    }

    /// Collects the assignments for each field list. `above` holds the lists that an enclosing field already belongs
    /// to.
    fn listed(&self, ty: Ty, path: &str, above: &mut Vec<u64>, lists: &mut BTreeMap<u64, String>) {
        let Some(info) = self.types.structure(ty).filter(|info| info.kind == StructKind::Struct) else { return };
        for (place, (_, field_ty)) in info.fields.iter().enumerate() {
            let field = format!("{path}.{}", Declarations::field(self.types, ty, place));
            let known = above.len();
            for list in info.field_lists.get(place).map_or(&[][..], |lists| lists) {
                if !above.contains(list) {
                    let _ = writeln!(lists.entry(*list).or_default(), "        s->{field} = {field};");
                    above.push(*list);
                }
            }
            self.listed(*field_ty, &field, above, lists);
            above.truncate(known);
        }
    }
}
