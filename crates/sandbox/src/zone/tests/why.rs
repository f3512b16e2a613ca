use std::path::Path;

use super::*;

#[test]
fn what_is_explained_is_what_is_judged() {
    let bed = Bed::new(&["ws/ui/a", "ws/ui/b/.env", "ws/api/c", "ws/link -> api", "ws/.git/HEAD"]);
    bed.add(&["ws/.git/objects/", "ws/.git/refs/"]);
    for git in [GitAccess::None, GitAccess::Read, GitAccess::Commit] {
        let mut spec = bed.spec(&["ui/**", "@/eisen/**"]);
        spec.shared = bed.globs(&["types/**"]);
        spec.denied = bed.globs(&["**/.env", "ui/secret"]);
        spec.readable = bed.globs(&["docs/**", "@/out/**"]);
        spec.git = git;
        let zone = Zone::compile(&spec).unwrap();
        for path in [
            "ui/a",
            "ui/b/.env",
            "ui/secret/x",
            "api/c",
            "link/c",
            "link/../ui/a",
            "types/t",
            "docs/d",
            ".git/HEAD",
            ".git/index",
            ".git/hooks/x",
            "@/out/x",
            "@/other",
            "@/eisen/run/team.json",
            "",
            "a\0b",
            ".",
        ] {
            let path = bed.expand(path);
            for action in [Action::Read, Action::Write] {
                let judged = zone.check(Path::new(&path), action);
                let why = zone.why(Path::new(&path), action);
                assert_eq!(why.allowed, judged.is_ok(), "{path}: {why:?}");
                match judged {
                    Ok(permit) => assert_eq!(why.real, Some(permit.real)),
                    Err(denied) => assert_eq!(why.path, denied.path),
                }
                let granting = match &why.reason {
                    Reason::Pattern { list, .. } => *list != "denied",
                    Reason::Git => why.allowed,
                    _ => false,
                };
                assert_eq!(granting, why.allowed, "{path}: {why:?}");
            }
        }
    }
}
