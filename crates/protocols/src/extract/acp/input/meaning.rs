//! Classifies the value of a key by the words of the key.

use agent_client_protocol_schema::v1::ToolKind;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    Path,
    Target,
    Folder,
    Command,
    Commands,
    Arguments,
    /// All arguments as one value, or a program's standard input.
    Input,
    Content,
    /// Changes of one file, or of many keyed by name.
    Changes,
    Diff,
    Query,
    Pattern,
    /// A range or a flag, as a read has beside its path.
    Detail,
    Other,
}

/// Matches mostly the last words of a key: `abs_path`, `targetFile`, `notebook_path`, `cwd`, ….
/// `has_text` is false for values such as flags and numbers.
pub(super) fn meaning(key: &str, has_text: bool, kind: Option<ToolKind>) -> Meaning {
    let key: String =
        key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let begins_with = |starts: &[&str]| starts.iter().any(|start| key.starts_with(start));
    let ends_with = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    let moves = kind == Some(ToolKind::Move);
    match key.as_str() {
        "profile" | "xpath" | "jsonpath" | "outputfile" | "showfile" => Meaning::Other,
        "from" | "src" | "source" | "oldname" if moves => Meaning::Path,
        "to" | "dst" | "target" | "newname" if moves => Meaning::Target,
        "movepath" | "newpath" | "destination" | "destinationpath" | "dest" | "destpath"
        | "moveto" | "outputpath" => Meaning::Target,
        "cwd" | "workdir" | "workingdir" | "workingdirectory" | "dir" | "directory" | "folder"
        | "directories" | "dirs" | "targetdirectory" | "targetdir" | "rootdirectory"
        | "rootdir" | "basedirectory" | "basedir" => Meaning::Folder,
        "command" | "cmd" | "script" | "commandline" | "cmdline" | "shellcommand"
        | "bashcommand" | "terminalcommand" | "bash" | "argv" | "program" | "executable" => {
            Meaning::Command
        }
        "commands" => Meaning::Commands,
        "diff" | "unifieddiff" | "patch" if has_text => Meaning::Diff,
        "query" | "queries" | "search" | "searchquery" | "searchterm" | "searchterms"
        | "needle" => Meaning::Query,
        "pattern" | "patterns" | "regex" | "regexp" | "glob" | "globs" | "include"
        | "globpattern" | "globpatterns" | "searchpattern" | "searchpatterns" => Meaning::Pattern,
        "content" | "contents" | "filetext" | "filecontent" | "newcontent" | "text" | "newtext"
        | "oldtext" | "old" | "new" | "newstr" | "oldstr" | "newstring" | "oldstring" | "edit"
        | "replacement" | "insert" | "inserttext" | "insertline" | "codeedit" | "newsource"
        | "replace" | "replaceall" => Meaning::Content,
        "edits" | "changes" | "replacements" => Meaning::Changes,
        _ if ends_with(&["args", "arguments", "params", "parameters"]) => Meaning::Arguments,
        _ if ends_with(&["input"]) => Meaning::Input,
        _ if ends_with(&[
            "path",
            "paths",
            "file",
            "files",
            "filename",
            "filenames",
            "uri",
            "uris",
            "pathname",
            "pathlist",
            "filelist",
        ]) =>
        {
            Meaning::Path
        }
        _ if has_text && begins_with(&["search", "find"]) => Meaning::Query,
        "body" | "data" if has_text => Meaning::Content,
        _ if has_text && ends_with(&["changes", "edits"]) => Meaning::Changes,
        _ if has_text
            && (ends_with(&["content", "contents"])
                || begins_with(&["replace", "insert", "append"])) =>
        {
            Meaning::Content
        }
        _ if ends_with(&[
            "line", "lines", "limit", "offset", "range", "start", "end", "encoding",
        ]) || begins_with(&[
            "max", "start", "end", "line", "view", "ignore", "head", "tail", "case", "output",
        ]) || matches!(
            key.as_str(),
            "description" | "title" | "type" | "name" | "recursive"
        ) =>
        {
            Meaning::Detail
        }
        _ => Meaning::Other,
    }
}
