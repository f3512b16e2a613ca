// Escapes that need the bare system calls.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char secret[5000], closed[4096], own[5000];

static int show(int fd) {
    char text[4096];
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (length < 0) { perror("read"); return 1; }
    return write(1, text, length) != length;
}

static int missing(const char *why) {
    printf("missing: %s: %s\n", why, strerror(errno));
    return 77;
}

#ifdef __x86_64__
static int thirty_two_bits(void) {
    char *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    strcpy(low, secret);
    long fd;
    // A kernel without these calls ends the process, too; a wall is then not what did it.
    __asm__ volatile("int $0x80" : "=a"(fd) : "a"(5), "b"(low), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
    return show(fd);
}

static int thirty_two_bits_of_the_other_kind(void) {
    long fd = syscall(SYS_open | 0x40000000, secret, 0, 0);
    return fd < 0 && errno == ENOSYS ? missing("x32") : show(fd);
}
#endif

static int straight(void) {
    return show(syscall(SYS_open, secret, O_RDONLY));
}

static int high_bits(void) {
    // The kernel looks at the lower half of the flags and of the folder only.
    return show(syscall(SYS_openat, 0xdeadbeef00000000ul | (unsigned)AT_FDCWD, secret, 0xdeadbeef00000000ul));
}

// Opens and reads by way of a ring.
static int ring(void) {
    struct io_uring_params params = {0};
    int fd = syscall(SYS_io_uring_setup, 4, &params);
    if (fd < 0) return missing("io_uring");
    char *sq = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(0, 4 * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    unsigned *tail = (void *)(sq + params.sq_off.tail), *array = (void *)(sq + params.sq_off.array);
    char *cq = params.features & IORING_FEAT_SINGLE_MMAP ? sq : mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
    struct io_uring_cqe *done = (void *)(cq + params.cq_off.cqes);
    entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (unsigned long)secret};
    array[0] = 0;
    __atomic_store_n(tail, 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) { perror("enter"); return 1; }
    errno = -done->res;
    return show(done->res);
}

static int after_vfork(void) {
    if (vfork() == 0) _exit(show(open(secret, O_RDONLY)));
    return wait(NULL) < 0;
}

static int in_child(void *nothing) {
    (void)nothing;
    return show(open("secret", O_RDONLY));
}

// A child that shares its folder with this process, which changes it.
static int sharing_clone(void) {
    static char stack[65536] __attribute__((aligned(16)));
    int child = clone(in_child, stack + sizeof stack, CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
    if (chdir(closed)) return 1;
    waitpid(child, NULL, 0);
    return in_child(NULL);
}

static int executed_by_descriptor(void) {
    char path[5000];
    sprintf(path, "%s/binary", closed);
    char *args[] = {"binary", NULL}, *env[] = {NULL};
    syscall(SYS_execveat, open(path, O_PATH), "", args, env, AT_EMPTY_PATH);
    perror("execveat");
    return 1;
}

// The folder is held by a thread that has a folder of its own.
static void *elsewhere(void *nothing) {
    if (unshare(CLONE_FS) || chdir(closed)) return nothing;
    show(open("secret", O_RDONLY));
    return nothing;
}
static int thread_with_a_folder_of_its_own(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, elsewhere, NULL);
    pthread_join(thread, NULL);
    return 0;
}

// A thread with descriptors of its own: the same number means another folder there.
static void *other_table(void *nothing) {
    if (unshare(CLONE_FILES)) return nothing;
    dup2(open(closed, O_PATH | O_DIRECTORY), 100);
    show(openat(100, "secret", O_RDONLY));
    return nothing;
}
static int thread_with_descriptors_of_its_own(void) {
    pthread_t thread;
    dup2(open(".", O_PATH | O_DIRECTORY), 100);
    pthread_create(&thread, NULL, other_table, NULL);
    pthread_join(thread, NULL);
    return 0;
}

// The name lies in memory that is filled in when it is read: first with the harmless name, then,
// thrown away behind the reader's back, with the other. No race: each reading is answered.
static char *page;
static int fault_fd;
static volatile int answered;

static void *answer_faults(void *nothing) {
    for (;;) {
        struct uffd_msg message;
        if (read(fault_fd, &message, sizeof message) != sizeof message) return nothing;
        char copy[4096] = {0};
        strcpy(copy, answered++ % 2 ? secret : own);
        struct uffdio_copy fill = {.dst = (unsigned long)page, .src = (unsigned long)copy, .len = 4096};
        ioctl(fault_fd, UFFDIO_COPY, &fill);
        // Away with it, while the one who has read it thinks.
        usleep(50);
        madvise(page, 4096, MADV_DONTNEED);
    }
}

static int answered_faults(void) {
    fault_fd = syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    if (fault_fd < 0 || ioctl(fault_fd, UFFDIO_API, &api)) return missing("userfaultfd");
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(unsigned long)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (ioctl(fault_fd, UFFDIO_REGISTER, &range)) return missing("userfaultfd");
    pthread_t thread;
    pthread_create(&thread, NULL, answer_faults, NULL);
    for (int round = 0; round < 300; round++) {
        char text[200];
        int fd = open(page, O_RDONLY);
        ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text);
        if (fd >= 0) close(fd);
        if (length > 0 && strncmp(text, "mine", 4)) return write(1, text, length) < 0;
        madvise(page, 4096, MADV_DONTNEED);
    }
    return 1;
}

