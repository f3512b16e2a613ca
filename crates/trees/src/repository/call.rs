//! Calls git, and waits for its end.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Settings under which git runs nothing for the repository, and waits for nobody.
const SETTINGS: [&str; 7] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.untrackedCache=keep",
    // Else git runs what a repository in the worktree configures.
    "diff.ignoreSubmodules=dirty",
    "worktree.useRelativePaths=false",
];

/// Variables that would lead git elsewhere.
const REMOVED: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CEILING_DIRECTORIES",
];

/// Bytes of what git says on an error.
const MOST_SAID: usize = 2000;

/// One call of git.
#[derive(Debug)]
pub struct GitCall {
    command: Command,
    input: Vec<u8>,
}

/// Why a call of git gave no result.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git cannot be started: {0}")]
    Start(#[from] io::Error),
    /// Git said why.
    #[error("git {what}: {said}")]
    Failed { what: String, said: String, code: Option<i32> },
}

impl GitError {}

/// A call that has ended.
struct GitEnd {
    /// None: a signal ended it.
    code: Option<i32>,
    output: Vec<u8>,
    said: Vec<u8>,
}

impl GitCall {
    /// A call that finds its repository itself.
    pub(super) fn anywhere() -> Self {
        let mut command = Command::new("git");
        for name in REMOVED {
            command.env_remove(name);
        }
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        Self { command, input: Vec::new() }
    }

    /// A call for a git folder, and for the files of a worktree.
    pub(crate) fn of(folder: &Path, worktree: Option<&Path>) -> Self {
        let mut call = Self::anywhere();
        call.command.arg("--git-dir").arg(folder);
        if let Some(worktree) = worktree {
            call.command.arg("--work-tree").arg(worktree).current_dir(worktree);
        } else {
            call.command.current_dir(folder);
        }
        call
    }

    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(arg);
        self
    }

    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.command.args(args);
        self
    }

    pub fn env(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    /// Sets its standard input.
    pub fn input(&mut self, input: impl Into<Vec<u8>>) -> &mut Self {
        self.input = input.into();
        self
    }

    /// Its standard output.
    pub fn bytes(&mut self) -> Result<Vec<u8>, GitError> {
        let GitEnd { code, output, said } = self.end()?;
        if code == Some(0) { Ok(output) } else { Err(self.failed(code, &said)) }
    }

    /// Writes its standard output to a file. A call of this form has no standard input.
    pub(crate) fn write_into(&mut self, file: File) -> Result<(), GitError> {
        self.command.stdin(Stdio::null()).stdout(file).stderr(Stdio::piped());
        let ended = self.command.spawn()?.wait_with_output()?;
        if ended.status.success() {
            return Ok(());
        }
        Err(self.failed(ended.status.code(), &ended.stderr))
    }

    /// Its standard output, without the newline at its end.
    pub fn text(&mut self) -> Result<String, GitError> {
        let mut text = String::from_utf8_lossy(&self.bytes()?).into_owned();
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    /// Whether it says yes (0) or no (1).
    pub fn answer(&mut self) -> Result<bool, GitError> {
        match self.code_and_bytes()? {
            (0, _) => Ok(true),
            _ => Ok(false),
        }
    }

    /// Its exit code, 0 or 1, and its standard output.
    pub fn code_and_bytes(&mut self) -> Result<(i32, Vec<u8>), GitError> {
        let GitEnd { code, output, said } = self.end()?;
        match code {
            Some(code @ (0 | 1)) => Ok((code, output)),
            code => Err(self.failed(code, &said)),
        }
    }

    fn end(&mut self) -> Result<GitEnd, GitError> {
        let stdin = if self.input.is_empty() { Stdio::null() } else { Stdio::piped() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn()?;
        let input = std::mem::take(&mut self.input);
        let stdin = child.stdin.take();
        let ended = std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                // git may end before it has read all; its exit code says why.
                scope.spawn(move || stdin.write_all(&input));
            }
            child.wait_with_output()
        })?;
        Ok(GitEnd { code: ended.status.code(), output: ended.stdout, said: ended.stderr })
    }

    fn failed(&self, code: Option<i32>, said: &[u8]) -> GitError {
        let args = self.command.get_args().map(OsStr::to_string_lossy);
        let mut words = args.skip_while(|arg| arg.starts_with('-') || arg.contains(['=', '/']));
        let what = words.next().unwrap_or_default().into_owned();
        let said = String::from_utf8_lossy(&said[..said.len().min(MOST_SAID)]);
        let said = match said.trim() {
            "" => {
                format!("it ended with {}", code.map_or("a signal".to_owned(), |it| it.to_string()))
            }
            said => said.to_owned(),
        };
        GitError::Failed { what, said, code }
    }
}
