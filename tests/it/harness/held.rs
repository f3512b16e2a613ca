use std::fs::File;
use std::path::PathBuf;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::Stage;
use super::peer::Lines;

/// A named pipe that processes hold open: that all of them are gone is seen by its end.
pub(crate) struct Held {
    path: PathBuf,
    lines: Lines,
}

impl Held {
    /// Makes the pipe, in the workspace.
    pub(crate) fn new(stage: &Stage) -> Self {
        let path = stage.path("shop/held");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        let opened = path.clone();
        Self { path, lines: Lines::of_opened(move || File::open(opened).unwrap()) }
    }

    /// A shell line that holds the pipe, says `NAME` into it, and leaves behind one that does so
    /// as `NAME's`: in a session of its own, an orphan, and deaf to what can be ignored.
    pub(crate) fn by(&self, name: &str) -> String {
        let path = self.path.display();
        format!(
            "exec 3>{path}; echo {name} >&3; \
             setsid sh -c 'sh -c \"trap : HUP TERM INT; echo {name}s >&3; while :; do sleep 1000; done\" & exit'; "
        )
    }

    /// Waits until these and their orphans hold it.
    pub(crate) fn is_by(&self, names: &[&str]) {
        let mut missing: Vec<String> =
            names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}s")]).collect();
        while !missing.is_empty() {
            let name = self.lines.next().expect("those who hold it are gone already");
            missing.retain(|other| *other != name);
        }
    }

    /// Waits until no process holds it any more.
    pub(crate) fn end(self) {
        self.lines.rest();
    }
}
