//! The guides are followed as a reader would, command by command: what they show is what is printed.
//! Agents of scripts stand in for real ones, under the names of their programs.

mod agents;
mod follow;
mod page;
mod shown;

use follow::Reader;

/// Follows a guide from its first line to its last.
fn follow(guide: &str) {
    follow_text(&read(guide));
}

fn read(document: &str) -> String {
    std::fs::read_to_string(page::path(document)).unwrap()
}

fn follow_text(guide: &str) {
    let steps = page::steps(guide);
    let stage = agents::stage();
    let mut reader = Reader::new(&stage);
    for step in &steps {
        reader.take(step);
    }
}

#[test]
fn the_first_team_works_as_the_guide_has_it() {
    follow("docs/guides/first-team.md");
}

#[test]
fn the_night_goes_as_the_guide_has_it() {
    follow("docs/guides/night.md");
}

#[test]
fn three_features_go_side_by_side_as_the_guide_has_it() {
    follow("docs/guides/branches.md");
}

#[test]
fn an_agent_leads_as_the_guide_has_it() {
    follow("docs/guides/led.md");
}

#[test]
fn editors_connect_as_the_guide_has_it() {
    follow("docs/guides/editor.md");
}

#[test]
fn a_phone_gets_its_link_as_the_guide_has_it() {
    follow("docs/guides/phone.md");
}

#[test]
fn the_example_of_the_readme_works() {
    let readme = read("README.md");
    let (_, example) = readme.split_once("\n## An example\n").unwrap();
    follow_text(example.split("\n## ").next().unwrap());
}

#[test]
fn each_guide_is_followed() {
    let source = include_str!("guides.rs");
    for entry in std::fs::read_dir(page::path("docs/guides")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(source.contains(&format!("(\"docs/guides/{name}\")")), "no test follows {name}");
    }
}
