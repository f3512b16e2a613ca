//! The zone of an agent that is observed and not stopped: wider than the written one, which it carries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::patterns::PatternPath;
use super::{Verdict, Zone, ZoneSpec};
use crate::model::Action;

impl Zone {
    /// Compiles the zone of an agent that is observed and not stopped. Files that `secrets` names are asked for,
    /// but those that the zone allows as it is written. `drafts`: see [`Zone::with_drafts_in`].
    pub fn observed(
        spec: &ZoneSpec,
        secrets: &[String],
        drafts: PathBuf,
    ) -> Result<Self, globset::Error> {
        let written = Self::compile(spec)?.with_drafts_in(drafts.clone());
        let open = Self::compile(&spec.opened(secrets))?.with_drafts_in(drafts);
        Ok(Self { written: Some(Arc::new(written)), ..open })
    }

    /// The zone as it is written, of an agent that is only observed.
    pub fn written(&self) -> Option<&Arc<Self>> {
        self.written.as_ref()
    }

    /// Whether an agent that is observed may access a path without being so.
    pub(super) fn is_open_as_written(
        &self,
        real: &Path,
        place: &PatternPath,
        action: Action,
    ) -> bool {
        let written = self.written.as_ref();
        written.is_some_and(|it| matches!(it.judge(real, place, action), Verdict::Allowed))
    }
}
