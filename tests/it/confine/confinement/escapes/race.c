// What a name means changes between the look at it and its use: `race race-WAY-CALL`. One thread
// swaps the meaning all the time, the other makes the call thousands of times. Ends at once when
// something outside has changed or has been read.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

// How often each race is run at least, and how often its swap is to have come in between.
#ifndef ROUNDS
#define ROUNDS 200
#endif
enum { SWAPS = 20, NUMBER = 100 };

static const char *here, *closed, *docs;
// The folder of the harmless twins.
static int twins;
static volatile int over, swapped;

// --- The calls: each on a name in a folder.

static int got(int fd) {
    char text[200];
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) close(fd);
    if (length <= 0 || !strncmp(text, "mine", 4)) return 0;
    return write(1, text, length) > 0;
}

static void fresh(const char *name) {
    int fd = openat(twins, name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, "mine\n", 5) > 0) close(fd);
}

static int taken(void) {
    int found = got(openat(twins, "taken", O_RDONLY));
    unlinkat(twins, "taken", 0);
    return found;
}

static int do_read(int at, const char *name) { return got(openat(at, name, O_RDONLY)); }
static int do_read2(int at, const char *name) {
    struct { unsigned long flags, mode, resolve; } how = {O_RDONLY, 0, 0};
    return got(syscall(SYS_openat2, at, name, &how, sizeof how));
}
static int do_write(int at, const char *name) {
    int fd = openat(at, name, O_WRONLY | O_APPEND);
    if (fd >= 0) { if (write(fd, "x", 1) < 0) errno = 0; close(fd); }
    return 0;
}
static int do_empty(int at, const char *name) {
    int fd = openat(at, name, O_WRONLY | O_TRUNC);
    if (fd >= 0) close(fd);
    return 0;
}
static int do_create(int at, const char *name) {
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd >= 0) close(fd);
    return unlinkat(twins, "new", 0) & 0;
}
static int do_mkdir(int at, const char *name) {
    mkdirat(at, name, 0755);
    return unlinkat(twins, "new", AT_REMOVEDIR) & 0;
}
static int do_mknod(int at, const char *name) {
    mknodat(at, name, S_IFIFO | 0644, 0);
    return unlinkat(twins, "new", 0) & 0;
}
static int do_symlink(int at, const char *name) {
    if (symlinkat("own", at, name)) errno = 0;
    return unlinkat(twins, "new", 0) & 0;
}
static int do_linkto(int at, const char *name) {
    if (linkat(twins, "own", at, name, 0)) errno = 0;
    return unlinkat(twins, "new", 0) & 0;
}
static int do_renameto(int at, const char *name) {
    renameat(twins, "own", at, name);
    fresh("own");
    return unlinkat(twins, "new", 0) & 0;
}
static int do_linkfrom(int at, const char *name) {
    if (linkat(at, name, twins, "taken", 0)) return 0;
    return taken();
}
static int do_renamefrom(int at, const char *name) {
    int moved = renameat(at, name, twins, "taken");
    fresh("secret");
    return moved ? 0 : taken();
}
static int do_unlink(int at, const char *name) {
    unlinkat(at, name, 0);
    fresh("victim");
    return 0;
}
static int do_rmdir(int at, const char *name) {
    unlinkat(at, name, AT_REMOVEDIR);
    return mkdirat(twins, "empty", 0755) & 0;
}
static int do_chmod(int at, const char *name) { return fchmodat(at, name, 0640, 0) & 0; }
static int do_utimes(int at, const char *name) {
    struct timespec times[2] = {{1, 0}, {1, 0}};
    return utimensat(at, name, times, 0) & 0;
}
static int do_chown(int at, const char *name) { return fchownat(at, name, 1, 1, 0) & 0; }
// These know no folder.
static int do_truncate(int at, const char *name) { return at == AT_FDCWD ? truncate(name, 1) & 0 : 0; }
static int do_setxattr(int at, const char *name) {
    return at == AT_FDCWD ? setxattr(name, "user.mark", "new", 3, 0) & 0 : 0;
}
static int do_connect(int at, const char *name) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)at;
    // The address's kind lies right before the name: see `set_up`.
    connect(fd, (const struct sockaddr *)(name - 2), 2 + strlen(name) + 1);
    close(fd);
    return 0;
}

