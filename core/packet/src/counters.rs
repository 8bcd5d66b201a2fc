//! Declares counters, each once: field, sum, difference and metric follow from one line.

/// Declares a struct of counters.
///
/// Each line has the name of the field, its metric if it is one by itself, and its meaning, which is the field's
/// documentation and the metric's help text. Values of other types that are added up like counters stand after `and`.
///
/// ```
/// namehop_packet::counters! {
///     /// What a door counts.
///     pub struct DoorCounters {
///         opened = "door_opened": "Times that the door was opened";
///         closed: "Times that the door was closed";
///     }
/// }
///
/// let mut counters = DoorCounters { opened: 2, closed: 1 };
/// counters += DoorCounters { opened: 1, closed: 2 };
/// assert_eq!(counters.metrics().collect::<Vec<_>>(), [("door_opened", "Times that the door was opened", 3)]);
/// ```
#[macro_export]
macro_rules! counters {
    (@difference $name:ident [$($field:ident)*]) => {
        impl ::std::ops::Sub for $name {
            type Output = Self;

            /// Returns the counts since `earlier`.
            fn sub(self, earlier: Self) -> Self {
                $name { $($field: self.$field - earlier.$field),* }
            }
        }
    };
    // Other types may have no difference.
    (@difference $name:ident [$($field:ident)*] and $($other:ident)*) => {};
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($field:ident $(= $metric:literal)?: $meaning:literal;)*
        }
        $(and { $($(#[$of_other:meta])* $other:ident: $type:ty;)* })?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name {
            $(
                #[doc = concat!($meaning, ".")]
                pub $field: u64,
            )*
            $($(
                $(#[$of_other])*
                pub $other: $type,
            )*)?
        }

        impl $name {
            /// Returns name, help text and value of each counter that is a metric by itself.
            pub fn metrics(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                let all = [$(([$($metric)?].first().copied(), $meaning, self.$field)),*];
                all.into_iter().filter_map(|(metric, meaning, count): (Option<&'static str>, _, _)| {
                    Some((metric?, meaning, count))
                })
            }
        }

        impl ::std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
                $($(self.$other += other.$other;)*)?
            }
        }

        $crate::counters!(@difference $name [$($field)*] $(and $($other)*)?);
    };
}
