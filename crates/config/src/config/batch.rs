//! The file of a batch: its tasks, what each waits for, and how many run at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::de::DeTable;

use super::budget::limits;
use super::errors::{ConfigErrors, code, quoted};
use super::fault::Fault;
use super::near::nearest;
use super::read::{ConfigReader, Table, Text};
use super::source::{position, read_bytes};
use super::value::{bad_name, is_name};
use super::{Surroundings, syntax};
use crate::model::BudgetLimits;

/// Bytes of the file, and of the file of a prompt.
const MOST_BYTES: u64 = 1 << 20;

/// Bytes of all prompts together: each task keeps its own until it starts.
const MOST_PROMPTS: usize = 32 << 20;

const MOST_TASKS: usize = 1000;

const USUALLY_RUNNING: u32 = 4;
const MOST_RUNNING: u32 = 100;

/// The longest time that a task can be given: 31 days.
const LONGEST_TIMEOUT: u64 = 31 * 24 * 60 * 60;

/// The tasks of a file.
#[derive(Clone, Debug)]
pub struct BatchFile {
    /// How many run at once.
    pub max_running: usize,
    /// In an order in which each stands behind those that it waits for, else as in the file.
    pub tasks: Vec<BatchTask>,
}

/// A task, with the defaults of its file.
#[derive(Clone, Debug)]
pub struct BatchTask {
    pub id: String,
    /// Where it stands in the file, from 1.
    pub line: usize,
    pub prompt: String,
    /// The tasks that have to succeed before, by their place in [`BatchFile::tasks`].
    pub after: Vec<usize>,
    /// The branch that it works on, in a worktree of its own.
    pub branch: Option<String>,
    pub agent: BatchAgent,
}

/// Which agent a task gets, and what that may do.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct BatchAgent {
    pub profile: Option<String>,
    pub tier: Option<String>,
    pub model: Option<String>,
    /// Patterns; empty: the whole workspace.
    pub zone: Vec<String>,
    pub deny: Vec<String>,
    pub timeout_s: Option<u64>,
    pub budget: BudgetLimits,
}

/// A table as the file has it.
struct Written {
    agent: BatchAgent,
    has_budget: bool,
    tier: Option<Text>,
    model: Option<Text>,
}

/// A task whose references are not resolved yet.
struct RawTask {
    id: Text,
    line: usize,
    prompt: String,
    after: Vec<Text>,
    branch: Option<String>,
    agent: BatchAgent,
}

impl BatchFile {
    pub fn read(file: &Path, eisen_dir: &Path) -> Result<Self, ConfigErrors> {
        let failed = |text: String, fault| ConfigErrors::new(file, text, vec![fault]);
        let bytes = read_bytes(file, MOST_BYTES).map_err(|(why, help)| {
            failed(String::new(), Fault::of_file(format!("this file {why}"), help))
        })?;
        let text = String::from_utf8(bytes).map_err(|_| {
            let help = "save the file as UTF-8".to_owned();
            failed(String::new(), Fault::of_file("this file is not UTF-8".to_owned(), help))
        })?;
        let surroundings = Surroundings::of_process(eisen_dir, Box::new(|_| Ok(true)));
        Self::compile(file, text, &surroundings)
    }

    pub(super) fn compile(
        file: &Path,
        text: String,
        surroundings: &Surroundings,
    ) -> Result<Self, ConfigErrors> {
        let dir = file.parent().unwrap_or(Path::new("/"));
        let repaired = syntax::repair(&text);
        // The remaining errors are duplicate keys, which are already reported.
        let (document, _) = DeTable::parse_recoverable(&repaired.text);
        let reader = ConfigReader::new(&text, &repaired.gaps, dir, surroundings);
        let batch = reader.read(document.get_ref(), |root| batch(root, &text, dir));
        let (mut faults, _) = reader.finish();
        faults.extend(repaired.faults);
        if faults.is_empty() { Ok(batch) } else { Err(ConfigErrors::new(file, text, faults)) }
    }
}

