use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::table::{ESCAPES, Need, Shows};
use super::user::{User, find};
use super::victim::Victim;
use crate::harness::{self, Lines, Stage, run};

/// The folders that each escape has of its own, by the name it knows them by.
const FOLDERS: [(&str, &str); 6] = [
    ("OPEN", "shop/open"),
    ("MIXED", "shop/mixed"),
    ("CLOSED", "shop/closed"),
    ("DOCS", "shop/docs"),
    ("OUTSIDE", "outside"),
    ("VAULT", "home/trial"),
];

/// What all of these tests set free, and what they forbid.
pub(super) const ZONE: &str = r#"
[agents.zone]
allowed = ["open/**", "mixed/**", "closed/*/*draft*/single.txt"]
denied = ["mixed/*/*/denied/**", "mixed/*/*/deep/core/**"]
readable = ["docs/**", "tools/**"]
"#;

/// An escape, as it is tried in one way.
pub(super) struct Trial {
    pub(super) name: &'static str,
    pub(super) shows: Shows,
    needs: &'static [Need],
    /// Unlike any other's.
    secret: String,
}

/// What one escape did.
#[derive(Default, Debug)]
pub(super) struct Outcome {
    pub(super) code: i32,
    pub(super) output: String,
    /// What shows that it got through.
    pub(super) seen: Vec<(Shows, String)>,
}

/// All escapes, tried in one way: the names of their folders end in it.
pub(super) struct Scene<'a> {
    stage: &'a Stage,
    user: User,
    way: &'static str,
    pub(super) trials: Vec<Trial>,
}

impl<'a> Scene<'a> {
    /// Sets up what the escapes are after.
    pub(super) fn new(stage: &'a Stage, user: User, way: &'static str) -> Self {
        let random = RandomState::new();
        let trials =
            ESCAPES.iter().flat_map(|kind| kind.names.iter().map(move |name| (kind, *name)));
        let trials = trials.filter(|(_, name)| wanted(name)).map(|(kind, name)| {
            let secret = format!("sesame:0g{:016x}", random.hash_one((way, name)));
            Trial { name, shows: kind.shows, needs: kind.needs, secret }
        });
        let mut trials: Vec<_> = trials.collect();
        // They take long: who is tried beside root tries some of them.
        let races = if user == User::Own { "race-" } else { "race-file-" };
        let has_races = ["bare", "child"].contains(&way);
        trials.retain(|trial| {
            !trial.name.starts_with("race-") || has_races && trial.name.starts_with(races)
        });
        // A terminal and the strict wall are tried as each user, with all escapes as one.
        let is_whole = ["bare", "child"].contains(&way) || user == User::Own;
        trials.retain(|trial| is_whole || trial.name.starts_with("read-"));
        trials.retain(|trial| match trial.needs.iter().find_map(|need| lacks(*need, user)) {
            Some(what) => {
                if way == "bare" {
                    skipped(user, trial.name, &what);
                }
                false
            }
            None => true,
        });
        let scene = Self { stage, user, way, trials };
        scene.make();
        scene
    }

    fn make(&self) {
        let mut rows = String::new();
        for trial in &self.trials {
            let _ = write!(rows, "{}\t{}", trial.name, trial.secret);
            for (_, folder) in FOLDERS {
                let _ = write!(rows, "\t{}", self.folder(folder, trial.name).display());
            }
            rows.push('\n');
        }
        self.stage.file(&format!("shop/tools/{}.rows", self.way), &rows);
        self.scene("make");
        if self.user == User::Nobody {
            for trial in self.trials.iter().filter(|t| t.needs.contains(&Need::OtherThanRoot)) {
                self.set_up_setuid(trial);
            }
        }
    }

    /// A program that runs as root, and a file that only root may read.
    fn set_up_setuid(&self, trial: &Trial) {
        let outside = self.folder("outside", trial.name);
        let (program, file) = (outside.join("as-root"), outside.join("of-root"));
        std::fs::copy(find("cat").unwrap(), &program).unwrap();
        std::fs::write(&file, &trial.secret).unwrap();
        for (mode, path) in [("4755", &program), ("600", &file)] {
            run(harness::program("chmod").arg(mode).arg(path));
        }
    }

