# What a day's work does. `life.sh NAME`, in a folder of its own inside the zone; `$SINGLE` is a
# file of the workspace that is allowed alone. What it does is to be seen in the file `out`, or
# where the table says.
set -e

case "$1" in
compile)
    printf '#include "say.h"\nint main(void) { return say(); }\n' > main.c
    printf '#include <stdio.h>\n#include "say.h"\nint say(void) { return puts("compiled") < 0; }\n' > say.c
    printf 'int say(void);\n' > say.h
    cc -O2 -c main.c && cc -O2 -c say.c && cc -o program main.o say.o
    ./program > out
    ;;
compile-with-temporary-files)
    printf 'int main(void) { return 0; }\n' | cc -pipe -x c -o first - 
    printf 'int main(void) { return 0; }\n' > main.c
    cc -save-temps -g -flto -o program main.c
    ./program && ls program*.i main*.s > /dev/null 2>&1 || ls *.s > /dev/null
    ar rcs archive.a *.o && ar t archive.a > out
    ;;
shared-library)
    printf 'int answer(void) { return 42; }\n' | cc -shared -fPIC -x c -o libanswer.so -
    python3 -c 'import ctypes; print(ctypes.CDLL("./libanswer.so").answer())' > out
    ;;
make)
    printf 'out: part.o\n\tcat part.o > out\npart.o: part.c\n\tcp part.c part.o\nclean:\n\trm -f part.o out\n' > Makefile
    echo made > part.c
    make -s -j2 && touch -d '+1 hour' part.c && make -s -j2 && make -s clean && make -s -j2
    ;;
cargo)
    mkdir -p tiny/src && cd tiny
    printf '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
    printf 'fn main() { println!("built"); }\n' > src/main.rs
    printf 'fn main() { std::fs::write(std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("x"), "x").unwrap(); }\n' > build.rs
    cargo build --offline -q
    printf 'fn main() { println!("built again"); }\n' > src/main.rs
    cargo build --offline -q
    cargo test --offline -q > /dev/null
    cargo run --offline -q > ../out
    cargo clean --offline -q
    ;;
git-read)
    git status --porcelain > status && git log --oneline > out && git diff > /dev/null
    git show HEAD:single.txt > shown && git blame ../../../single.txt > /dev/null && git branch >> out
    git ls-files | wc -l > /dev/null && git grep -q first -- ../../../single.txt
    ;;
git-commit)
    way=$(basename "$(dirname "$PWD")")
    echo new > file && git add -f file && git commit -q -m 'from inside' && git log -1 --format=%s > out
    git stash list && git tag "$way" && git checkout -q -b "on-$way" && echo more >> file
    git commit -q -am 'on a branch' && git checkout -q - && git merge -q "on-$way"
    ;;
git-own)
    here=$PWD && cd "$TMPDIR" && git init -q own && cd own && git config user.name u && git config user.email e
    echo a > a && git add . && git commit -q -m one && git clone -q . ../clone && git gc -q
    git -C ../clone log --format=%s > "$here/out"
    ;;
git-guarded)
    for path in hooks/post-checkout config info/exclude; do
        if echo evil >> ../../../.git/$path; then echo "$path was written"; exit 1; fi
    done 2> /dev/null
    if git config user.name evil 2> /dev/null; then exit 1; fi
    echo guarded > out
    ;;
git-submodule)
    cd lib && echo new > file && git add file && git commit -q -m 'in a submodule'
    git tag one && git checkout -q -b two && echo more >> file && git commit -q -am 'on a branch'
    git log --format=%s > ../out
    if test "${PWD#*/zoned/}" != "$PWD" && git config user.name evil 2> /dev/null; then exit 1; fi
    ;;
npm)
    npm init -y > /dev/null
    npm pkg set scripts.hi='node -e "console.log(process.argv.length)" && echo ran'
    npm run -s hi > out
    ;;
node)
    node - <<'END' > out
