//! Names: components, borrowed and owned names, URI form (NDN packet specification, name.rst).

mod component;
mod owned;
mod uri;
mod view;

#[cfg(test)]
mod tests;

pub use component::ComponentRef;
pub use owned::Name;
pub use uri::NameUriError;
pub(crate) use view::NameScan;
pub use view::{Components, NameRef};