    pub(super) fn way(&self) -> &'static str {
        self.way
    }

    fn folder(&self, kind: &str, name: &str) -> PathBuf {
        self.stage.path(kind).join(self.way).join(name)
    }

    /// Runs `scene.py`; returns what it printed.
    fn scene(&self, what: &str) -> String {
        let tools = self.stage.path("shop/tools");
        let mut command = self.user.command(self.stage, &python());
        command.arg(tools.join("scene.py")).arg(what).arg(tools.join(format!("{}.rows", self.way)));
        let done = run(&mut command);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout
    }

    fn look(&self) -> HashMap<String, BTreeMap<String, Value>> {
        serde_json::from_str(&self.scene("look")).unwrap()
    }

    /// A file outside the zone that this escape is after.
    pub(super) fn secret_file(&self, name: &str) -> PathBuf {
        self.folder("shop/closed", name).join("secret")
    }

    /// Tries all of them: `start` has the script run that it is given the path of. Returns what
    /// came of each.
    pub(super) fn play(
        &self,
        supervisor: u32,
        token: &str,
        start: impl FnOnce(&Path),
    ) -> BTreeMap<&'static str, Outcome> {
        let victims = self.victims();
        let before = self.look();
        let progress = self.stage.path(&format!("shop/open/{}/progress", self.way));
        mkfifo(&progress, Mode::S_IRWXU).unwrap();
        self.user.own(&progress);
        let opened = progress.clone();
        // Open for both, so that it does not end between two writers.
        let reported = Lines::of_opened(move || {
            std::fs::File::options().read(true).write(true).open(opened).unwrap()
        });
        let plan = format!("shop/tools/{}.sh", self.way);
        self.stage.file(&plan, &self.plan(supervisor, &victims, &progress));
        start(&self.stage.path(&plan));

        let mut outcomes = BTreeMap::new();
        for trial in &self.trials {
            println!("{}: {}", self.way, trial.name);
            let line = reported.next().unwrap();
            let code = line.strip_prefix(trial.name).unwrap().trim().parse().unwrap();
            outcomes.insert(trial.name, Outcome { code, ..Outcome::default() });
        }
        // Only now: some of them rename the workspace for a while.
        for (name, outcome) in &mut outcomes {
            let output = std::fs::read(self.output(name)).unwrap_or_default();
            outcome.output = String::from_utf8_lossy(&output).into_owned();
        }
        let after = self.look();
        let mut harm = victims
            .into_iter()
            .map(|(name, victim)| (name, victim.end()))
            .collect::<HashMap<_, _>>();
        for trial in &self.trials {
            let outcome = outcomes.get_mut(trial.name).unwrap();
            let seen = &mut outcome.seen;
            if outcome.output.contains(&trial.secret) || outcome.output.contains(token) {
                seen.push((Shows::Secret, "the secret is in the output".to_owned()));
            }
            if outcome.output.lines().any(|line| line == "through") {
                seen.push((Shows::Says, "it says so".to_owned()));
            }
            let (before, after) = (&before[trial.name], &after[trial.name]);
            for path in before.keys().chain(after.keys()) {
                let (was, is) = (before.get(path), after.get(path));
                // A busy process outside writes there all the time.
                let is_busy = trial.needs.contains(&Need::BusyVictim) && path.contains("/empty");
                if was != is && !is_busy {
                    seen.push((Shows::Changed, format!("{path} was {was:?}, is {is:?}")));
                }
            }
            seen.extend(harm.remove(trial.name).unwrap_or_default());
        }
        outcomes
    }

    fn victims(&self) -> HashMap<&'static str, Victim> {
        let hunted = self.trials.iter().filter(|trial| {
            trial.needs.iter().any(|need| matches!(need, Need::Victim | Need::BusyVictim))
        });
        hunted
            .map(|trial| {
                let program = self.stage.path("shop/tools/victim");
                let mut command = self.user.command(self.stage, program.to_str().unwrap());
                command
                    .arg(self.folder("shop/closed", trial.name))
                    .arg(self.folder("outside", trial.name))
                    .arg(trial.secret.replace("sesame:0g", "eisen-trial-"))
                    .arg(self.folder("shop/open", trial.name))
                    .args((trial.needs.contains(&Need::BusyVictim)).then_some("busy"))
                    .env("SECRET", &trial.secret);
                (trial.name, Victim::start(&mut command))
            })
            .collect()
    }

    fn output(&self, name: &str) -> PathBuf {
        self.stage.path("shop/open").join(self.way).join(format!("{name}.out"))
    }

    /// The script that tries one after the other.
    fn plan(&self, supervisor: u32, victims: &HashMap<&str, Victim>, progress: &Path) -> String {
        let (shop, run_file) = (self.stage.path("shop"), self.stage.run_path("shop"));
        let mut plan = format!(
            "export WORKSPACE='{}' RUN_FILE='{}' SUPERVISOR={supervisor} PYTHONDONTWRITEBYTECODE=1\n",
            shop.display(),
            run_file.display()
        );
        for (number, trials) in
            self.trials.chunk_by(|a, b| a.is_python() == b.is_python()).enumerate()
        {
            if trials[0].is_python() {
                plan += &self.python_trials(number, trials, victims, progress);
            } else {
                plan.extend(trials.iter().map(|trial| self.shell_trial(trial, victims, progress)));
            }
        }
        plan
    }

    /// The variables by which an escape finds what it is after.
    fn environment(
        &self,
        trial: &Trial,
        victims: &HashMap<&str, Victim>,
    ) -> Vec<(&'static str, String)> {
        let folders = FOLDERS.iter().map(|(variable, folder)| {
            (*variable, self.folder(folder, trial.name).display().to_string())
        });
        let named = ("ABSTRACT", trial.secret.replace("sesame:0g", "eisen-trial-"));
        let victim = victims.get(trial.name).into_iter().flat_map(Victim::environment);
        folders.chain([named]).chain(victim).collect()
    }

    /// A file that the process which starts all leaves open to its children.
    fn inherited(&self, trial: &Trial) -> Option<PathBuf> {
        (self.way == "bare").then(|| self.folder("shop/closed", trial.name).join("secret"))
    }

    /// Tries several by one interpreter.
    fn python_trials(
        &self,
        number: usize,
        trials: &[Trial],
        victims: &HashMap<&str, Victim>,
        progress: &Path,
    ) -> String {
        let rows = trials.iter().map(|trial| {
            let environment: HashMap<_, _> = self.environment(trial, victims).into_iter().collect();
            let row = json!({
                "name": trial.name,
                "environment": environment,
                "output": self.output(trial.name),
                "inherited": self.inherited(trial),
            });
            format!("{row}\n")
        });
        let file = format!("shop/tools/{}.{number}.trials", self.way);
        self.stage.file(&file, &rows.collect::<String>());
        let tools = self.stage.path("shop/tools");
        format!(
            "{} '{}/trials.py' '{}' '{}'\n",
            python(),
            tools.display(),
            self.stage.path(&file).display(),
            progress.display()
        )
    }

    fn shell_trial(
        &self,
        trial: &Trial,
        victims: &HashMap<&str, Victim>,
        progress: &Path,
    ) -> String {
        let name = trial.name;
        let mut lines = String::new();
        for (name, value) in self.environment(trial, victims) {
            let _ = writeln!(lines, "export {name}='{value}'");
        }
        let tools = self.stage.path("shop/tools");
        let (kind, _) = name.split_once('-').unwrap();
        let tool = |end: &str| tools.join(format!("{kind}{end}")).display().to_string();
        let program = match kind {
            "tool" => format!("sh '{}'", tool(".sh")),
            "node" => format!("node '{}'", tool(".js")),
            _ => format!("'{}'", tool("")),
        };
        let inherited = self.inherited(trial).map(|path| format!("9< '{}'", path.display()));
        let _ = writeln!(
            lines,
            "cd \"$OPEN\" && {program} {name} > '{}' 2>&1 < /dev/null {}\n\
             echo \"{name} $?\" > '{}'",
            self.output(name).display(),
            inherited.unwrap_or_default(),
            progress.display()
        );
        lines
    }
}

impl Trial {
    fn is_python(&self) -> bool {
        ["read", "write", "process", "kernel"].contains(&self.name.split('-').next().unwrap())
    }
}

/// Not one of the shims that some put before it.
pub(super) fn python() -> String {
    find("python3").expect("these tests need python3").display().to_string()
}

fn lacks(need: Need, user: User) -> Option<String> {
    match need {
        Need::Root => (!user.is_root()).then(|| "needs root".to_owned()),
        Need::OtherThanRoot => {
            (user != User::Nobody).then(|| "needs root who sets it up for another".to_owned())
        }
        Need::Program(program) => find(program).is_none().then(|| format!("needs {program}")),
        Need::Victim | Need::BusyVictim => None,
    }
}

/// Whether to try an escape: all, unless the environment selects some.
fn wanted(name: &str) -> bool {
    name == "read-inherited"
        || std::env::var("EISEN_ESCAPES")
            .is_ok_and(|only| only.split(' ').any(|only| name.starts_with(only)))
        || std::env::var_os("EISEN_ESCAPES").is_none()
}

/// Says so where it is seen, whether the test fails or not.
pub(super) fn skipped(user: User, name: &str, why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "escape not tried ({user:?}): {name}: {why}");
}
