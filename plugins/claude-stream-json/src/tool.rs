//! Derives from a tool's name and input which files it accesses.

use serde_json::Value;

/// The accesses of one tool call, as far as its input names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// `read`, `write` or `search`.
    pub(crate) action: &'static str,
    pub(crate) paths: Vec<String>,
    /// A shell command line.
    pub(crate) command: Option<String>,
}

impl Tool {
    pub(crate) fn new(name: &str, input: &Value) -> Self {
        let action = match name {
            "Read" | "NotebookRead" => "read",
            "Glob" | "Grep" | "LS" => "search",
            // An unknown tool may write.
            _ => "write",
        };
        let text = |key: &str| input[key].as_str().map(str::to_owned);
        let mut paths: Vec<_> =
            ["file_path", "notebook_path", "path"].into_iter().filter_map(text).collect();
        // The home folder is not known here, but it is outside the workspace.
        for path in paths.iter_mut().filter(|path| path.starts_with('~')) {
            path.insert(0, '/');
        }
        if paths.is_empty() && action == "search" {
            paths.push(".".to_owned());
        }
        let command = text("command").filter(|_| name == "Bash");
        Self { name: name.to_owned(), action, paths, command }
    }

    /// The action to ask for, for each path; search tools other than these only list names.
    pub(crate) fn asks(&self) -> &'static str {
        match self.action {
            "search" if self.name != "Grep" => "read",
            action => action,
        }
    }

    /// Whether the tool is known to access files.
    pub(crate) fn touches(&self) -> bool {
        self.command.is_some() || !self.paths.is_empty()
    }

    /// A title for users.
    pub(crate) fn title(&self) -> String {
        match (&self.command, self.paths.first()) {
            (Some(command), _) => command.clone(),
            (None, Some(path)) => format!("{} {path}", self.name),
            (None, None) => self.name.clone(),
        }
    }
}
