use std::fmt::Write;

use crate::model::BlockedAccess;

/// Returns the prompt that puts blocked accesses before the orchestrator agent.
pub(super) fn text(accesses: &[&BlockedAccess]) -> String {
    let mut text = match accesses.len() {
        1 => "An agent of your team was stopped outside its zone. Decide what becomes of it.\n\n"
            .to_owned(),
        n => format!(
            "Agents of your team were stopped outside their zones, {n} times. Decide each.\n\n"
        ),
    };
    for access in accesses {
        let id = &access.id;
        // Names come from agents and disks: quoted as Rust would, so that none starts a new line.
        let path = access.path.escape_debug();
        let owners = match access.owners.as_slice() {
            [] => "nobody".to_owned(),
            owners => owners.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        let _ = writeln!(
            text,
            "- {id}: agent `{}` wants to {} `{path}` (owned by: {owners}; {}, {})",
            access.key.agent,
            access.action,
            access.via.as_str(),
            access.status.as_str(),
        );
        let answer = if access.is_answerable() { " | answer TEXT" } else { "" };
        let _ =
            writeln!(text, "  decide: eisen-core resolve {id} allow | deny --message TEXT{answer}");
    }
    text.push_str(
        "\n`allow` lets this one access through (`--scope session`: this path for the rest of its \
         session), `answer` gives the content of a read yourself, `deny` refuses. An access that \
         was denied already may be tried again once it is allowed.\n",
    );
    text
}
