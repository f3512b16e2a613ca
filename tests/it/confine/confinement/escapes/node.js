// Ways of node's own.
const { fs, net, path, worker } = {
  fs: require("fs"),
  net: require("net"),
  path: require("path"),
  worker: require("worker_threads"),
};
const { OPEN, CLOSED, DOCS, OUTSIDE } = process.env;
const secret = path.join(CLOSED, "secret");
const show = (text) => process.stdout.write(String(text));

fs.writeSync(1, "tried\n");
const rows = {
  "node-sync": () => show(fs.readFileSync(secret)),
  "node-promise": () => fs.promises.readFile(secret).then(show),
  "node-stream": () => fs.createReadStream(secret).pipe(process.stdout),
  "node-worker": () =>
    new worker.Worker(`process.stdout.write(require("fs").readFileSync(${JSON.stringify(secret)}))`, {
      eval: true,
    }),
  "node-child": () => show(require("child_process").execSync(`cat ${secret}`)),
  "node-copy": () => (fs.copyFileSync(secret, "copy"), show(fs.readFileSync("copy"))),
  "node-copy-folder": () => (
    fs.cpSync(path.join(CLOSED, "inner"), "copy", { recursive: true }),
    show(fs.readFileSync("copy/secret"))
  ),
  "node-require": () => {
    try {
      require(secret);
    } catch (error) {
      show(error.stack);
    }
  },
  "node-write": () => fs.writeFileSync(path.join(CLOSED, "victim"), "changed"),
  "node-append": () => fs.promises.appendFile(path.join(DOCS, "guide"), "changed"),
  "node-remove": () => fs.rmSync(CLOSED, { recursive: true }),
  "node-mode": () => fs.promises.chmod(path.join(CLOSED, "victim"), 0o600),
  "node-times": () => fs.utimesSync(path.join(CLOSED, "victim"), 1, 1),
  "node-socket": () => net.connect(path.join(OUTSIDE, "stream"), () => process.exit(0)),
};
rows[process.argv[2]]();
