//! The table of escapes: the sign of success of each, and what it needs.

/// How it is known that an escape got through. (All of these are looked for after every escape;
/// this one must be seen where there is no wall.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shows {
    /// The secret is in the output.
    Secret,
    /// Something that the zone forbids to change is not as it was: content, mode, owner, times,
    /// attributes, or what is in a folder.
    Changed,
    /// The process outside is dead, or not as it was.
    Harmed,
    /// The process outside was reached by a socket or a terminal.
    Reached,
    /// It says so itself: nothing is done that could be seen otherwise.
    Says,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    Root,
    /// Root sets it up, another tries it.
    OtherThanRoot,
    Program(&'static str),
    /// A process outside that it is after.
    Victim,
    /// One that opens and makes files all the time.
    BusyVictim,
}

/// Escapes of one kind.
pub(super) struct Escapes {
    pub(super) shows: Shows,
    pub(super) needs: &'static [Need],
    /// Each begins with the name of its program in `escapes`.
    pub(super) names: &'static [&'static str],
}

use Need::{BusyVictim, OtherThanRoot, Program, Root, Victim};
use Shows::{Changed, Harmed, Reached, Says, Secret};

#[rustfmt::skip]
pub(super) const ESCAPES: &[Escapes] = &[
    // Contents are read.
    Escapes { shows: Secret, needs: &[], names: &[
        "read-open-direct", "read-open-relative", "read-open-dots", "read-open-long-path",
        "read-open-odd-names", "read-open-child", "read-open-grandchild-in-new-session",
        "read-open-closed-descriptors",
        "read-symlink", "read-symlink-relative", "read-symlink-to-folder", "read-symlink-chain",
        "read-symlink-through-proc",
        "read-hard-link", "read-hard-link-by-descriptor",
        "read-rename-out", "read-rename-folder-out", "read-rename-exchange",
        "read-denied-name", "read-denied-name-renamed", "read-denied-name-exchanged",
        "read-denied-name-linked", "read-denied-name-symlinked", "read-denied-folder-renamed",
        "read-denied-folder-exchanged", "read-parent-of-denied-renamed",
        "read-parent-of-denied-moved-to-the-zone",
        "read-proc-self-root", "read-proc-self-cwd", "read-proc-self-cwd-inside",
        "read-proc-thread-self-root", "read-proc-task-root", "read-proc-self-fd-of-folder",
        "read-proc-child-cwd",
        "read-openat-foreign-folder", "read-openat-listed-folder", "read-openat-dots",
        "read-openat-root", "read-openat2-flags", "read-openat2-larger",
        "read-chdir-first", "read-chdir-above", "read-fchdir-first",
        "read-map-memory", "read-path-reopened", "read-path-reopened-by-dev-fd",
        "read-path-reopened-relative", "read-path-reopened-by-child",
        "read-copy-file-range", "read-sendfile-to-memory", "read-splice-to-pipe",
        "read-inherited", "read-vault", "read-vault-by-link", "read-vault-linked",
        "read-vault-renamed", "read-vault-parent-renamed", "read-workspace-renamed",
        "read-hidden", "read-hidden-linked", "read-hidden-parent-renamed",
        "read-hidden-parent-of-parent-renamed", "read-hidden-parent-exchanged",
        "read-secret-renamed-out-of-the-workspace", "read-secret-linked-out-of-the-workspace",
        "read-draft-name", "read-draft-by-renaming", "read-draft-by-linking",
        "read-run-file", "read-exec-script", "read-exec-script-by-shell",
        "read-exec-script-by-descriptor", "read-interpreter-shows-file",
        "call-straight", "call-with-high-bits", "call-ring", "call-after-vfork",
        "call-sharing-clone", "call-folder-of-a-thread", "call-descriptors-of-a-thread",
        "call-answered-faults", "call-changed-by-another", "call-changed-by-tracer",
        "call-name-at-the-end", "call-not-dumpable", "call-many-at-once", "call-broken-off",
        "process-traced-child-without-filter", "process-own-filter", "process-own-listener",
    ] },
    #[cfg(target_arch = "x86_64")]
    Escapes { shows: Secret, needs: &[], names: &["call-of-32-bits", "call-of-x32"] },
    Escapes { shows: Secret, needs: &[Root], names: &[
        "read-hard-link-by-empty-path", "read-rename-whiteout", "read-handle",
        "kernel-handle-of-a-folder",
    ] },
    Escapes { shows: Secret, needs: &[OtherThanRoot], names: &["read-setuid-program"] },
    Escapes { shows: Secret, needs: &[Root, BusyVictim], names: &["read-fanotify"] },
    Escapes { shows: Secret, needs: &[BusyVictim], names: &["read-draft-whose-number-is-used-again"] },
    Escapes { shows: Says, needs: &[], names: &[
        "read-exec-binary", "read-exec-binary-by-descriptor", "read-exec-binary-by-loader",
        "read-exec-library-preloaded", "read-exec-library-opened", "read-exec-interpreter",
        "call-exec-by-empty-path",
    ] },

    // Something is changed.
    Escapes { shows: Changed, needs: &[], names: &[
        "write-direct", "write-append", "write-readable", "write-readable-by-reopening",
        "write-mapped", "write-new-file", "write-new-file-without-writing",
        "write-by-dangling-link", "write-by-folder-link",
        "write-denied-name", "write-later-denied-name", "write-later-denied-name-renamed",
        "write-later-denied-name-linked", "write-later-denied-name-symlinked",
        "write-later-denied-name-of-a-folder", "write-later-denied-name-in-a-folder",
        "write-later-denied-name-exchanged",
        "write-rename-onto-denied-name", "write-rename-in", "write-rename-onto",
        "write-rename-folder-in", "write-rename-exchange", "write-rename-outside-in",
        "write-rename-parent-of-denied",
        "write-link-in", "write-symlink-in", "write-mkdir-in", "write-mkfifo-in",
        "write-mknod-in", "write-bind-in", "write-temporary-file-in",
        "write-temporary-file-linked-in",
        "write-unlink", "write-unlink-by-folder", "write-rmdir", "write-unlink-denied-name",
        "write-remove-tree-of-denied",
        "write-truncate", "write-truncate-readable", "write-truncate-by-opening",
        "write-truncate-by-opening-for-nothing", "write-truncate-by-proc",
        "write-mode", "write-mode-relative", "write-mode-after-chdir", "write-mode-by-link",
        "write-mode-of-readable-by-descriptor", "write-mode-by-proc", "write-mode-by-new-call",
        "write-mode-by-new-call-and-empty-path", "write-mode-of-folder",
        "write-mode-of-folder-by-descriptor",
        "write-times", "write-times-by-descriptor", "write-times-of-folder-by-descriptor",
        "write-times-by-empty-path", "write-times-by-old-calls",
        "write-attribute", "write-attribute-of-link", "write-attribute-by-descriptor",
        "write-attribute-of-folder-by-descriptor", "write-attribute-removed",
        "write-attribute-removed-by-descriptor", "write-attribute-by-new-call",
        "write-attribute-by-new-call-and-empty-path", "write-attribute-removed-by-new-call",
        "write-flags-of-readable", "write-flags-of-folder", "write-flags-by-other-request",
        "write-flags-by-new-call", "write-core-dump",
        "write-draft-over-another", "write-draft-over-another-by-linking", "write-draft-opened",
        "write-draft-removed", "write-draft-mode",
        "write-vault", "write-vault-new-file", "write-vault-rename-in", "write-vault-unlink",
        "write-vault-mode",
    ] },
    Escapes { shows: Changed, needs: &[Root], names: &[
        "write-temporary-file-linked-by-empty-path",
        "write-owner", "write-owner-of-link", "write-owner-by-empty-path",
        "write-owner-by-descriptor", "write-owner-of-folder-by-descriptor",
    ] },
    Escapes { shows: Says, needs: &[], names: &[
        "write-run-file-times", "write-named-like-a-folder", "write-version-of-readable",
        "write-configuration",
        "write-set-uid-by-mode", "write-set-gid-by-mode", "write-set-uid-by-descriptor",
        "write-set-uid-by-new-call", "write-set-uid-by-creating", "write-set-uid-by-node",
        "write-set-uid-outside", "write-set-uid-by-structure",
    ] },
    Escapes { shows: Says, needs: &[Root], names: &[
        "write-attribute-of-the-system", "kernel-group-entered-by-a-child",
    ] },
    Escapes { shows: Says, needs: &[Program("git")], names: &[
        "write-git-link-made", "write-git-link-moved", "write-git-link-exchanged",
        "write-git-link-linked", "write-git-link-in-a-folder", "write-git-pipe-made",
        "write-git-repository-within", "write-git-objects-of-another", "write-git-refs-moved",
        "write-git-head-removed", "write-git-objects-exchanged",
    ] },

    // What a name means is swapped between the look at it and its use.
    Escapes { shows: Secret, needs: &[], names: &[
        "race-memory-read", "race-memory-read2", "race-memory-linkfrom", "race-memory-renamefrom",
        "race-link-read", "race-link-read2", "race-link-linkfrom", "race-link-renamefrom",
        "race-file-read", "race-cwd-read", "race-cwd-read2", "race-cwd-linkfrom", "race-dirfd-read",
        "race-dirfd-read2", "race-dirfd-renamefrom", "race-proc-read",
    ] },
    Escapes { shows: Changed, needs: &[], names: &[
        "race-memory-write", "race-memory-empty", "race-memory-create", "race-memory-mkdir",
        "race-memory-mknod", "race-memory-symlink", "race-memory-linkto", "race-memory-renameto",
        "race-memory-unlink", "race-memory-rmdir", "race-memory-chmod", "race-memory-utimes",
        "race-memory-truncate", "race-memory-setxattr",
        "race-link-write", "race-link-empty", "race-link-create", "race-link-mkdir",
        "race-link-mknod", "race-link-symlink", "race-link-linkto", "race-link-renameto",
        "race-link-unlink", "race-link-rmdir", "race-link-chmod", "race-link-utimes",
        "race-link-truncate", "race-link-setxattr",
        "race-file-write", "race-file-truncate", "race-file-chmod", "race-file-utimes",
        "race-file-setxattr",
        "race-cwd-write", "race-cwd-create", "race-cwd-mkdir", "race-cwd-unlink", "race-cwd-chmod",
        "race-cwd-truncate",
        "race-dirfd-write", "race-dirfd-create", "race-dirfd-mkdir", "race-dirfd-unlink",
        "race-dirfd-chmod", "race-dirfd-utimes",
        "race-proc-write", "race-proc-create", "race-proc-truncate",
        "race-descriptor-fchmod", "race-descriptor-futimens", "race-descriptor-fsetxattr",
        "race-descriptor-fremovexattr", "race-open-flags",
    ] },
    Escapes { shows: Changed, needs: &[Root], names: &[
        "race-memory-chown", "race-link-chown", "race-descriptor-fchown",
    ] },
    Escapes { shows: Reached, needs: &[Victim], names: &[
        "race-memory-connect", "race-link-connect", "race-address-family", "race-address-abstract",
    ] },

    // Other processes.
    Escapes { shows: Secret, needs: &[Victim], names: &[
        "process-memory", "process-memory-read-by-call", "process-traced", "process-descriptor-taken",
        "process-descriptor-reopened", "process-root-of-another", "process-folder-of-another",
        "process-environment-of-another", "process-terminal-read",
        "process-memory-file-reopened", "process-nameless-file-reopened", "process-view-of-another",
    ] },
    Escapes { shows: Changed, needs: &[Victim], names: &[
        "process-view-of-another-written", "process-view-of-another-filled",
        "process-view-of-another-changed",
    ] },
    Escapes { shows: Says, needs: &[Victim], names: &["process-memory-written-by-call", "process-seized"] },
    Escapes { shows: Says, needs: &[], names: &[
        "process-descriptors-of-the-supervisor", "process-environment-of-the-supervisor",
        "process-memory-of-the-supervisor", "process-descriptor-of-the-supervisor",
        "process-supervisor-signalled", "process-supervisor-limited",
    ] },
    Escapes { shows: Harmed, needs: &[Victim], names: &[
        "process-killed", "process-killed-by-descriptor", "process-killed-by-thread",
        "process-killed-by-queue", "process-killed-by-group", "process-killed-by-owned-descriptor",
        "process-killed-by-limit", "process-limited",
        "process-made-the-first-to-die", "tool-kill",
    ] },
    Escapes { shows: Reached, needs: &[Victim], names: &[
        "process-socket-stream", "process-socket-relative", "process-socket-by-link",
        "process-socket-by-descriptor", "process-socket-linked", "process-socket-renamed",
        "process-socket-packets", "process-socket-outside", "process-socket-outside-linked",
        "process-socket-outside-renamed", "process-socket-outside-renamed-into-the-zone",
        "process-socket-renamed-into-the-temporary-folder",
        "process-socket-linked-into-the-temporary-folder",
        "process-socket-in-a-folder-renamed-into-the-temporary-folder",
        "process-socket-in-a-folder-renamed-into-the-zone", "process-socket-linked-into-the-zone",
        "process-socket-of-another-in-the-zone", "process-socket-of-another-moved-in-the-zone",
        "process-socket-of-another-moved-from-the-zone-into-the-temporary-folder",
        "process-socket-exchanged", "process-socket-without-end", "process-datagram-connected", "process-datagram-sent",
        "process-datagram-sent-outside", "process-datagram-in-a-message",
        "process-datagram-from-a-pair", "process-datagram-in-a-message-from-a-pair",
        "process-datagrams-in-messages", "process-raw-socket-type",
        "process-abstract-stream", "process-abstract-datagram",
        "process-terminal-written", "process-terminal-pushed",
    ] },
    Escapes { shows: Reached, needs: &[Victim, Program("docker")], names: &["tool-docker"] },
    Escapes { shows: Reached, needs: &[Victim, Program("curl")], names: &["tool-curl"] },
    Escapes { shows: Reached, needs: &[Victim, Program("dbus-send")], names: &["tool-dbus"] },
    Escapes { shows: Reached, needs: &[Victim, Program("ssh-add")], names: &["tool-ssh-agent"] },
    Escapes { shows: Reached, needs: &[Victim, Program("node")], names: &["node-socket"] },

    // The kernel.
    Escapes { shows: Secret, needs: &[], names: &[
        "kernel-mount-bind", "kernel-mount-bind-file", "kernel-mount-overlay",
        "kernel-mount-by-new-calls", "kernel-mount-tree-opened", "kernel-mount-tree-not-cloned",
        "kernel-mount-of-proc", "kernel-mount-by-program", "kernel-root-changed",
        "kernel-root-changed-by-mount", "kernel-namespace-that-ended",
    ] },
    Escapes { shows: Says, needs: &[], names: &[
        "kernel-mount-of-memory", "kernel-mount-of-own-files",
        "kernel-mount-of-a-filesystem-context", "kernel-quota", "kernel-namespace-of-its-own",
        "kernel-namespace-of-a-child", "kernel-keys",
    ] },
    Escapes { shows: Secret, needs: &[Root, Victim], names: &[
        "kernel-namespace-entered", "kernel-namespace-entered-by-descriptor",
    ] },
    Escapes { shows: Says, needs: &[Root], names: &[
        "kernel-device-of-the-disk", "kernel-device-made", "kernel-device-made-in-the-zone",
        "kernel-memory-of-the-machine", "kernel-memory-of-the-kernel",
        "kernel-ports-of-the-machine", "kernel-registers-of-the-processor", "kernel-loop-devices",
        "kernel-keyboards", "kernel-console", "kernel-core-pattern", "kernel-name-of-the-machine",
        "kernel-helper-of-the-kernel", "kernel-system-request", "kernel-formats-of-programs",
        "kernel-release-agent", "kernel-group-of-processes", "kernel-helper-of-devices",
        "kernel-tracing", "kernel-module", "kernel-programs-in-the-kernel", "kernel-ports-by-call",
        "kernel-packets", "kernel-packets-the-old-way", "kernel-packets-made-up", "kernel-clock",
    ] },

    // What is at hand.
    Escapes { shows: Secret, needs: &[], names: &[
        "tool-cat", "tool-redirection", "tool-subshell", "tool-standard-input",
        "tool-file-descriptor", "tool-background", "tool-new-session", "tool-find", "tool-grep",
        "tool-tar", "tool-tar-unpacked", "tool-cp", "tool-cp-linking", "tool-mv", "tool-dd",
        "tool-install", "tool-ln", "tool-sed", "tool-diff", "tool-source", "tool-cc",
        "tool-cc-assembler", "tool-environment",
    ] },
    Escapes { shows: Secret, needs: &[Program("git")], names: &[
        "tool-git", "tool-git-object", "tool-git-clone",
    ] },
    Escapes { shows: Secret, needs: &[Program("perl")], names: &["tool-perl"] },
    Escapes { shows: Secret, needs: &[Program("vim")], names: &["tool-vim"] },
    Escapes { shows: Secret, needs: &[Program("gdb"), Victim], names: &["tool-gdb"] },
    Escapes { shows: Secret, needs: &[Program("strace")], names: &["tool-strace"] },
    Escapes { shows: Secret, needs: &[Program("unshare")], names: &["tool-unshare"] },
    Escapes { shows: Secret, needs: &[Program("nsenter"), Victim, Root], names: &["tool-nsenter"] },
    Escapes { shows: Secret, needs: &[Program("chroot"), Root], names: &["tool-chroot"] },
    Escapes { shows: Changed, needs: &[], names: &[
        "tool-write", "tool-append", "tool-tee", "tool-touch", "tool-touch-new",
        "tool-sed-in-place", "tool-cp-over", "tool-cp-denied-name", "tool-mv-over",
        "tool-mv-denied-name", "tool-rm", "tool-rm-all", "tool-chmod",
    ] },
    Escapes { shows: Changed, needs: &[Program("setfattr")], names: &["tool-setfattr"] },
    Escapes { shows: Changed, needs: &[Program("patch")], names: &["tool-patch"] },
    Escapes { shows: Changed, needs: &[Program("git")], names: &["tool-git-configured"] },
    Escapes { shows: Secret, needs: &[Program("node")], names: &[
        "node-sync", "node-promise", "node-stream", "node-worker", "node-child", "node-copy",
        "node-copy-folder", "node-require",
    ] },
    Escapes { shows: Changed, needs: &[Program("node")], names: &[
        "node-write", "node-append", "node-remove", "node-mode", "node-times",
    ] },
];
