//! The known name that a mistaken one probably meant.

use strsim::damerau_levenshtein;

/// Longer names are no typing mistakes, and comparing them would cost.
const MAX_LENGTH: usize = 64;

/// The known name nearest to `name`, if it is near at all: few letters apart, or one within the
/// other.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let name = name.to_lowercase().replace('-', "_");
    let distance =
        |known: &&str| damerau_levenshtein(&name, &known.to_lowercase().replace('-', "_"));
    let closest = known.iter().copied().min_by_key(distance)?;
    let tolerated = name.chars().count().max(closest.chars().count()) / 3;
    if distance(&closest) <= tolerated.max(1) && name.len() > 1 {
        return Some(closest);
    }
    let within = |known: &&str| {
        name.len() >= 4 && known.contains(&name) || known.len() >= 4 && name.contains(*known)
    };
    known.iter().copied().filter(within).min_by_key(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        let known =
            ["name", "workspace", "listen", "stop_grace_s", "max_running", "hold_timeout_s"];
        for (name, wanted) in [
            ("nmae", Some("name")),
            ("Name", Some("name")),
            ("names", Some("name")),
            ("workspce", Some("workspace")),
            ("stop-grace-s", Some("stop_grace_s")),
            ("timeout", Some("hold_timeout_s")),
            ("max_runing", Some("max_running")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), wanted, "{name}");
        }
        assert_eq!(nearest(&"n".repeat(100_000), &known), None);
        assert_eq!(nearest("name", &[]), None);
    }
}
