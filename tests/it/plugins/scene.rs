use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::harness::{Program, Stage, Team, program, run};

/// Writes the lines of its prompt (`do LINE;LINE`), and how it was answered.
pub(super) const AGENT: &str = r#"
while read -r word rest; do
    case $word in
    do) printf '%s\n' "$rest" | tr ';' '\n' ;;
    yes | no) printf 'say %s %s\ndone\n' "$word" "$rest" ;;
    stop) echo done ;;
    esac
done
"#;

pub(super) const PLAIN: &str = "examples/plugin-c/plain.c";
pub(super) const HOSTILE: &str = "tests/it/plugins/hostile.c";
pub(super) const HOLD: &str = "[orchestrator]\non_block = \"hold\"";

/// Compiles a plugin against its header into a file of the stage, which is named by `to`.
pub(super) fn compile(stage: &Stage, source: &str, to: &str, flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = stage.path(to);
    std::fs::create_dir_all(library.parent().unwrap()).unwrap();
    let compiled = run(program("cc")
        .args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror"])
        .args(["-fPIC", "-shared", "-I"])
        .arg(root.join("plugins/sdk/include"))
        .args(flags)
        .arg("-o")
        .args([library.clone(), root.join(source)]));
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    chmod(&library, 0o755);
    library
}

pub(super) fn hostile(stage: &Stage, flags: &[&str]) -> PathBuf {
    compile(stage, HOSTILE, "libhostile.so", flags)
}

pub(super) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Writes the configuration of a team whose agent `ui` speaks by the plugin `words`; `api` owns
/// what is outside its zone. `keys` are of the agent, and tables may follow.
pub(super) fn configure(stage: &Stage, library: &Path, isolation: &str, keys: &str) {
    let plugin = format!(
        "[[plugins]]\nname = \"words\"\npath = {:?}\nisolation = {isolation:?}\n",
        library.display().to_string()
    );
    configure_with(stage, &plugin, "words", keys);
    if isolation == "in-process" {
        trust(stage, library);
    }
}

/// Approves a library, if it can be.
pub(super) fn trust(stage: &Stage, library: &Path) {
    stage.run(&["plugin", "trust", &library.display().to_string()]);
}

pub(super) fn configure_with(stage: &Stage, plugins: &str, protocol: &str, keys: &str) {
    stage.file("agent.sh", AGENT);
    let agent = stage.path("agent.sh").display().to_string();
    stage.file(
        "eisen.toml",
        &format!(
            "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n{plugins}\n\
             [[agents]]\nid = \"ui\"\nprotocol = {protocol:?}\ncommand = [\"sh\", {agent:?}]\n\
             zone = {{ allowed = [\"src/ui/**\"], enforce = \"protocol\" }}\n{keys}\n"
        ),
    );
}

/// A team whose agent `ui` speaks by a plugin.
pub(super) fn team(stage: &Stage, library: &Path, isolation: &str, keys: &str) -> Team {
    configure(stage, library, isolation, keys);
    stage.up()
}

/// Reads the log until a plugin failed in this way.
pub(super) fn failed(team: &Team, why: &str) {
    failed_in(&team.program, why);
}

pub(super) fn failed_in(program: &Program, why: &str) {
    loop {
        let line = program.stderr.next().expect("the log ended");
        // One that died may have died once more of the same line.
        if line.contains("a plugin failed") && line.contains(why) {
            return;
        }
    }
}

/// Kills the child that a plugin runs in.
#[cfg(target_os = "linux")]
pub(super) fn kill_host(library: &Path) {
    use nix::sys::signal::{Signal, kill};
    let words = ["plugin-host", library.to_str().unwrap()];
    let is_host = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let said: Vec<_> = line.split(|&byte| byte == 0).skip(1).take(2).collect();
        said == words.map(str::as_bytes)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let pid = pids.into_iter().find(is_host).expect("the plugin runs in a child");
    kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}
