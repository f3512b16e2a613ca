// A process outside, that escapes are after: it has the secret in its memory, its environment and
// behind descriptors of a file, of one that has no name any more, and of memory; a child of it
// sees the folder of the secret mounted at another place, as in a container. It opens the file and
// makes another again and again if told to, has terminals and sockets. What reaches it, it tells.
// It ends with its standard input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

static char secret[4096];

static int listener(const char *folder, const char *name, int type) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t length = sizeof at;
    int fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
    if (folder) {
        if (chdir(folder)) exit(3);
        strcpy(at.sun_path, name);
    } else {
        strcpy(at.sun_path + 1, name);
        length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
    }
    if (bind(fd, (struct sockaddr *)&at, length)) { perror("bind"); exit(3); }
    if (type != SOCK_DGRAM && listen(fd, 100)) exit(3);
    return fd;
}

static int terminal(int *slave) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(master);
    unlockpt(master);
    *slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct termios raw;
    tcgetattr(*slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(*slave, TCSANOW, &raw);
    return master;
}

// Starts one who finds `folder` at the place of `outside`; 0 where that is not to be had.
static pid_t viewer(const char *folder, const char *outside) {
    int ready[2];
    char is_ready = 0;
    if (pipe(ready)) exit(3);
    pid_t pid = fork();
    if (pid == 0) {
        is_ready = !unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS)
            && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)
            && !mount(folder, outside, NULL, MS_BIND | MS_REC, NULL);
        // Whoever took on other rights is nobody's to look into.
        prctl(PR_SET_DUMPABLE, 1);
        prctl(PR_SET_PDEATHSIG, 9);
        if (write(ready[1], &is_ready, 1) != 1) _exit(3);
        close(1);
        for (;;) pause();
    }
    if (read(ready[0], &is_ready, 1) != 1) exit(3);
    close(ready[0]);
    close(ready[1]);
    if (is_ready) return pid;
    kill(pid, 9);
    return 0;
}

int main(int argc, char **argv) {
    const char *closed = argv[1], *outside = argv[2], *abstract = argv[3], *zone = argv[4];
    char name[200], typed_at[100], pushed_at[100];
    prctl(PR_SET_PDEATHSIG, 9);
    struct pollfd reached[10];
    reached[0].fd = listener(closed, "stream", SOCK_STREAM);
    reached[1].fd = listener(closed, "packets", SOCK_SEQPACKET);
    reached[2].fd = listener(closed, "datagrams", SOCK_DGRAM);
    reached[3].fd = listener(outside, "stream", SOCK_STREAM);
    reached[4].fd = listener(outside, "datagrams", SOCK_DGRAM);
    reached[9].fd = listener(zone, "served", SOCK_STREAM);
    snprintf(name, sizeof name, "%s-stream", abstract);
    reached[5].fd = listener(NULL, name, SOCK_STREAM);
    snprintf(name, sizeof name, "%s-datagrams", abstract);
    reached[6].fd = listener(NULL, name, SOCK_DGRAM);
    int typed, pushed, keyboard = terminal(&typed), screen = terminal(&pushed);
    strcpy(typed_at, ptsname(keyboard));
    strcpy(pushed_at, ptsname(screen));
    reached[7].fd = pushed;
    // What is written to the terminal comes out at its master.
    reached[8].fd = screen;

    if (chdir(closed)) return 3;
    int fd = open("secret", O_RDONLY);
    ssize_t length = read(fd, secret, sizeof secret - 1);
    int memory = memfd_create("secret", 0), nameless = open(outside, O_TMPFILE | O_RDWR, 0644);
    if (write(memory, secret, length) < 0 || write(nameless, secret, length) < 0) return 3;
    pid_t viewing = viewer(closed, outside);
    printf("%d %p %d %s %s %d %d %d\n", getpid(), (void *)secret, fd, typed_at, pushed_at, memory,
        nameless, viewing);
    fflush(stdout);
    if (write(keyboard, secret, length) < 0) return 3;
    for (;;) {
        struct pollfd all[11];
        memcpy(all, reached, sizeof reached);
        all[10].fd = 0;
        for (int i = 0; i < 11; i++) all[i].events = POLLIN;
        poll(all, 11, argc > 5 ? 5 : -1);
        if (all[10].revents) return 0;
        for (int i = 0; i < 10; i++) {
            // Those that listen got a connection, if one comes out.
            if (!(all[i].revents & POLLIN)) continue;
            char byte[64];
            printf("reached %d\n", i);
            fflush(stdout);
            if ((i < 7 || i == 9) && accept(all[i].fd, NULL, NULL) >= 0) continue;
            if (read(all[i].fd, byte, sizeof byte) <= 0) continue;
        }
        int again = open("secret", O_RDONLY);
        if (again >= 0) close(again);
        if (argc > 5) {
            unlink("empty/later");
            again = open("empty/later", O_WRONLY | O_CREAT, 0644);
            if (again >= 0 && write(again, secret, length) == length) close(again);
        }
    }
}
