//! Where a simulator looks in: rare branches that were taken, and mistakes that can be made on purpose.
//!
//! The state machines have a type parameter that is [`Quiet`] unless said otherwise, and `Quiet` compiles
//! to nothing. It is no feature of the package: features unify, and a mistake would leak into a product.

/// Hears of rare branches, and may ask for a mistake.
pub trait Probe: 'static {
    /// A rare branch was taken.
    #[inline(always)]
    fn mark(_: Mark) {}

    /// Whether this mistake is to be made.
    #[inline(always)]
    #[must_use]
    fn mutant(_: Mutant) -> bool {
        false
    }
}

/// Hears nothing, asks for nothing: what production runs.
#[derive(Clone, Copy, Debug)]
pub enum Quiet {}

impl Probe for Quiet {}

/// An enum whose variants know all of them, their names and what they mean.
macro_rules! told {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }

            /// What it means.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+),)+
                }
            }
        }
    };
}

told! {
    /// A rare branch.
    Mark {
        /// A transaction comes again that is processed already, and is read past.
        Skipped,
    }
}

told! {
    /// A mistake, each against one promise.
    Mutant {
        /// A transaction that is processed already is delivered again.
        DeliverAgain,
    }
}