// The name is changed by another process, which shares the memory.
static int changed_by_another(void) {
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int child = fork();
    volatile int *swapped = (volatile int *)(shared + 6000);
    if (!child) for (;;) {
        strcpy(shared, secret), *swapped = 1;
        for (volatile int i = 0; i < 100; i++) {}
        strcpy(shared, own), *swapped = 0;
        for (volatile int i = 0; i < 100; i++) {}
    }
    int found = 0, other = 0;
    for (int round = 0; (round < 5000 || other < 500) && !found; round++) {
        char text[200];
        other += *swapped;
        int fd = open(shared, O_RDONLY);
        ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text);
        // A busy machine may have stopped the other half-way through a name.
        if (fd < 0) sched_yield();
        else close(fd);
        if (length > 0 && strncmp(text, "mine", 4)) found = write(1, text, length) > 0;
    }
    kill(child, SIGKILL);
    return wait(NULL) < 0;
}

// The tracer changes the call's argument when it has been stopped for it already.
static int changed_by_tracer(void) {
    int child = fork();
    if (!child) {
        syscall(SYS_ptrace, 0, 0, 0, 0);
        raise(SIGSTOP);
        for (int round = 0; round < 500; round++) {
            int fd = syscall(SYS_openat, AT_FDCWD, own, O_RDONLY, 0);
            char text[200];
            ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text);
            if (fd >= 0) close(fd);
            if (length > 0 && strncmp(text, "mine", 4)) _exit(write(1, text, length) < 0);
        }
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    for (;;) {
        // Stops before and after each call.
        if (syscall(SYS_ptrace, 24, child, 0, 0) || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) return 0;
        struct iovec from = {secret, strlen(secret) + 1}, to = {own, strlen(secret) + 1};
        if (process_vm_writev(child, &from, 1, &to, 1, 0) < 0) perror("writev");
    }
}

// The name ends where the memory ends: an escape only if what can't be read whole is let through.
static int name_at_the_end(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    size_t length = strlen(secret) + 1;
    return show(open(memcpy(pages + 4096 - length, secret, length), O_RDONLY));
}

// A process that nobody may look into.
static int not_dumpable(void) {
    syscall(SYS_prctl, 4, 0, 0, 0, 0);
    return show(open(secret, O_RDONLY));
}

// Many at once, so that some handler may be overrun.
static int many_at_once(void) {
    for (int i = 0; i < 200; i++) {
        if (fork() == 0) {
            int fd = open(secret, O_RDONLY);
            _exit(fd < 0 ? 0 : show(fd));
        }
    }
    while (wait(NULL) > 0) {}
    return 0;
}

// A call that a signal breaks off again and again, and that is made anew.
static void nothing(int number) { (void)number; }
static int broken_off(void) {
    struct sigaction act = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &act, NULL);
    int parent = getpid(), child = fork();
    if (!child) for (;;) kill(parent, SIGUSR1), usleep(20);
    int fd = -1;
    for (int round = 0; round < 2000 && fd < 0; round++) fd = open(secret, O_RDONLY);
    kill(child, SIGKILL);
    wait(NULL);
    return show(fd);
}

static const struct { const char *name; int (*run)(void); } ROWS[] = {
#ifdef __x86_64__
    {"call-of-32-bits", thirty_two_bits},
    {"call-of-x32", thirty_two_bits_of_the_other_kind},
#endif
    {"call-straight", straight}, {"call-with-high-bits", high_bits}, {"call-ring", ring},
    {"call-after-vfork", after_vfork}, {"call-sharing-clone", sharing_clone},
    {"call-exec-by-empty-path", executed_by_descriptor}, {"call-folder-of-a-thread", thread_with_a_folder_of_its_own},
    {"call-descriptors-of-a-thread", thread_with_descriptors_of_its_own},
    {"call-answered-faults", answered_faults}, {"call-changed-by-another", changed_by_another},
    {"call-changed-by-tracer", changed_by_tracer}, {"call-name-at-the-end", name_at_the_end},
    {"call-not-dumpable", not_dumpable}, {"call-many-at-once", many_at_once},
    {"call-broken-off", broken_off},
};

int main(int argc, char **argv) {
    if (write(1, "tried\n", 6) < 0) return 3;
    strcpy(closed, getenv("CLOSED"));
    sprintf(secret, "%s/secret", closed);
    sprintf(own, "%s/own", getenv("OPEN"));
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (argc > 1 && !strcmp(ROWS[i].name, argv[1])) return ROWS[i].run();
    return 2;
}