static const struct {
    const char *name, *leaf;
    int (*make)(int, const char *);
} CALLS[] = {
    {"read", "secret", do_read}, {"read2", "secret", do_read2}, {"write", "victim", do_write},
    {"empty", "victim", do_empty}, {"create", "new", do_create}, {"mkdir", "new", do_mkdir},
    {"mknod", "new", do_mknod}, {"symlink", "new", do_symlink}, {"linkto", "new", do_linkto},
    {"renameto", "new", do_renameto}, {"linkfrom", "secret", do_linkfrom},
    {"renamefrom", "secret", do_renamefrom}, {"unlink", "victim", do_unlink},
    {"rmdir", "empty", do_rmdir}, {"chmod", "victim", do_chmod}, {"utimes", "victim", do_utimes},
    {"chown", "victim", do_chown}, {"truncate", "victim", do_truncate},
    {"setxattr", "victim", do_setxattr}, {"connect", "stream", do_connect},
};

// --- The ways: how the meaning is swapped. `place` is what is called with.

static struct { int at; char *path; } place;
static char room[8192] __attribute__((aligned(64)));
static int ours, theirs;
static const char *leaf;

// Long enough that the other may be seen.
static void hold(int now) {
    swapped = now;
    for (volatile int i = 0; i < 100; i++) {}
}

static void *swap_memory(void *word) {
    // Eight bytes at once: no half of a name is ever seen.
    unsigned long *at = word, mine, other;
    memcpy(&mine, "open////", 8);
    memcpy(&other, "closed//", 8);
    while (!over) {
        __atomic_store_n(at, other, __ATOMIC_SEQ_CST), hold(1);
        __atomic_store_n(at, mine, __ATOMIC_SEQ_CST), hold(0);
    }
    return NULL;
}
static void *swap_link(void *nothing) {
    while (!over) syscall(SYS_renameat2, twins, "../swap", twins, "../link", 2), hold(!swapped);
    return nothing;
}
static void *swap_file(void *nothing) {
    while (!over) syscall(SYS_renameat2, twins, leaf, twins, "other", 2), hold(!swapped);
    return nothing;
}
static void *swap_folder(void *nothing) {
    while (!over) {
        if (fchdir(theirs)) break;
        hold(1);
        if (fchdir(ours)) break;
        hold(0);
    }
    return nothing;
}
static void *swap_descriptor(void *nothing) {
    while (!over) dup2(theirs, NUMBER), hold(1), dup2(ours, NUMBER), hold(0);
    return nothing;
}

static void start(void *(*swap)(void *), void *with) {
    static pthread_t thread;
    pthread_create(&thread, NULL, swap, with);
}

static void descriptors(void) {
    ours = twins;
    theirs = open(closed, O_PATH | O_DIRECTORY);
    dup2(ours, NUMBER);
}

static int set_up(const char *way) {
    place.at = AT_FDCWD;
    place.path = room;
    if (!strcmp(way, "memory")) {
        // …/shop/open////PHASE/NAME/LEAF, so that `open////` is aligned.
        const char *rest = strstr(here, "/open/");
        size_t before = rest - here + 1, from = 8 - before % 8 + 8;
        place.path = room + from;
        memcpy(place.path, here, before);
        sprintf(place.path + before, "open////%s/%s", rest + 6, leaf);
        sa_family_t family = AF_UNIX;
        memcpy(place.path - 2, &family, 2);
        start(swap_memory, place.path + before);
    } else if (!strcmp(way, "link")) {
        symlink(closed, "link");
        rename("twins", "swap");
        place.path += 8;
        sprintf(place.path, "%s/swap/%s", here, leaf);
        sa_family_t family = AF_UNIX;
        memcpy(place.path - 2, &family, 2);
        start(swap_link, NULL);
    } else if (!strcmp(way, "file")) {
        char target[4096];
        sprintf(target, "%s/%s", closed, leaf);
        symlinkat(target, twins, "other");
        sprintf(room, "%s/twins/%s", here, leaf);
        start(swap_file, NULL);
    } else if (!strcmp(way, "cwd")) {
        descriptors();
        strcpy(room, leaf);
        start(swap_folder, NULL);
    } else if (!strcmp(way, "dirfd")) {
        descriptors();
        place.at = NUMBER;
        strcpy(room, leaf);
        start(swap_descriptor, NULL);
    } else if (!strcmp(way, "proc")) {
        descriptors();
        sprintf(room, "/proc/self/fd/%d/%s", NUMBER, leaf);
        start(swap_descriptor, NULL);
    } else {
        return 0;
    }
    return 1;
}

// --- Calls on a descriptor, whose file is swapped.

