//! Interprets a command without running it: tracks the working directory and simple variables,
//! and collects the files that each simple command names.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::arguments::{self, Argument, Use};
use super::lexer::{Redirect, Token, lex};
use super::word::{Word, WordPart};
use super::{
    FileRole, LONGEST, MOST_DEPTH, MOST_FILES, NamedFile, Reading, ShellCommand, patch, programs,
};
use crate::extract::{Entry, Workspace};
use crate::model::fold;

/// Depth of nested subshells with their own working directory.
const MOST_SUBSHELLS: usize = 64;
/// Variables to track; over it a new one is unknown.
const MOST_VARIABLES: usize = 64;
/// Bytes that expansions may add to one command line; over it they are unknown.
const MOST_EXPANSION: usize = 1 << 18;
/// Bytes of the longest working directory; over it the folder is unknown.
const LONGEST_FOLDER: usize = 4096;

pub(super) struct Run<'a> {
    workspace: &'a dyn Workspace,
    named: Vec<NamedFile>,
    seen: HashSet<NamedFile>,
    whole: bool,
    /// Remaining arguments to look up, and remaining bytes of expansions.
    lookups: usize,
    expansion: usize,
}

/// The state in which a command runs.
#[derive(Clone)]
struct ShellContext {
    folder: PathBuf,
    /// Whether the folder is certain.
    known: bool,
    variables: HashMap<String, String>,
}

/// A simple command while it is collected.
#[derive(Default)]
struct Simple {
    words: Vec<Word>,
    redirects: Vec<(Redirect, Word)>,
    /// Here-documents on its standard input.
    documents: Vec<String>,
}

impl<'a> Run<'a> {
    pub(super) fn new(workspace: &'a dyn Workspace) -> Self {
        Self {
            workspace,
            named: Vec::new(),
            seen: HashSet::new(),
            whole: true,
            lookups: 4 * MOST_FILES,
            expansion: MOST_EXPANSION,
        }
    }

    pub(super) fn read(mut self, command: &ShellCommand, cwd: &Path) -> Reading {
        let mut variables = HashMap::new();
        if let Some(home) = std::env::home_dir() {
            variables.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
        }
        let mut context = ShellContext { folder: cwd.to_path_buf(), known: true, variables };
        match command {
            ShellCommand::Line(text) => self.text(text, &mut context, 0),
            ShellCommand::Argv(words) => {
                let args: Vec<_> = words.iter().map(|arg| Argument::plain(arg)).collect();
                self.command(&args, &[], &mut context, 0);
            }
        }
        Reading { named: self.named, whole: self.whole }
    }

    fn text(&mut self, text: &str, context: &mut ShellContext, depth: usize) {
        if depth > MOST_DEPTH || text.len() > LONGEST {
            self.whole = false;
            return;
        }
        let lexed = lex(text);
        let before = context.clone();
        let mut outer: Vec<ShellContext> = Vec::new();
        let mut documents = lexed.documents.into_iter();
        let mut simple = Simple::default();
        let mut redirect = None;
        for token in lexed.tokens {
            match token {
                Token::Word(word) => match redirect.take() {
                    Some(redirect) => simple.redirects.push((redirect, word)),
                    None => simple.words.push(word),
                },
                Token::Redirect(Redirect::Document) => {
                    redirect = Some(Redirect::Document);
                    simple.documents.extend(documents.next());
                }
                Token::Redirect(kind) => redirect = Some(kind),
                Token::End | Token::Open | Token::Close => {
                    redirect = None;
                    self.simple(std::mem::take(&mut simple), context, depth);
                    match token {
                        Token::Open if outer.len() < MOST_SUBSHELLS => outer.push(context.clone()),
                        Token::Close => *context = outer.pop().unwrap_or_else(|| context.clone()),
                        _ => {}
                    }
                }
            }
        }
        for substitution in &lexed.substitutions {
            self.text(substitution, &mut before.clone(), depth + 1);
        }
    }

