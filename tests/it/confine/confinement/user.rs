use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{self, EISEN_CORE, Stage, run};

/// Who runs a team.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum User {
    /// Whoever runs the tests.
    Own,
    /// An ordinary user, as only root can become one.
    Nobody,
}

const NOBODY: &str = "65534";

/// Where programs are looked for, by everybody.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl User {
    pub(super) fn is_root(self) -> bool {
        self == Self::Own && nix::unistd::geteuid().is_root()
    }

    /// A command that runs as this user, on a stage.
    pub(super) fn command(self, stage: &Stage, program: &str) -> Command {
        let mut command = match self {
            Self::Own => harness::program(program),
            Self::Nobody => {
                let mut command = harness::program("setpriv");
                command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", program]);
                command
            }
        };
        for (name, value) in stage.eisen_core(&[]).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // What a tool remembers for its user is no matter of these tests.
        for (name, folder) in [("HOME", "user"), ("XDG_CONFIG_HOME", "user/.config")] {
            command.env(name, stage.path(folder));
        }
        for name in ["XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        // One file system holds all, so that what is moved is not copied.
        command.env("TMPDIR", stage.path("temporary"));
        // The toolchain that runs these tests, if this user can reach it.
        let toolchain = std::env::var_os("CARGO").map(PathBuf::from);
        let tools = toolchain.as_deref().and_then(Path::parent).map(|tools| tools.display());
        let path = tools.map_or(PATH.to_owned(), |tools| format!("{PATH}:{tools}"));
        command.env("PATH", path).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(stage.path(""));
        command
    }

    /// Makes a path this user's, with all below it.
    pub(super) fn own(self, path: &Path) {
        if self == Self::Nobody {
            let owner = format!("{NOBODY}:{NOBODY}");
            let done = run(harness::program("chown").args(["-R", &owner]).arg(path));
            assert_eq!(done.code, 0, "{}", done.stderr);
        }
    }

    /// The program under test, where this user can reach it.
    pub(super) fn eisen_core(self, stage: &Stage) -> PathBuf {
        if self == Self::Own {
            return EISEN_CORE.into();
        }
        let copy = stage.path("bin/eisen-core");
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(EISEN_CORE, &copy).unwrap();
        copy
    }
}

/// Finds a program where all of these tests look for it.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    PATH.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.exists())
}