static void by_descriptor(const char *call) {
    static int started;
    struct timespec times[2] = {{1, 0}, {1, 0}};
    if (!started++) {
        char guide[4096];
        sprintf(guide, "%s/guide", docs);
        ours = openat(twins, "victim", O_RDWR);
        theirs = open(guide, O_RDONLY);
        dup2(ours, NUMBER);
        start(swap_descriptor, NULL);
    }
    if (!strcmp(call, "fchmod")) fchmod(NUMBER, 0640);
    if (!strcmp(call, "fchown")) if (fchown(NUMBER, 1, 1)) errno = 0;
    if (!strcmp(call, "futimens")) futimens(NUMBER, times);
    if (!strcmp(call, "fsetxattr")) fsetxattr(NUMBER, "user.mark", "new", 3, 0);
    if (!strcmp(call, "fremovexattr")) fremovexattr(NUMBER, "user.mark");
}

// --- What an open is for, swapped: it stands in memory, too.

struct how { unsigned long flags, mode, resolve; };
static void *swap_how(void *with) {
    volatile struct how *how = with;
    while (!over) how->flags = O_WRONLY | O_TRUNC, hold(1), how->flags = O_RDONLY, hold(0);
    return NULL;
}
static void by_flags(void) {
    static struct how how = {O_RDONLY, 0, 0};
    static int started;
    char guide[4096];
    sprintf(guide, "%s/guide", docs);
    if (!started++) start(swap_how, &how);
    int fd = syscall(SYS_openat2, AT_FDCWD, guide, &how, sizeof how);
    if (fd >= 0) close(fd);
}

// --- What kind of address it is, swapped.

static void *swap_family(void *with) {
    volatile sa_family_t *family = with;
    while (!over) *family = AF_UNIX, hold(1), *family = AF_INET, hold(0);
    return NULL;
}
static void by_family(void) {
    static struct sockaddr_un address = {.sun_family = AF_INET};
    static int started;
    if (chdir(closed)) exit(1);
    strcpy(address.sun_path, "stream");
    if (!started++) start(swap_family, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, (struct sockaddr *)&address, sizeof address);
    close(fd);
}
static void *swap_abstract(void *with) {
    volatile char *first = with;
    while (!over) *first = 's', hold(1), *first = 0, hold(0);
    return NULL;
}
static void by_abstract(void) {
    static struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "stream"};
    static int started;
    if (chdir(closed)) exit(1);
    if (!started++) start(swap_abstract, address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 7);
    close(fd);
}

// --- The escape is over when something outside is not as it was.

static int same(struct stat *a, struct stat *b) {
    return a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec
        && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec
        && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int main(int argc, char **argv) {
    char way[20], call[20], victim[4096], guide[4096];
    if (write(1, "tried\n", 6) < 0) return 3;
    if (argc < 2 || sscanf(argv[1], "race-%19[a-z]-%19[a-z0-9]", way, call) != 2) return 2;
    here = getenv("OPEN"), closed = getenv("CLOSED"), docs = getenv("DOCS");
    sprintf(victim, "%s/victim", closed);
    sprintf(guide, "%s/guide", docs);
    struct stat before[3], now[3];
    stat(victim, before), stat(closed, before + 1), stat(guide, before + 2);

    int (*make)(int, const char *) = NULL;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (!strcmp(CALLS[i].name, call)) make = CALLS[i].make, leaf = CALLS[i].leaf;
    // Where the name in memory changes, the twins lie beside this program's own.
    if (mkdir("twins", 0755) && errno != EEXIST) return 3;
    twins = open(strcmp(way, "memory") ? "twins" : ".", O_RDONLY | O_DIRECTORY);
    fresh("own"), fresh("secret"), fresh("victim");
    if (!strcmp(call, "connect")) {
        struct sockaddr_un own = {.sun_family = AF_UNIX};
        sprintf(own.sun_path, "/proc/self/fd/%d/stream", twins);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (bind(fd, (struct sockaddr *)&own, sizeof own) || listen(fd, ROUNDS)) return 3;
    }
    mkdirat(twins, "empty", 0755);
    if (make && !set_up(way)) return 2;

    // How often it was swapped from one call to the next: on a busy machine this thread makes
    // thousands of calls before the other gets to run.
    int swaps = 0, before_that = swapped;
    for (int round = 0; round < ROUNDS || swaps < SWAPS; round++) {
        swaps += before_that != swapped;
        before_that = swapped;
        if (make) { if (make(place.at, place.path)) break; }
        else if (!strcmp(way, "descriptor")) by_descriptor(call);
        else if (!strcmp(call, "flags")) by_flags();
        else if (!strcmp(call, "family")) by_family();
        else if (!strcmp(call, "abstract")) by_abstract();
        else return 2;
        stat(victim, now), stat(closed, now + 1), stat(guide, now + 2);
        if (!same(before, now) || !same(before + 1, now + 1) || !same(before + 2, now + 2)) break;
    }
    over = 1;
    return 0;
}
