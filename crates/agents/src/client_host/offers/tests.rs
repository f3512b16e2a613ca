use serde_json::json;

use super::*;

fn id() -> SessionId {
    SessionId::new("s")
}

fn opened(answer: &Value) -> Offers {
    let mut offers = Offers::default();
    assert!(offers.learn(Learning::Opened(Some(id())), answer, |_| true).is_none());
    offers
}

/// The options of the session, each as `id[category]=current: value (name), …`.
fn shown(offers: &Offers) -> Vec<String> {
    let option = |it: SessionOption| {
        let values: Vec<_> =
            it.values.iter().map(|it| format!("{} ({})", it.id, it.name)).collect();
        let category = it.category.unwrap_or_default();
        format!("{}[{category}]={}: {}", it.id, it.current.unwrap_or_default(), values.join(", "))
    };
    offers.of(&id()).into_iter().map(option).collect()
}

fn copilot() -> Value {
    json!({
        "modes": { "currentModeId": "agent", "availableModes": [{ "id": "agent", "name": "Agent" }, { "id": "plan", "name": "Plan" }] },
        "configOptions": [
            { "id": "mode", "category": "mode", "name": "Mode", "currentValue": "agent",
              "options": [{ "value": "agent", "name": "Agent" }, { "value": "plan", "name": "Plan" }] },
            { "id": "allow_all", "category": "permissions", "name": "Allow All", "currentValue": "off",
              "options": [{ "value": "on", "name": "On" }, { "value": "off", "name": "Off" }] },
            { "id": "dry", "type": "boolean", "name": "Dry run", "currentValue": true },
        ],
    })
}

#[test]
fn modes_models_and_options_are_read_as_agents_send_them() {
    let claude = json!({
        "models": { "currentModelId": "default", "availableModels": [{ "modelId": "default", "name": "Default" }, { "modelId": "opus[1m]" }] },
        "modes": { "currentModeId": "default", "availableModes": [{ "id": "default", "name": "Default", "description": "asks" }, { "id": "plan" }, { "name": "no id" }] },
    });
    assert_eq!(
        shown(&opened(&claude)),
        [
            "mode[mode]=default: default (Default), plan (plan)",
            "model[model]=default: default (Default), opus[1m] (opus[1m])",
        ]
    );
    // Options of the configuration replace the modes, which are there for older clients.
    assert_eq!(
        shown(&opened(&copilot())),
        [
            "mode[mode]=agent: agent (Agent), plan (Plan)",
            "allow_all[permissions]=off: on (On), off (Off)",
        ]
    );
    let grouped = json!({ "configOptions": [{ "id": "m", "category": "model", "options": [
        { "group": "g", "name": "G", "options": [{ "value": "a", "name": "A\u{1b}[31m" }] },
        { "value": "b" },
    ] }] });
    assert_eq!(shown(&opened(&grouped)), ["m[model]=: b (b), a (A [31m)"]);
    for nothing in
        [json!(null), json!({}), json!({ "modes": [], "models": 7, "configOptions": "x" })]
    {
        assert!(shown(&opened(&nothing)).is_empty());
    }
}

#[test]
fn answers_and_updates_say_what_is_chosen() {
    let mut offers = opened(&copilot());
    let chose = |how, value: &str| Learning::Chose(id(), how, value.to_owned());
    let chosen = |mode: &str, all: &str| {
        let chosen = [("mode", mode), ("allow_all", all)];
        Some((id(), chosen.map(|(id, value)| (id.to_owned(), value.to_owned())).into()))
    };
    let mut learn = |learning, answer: &Value| offers.learn(learning, answer, |_| true);
    assert_eq!(learn(chose(ChoiceRequest::Mode, "plan"), &json!({})), chosen("plan", "off"));
    assert_eq!(learn(chose(ChoiceRequest::Mode, "plan"), &json!({})), None, "nothing changed");
    let option = ChoiceRequest::Option("allow_all".to_owned());
    assert_eq!(learn(chose(option.clone(), "on"), &json!(null)), chosen("plan", "on"));
    // The agent has the last word.
    assert_eq!(learn(chose(option, "on"), &copilot()), chosen("agent", "off"));
    assert_eq!(offers.hear(id(), &OptionNews::Mode("plan".to_owned())), chosen("plan", "off"));
    let options = copilot()["configOptions"].clone();
    assert_eq!(offers.hear(id(), &OptionNews::Options(options)), chosen("agent", "off"));
    assert_eq!(offers.hear(SessionId::new("other"), &OptionNews::Mode("plan".to_owned())), None);
    offers.learn(Learning::Opened(Some(id())), &json!({}), |_| true);
    assert_eq!(shown(&offers).len(), 2, "a session that goes on keeps what is not said again");
}