fn batch(root: &Table<'_>, text: &str, dir: &Path) -> BatchFile {
    let max_running = root.count("max_running", 1..=MOST_RUNNING, USUALLY_RUNNING);
    let defaults = root.section("defaults", "defaults", |table| written(table, "defaults.budget"));
    let (mut bytes, mut count) = (0, 0);
    let raw = root.sections("tasks", |table| {
        count += 1;
        if count > MOST_TASKS {
            return None;
        }
        let task = task(table, &defaults, text, dir)?;
        bytes += task.prompt.len();
        if bytes > MOST_PROMPTS && bytes - task.prompt.len() <= MOST_PROMPTS {
            let message = format!("the prompts are longer than {} MiB", MOST_PROMPTS >> 20);
            let help = "let the agents read long texts as files";
            table.fault(Fault::new(task.id.span.clone(), message).help(help));
        }
        (bytes <= MOST_PROMPTS).then_some(task)
    });
    if count == 0 {
        root.lacks("there are no tasks", "write `[[tasks]]`, with an `id` and a `prompt`");
    }
    if count > MOST_TASKS {
        let message = format!("there are more than {MOST_TASKS} tasks");
        root.fault(Fault::of_file(message, "make several files of it".to_owned()));
    }
    let tasks = resolved(root, raw.into_iter().flatten().collect());
    BatchFile { max_running: usize::try_from(max_running).unwrap_or(1), tasks }
}

fn task(table: &Table<'_>, defaults: &Written, text: &str, dir: &Path) -> Option<RawTask> {
    let (own, prompt) = (written(table, "tasks.budget"), prompt(table, dir));
    let (after, id) = (table.texts("after").unwrap_or_default(), table.verbatim("id"));
    let branch = table.word("branch").map(|branch| branch.value);
    let agent = over(table, own, defaults);
    let Some(id) = id else {
        if table.place_of("id").is_none() {
            table.lacks("this task has no `id`", "give it one, such as `id = \"tests\"`");
        }
        return None;
    };
    if !is_name(&id.value) {
        table.fault(bad_name("`id`", &id));
        return None;
    }
    let line = position(text, table.span.start).0;
    // A prompt that is wrong is reported; what refers to the task is right.
    Some(RawTask { id, line, prompt: prompt.unwrap_or_default(), after, branch, agent })
}

fn prompt(table: &Table<'_>, dir: &Path) -> Option<String> {
    let (prompt, file) = (table.verbatim("prompt"), table.word("prompt_file"));
    let places = (table.place_of("prompt"), table.place_of("prompt_file"));
    let (text, span) = match places {
        (None, None) => {
            let help = "give it one: `prompt = \"…\"`, or `prompt_file = \"FILE\"`";
            table.lacks("this task has no prompt", help);
            return None;
        }
        (Some(_), Some(place)) => {
            let message = "`prompt` and `prompt_file` can't both be given";
            table.fault(Fault::new(place, message).help("keep one"));
            return None;
        }
        (Some(place), None) => (prompt?.value, place),
        (None, Some(place)) => {
            let path = dir.join(file?.value);
            let read = read_bytes(&path, MOST_BYTES).and_then(|bytes| {
                let not_text = |_| ("is not UTF-8".to_owned(), "save it as UTF-8".to_owned());
                String::from_utf8(bytes).map_err(not_text)
            });
            match read {
                Ok(text) => (text, place),
                Err((why, help)) => {
                    let message = format!("{} {why}", code(&path.to_string_lossy()));
                    table.fault(Fault::new(place, message).help(help));
                    return None;
                }
            }
        }
    };
    if text.trim().is_empty() {
        table.fault(Fault::new(span, "the prompt is empty").help("say what is to be done"));
        return None;
    }
    Some(text)
}

fn written(table: &Table<'_>, budget: &'static str) -> Written {
    let values = |texts: Option<Vec<Text>>| {
        texts.unwrap_or_default().into_iter().map(|text| text.value).collect()
    };
    let value = |text: &Option<Text>| text.as_ref().map(|text| text.value.clone());
    let (profile, tier, model) = (table.word("profile"), table.word("tier"), table.word("model"));
    let agent = BatchAgent {
        profile: value(&profile),
        tier: value(&tier),
        model: value(&model),
        zone: values(table.texts("zone")),
        deny: values(table.texts("deny")),
        timeout_s: table.count_if_set("timeout_s", 1..=LONGEST_TIMEOUT),
        budget: table.section("budget", budget, limits),
    };
    for (key, other) in [("profile", &profile), ("model", &model)] {
        if let (Some(tier), Some(_)) = (&tier, other) {
            let message = format!("`tier` and {} can't both be given", code(key));
            let help = "keep one: the candidates of a tier say it";
            table.fault(Fault::new(tier.span.clone(), message).help(help));
        }
    }
    Written { agent, has_budget: table.place_of("budget").is_some(), tier, model }
}

