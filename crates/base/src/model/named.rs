//! Enumerations whose variants have a name: on the wire, in files, in the configuration.

/// An enumeration that `named!` declares, for generic readers.
pub trait Variants: Copy + 'static {
    /// All variants, in the order of their declaration.
    fn all() -> &'static [Self];

    /// The name of a variant on the wire, in files and in the configuration.
    fn name(self) -> &'static str;
}

/// Declares an enumeration with the name of each variant, as in `Read = "read"`: with `ALL`,
/// `as_str` and [`Variants`].
#[macro_export]
macro_rules! named {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $type:ident {
            $($(#[$of_variant:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $type {
            $($(#[$of_variant])* #[doc = concat!("Its name is `", $name, "`.")] $variant,)*
        }

        impl $type {
            /// All variants, in the order of their declaration.
            $visibility const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name of a variant.
            $visibility fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl $crate::model::Variants for $type {
            fn all() -> &'static [Self] {
                &Self::ALL
            }

            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

pub use named;