#[test]
fn an_agent_that_offers_without_end_is_bounded() {
    let long = "x".repeat(LONGEST_ID + 1);
    let values: Vec<_> = (0..2 * MOST_VALUES)
        .map(|number| {
            let (name, description) =
                ("n".repeat(LONGEST_NAME + 1), "d".repeat(LONGEST_DESCRIPTION + 1));
            json!({ "value": format!("v{number}"), "name": name, "description": description })
        })
        .chain([json!({ "value": long })])
        .collect();
    let options: Vec<_> = (0..2 * MOST_OPTIONS)
        .map(|number| json!({ "id": format!("o{number}"), "options": &values, "currentValue": long }))
        .collect();
    let offers = opened(&json!({ "configOptions": options }));
    let all = offers.of(&id());
    let texts = all.iter().flat_map(|it| &it.values).map(|it| {
        let description = it.description.as_ref().map_or(0, String::len);
        assert!(it.name.len() <= LONGEST_NAME && description <= LONGEST_DESCRIPTION);
        it.id.len() + it.name.len() + description
    });
    let (count, bytes) = texts.fold((0, 0), |(count, all), bytes| (count + 1, all + bytes));
    assert!(count > 0 && count <= MOST_VALUES && bytes <= MOST_BYTES, "{count} {bytes}");
    assert!(all.len() <= MOST_OPTIONS && all.iter().all(|it| it.current.is_none()));

    let mut offers = Offers::default();
    for number in 0..2 * MOST_SESSIONS {
        let session = SessionId::new(format!("s{number}"));
        offers.learn(Learning::Opened(Some(session)), &copilot(), |_| false);
    }
    assert!(offers.options.len() <= MOST_SESSIONS);
}

#[test]
fn commands_are_kept_for_their_session_in_place_of_those_before() {
    let all = json!([
        { "name": "/compact", "description": "Makes\nroom", "input": { "hint": "what to keep" } },
        { "name": "review", "description": 7 }, { "name": "x".repeat(LONGEST_ID + 1) }, { "name": "/" }, 7,
    ]);
    let command = |name: &str, what: Option<&str>| {
        let (name, description) = (name.to_owned(), what.map(str::to_owned));
        SessionCommand { name, description }
    };
    let mut offers = Offers::default();
    offers.hear_commands(id(), announced_commands(&all), |_| true);
    let kept = [command("compact", Some("Makes room")), command("review", None)];
    assert_eq!(offers.commands_of(&id()), kept);
    // The answer that opens the session may come after them.
    offers.learn(Learning::Opened(Some(id())), &copilot(), |_| true);
    assert_eq!(offers.commands_of(&id()), kept);
    let many = vec![json!({ "name": "one" }); 2 * MOST_COMMANDS];
    offers.hear_commands(id(), announced_commands(&json!(many)), |_| true);
    assert_eq!(offers.commands_of(&id()).len(), MOST_COMMANDS);
    for number in 0..2 * MOST_SESSIONS {
        let session = SessionId::new(format!("s{number}"));
        offers.hear_commands(session, announced_commands(&all), |session| *session == id());
    }
    assert!(offers.commands.len() <= MOST_SESSIONS);
    assert_eq!(offers.commands_of(&id()).len(), MOST_COMMANDS);
    offers.forget(&id());
    assert_eq!(offers.commands_of(&id()), []);
}
