//! Owns the map of files: a node, overlaps and loops, and the methods that show what agents work on.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::AgentName;
use super::tools::tool;
use super::{Empty, NameOf, SessionHeader, Target};
use crate::model::{LoopKind, OnLoop, Origin, OverlapKind, Touch};

method! {
    HotFiles = "hot_files": HotFilesParams => HotFileList;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: All(Hottest)
}

method! {
    Overlaps = "overlaps": Empty => OverlapList;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: All(Joined)
}

method! {
    WhoCalls = "who_calls": WhoCallsParams => SymbolCallers;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: One
}

/// A file on the map.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Node<'a> {
    /// Relative to the workspace, with forward slashes; absolute if outside.
    pub path: Cow<'a, str>,
    #[schemars(range(min = 0, max = 1))]
    pub heat: f64,
    /// Whether the agent is assumed to have the file in its context.
    pub in_context: bool,
    pub last_action: NameOf<Touch>,
    /// Number of the turn of the last access, from 0 for each session.
    pub turn_accessed: u64,
    /// Time of the last access, in milliseconds since 1970 UTC.
    pub timestamp_ms: u64,
    /// Ids of the symbols that were read or written, in order; only in context, and only where the
    /// lines of an access and the file's symbols are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Cow<'a, [Arc<str>]>>,
    /// The source of the last write; only if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = Origin::ALL.map(Origin::as_str)))]
    pub origin: Option<NameOf<Origin>>,
}

/// A session that goes in a loop: noted, or acted on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Looped<'a> {
    #[serde(flatten)]
    pub session: SessionHeader<'a>,
    pub kind: NameOf<LoopKind>,
    /// How often it came.
    pub times: u64,
    /// Titles of the calls; empty for a message.
    pub calls: Vec<Cow<'a, str>>,
    /// The reaction, as in `on_loop`; null: it was only noted.
    #[schemars(with = "Option<String>", extend("enum" = ["report", "nudge", "cancel", "stop", null]))]
    pub action: Option<NameOf<OnLoop>>,
    #[serde(default)]
    pub timestamp_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MapOverlap<'a> {
    pub kind: NameOf<OverlapKind>,
    /// Both agents: one that edits first, otherwise ordered by name.
    pub agents: [Target<'a>; 2],
    /// Id of the symbol; the file's path where its symbols are not known.
    pub symbol: Cow<'a, str>,
    /// Path of the file.
    pub path: Cow<'a, str>,
    /// Symbols in the context of an agent that call it.
    pub callers: Vec<SymbolCaller<'a>>,
    pub timestamp_ms: u64,
}

/// A symbol in the context of an agent's session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Caller")]
pub struct SymbolCaller<'a> {
    pub symbol: Cow<'a, str>,
    #[serde(flatten)]
    pub session: Target<'a>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HotFilesParams {
    /// At most 100; 20 if left out.
    #[schemars(extend("x-tool" = tool("How many; 20 if left out").range(1, 100)))]
    pub limit: Option<usize>,
}

/// The files that agents work on, the hottest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HotFiles")]
pub struct HotFileList {
    pub files: Vec<HotFile>,
    /// Files that some agent touched and that have not cooled off.
    pub total: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HotFile {
    pub path: String,
    /// The highest of all agents.
    pub heat: f64,
    pub agents: Vec<HotFileUser>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HotFileUser {
    pub agent: AgentName<'static>,
    pub last_action: Cow<'static, str>,
    pub timestamp_ms: u64,
}

/// Symbols that two agents work on now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OverlapList {
    pub overlaps: Vec<OverlapRow>,
    pub total: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OverlapRow {
    pub kind: NameOf<OverlapKind>,
    pub agents: [AgentName<'static>; 2],
    pub symbol: String,
    pub path: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WhoCallsParams {
    /// An id of the code graph (`PATH::NAME`), or a name.
    #[schemars(extend("x-tool" = tool("Its name, or its id in the code graph (`src/cart.rs::total`)")))]
    pub symbol: String,
}

/// Callers of the symbols that a name means.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WhoCalls")]
pub struct SymbolCallers {
    pub symbols: Vec<CalledSymbol>,
    /// Symbols of that name.
    pub total: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CalledSymbol {
    pub symbol: String,
    pub callers: Vec<String>,
    /// How many there are.
    pub total: usize,
}

/// Nodes as an object, whose keys are their paths.
pub(super) mod by_path {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
    use serde::ser::Serializer;

    use super::Node;

    pub(in crate::wire) fn serialize<S: Serializer>(
        nodes: &[Node<'_>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(nodes.iter().map(|node| (&node.path, node)))
    }

    pub(in crate::wire) fn deserialize<'de, 'a, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Node<'a>>, D::Error> {
        deserializer.deserialize_map(Nodes(PhantomData))
    }

    struct Nodes<'a>(PhantomData<&'a ()>);

    impl<'de, 'a> Visitor<'de> for Nodes<'a> {
        type Value = Vec<Node<'a>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("nodes by path")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Node<'a>>, A::Error> {
            let mut nodes = Vec::new();
            while let Some((IgnoredAny, node)) = map.next_entry()? {
                nodes.push(node);
            }
            Ok(nodes)
        }
    }
}
