//! What others may see of a change of a file.

use rustc_hash::FxHashMap;

use super::{End, Family, File, FileId, Index, MANY, NONE};
use crate::graph::calls::names::Name;
use crate::graph::facts::Kind;

impl Index {
    /// Notes what others may see of a change, once the index has it.
    pub(super) fn touch(
        &mut self,
        id: FileId,
        path: &str,
        before: Option<&File>,
        now: Option<&File>,
    ) {
        if self.touched.is_everything() {
            return;
        }
        let mut touched = std::mem::take(&mut self.touched);
        touched.file(id);
        let family = |file: Option<&File>| file.and_then(|file| file.family);
        if family(before) != family(now) {
            touched.module(self, path);
        }
        let family = family(now).or(family(before));
        let symbols = |file: Option<&File>| -> FxHashMap<End, Kind> {
            let symbols = file.map_or(&[][..], |file| &file.symbols);
            symbols.iter().map(|symbol| (symbol.end, symbol.kind)).collect()
        };
        let (old, new) = (symbols(before), symbols(now));
        let mut has_default = false;
        for end in old.keys().chain(new.keys()) {
            if old.get(end) == new.get(end) {
                continue;
            }
            let Some(place) = self.places.get(end.0 as usize) else { continue };
            let holder = self.places.get(place.parent.0 as usize);
            if let Some(holder) = holder.filter(|holder| holder.symbol != NONE) {
                touched.held(place.name, holder.name);
            } else {
                touched.name(place.name);
                has_default |= self.names.text(place.name) == "default";
            }
            // What it holds is found by what it is.
            if old.contains_key(end) && new.contains_key(end) {
                touched.name(place.name);
            }
            if !self.tells_nothing(family, place.name, id) {
                touched.method(place.name);
            }
        }
        // Who brings it in has another name for it.
        if has_default {
            touched.module(self, path);
        }
        let imports = |file: Option<&'_ File>| file.map_or(Vec::new(), |file| file.imports.clone());
        touched.imports(self, path, &imports(before), &imports(now));
        self.touched = touched;
    }

    /// Whether a name tells nothing of a value, whatever one of the files has.
    fn tells_nothing(&self, family: Option<Family>, name: Name, but: FileId) -> bool {
        let all = self.definitions.get(name.0 as usize).map_or(&[][..], |list| list);
        let others = all.iter().filter(|one| Some(one.family) == family && one.file != but);
        others.take(MANY + 1).count() > MANY
    }
}