const fs = require("fs"), path = require("path"), os = require("os");
fs.mkdirSync("a/b/c", { recursive: true });
fs.writeFileSync("a/b/c/file", "text");
fs.appendFileSync("a/b/c/file", " more");
fs.renameSync("a/b", "a/d");
fs.cpSync("a", "copy", { recursive: true });
fs.symlinkSync("copy", "link");
fs.chmodSync("copy/d/c/file", 0o600);
fs.utimesSync("copy/d/c/file", 1000, 1000);
fs.rmSync("a", { recursive: true });
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "node-"));
fs.writeFileSync(path.join(folder, "x"), "x");
fs.promises.readFile("link/d/c/file", "utf8").then((text) => {
  const { mode, mtimeMs } = fs.statSync("link/d/c/file");
  console.log(text, (mode & 0o777).toString(8), mtimeMs, fs.readdirSync("."));
});
END
    ;;
node-child-and-worker)
    node - <<'END' > out
const { Worker } = require("worker_threads"), { execSync, spawn } = require("child_process");
console.log(execSync("echo child; cat life 2>/dev/null || true").toString().trim());
new Worker('require("fs").writeFileSync("by-worker", "x"); require("worker_threads").parentPort.postMessage("worker")', { eval: true })
  .on("message", console.log);
spawn("sh", ["-c", "echo spawned"], { stdio: "inherit" });
END
    ;;
