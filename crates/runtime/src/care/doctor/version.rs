//! Asks a program for its version: bounded in time and bytes, and all that it started is ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::process::{Command, Exit, Launcher, Process};

/// Bytes that a program may write to say its version.
const MOST_SAID: usize = 64 << 10;
/// Bytes of a package's description.
const MOST_DESCRIBED: u64 = 256 << 10;
/// Characters of a version, and of what a program said instead.
const LONGEST_VERSION: usize = 40;
const LONGEST_QUOTE: usize = 120;
/// Folders above a program in which the description of its package may be.
const FOLDERS_ABOVE: usize = 4;

#[expect(clippy::expect_used, reason = "the pattern is part of the program, and a test uses it")]
static VERSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9]+\.[0-9]+[0-9A-Za-z.+-]*").expect("a valid pattern"));

/// How programs are asked.
pub(super) struct Probe {
    pub(super) launcher: Launcher,
    pub(super) limit: Duration,
    /// Where they run: not where somebody else's settings lie.
    pub(super) folder: PathBuf,
}

/// Why a program has not said its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NoVersion {
    /// The program runs, but does not know `--version`, as far as can be seen.
    Unnamed(String),
    /// The program fails.
    Broken(String),
}

enum Said {
    Ended(Exit, Vec<u8>),
    TooMuch,
}

impl Probe {
    pub(super) async fn version(
        &self,
        program: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<String, NoVersion> {
        let program = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
        let command = Command {
            program: program.clone().into_os_string(),
            args: vec!["--version".into()],
            cwd: self.folder.clone(),
            env: env.clone(),
        };
        let started = self.launcher.spawn_merged(&command).await;
        let (process, output) = started.map_err(|error| NoVersion::Broken(error.to_string()))?;
        let said = timeout(self.limit, listen(&process, output)).await;
        process.kill().await;
        let unnamed = match said {
            Ok(Said::Ended(Exit::Code(0), said)) => match version_in(&said) {
                Some(version) => return Ok(version),
                None => "`--version` names none".to_owned(),
            },
            Ok(Said::Ended(exit, said)) => {
                let quote = quote(&said);
                return Err(NoVersion::Broken(format!("`--version` {exit}{quote}")));
            }
            Ok(Said::TooMuch) => {
                format!("it was ended when it had answered `--version` with {MOST_SAID} bytes")
            }
            Err(_) => {
                let seconds = self.limit.as_secs();
                format!("it gave no answer to `--version` in {seconds} s and was stopped")
            }
        };
        of_package(&program).ok_or(NoVersion::Unnamed(unnamed))
    }
}

/// Reads what a program writes until it ends; a descendant that goes on writing is not waited for.
async fn listen(process: &Process, mut output: pipe::Receiver) -> Said {
    let (mut said, mut chunk) = (Vec::new(), [0; 4096]);
    let mut exit = pin!(process.exit());
    loop {
        tokio::select! {
            biased;
            read = output.read(&mut chunk) => match read {
                Ok(0) | Err(_) => return Said::Ended(exit.await, said),
                Ok(count) => said.extend_from_slice(&chunk[..count]),
            },
            exit = &mut exit => {
                while let Ok(count @ 1..) = output.try_read(&mut chunk)
                    && said.len() < MOST_SAID
                {
                    said.extend_from_slice(&chunk[..count]);
                }
                return Said::Ended(exit, said);
            }
        }
        if said.len() >= MOST_SAID {
            return Said::TooMuch;
        }
    }
}

/// Returns the first version in an output.
fn version_in(said: &[u8]) -> Option<String> {
    let text = anstream::adapter::strip_str(&String::from_utf8_lossy(said)).to_string();
    let version = VERSION.find(&text)?.as_str().trim_end_matches(['.', '-', '+']);
    Some(version.chars().take(LONGEST_VERSION).collect())
}

/// Returns the first line of an output, for a message.
fn quote(said: &[u8]) -> String {
    let text = anstream::adapter::strip_str(&String::from_utf8_lossy(said)).to_string();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line: Option<String> = line.map(|line| line.chars().take(LONGEST_QUOTE).collect());
    line.map(|line| format!(": {line}")).unwrap_or_default()
}

/// Returns the version of the npm package that a program lies in: some adapters know no
/// `--version`.
fn of_package(program: &Path) -> Option<String> {
    let real = program.canonicalize().ok()?;
    let file = real.ancestors().skip(1).take(FOLDERS_ABOVE).find_map(|folder| {
        let file = folder.join("package.json");
        file.metadata().is_ok_and(|file| file.is_file()).then_some(file)
    })?;
    let mut text = Vec::new();
    File::open(file).ok()?.take(MOST_DESCRIBED).read_to_end(&mut text).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&text).ok()?;
    // The package of this program, and not one that it merely lies below.
    package.get("bin")?;
    version_in(package.get("version")?.as_str()?.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        for (said, version) in [
            ("codex-cli 0.46.0\n", Some("0.46.0")),
            ("1.0.35 (Claude Code)", Some("1.0.35")),
            ("\u{1b}[31mUpdate!\u{1b}[0m\nv2.1.0-beta.3+7.", Some("2.1.0-beta.3+7")),
            ("git version 2.47.3", Some("2.47.3")),
            ("", None),
            ("usage: x [options]", None),
            ("7", None),
        ] {
            assert_eq!(version_in(said.as_bytes()).as_deref(), version, "{said:?}");
        }
        let long = format!("1.{}", "2".repeat(1000));
        assert_eq!(version_in(long.as_bytes()).unwrap().len(), LONGEST_VERSION);
        assert_eq!(version_in(b"\xff\xfe 1.2 \xff").as_deref(), Some("1.2"));
    }

    #[test]
    fn a_quote_is_one_line_without_escapes() {
        assert_eq!(quote(b"\n \x1b[31mno\x1b[0m such option\nmore"), ": no such option");
        assert_eq!(quote(b" \n"), "");
        assert!(quote(&[b'a'; 5000]).len() < 200);
    }

    #[test]
    fn the_version_of_an_adapter_is_its_packages() {
        let folder = tempfile::tempdir().unwrap();
        let (package, program) =
            (folder.path().join("package.json"), folder.path().join("dist/index.js"));
        std::fs::create_dir(folder.path().join("dist")).unwrap();
        std::fs::write(&program, "").unwrap();
        let link = folder.path().join("agent");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        for (text, version) in [
            (r#"{"version":"0.16.2","bin":{}}"#, Some("0.16.2")),
            (r#"{"version":"0.16.2"}"#, None),
            (r#"{"version":7,"bin":{}}"#, None),
            ("{", None),
        ] {
            std::fs::write(&package, text).unwrap();
            assert_eq!(of_package(&link).as_deref(), version, "{text}");
        }
    }
}
