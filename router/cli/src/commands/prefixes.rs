//! Selection and order of prefixes, shared by the commands that list them.

use clap::Args;
use namehop_wire::Name;

/// Options that select prefixes.
#[derive(Args, Debug)]
pub struct PrefixArgs {
    /// Only prefixes under this name
    #[arg(long, value_name = "NAME")]
    prefix: Option<Name>,
}

impl PrefixArgs {
    /// Returns the selected entries, sorted by name.
    pub fn select<T>(&self, mut entries: Vec<T>, name: impl Fn(&T) -> &Name) -> Vec<T> {
        entries.retain(|entry| self.prefix.as_ref().is_none_or(|prefix| prefix.is_prefix_of(name(entry).as_ref())));
        entries.sort_by(|left, right| name(left).cmp(name(right)));
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_under_a_name_are_listed_in_order() {
        let names = || ["/b", "/a/c", "/a", "/ab"].map(|uri| uri.parse::<Name>().unwrap()).to_vec();
        let select = |prefix: Option<&str>| {
            let prefix = prefix.map(|uri| uri.parse().unwrap());
            let selected = PrefixArgs { prefix }.select(names(), |name| name);
            selected.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(select(None), ["/a", "/a/c", "/b", "/ab"]);
        assert_eq!(select(Some("/a")), ["/a", "/a/c"]);
    }
}