python-modules)
    mkdir package && echo 'word = "imported"' > package/__init__.py
    echo 'import package; print(package.word)' > main.py
    PYTHONDONTWRITEBYTECODE= python3 main.py > out && ls package/__pycache__/*.pyc > /dev/null
    ;;
python-temporary-files)
    python3 - <<'END' > out
import tempfile, os
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as file, tempfile.TemporaryFile() as other:
    file.write("temporary"); file.flush(); other.write(b"x")
    print(open(file.name).read())
with tempfile.TemporaryDirectory() as folder:
    open(folder + "/a", "w").write("x"); os.mkdir(folder + "/b")
with tempfile.NamedTemporaryFile(dir=".", delete=False) as file: pass
os.replace(file.name, "replaced")
END
    ;;
python-sqlite)
    python3 - <<'END' > out
import sqlite3
for mode in ("delete", "wal"):
    data = sqlite3.connect("data.db")
    data.execute(f"pragma journal_mode={mode}")
    data.execute("create table if not exists t (x)")
    with data: data.execute("insert into t values (?)", (mode,))
    print(data.execute("select * from t").fetchall())
    data.close()
END
    ;;
python-processes)
    python3 - <<'END' > out
import multiprocessing, subprocess, threading, os
def square(x): return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool: print(pool.map(square, [1, 2, 3]))
    print(subprocess.run(["sh", "-c", "cat"], input=b"piped", capture_output=True).stdout)
    threads = [threading.Thread(target=lambda n=n: open(f"t{n}", "w").write("x")) for n in range(20)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(len([name for name in os.listdir(".") if name.startswith("t")]))
END
    ;;
python-descriptors)
    python3 - <<'END' > out
import os, mmap, fcntl
fd = os.open("file", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
os.ftruncate(fd, 4096); mmap.mmap(fd, 4096)[0:5] = b"hello"
fcntl.flock(fd, fcntl.LOCK_EX); os.fchmod(fd, 0o600); os.utime(fd, (5, 5)); os.setxattr(fd, "user.a", b"b")
here = os.open(".", os.O_RDONLY)
os.mkdir("sub", dir_fd=here); os.rename("file", "sub/file", src_dir_fd=here, dst_dir_fd=here)
os.link("sub/file", "hard"); os.symlink("sub/file", "soft"); os.chmod("soft", 0o444)
os.truncate("hard", 5) if os.access("hard", os.W_OK) else os.chmod("hard", 0o644) or os.truncate("hard", 5)
unnamed = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(unnamed, b"unnamed")
print(open("soft").read(), os.stat("hard").st_nlink, os.getxattr("hard", "user.a"), os.readlink("soft"))
os.unlink("soft"); os.unlink("sub", dir_fd=here) if False else None
print(open(f"/proc/self/fd/{unnamed}").read(), sorted(os.listdir(".")))
END
    ;;
save-by-sed) sed -i 's/first/sed/' "$SINGLE" && cp "$SINGLE" out ;;
save-by-vim) vim -es -u NONE -c '%s/line/vim/' -c 'wq' "$SINGLE" && cp "$SINGLE" out ;;
save-by-vim-with-backup) vim -es -u NONE -c 'set backup writebackup backupcopy=no' -c '%s/line/backup/' -c 'wq' "$SINGLE" && cp "$SINGLE" out ;;
save-by-python)
    python3 -c 'import os, sys; path = sys.argv[1]; open(path + ".tmp", "w").write("python\n"); os.replace(path + ".tmp", path); open(path, "a").write("again\n")' "$SINGLE"
    cat "$SINGLE" > out
    ;;
save-by-node)
    node -e 'const fs = require("fs"), p = process.argv[1]; fs.writeFileSync(p + ".tmp.123.456", "node\n"); fs.renameSync(p + ".tmp.123.456", p)' "$SINGLE"
    cat "$SINGLE" > out
    ;;
save-in-place) printf 'in place\n' > "$SINGLE" && printf 'appended\n' >> "$SINGLE" && cat "$SINGLE" > out ;;
folders)
    mkdir -p a/b/c && echo x > a/b/c/x && cp -r a copy && cp -a a archive && mv copy moved && mv moved/b/c up
    rmdir moved/b && rm -rf archive && ln -s a link && ln a/b/c/x hard && touch -d '2001-02-03' hard
    find . -type f | sort > out && install -m 755 hard installed && test -x installed
    ;;
archives)
    mkdir tree && echo x > tree/x && ln -s x tree/link && chmod 750 tree/x && tar -czf tree.tgz tree && rm -r tree
    tar -xzpf tree.tgz && stat -c %a tree/x > out && cat tree/link >> out
    ;;
modes)
    (umask 077 && echo x > private && mkdir secret) && (umask 002 && echo x > shared)
    chmod u+s,g-r shared && stat -c %a private secret > out
    ;;
scripts)
    printf '#!/bin/sh\necho script\n' > script && chmod +x script && ./script > out
    printf '#!/usr/bin/env python3\nprint("python")\n' > second && chmod 755 second && ./second >> out
    cp /bin/echo own-echo && ./own-echo copied >> out
    ;;
redirections)
    exec 3> third && echo three >&3 && exec 3>&- && cat < third > out && echo more >> out && wc -l out > /dev/null
    cat <<END | tr a-z A-Z >> out
here
END
    echo x | tee -a out > /dev/null && (echo y >> /dev/stdout) >> out && : > /dev/null
    cat /dev/fd/0 < third >> out && head -c 4 /dev/urandom > random && ls /proc/self/fd > /dev/null
    ;;
pipes-with-names)
    for folder in . "$TMPDIR"; do
        mkfifo "$folder/pipe" && (echo through > "$folder/pipe" &) && cat "$folder/pipe" >> out
    done
    ;;
sockets)
    python3 - <<'END' > out
import os, socket, threading
for folder in (".", os.environ["TMPDIR"]):
    server = socket.socket(socket.AF_UNIX); server.bind(folder + "/socket"); server.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(folder + "/socket")
    end, _ = server.accept(); client.sendall(b"hello"); print(end.recv(10))
a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(9))
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname()); end, _ = server.accept(); end.send(b"tcp"); print(client.recv(9))
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind(("127.0.0.1", 0)); one.sendto(b"udp", one.getsockname()); print(one.recv(9))
END
    ;;
beside-denied-sockets)
    python3 - <<'END' > out
import ctypes, multiprocessing.connection, os, socket, threading
os.umask(0o077)
def talk(path):
    server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(path)
    end, _ = server.accept(); client.sendall(b"hello")
    print(end.recv(10), oct(os.stat(path).st_mode & 0o777))
for path in ("socket", os.getcwd() + "/other"): talk(path)
# A thread whose descriptors are its own.
thread = threading.Thread(target=lambda: (ctypes.CDLL(None).unshare(0x400), talk("of-a-thread")))
thread.start(); thread.join()
try: socket.socket(socket.AF_UNIX).bind("socket")
except OSError as error: print(error.errno)
from multiprocessing.managers import SyncManager
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        numbers = manager.list([7]); numbers.append(8); print(list(numbers))
END
    ;;
beside-denied-pipes)
    mkfifo one other && (echo through > one; cat other) > answer &
    while ! test -p other; do :; done
    cat one > out && echo 'and back' > other && wait && cat answer >> out
    python3 - <<'END' >> out
import os
end = os.open("one", os.O_RDONLY | os.O_NONBLOCK); both = os.open("one", os.O_RDWR)
os.write(os.open("one", os.O_WRONLY), b"at once"); print(os.read(end, 9).decode())
END
    ;;
threads-with-names)
    python3 - <<'END' > out
import threading
done = threading.Event(); thread = threading.Thread(target=done.wait, daemon=True); thread.start()
name = f"/proc/self/task/{thread.native_id}/comm"
open(name, "w").write("worker"); print(open(name).read().strip()); done.set()
END
    ;;
calls-of-new-kernels)
    python3 - <<'END' > out
import ctypes, errno, struct
libc = ctypes.CDLL(None, use_errno=True)
# Whoever asks for what is at hand already (RESOLVE_CACHED) goes another way where it is not.
how = struct.pack("QQQ", 0, 0, 0x20)
fd = libc.syscall(437, -100, b"/etc/passwd", how, len(how))
print("EAGAIN" if fd >= 0 or ctypes.get_errno() == errno.EAGAIN else errno.errorcode[ctypes.get_errno()])
END
    ;;
terminals)
    python3 - <<'END' > out
import os, pty
pid, fd = pty.fork()
if pid == 0: os.execlp("sh", "sh", "-c", "test -t 0 && echo terminal > /dev/tty; tty > name")
print(os.read(fd, 100).decode().strip()); os.waitpid(pid, 0)
END
    ;;
own-children)
    sleep 1000 & kill $! && ! wait $! && (trap 'echo trapped > out; exit 0' TERM; kill -TERM $(sh -c 'echo $PPID'))
    ;;
own-children-traced) strace -f -o trace cat /dev/null && grep -c openat trace > out ;;
temporary-folder)
    file=$(mktemp) && echo x > "$file" && folder=$(mktemp -d) && cp "$file" "$folder/y" && mv "$folder/y" here
    cat here > out && rm -r "$file" "$folder"
    ;;
outside) echo outside > "$HOME/file" && mkdir -p "$HOME/.cache/tool" && mv "$HOME/file" "$HOME/.cache/tool/file" && cat "$HOME/.cache/tool/file" > out ;;
from-outside-and-back) echo x > "$HOME/from" && mv "$HOME/from" here && cp here "$HOME/to" && mv here "$HOME/back" && cat "$HOME/back" > out ;;
walks)
    # What is forbidden is passed over; all else is found.
    { grep -rs "" ../../../closed ../../../single.txt || true; } | grep -c first > out
    find ../../.. -maxdepth 1 -name 'single.txt' | wc -l >> out
    ;;
denied-is-told)
    if cat ../../../closed/secret 2> error; then exit 1; fi
    grep -o 'Permission denied' error > out
    if cat ../../../closed/nothing 2> error; then exit 1; fi
    grep -o 'No such file' error >> out
    ;;
parallel) seq 200 | xargs -P 4 -I{} sh -c 'echo {} > f{}; cat f{}' | wc -l > out ;;
names-at-the-end)
    cat > edge.c <<'END'
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
int main(void) {
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    return open(memcpy(pages + 4096 - 4, "out", 4), O_RDWR | O_CREAT, 0644) < 0;
}
END
    cc -o edge edge.c && ./edge && echo x >> out
    ;;
esac
