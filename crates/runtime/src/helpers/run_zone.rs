//! The zone of a run that an agent starts: within that of its agent. Pure.

use std::path::Path;

use crate::config::{Agent, zone_pattern};
use crate::runs::RunZone;
use crate::serve::Refused;
use crate::zone::{self, ZoneSpec};

/// The patterns that are within an agent's zone, and the patterns that reach further.
pub(crate) fn cut_zone(
    workspace: &Path,
    of: &Agent,
    asked: &[String],
) -> Result<(Vec<String>, Vec<String>), Refused> {
    let own = &of.zone.spec.allowed;
    if asked.is_empty() {
        return Ok((own.clone(), Vec::new()));
    }
    let patterns = asked.iter().map(|pattern| zone_pattern(pattern, workspace, "`denied`"));
    let patterns: Vec<_> = patterns.collect::<Result<_, _>>().map_err(Refused::wrong)?;
    let (kept, further) = zone::cut(own, &patterns).map_err(Refused::wrong)?;
    if kept.is_empty() {
        return Err(Refused::wrong(format!(
            "nothing of the zone {} is within the zone of `{}`, which has: {}",
            further.join(", "),
            of.id,
            own.join(", ")
        )));
    }
    Ok((kept, further))
}

/// The paths that an agent may read: while it is observed, all of the workspace that is not denied.
pub(crate) fn readable(spec: &ZoneSpec, is_observed: bool) -> RunZone {
    let mut reads = [&spec.allowed[..], &spec.shared, &spec.readable].concat();
    if is_observed {
        reads.push("**".to_owned());
    }
    RunZone { reads, denied: spec.denied.clone() }
}

/// A pattern by which `other` could read more; None if there is none.
pub(crate) fn reaches_out(own: &RunZone, other: &RunZone) -> Option<String> {
    let new: Vec<_> = other.reads.iter().filter(|it| !own.reads.contains(it)).cloned().collect();
    let further = match zone::uncovered(&own.reads, &new) {
        Ok(further) => further.map(str::to_owned),
        Err(error) => Some(error.to_string()),
    };
    further.or_else(|| own.denied.iter().find(|it| !other.denied.contains(it)).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_not_for_one_that_may_read_less() {
        let zone = |reads: &[&str], denied: &[&str]| RunZone {
            reads: reads.iter().map(|it| (*it).to_owned()).collect(),
            denied: denied.iter().map(|it| (*it).to_owned()).collect(),
        };
        let own = zone(&["src/**", "docs/*.md"], &["**/.env"]);
        let further = |other: &RunZone| reaches_out(&own, other);
        assert_eq!(further(&own), None);
        assert_eq!(further(&zone(&["src/ui/**"], &["**/.env", "src/x"])), None);
        assert_eq!(further(&zone(&["src/**", "lib/**"], &["**/.env"])).as_deref(), Some("lib/**"));
        assert_eq!(further(&zone(&["src/**"], &[])).as_deref(), Some("**/.env"));
        // Whoever goes on with a session has what was read in it before.
        let narrow =
            zone(&["src/ui/**"], &["**/.env", "src/x"]).and(&zone(&["lib/**"], &["src/x"]));
        assert_eq!(narrow, zone(&["src/ui/**", "lib/**"], &["src/x"]));
    }

    #[test]
    fn a_run_of_an_observed_agent_could_read_all() {
        let spec = ZoneSpec {
            git: zone::GitAccess::Read,
            ..ZoneSpec::new("/w", vec!["src/**".to_owned()], "/e")
        };
        let [observed, bound] = [true, false].map(|is_observed| readable(&spec, is_observed));
        assert_eq!(reaches_out(&bound, &observed).as_deref(), Some("**"));
        assert_eq!(reaches_out(&observed, &observed), None);
        assert_eq!(reaches_out(&observed, &bound), None);
    }
}
