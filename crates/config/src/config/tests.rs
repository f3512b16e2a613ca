#![allow(clippy::unwrap_used)]
// Tables of texts read better so, and `expect!` writes its own literals.
#![allow(clippy::format_collect, clippy::format_push_string, clippy::needless_raw_string_hashes)]

mod batch;
mod children;
mod diff;
mod gateway;
mod good;
mod helpers;
mod hostile;
mod mistakes;
mod notices;
mod overlay;
mod providers;
mod reference;
mod remote;
mod sealing;
mod secrets;
mod shared;
mod streams;
mod telemetry;
mod templates;
mod trusted;
mod why;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Config, ConfigErrors, Surroundings};

/// A folder named `My shop.` with a few files, in which texts are compiled.
struct Bench {
    parent: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { parent: tempfile::tempdir().unwrap() };
        let folder = bench.parent.path().join("My shop.");
        for file in ["src/ui/a.ts", "src/api/b.ts", "prompt.md", "latin1.md"] {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let content = if file == "latin1.md" { &b"\xe4"[..] } else { b"Do ${IT}." };
            std::fs::write(path, content).unwrap();
        }
        bench
    }

    fn path(&self) -> PathBuf {
        self.parent.path().canonicalize().unwrap().join("My shop.")
    }

    fn compile(&self, text: &str) -> Result<Config, ConfigErrors> {
        let file = self.path().join("eisen.toml");
        Config::compile(&file, text.to_owned(), &surroundings()).0
    }
}

fn surroundings() -> Surroundings {
    Surroundings {
        variable: Box::new(|name| match name {
            "HOME" => Some("/home/user".to_owned()),
            "EMPTY" => Some(String::new()),
            "ANTHROPIC_API_KEY" | "OPENAI_API_KEY" => Some(format!("canary-of-{name}\n")),
            "SPACED" => Some("not a key".to_owned()),
            _ => None,
        }),
        program: PathBuf::from("/bin/this"),
        eisen_dir: PathBuf::from("/home/user/.eisen"),
        try_out: Box::new(|plugin| {
            let is_bad = plugin.path.ends_with("bad.so");
            if is_bad { Err(format!("it is bad: {}\u{1b}[2J", plugin.config)) } else { Ok(true) }
        }),
        taken: BTreeMap::new(),
    }
}

/// The errors of a text, one a line: place, what is wrong, what to write.
fn errors(text: &str) -> String {
    let bench = Bench::new();
    let Err(errors) = bench.compile(text) else { return "no error\n".to_owned() };
    listed(&errors)
}

fn listed(errors: &ConfigErrors) -> String {
    let line = |error: super::ConfigError| {
        let help = error.help.map_or(String::new(), |help| format!(" | {help}"));
        format!("{}:{} {}{help}\n", error.line, error.column, error.message)
    };
    errors.list().into_iter().map(line).collect()
}