    fn simple(&mut self, simple: Simple, context: &mut ShellContext, depth: usize) {
        let mut inputs = simple.documents;
        for (redirect, word) in simple.redirects {
            let target = self.expand(word, context);
            for argument in target {
                match redirect {
                    Redirect::Read => self.add_file(&argument, FileRole::Read, context),
                    Redirect::Write => self.add_file(&argument, FileRole::Write, context),
                    Redirect::Both => {
                        self.add_file(&argument, FileRole::Read, context);
                        self.add_file(&argument, FileRole::Write, context);
                    }
                    Redirect::Descriptor => {
                        let number = argument.text.trim_end_matches('-');
                        if !number.bytes().all(|b| b.is_ascii_digit()) {
                            self.add_file(&argument, FileRole::Write, context);
                        }
                    }
                    Redirect::Text => inputs.push(argument.text),
                    Redirect::Document => {}
                }
            }
        }
        let mut args: Vec<Argument> = Vec::new();
        for word in simple.words {
            args.extend(self.expand(word, context));
        }
        let skipped =
            args.iter().take_while(|arg| !arg.quoted && programs::is_reserved(&arg.text)).count();
        args.drain(..skipped);
        let assigned = args.iter().take_while(|arg| arg.assignment().is_some()).count();
        if assigned == args.len() {
            for arg in &args {
                if let Some((name, value)) = arg.assignment() {
                    let room = context.variables.len() < MOST_VARIABLES;
                    if arg.known && !arg.pattern && (room || context.variables.contains_key(name)) {
                        context.variables.insert(name.to_owned(), value.to_owned());
                    } else {
                        context.variables.remove(name);
                    }
                }
            }
            return;
        }
        self.command(&args[assigned..], &inputs, context, depth);
    }

    /// Reads a program and its arguments, with texts on its standard input.
    fn command(
        &mut self,
        args: &[Argument],
        inputs: &[String],
        context: &mut ShellContext,
        depth: usize,
    ) {
        let mut args = args;
        // Each round removes at least one word.
        loop {
            let Some(first) = args.first() else { return };
            let name = first.text.rsplit('/').next().unwrap_or_default().to_owned();
            if let Some(prefix) = programs::prefix(&name) {
                let (rest, split) = arguments::behind_prefix(&args[1..], &prefix);
                if let Some(text) = split {
                    self.text(&text, &mut context.clone(), depth + 1);
                }
                args = rest;
                continue;
            }
            return self.program(&name, &args[1..], inputs, context, depth);
        }
    }

    fn program(
        &mut self,
        name: &str,
        args: &[Argument],
        inputs: &[String],
        context: &mut ShellContext,
        depth: usize,
    ) {
        let text_of = |arg: &Argument| arg.text.clone();
        match name {
            "cd" | "pushd" | "chdir" => {
                let length = context.folder.as_os_str().len();
                match args.iter().find(|arg| !arg.text.starts_with('-')) {
                    Some(to)
                        if to.known && !to.pattern && length + to.text.len() < LONGEST_FOLDER =>
                    {
                        context.folder = context.folder.join(&to.text);
                    }
                    Some(_) => context.known = false,
                    None => match context.variables.get("HOME") {
                        Some(home) if name == "cd" => context.folder = home.into(),
                        _ => context.known = false,
                    },
                }
                return;
            }
            "popd" => return context.known = false,
            "eval" => {
                let text: Vec<_> = args.iter().map(text_of).collect();
                return self.text(&text.join(" "), context, depth + 1);
            }
            _ => {}
        }
        if programs::is_shell(name) {
            match arguments::shell_script(args) {
                arguments::Script::Text(text) => self.text(&text, &mut context.clone(), depth + 1),
                arguments::Script::File(file) => self.add_file(file, FileRole::Read, context),
                arguments::Script::Input => {
                    for input in inputs {
                        self.text(input, &mut context.clone(), depth + 1);
                    }
                }
            }
            return;
        }
        let git_apply = name == "git" && args.first().is_some_and(|arg| arg.text == "apply");
        if programs::applies_patches(name) || git_apply {
            let given = args.iter().map(text_of).filter(|text| text.contains('\n'));
            for text in given.chain(inputs.iter().cloned()) {
                for path in patch::files(&text) {
                    self.add_file(&Argument::plain(path), FileRole::Write, context);
                }
            }
        }
        if name == "find" || name == "fd" {
            let executed = arguments::executed(args);
            if let Some(executed) = executed
                && depth < MOST_DEPTH
            {
                self.command(executed, &[], &mut context.clone(), depth + 1);
            }
        }
        for Use { argument, role, into } in arguments::uses(name, args) {
            match into {
                None => self.add_file(&argument, role, context),
                Some(names) => self.add_target(&argument, &names, context),
            }
        }
    }

