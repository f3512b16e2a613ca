//! What Claude's tools do to files, by their names and inputs.

use serde_json::Value;

/// What one call of a tool does, as far as its input says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// `read`, `write` or `search`.
    pub(crate) action: &'static str,
    pub(crate) paths: Vec<String>,
    /// A line of a shell.
    pub(crate) command: Option<String>,
}

impl Tool {
    pub(crate) fn new(name: &str, input: &Value) -> Self {
        let action = match name {
            "Read" | "NotebookRead" => "read",
            "Glob" | "Grep" | "LS" => "search",
            // A tool that isn't known may write.
            _ => "write",
        };
        let text = |key: &str| input[key].as_str().map(str::to_owned);
        let mut paths: Vec<_> =
            ["file_path", "notebook_path", "path"].into_iter().filter_map(text).collect();
        // Its user's home is not known here, but that it is no folder of the workspace's.
        for path in paths.iter_mut().filter(|path| path.starts_with('~')) {
            path.insert(0, '/');
        }
        if paths.is_empty() && action == "search" {
            paths.push(".".to_owned());
        }
        let command = text("command").filter(|_| name == "Bash");
        Self { name: name.to_owned(), action, paths, command }
    }

    /// What it asks for, of each of its paths: the others that search list names.
    pub(crate) fn asks(&self) -> &'static str {
        match self.action {
            "search" if self.name != "Grep" => "read",
            action => action,
        }
    }

    /// Whether it is known to get at any file.
    pub(crate) fn touches(&self) -> bool {
        self.command.is_some() || !self.paths.is_empty()
    }

    /// For people.
    pub(crate) fn title(&self) -> String {
        match (&self.command, self.paths.first()) {
            (Some(command), _) => command.clone(),
            (None, Some(path)) => format!("{} {path}", self.name),
            (None, None) => self.name.clone(),
        }
    }
}
