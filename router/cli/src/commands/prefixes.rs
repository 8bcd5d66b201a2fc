//! What the lists of prefixes share: which of them are shown, and in which order.

use clap::Args;
use namehop_wire::Name;

/// Which prefixes to list.
#[derive(Args, Debug)]
pub struct PrefixArgs {
    /// Only those under this name
    #[arg(long, value_name = "NAME")]
    prefix: Option<Name>,
}

impl PrefixArgs {
    /// The entries that are wanted, in the order of their names.
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