    /// Expands a word where the values are known.
    fn expand(&mut self, word: Word, context: &ShellContext) -> Vec<Argument> {
        word.braces_expanded().iter().map(|word| self.argument(word, context)).collect()
    }

    fn argument(&mut self, word: &Word, context: &ShellContext) -> Argument {
        let mut argument = Argument { quoted: word.quoted, ..Argument::plain("") };
        for part in &word.parts {
            let value = match part {
                WordPart::Text(text) => {
                    argument.text.push_str(text);
                    continue;
                }
                WordPart::Brace(c) => {
                    argument.text.push(*c);
                    continue;
                }
                WordPart::Glob(c) => {
                    argument.pattern = true;
                    argument.text.push(*c);
                    continue;
                }
                WordPart::Home => context.variables.get("HOME").map(String::as_str),
                WordPart::Variable(name) if name == "PWD" => {
                    context.folder.to_str().filter(|_| context.known)
                }
                WordPart::Variable(name) => context.variables.get(name).map(String::as_str),
                WordPart::Unknown => None,
            };
            match value.filter(|value| value.len() <= self.expansion) {
                Some(value) => {
                    self.expansion -= value.len();
                    argument.text.push_str(value);
                }
                None => argument.known = false,
            }
        }
        argument
    }

    /// Adds a written target: the file itself, or files of these names in a folder.
    fn add_target(&mut self, target: &Argument, names: &[String], context: &ShellContext) {
        if !target.text.ends_with('/') && !self.workspace.is_dir(&context.folder.join(&target.text))
        {
            return self.add_file(target, FileRole::Write, context);
        }
        for name in names {
            let mut inside = target.clone();
            inside.text = format!("{}/{name}", target.text.trim_end_matches('/'));
            self.add_file(&inside, FileRole::Write, context);
        }
    }

    fn add_file(&mut self, argument: &Argument, role: FileRole, context: &ShellContext) {
        let text = argument.text.as_str();
        if !argument.known || text.is_empty() || text == "-" || text.contains('\0') {
            return;
        }
        if self.lookups == 0 {
            self.whole = false;
            return;
        }
        self.lookups -= 1;
        let path = context.folder.join(text);
        if is_device(&fold(&path)) {
            return;
        }
        let entry = if role == FileRole::Write { None } else { self.workspace.entry(&path) };
        let is_file = match entry {
            Some(entry) => entry == Entry::File,
            None => role != FileRole::Argument || self.looks_like_file(text, &path),
        };
        if !is_file {
            return;
        }
        if self.named.len() == MOST_FILES {
            self.whole = false;
            return;
        }
        let plain = !argument.pattern && (context.known || text.starts_with('/'));
        let named = NamedFile { path, role, plain };
        if self.seen.insert(named.clone()) {
            self.named.push(named);
        }
    }

    /// Whether an unknown program's argument names a new file: by its form or existing folder.
    fn looks_like_file(&self, text: &str, path: &Path) -> bool {
        if text.contains(char::is_whitespace) || crate::extract::uri::is_uri(text) {
            return false;
        }
        let rooted = ["/", "./", "../"].iter().any(|start| text.starts_with(start));
        let in_folder = || {
            text.trim_end_matches('/').contains('/')
                && path.parent().is_some_and(|parent| self.workspace.is_dir(parent))
        };
        rooted || text.contains("/../") || in_folder()
    }
}

/// Devices that do not count as files.
fn is_device(path: &Path) -> bool {
    const NAMES: [&str; 10] =
        ["null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "ptmx"];
    let Ok(device) = path.strip_prefix("/dev") else { return false };
    device.starts_with("fd")
        || device.starts_with("pts")
        || NAMES.iter().any(|name| device == Path::new(name))
}
