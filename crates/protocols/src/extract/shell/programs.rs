//! The table of common programs and the roles of their file arguments.
//!
//! Only certain roles: for a program or an option that is not here, an argument is a guess
//! ([`FileRole::Argument`]), never a read or write.

use super::FileRole;

/// How a program takes its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operands {
    /// Every operand in this role.
    All(FileRole),
    /// The first is a pattern, script or mode, unless one of these options gives it.
    AllButFirst(FileRole, &'static str),
    /// Sources in this role, then a written target.
    Into(FileRole),
    /// Read sources, then a written target; with an option of `in_place` the sources are link
    /// texts, relative to the target's folder.
    Link,
    /// The operands are not files.
    None,
}

pub(super) struct Program {
    pub(super) operands: Operands,
    /// Short options that take a value.
    pub(super) valued: &'static str,
    /// The options whose value is a file, and that file's role.
    pub(super) files: &'static [(char, FileRole)],
    /// Short and long options that make the operands written, or link texts.
    pub(super) in_place: &'static [&'static str],
}

/// Looks up a program by its name, without folders.
#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn program(name: &str) -> Option<Program> {
    use FileRole::{Argument, Read, Search, Write};
    use Operands::{All, AllButFirst, Into, Link, None as NoFiles};

    let plain = |operands, valued| Program { operands, valued, files: &[], in_place: &[] };
    Some(match name {
        "cat" | "tac" | "less" | "more" | "bat" | "batcat" | "wc" | "comm" | "cmp" | "md5sum"
        | "sha1sum" | "sha224sum" | "sha256sum" | "sha384sum" | "sha512sum" | "cksum" | "sum"
        | "rev" | "zcat" | "bzcat" | "xzcat" | "source" | "." | "tsort" | "expand" | "unexpand" => {
            plain(All(Read), "")
        }
        "head" | "tail" => plain(All(Read), "ncs"),
        "nl" => plain(All(Read), "bdfhilnsvw"),
        "od" => plain(All(Read), "AjNStw"),
        "xxd" => plain(All(Read), "closg"),
        "hexdump" | "hd" => plain(All(Read), "efns"),
        "strings" => plain(All(Read), "neToU"),
        "base64" | "base32" | "fold" | "fmt" => plain(All(Read), "wgp"),
        "cut" => plain(All(Read), "bcdf"),
        "paste" | "column" => plain(All(Read), "dsocNR"),
        "join" => plain(All(Read), "12aejotv"),
        "diff" | "colordiff" | "sdiff" | "diff3" => plain(All(Read), "CFILSUWx"),
        "uniq" => plain(All(Read), "fsw"),
        "sort" | "shuf" => Program {
            operands: All(Read),
            valued: "kotSTni",
            files: &[('o', Write)],
            in_place: &[],
        },
        "grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack" | "ugrep" => Program {
            operands: AllButFirst(Search, "ef"),
            valued: "ABCDdefgjmMtT",
            files: &[('f', Read)],
            in_place: &[],
        },
        "sed" | "gsed" => Program {
            operands: AllButFirst(Read, "ef"),
            valued: "efl",
            files: &[('f', Read)],
            in_place: &["i", "--in-place"],
        },
        "perl" | "ruby" => {
            Program { operands: All(Argument), valued: "eEIMmCFr", files: &[], in_place: &["i"] }
        }
        "awk" | "gawk" | "mawk" | "nawk" => Program {
            operands: AllButFirst(Read, "f"),
            valued: "fFv",
            files: &[('f', Read)],
            in_place: &[],
        },
        "jq" | "yq" => Program {
            operands: AllButFirst(Read, "f"),
            valued: "fL",
            files: &[('f', Read)],
            in_place: &["--in-place"],
        },
        "tee" | "sponge" | "rm" | "rmdir" | "unlink" => plain(All(Write), ""),
        "curl" => Program {
            operands: All(Argument),
            valued: "oDcTK",
            files: &[('o', Write), ('D', Write), ('c', Write), ('T', Read), ('K', Read)],
            in_place: &[],
        },
        "wget" => Program {
            operands: All(Argument),
            valued: "Ooai",
            files: &[('O', Write), ('o', Write), ('a', Write), ('i', Read)],
            in_place: &[],
        },
        "touch" => plain(All(Write), "drt"),
        "truncate" | "shred" => plain(All(Write), "nrs"),
        "mkdir" | "mkfifo" => plain(All(Write), "mZ"),
        "chmod" | "chown" | "chgrp" => plain(AllButFirst(Write, ""), ""),
        "patch" => Program {
            operands: All(Write),
            valued: "BDFVYdgioprz",
            files: &[('i', Read), ('o', Write)],
            in_place: &[],
        },
        "mv" => plain(Into(Write), "St"),
        "ln" => {
            Program { operands: Link, valued: "St", files: &[], in_place: &["s", "--symbolic"] }
        }
        "cp" => plain(Into(Read), "St"),
        "install" => plain(Into(Read), "Sgmot"),
        "rsync" => plain(Into(Read), "ef"),
        "echo" | "printf" | "true" | "false" | ":" | "exit" | "return" | "export" | "readonly"
        | "set" | "unset" | "shift" | "kill" | "sleep" | "date" | "pwd" | "type" | "which"
        | "alias" | "read" | "declare" | "local" | "typeset" | "seq" | "expr" | "trap"
        | "ulimit" | "umask" | "wait" | "jobs" | "let" | "hash" | "tr" | "uname" | "whoami"
        | "id" | "hostname" | "yes" | "basename" | "dirname" | "man" | "tput" => plain(NoFiles, ""),
        _ => return None,
    })
}