/// Lays a task over the defaults. What is denied there stays denied.
fn over(table: &Table<'_>, own: Written, defaults: &Written) -> BatchAgent {
    let (task, under) = (own.agent, &defaults.agent);
    // The three say together which agent it is.
    let (profile, tier, model) = if task.profile.is_some() || task.tier.is_some() {
        (task.profile, task.tier, task.model)
    } else {
        if let (Some(model), Some(tier)) = (&own.model, &defaults.tier) {
            let message = format!("`model` can't be given beside the tier {}", quoted(&tier.value));
            let help = "name a `profile` with it: the candidates of a tier say their models";
            table.fault(Fault::new(model.span.clone(), message).help(help));
        }
        (under.profile.clone(), under.tier.clone(), task.model.or_else(|| under.model.clone()))
    };
    BatchAgent {
        profile,
        tier,
        model,
        zone: if task.zone.is_empty() { under.zone.clone() } else { task.zone },
        deny: under.deny.iter().cloned().chain(task.deny).collect(),
        timeout_s: task.timeout_s.or(under.timeout_s),
        budget: if own.has_budget { task.budget } else { under.budget },
    }
}

/// Resolves `after`, and puts the tasks in order.
fn resolved(root: &Table<'_>, raw: Vec<RawTask>) -> Vec<BatchTask> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, task) in raw.iter().enumerate() {
        if places.contains_key(task.id.value.as_str()) {
            let message = format!("there is another task with the id {}", quoted(&task.id.value));
            root.fault(Fault::new(task.id.span.clone(), message).help("give each its own"));
        } else {
            places.insert(&task.id.value, at);
        }
    }
    let names: Vec<&str> = places.keys().copied().collect();
    let mut after: Vec<BTreeSet<usize>> = Vec::new();
    for task in &raw {
        let found = task.after.iter().filter_map(|name| {
            let place = places.get(name.value.as_str()).copied();
            if place.is_none() {
                root.fault(unknown_task(name, &names));
            }
            place
        });
        after.push(found.collect());
    }
    let order = in_order(&after);
    if order.len() < raw.len() {
        let circle = circle(&after, &order);
        let chain: Vec<_> = circle.iter().map(|at| code(&raw[*at].id.value)).collect();
        let first = circle.first().map(|at| &raw[*at]);
        if let Some(place) = first.and_then(|task| task.after.first()) {
            let message = format!("these tasks wait for each other: {}", chain.join(" → "));
            let help = "take one of them out of an `after`";
            root.fault(Fault::new(place.span.clone(), message).help(help));
        }
        return Vec::new();
    }
    let mut new_place = vec![0; raw.len()];
    for (new, old) in order.iter().enumerate() {
        new_place[*old] = new;
    }
    let mut raw: Vec<_> = raw.into_iter().map(Some).collect();
    let mut task = |old: usize| {
        let RawTask { id, line, prompt, branch, agent, .. } = raw[old].take()?;
        let after = after[old].iter().map(|at| new_place[*at]).collect();
        Some(BatchTask { id: id.value, line, prompt, after, branch, agent })
    };
    order.iter().filter_map(|old| task(*old)).collect()
}

fn unknown_task(name: &Text, names: &[&str]) -> Fault {
    let fault = Fault::new(name.span.clone(), format!("there is no task {}", quoted(&name.value)));
    match nearest(&name.value, names) {
        Some(near) => fault.help(format!("did you mean {}?", quoted(near))),
        None => fault.help("`after` names the `id` of other tasks of this file"),
    }
}

/// Each behind those that it waits for, otherwise as they are; tasks of circles, and those that wait for
/// these, are left out.
fn in_order(after: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut waits: Vec<usize> = after.iter().map(BTreeSet::len).collect();
    let mut followers = vec![Vec::new(); after.len()];
    for (at, before) in after.iter().enumerate() {
        for other in before {
            followers[*other].push(at);
        }
    }
    let mut free: BTreeSet<usize> = (0..after.len()).filter(|at| waits[*at] == 0).collect();
    let mut order = Vec::new();
    while let Some(next) = free.pop_first() {
        order.push(next);
        for follower in &followers[next] {
            waits[*follower] -= 1;
            if waits[*follower] == 0 {
                free.insert(*follower);
            }
        }
    }
    order
}

/// One circle among the tasks that have no place in the order; its first stands at its end, too.
fn circle(after: &[BTreeSet<usize>], order: &[usize]) -> Vec<usize> {
    let placed: BTreeSet<_> = order.iter().copied().collect();
    let Some(mut at) = (0..after.len()).find(|at| !placed.contains(at)) else { return Vec::new() };
    let mut path = Vec::new();
    while !path.contains(&at) {
        path.push(at);
        // Each that has no place waits for another one that has none.
        let Some(next) = after[at].iter().find(|other| !placed.contains(other)) else { break };
        at = *next;
    }
    let begin = path.iter().position(|other| *other == at).unwrap_or(0);
    path.drain(..begin);
    path.push(at);
    path
}
