//! The configuration of the folder, as `check` sees it: errors and warnings are counted.

use std::path::Path;

use crate::app::{journal_hint, limit_enforcement};
use crate::care::doctor::{Finding, command};
use crate::config::check::{self, Kernel};
use crate::config::{Config, ConfigErrors};
use crate::home::environment::shell_word;
use crate::program::Failure;
use crate::team_file::hints;
use crate::team_file::load;

const CHECK: &str = "configuration";

/// Checks a configuration; returns it if it is valid.
pub(super) fn configuration(
    file: &Path,
    eisen_dir: &Path,
    kernel: &Kernel,
) -> (Option<Config>, Finding) {
    let (place, word) = (file.display(), shell_word(&file.display().to_string()));
    if file.symlink_metadata().is_err() {
        let finding = Finding::ok(CHECK, format!("there is no {place}"));
        return (None, finding.mended_by(command(&format!("init -c {word}"))));
    }
    let mend = command(&format!("check -c {word}"));
    let config = match load(file, eisen_dir) {
        Ok(layered) => layered.config,
        Err(failure) => {
            let message = format!("{place} {}", trouble(&failure));
            return (None, Finding::error(CHECK, message).mended_by(mend));
        }
    };
    let mut hints = hints(&config, eisen_dir);
    hints.extend(journal_hint(&config, eisen_dir));
    let report = check::check(&config, kernel, limit_enforcement(), hints, &mut |_| ());
    let message = format!("{place} is valid: {}", report.summary());
    let finding = if report.warnings().is_empty() {
        Finding::ok(CHECK, message)
    } else {
        Finding::warning(CHECK, message).mended_by(mend)
    };
    (Some(config), finding)
}

fn trouble(failure: &Failure) -> String {
    match failure.error().downcast_ref::<ConfigErrors>().map(ConfigErrors::count) {
        Some(1) => "has an error".to_owned(),
        Some(count) => format!("has {count} errors"),
        None => format!("can't be used: {:#}", failure.error()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::care::doctor::Health;

    fn found(text: Option<&str>) -> (bool, Finding) {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("my eisen.toml");
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let kernel = Kernel { holds: true, missing: Vec::new() };
        let eisen_dir = place.path().join("eisen");
        let (config, finding) = configuration(&file, &eisen_dir, &kernel);
        (config.is_some(), finding)
    }

    #[test]
    fn errors_are_counted_and_check_shows_them() {
        let (is_there, finding) = found(Some("[team]\nnmae = 1\nlisten = 7\n"));
        assert_eq!((is_there, finding.state), (false, Health::Error));
        assert!(finding.message.ends_with("has 2 errors"), "{}", finding.message);
        let fix = finding.fix.unwrap();
        assert!(fix.contains(" check -c '/") && fix.ends_with("/my eisen.toml'"), "{fix}");
    }

    #[test]
    fn warnings_are_counted() {
        let agent = "[[agents]]\nid = \"ui\"\ncommand = [\"no-such-agent\"]\n";
        let (is_there, finding) = found(Some(agent));
        assert_eq!((is_there, finding.state), (true, Health::Warning), "{finding:?}");
        assert!(finding.message.contains("is valid: 1 agent"), "{}", finding.message);
        assert!(finding.fix.unwrap().contains(" check -c "));
    }

    #[test]
    fn a_folder_without_a_configuration_is_no_trouble() {
        let (is_there, finding) = found(None);
        assert_eq!((is_there, finding.state), (false, Health::Ok));
        assert!(finding.fix.unwrap().contains(" init -c "));
    }
}
