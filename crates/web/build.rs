//! Packs the files of the page, as browsers get them, for builds that have them in the program.

#[path = "src/web/assets/packed.rs"]
mod packed;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

const PAGE: &str = "src/web/page";

fn main() -> Result<(), Box<dyn Error>> {
    // A build for development reads the page from its folder: a change of it needs no build.
    let is_read = env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    println!("cargo::rerun-if-changed={}", if is_read { "build.rs" } else { PAGE });
    println!("cargo::rerun-if-changed=src/web/assets/packed.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("Cargo names no OUT_DIR")?).join("page");
    pack(Path::new(PAGE), &out, "")
}

/// Packs all files below a folder. `below`: its path in the page.
fn pack(folder: &Path, out: &Path, below: &str) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out.join(below))?;
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| "a name is no text")?;
        let path = format!("{below}{name}");
        if entry.file_type()?.is_dir() {
            pack(folder, out, &format!("{path}/"))?;
            continue;
        }
        let sent = packed::sent(&path, fs::read(entry.path())?.into()).into_owned();
        let packed = packed::gzip(&sent).ok_or("a file can't be packed")?;
        fs::write(out.join(format!("{path}.gz")), packed)?;
    }
    Ok(())
}
