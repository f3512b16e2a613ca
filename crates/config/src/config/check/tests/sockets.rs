use std::os::unix::net::UnixListener;

use super::super::*;

#[test]
fn sockets_of_others_in_zones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap().join("shop");
    for place in ["src", "docs", "dist"] {
        std::fs::create_dir_all(workspace.join(place)).unwrap();
    }
    std::fs::write(workspace.join(".gitignore"), "dist\n").unwrap();
    let bind = |name: &str| UnixListener::bind(workspace.join(name)).unwrap();
    let servers =
        ["src/dev.sock", "src/listed.sock", "docs/other.sock", "dist/built.sock"].map(bind);
    drop(bind("src/left.sock"));
    let file = workspace.join("eisen.toml");
    let toml = format!(
        "[[agents]]\nid = \"ui\"\ncommand = [\"true\"]\n[agents.zone]\n\
         allowed = [\"src/**\", \"dist/**\"]\nsockets = [\"{}/src/listed.sock\"]\n",
        workspace.display()
    );
    std::fs::write(&file, toml).unwrap();
    let config = Config::load(&file, &folder.path().join("dir")).unwrap();
    let kernel = Kernel { holds: true, missing: Vec::new() };
    let report = check(&config, &kernel, "by looking", Vec::new(), &mut |_| {});
    let named: Vec<_> =
        report.warnings().iter().filter_map(|it| it.strip_prefix("ui: the socket ")).collect();
    let named: Vec<_> = named.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(named, ["dist/built.sock", "src/dev.sock"]);
    drop(servers);
}