/// A program that runs the command among its own arguments.
pub(super) struct Prefix {
    /// Short options that take a value.
    pub(super) valued: &'static str,
    /// Long options whose value is a word of its own.
    pub(super) long_valued: &'static [&'static str],
    /// Operands before the command.
    pub(super) operands: usize,
}

pub(super) fn prefix(name: &str) -> Option<Prefix> {
    let plain = |valued, operands| Prefix { valued, long_valued: &[], operands };
    Some(match name {
        "env" => Prefix {
            valued: "uCS",
            long_valued: &["--unset", "--chdir", "--split-string"],
            operands: 0,
        },
        "sudo" | "doas" => Prefix {
            valued: "CDRTUghpru",
            long_valued: &["--user", "--group", "--chdir"],
            operands: 0,
        },
        "timeout" => {
            Prefix { valued: "ks", long_valued: &["--kill-after", "--signal"], operands: 1 }
        }
        "nice" => Prefix { valued: "n", long_valued: &["--adjustment"], operands: 0 },
        "ionice" => plain("cnp", 0),
        "stdbuf" => plain("eio", 0),
        "xargs" => Prefix {
            valued: "EILPadns",
            long_valued: &["--max-args", "--max-procs", "--arg-file", "--delimiter"],
            operands: 0,
        },
        "time" => plain("fo", 0),
        "exec" => plain("a", 0),
        "taskset" | "chrt" | "chroot" | "flock" => plain("", 1),
        "strace" | "ltrace" => plain("eopPsSu", 0),
        "busybox" | "command" | "builtin" | "nohup" | "setsid" | "noglob" | "nocorrect"
        | "caffeinate" | "unbuffer" => plain("", 0),
        _ => return None,
    })
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "mksh" | "fish" | "rbash")
}

/// Words of the shell's grammar that stand before a command.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "{" | "}"
            | "!"
            | "if"
            | "then"
            | "else"
            | "elif"
            | "fi"
            | "while"
            | "until"
            | "do"
            | "done"
            | "esac"
            | "coproc"
    )
}

/// Programs that apply a patch they read.
pub(super) fn applies_patches(name: &str) -> bool {
    matches!(name, "apply_patch" | "applypatch" | "apply-patch" | "patch")
}
