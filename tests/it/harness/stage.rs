use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::program::program;
use super::running::{Ended, Program, Team, run};
use super::{EISEN_CORE, Editor, Puppet};

/// The script of all scripted agents here: what they do for each prompt.
const SCRIPT: &str = include_str!("script.toml");

/// A folder with a workspace, scripts, a configuration and an `EISEN_DIR`.
pub(crate) struct Stage {
    folder: TempDir,
}

/// An agent of a configuration.
pub(crate) struct AgentTable {
    id: String,
    /// None: the test itself plays it.
    script: Option<String>,
    before: String,
    keys: String,
}

/// A scripted agent that does what its prompts say, see `script.toml`.
pub(crate) fn agent(id: &str) -> AgentTable {
    AgentTable {
        id: id.to_owned(),
        script: Some(String::new()),
        before: String::new(),
        keys: String::new(),
    }
}

impl AgentTable {
    /// With these keys, and tables, of its own.
    pub(crate) fn with(mut self, keys: &str) -> Self {
        self.keys.push_str(keys);
        self.keys.push('\n');
        self
    }

    /// May only touch what matches this pattern.
    pub(crate) fn zone(self, allowed: &str) -> Self {
        self.with(&format!("[agents.zone]\nallowed = [{allowed:?}]"))
    }

    /// Plays these steps before it answers `initialize`.
    pub(crate) fn start(mut self, steps: &str) -> Self {
        self.script = Some(format!("start = [{steps}]\n"));
        self
    }

    /// Offers `session/load`, and plays these steps before it answers one.
    pub(crate) fn loads(mut self, steps: &str) -> Self {
        self.script = Some(format!("load = [{steps}]\n"));
        self
    }

    /// Offers the modes `code` and `plan`, and the models `large` and `small`.
    pub(crate) fn offers(mut self) -> Self {
        let offered = "modes = [\"code\", \"plan\"]\nmodels = [\"large\", \"small\"]\n";
        self.script = Some(offered.to_owned());
        self
    }

    /// Offers `session/fork`.
    pub(crate) fn forks(mut self) -> Self {
        self.script = Some("fork = true\n".to_owned());
        self
    }

    /// Is started by this shell line, which goes on as the agent with `exec "$@"`.
    pub(crate) fn behind(mut self, line: &str) -> Self {
        line.clone_into(&mut self.before);
        self
    }

    /// Is played by the test: [`Puppet`].
    pub(crate) fn puppet(mut self) -> Self {
        self.script = None;
        self
    }
}

impl Stage {
    /// In a user's file: runs start however little memory the machine has.
    pub(crate) const ANY_MEMORY: &str = "[runs]\nmin_free_mb = 0\n";

    pub(crate) fn new() -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in [
            ("src/ui/app.ts", "ui\n"),
            ("src/api/cart.rs", "api\n"),
            ("src/api/order.rs", "order\n"),
            ("types/cart.ts", "types\n"),
            (".env", "SECRET=1\n"),
        ] {
            stage.file(&format!("shop/{path}"), text);
        }
        stage
    }

    pub(crate) fn with_any_memory(&self) {
        self.file("home/config.toml", Self::ANY_MEMORY);
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(relative)
    }

    /// A path in the workspace.
    pub(crate) fn in_shop(&self, relative: &str) -> String {
        self.path("shop").join(relative).display().to_string()
    }

    pub(crate) fn file(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        std::fs::read_to_string(self.path(relative)).unwrap()
    }

    pub(crate) fn puppet(&self, name: &str) -> Puppet {
        Puppet::new(self, name)
    }

    /// Writes the configuration of the team `shop`. `keys` begins with keys of `[team]`; other
    /// tables may follow.
    pub(crate) fn configure(&self, keys: &str, agents: Vec<AgentTable>) {
        let mut text = format!(
            "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n{keys}\n"
        );
        for agent in agents {
            let (id, keys) = (&agent.id, &agent.keys);
            let command = self.command(&agent);
            let _ = writeln!(text, "[[agents]]\nid = {id:?}\ncommand = {command:?}\n{keys}");
        }
        self.file("eisen.toml", &text);
    }

    /// The command of an agent in a configuration.
    pub(crate) fn command(&self, agent: &AgentTable) -> Vec<String> {
        let Some(start) = &agent.script else {
            let command = Puppet::command(&self.path(""), &agent.id);
            // The configuration has variables of its own.
            return command.into_iter().map(|word| word.replace("$$", "$$$$")).collect();
        };
        let script = format!("{}.toml", agent.id);
        self.file(&script, &format!("[agent]\nname = {:?}\n{start}{SCRIPT}", agent.id));
        let script = self.path(&script).display().to_string();
        let plain = [EISEN_CORE.to_owned(), "scripted-agent".to_owned(), script];
        if agent.before.is_empty() {
            return plain.into();
        }
        // The configuration has variables of its own.
        let line = format!("{} exec \"$@\"", agent.before).replace('$', "$$");
        ["sh", "-c", &line, "sh"].map(str::to_owned).into_iter().chain(plain).collect()
    }

    /// The program under test, run in the stage's folder.
    pub(crate) fn eisen_core(&self, args: &[&str]) -> Command {
        let mut command = self.program(EISEN_CORE);
        command.args(args);
        command
    }

    /// Any program, run in the stage's folder; the program under test finds the stage's teams in it.
    pub(crate) fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = program(name);
        command.current_dir(self.path("")).env("EISEN_DIR", self.path("home"));
        // What a run leaves that is killed goes with the stage.
        let temporary = self.path("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        command.env("TMPDIR", temporary).env("XDG_CACHE_HOME", self.path("cache"));
        command.env("HOME", self.path("user"));
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        run(&mut self.eisen_core(args))
    }

    pub(crate) fn start(&self, args: &[&str]) -> Program {
        Program::start(&mut self.eisen_core(args))
    }

    /// Attaches an editor to an agent.
    pub(crate) fn attach(&self, agent: &str) -> Editor {
        Editor::start(&mut self.eisen_core(&["attach", agent]))
    }

    /// Brings up the team that was configured.
    pub(crate) fn up(&self) -> Team {
        Team::of(self.start(&["up", "-c", "eisen.toml"]), self)
    }

    /// Brings it up with programs of the stage's folder `bin` before all others.
    pub(crate) fn up_with_bin(&self) -> Team {
        let others = std::env::var("PATH").unwrap();
        let path = format!("{}:{others}", self.path("bin").display());
        let mut up = self.eisen_core(&["up", "-c", "eisen.toml"]);
        Team::of(Program::start(up.env("PATH", path)), self)
    }

    /// Configures a team, and brings it up.
    pub(crate) fn team(&self, keys: &str, agents: Vec<AgentTable>) -> Team {
        self.configure(keys, agents);
        self.up()
    }

    pub(crate) fn run_path(&self, name: &str) -> PathBuf {
        self.path("home/run").join(format!("{name}.json"))
    }

    pub(crate) fn run_file(&self, name: &str) -> Option<Value> {
        let text = std::fs::read_to_string(self.run_path(name)).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }

    /// Whether a path of the stage is there.
    pub(crate) fn has(&self, relative: impl AsRef<Path>) -> bool {
        self.path("").join(relative).exists()
    }
}
