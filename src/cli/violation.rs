//! The values of `--on-violation`.

use crate::model::OnViolation;

impl clap::ValueEnum for OnViolation {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Report, Self::Cancel, Self::Stop]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let (name, help) = match self {
            Self::Report => ("report", "It is reported as blocked, with status `observed`"),
            Self::Cancel => ("cancel", "Its turn is cancelled, too"),
            Self::Stop => ("stop", "The agent is stopped, too"),
        };
        Some(clap::builder::PossibleValue::new(name).help(help))
    }
}
