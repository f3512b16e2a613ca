/* The plugin of examples/plugin-c, gone bad: macros say what is wrong with its table, lines of the
 * agent what it does wrong when it reads them. */
#include <eisen_plugin.h>
#define eisen_plugin_entry plain_entry
#include "../../../examples/plugin-c/plain.c"
#undef eisen_plugin_entry

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MARKER
#define MARKER ""
#endif
#ifndef ABI
#define ABI EISEN_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(eisen_plugin)
#endif

static int32_t put(const eisen_output *output, const void *data, size_t length)
{
    return output->put(output->host, data, length);
}

static int32_t fails(const eisen_output *output)
{
    eisen_field why = eisen_text(EISEN_BODY, "it does not like that");
    eisen_put(output, EISEN_ERROR, &why, 1);
    return 1;
}

/* A marker is there for as long as it is to die: the plugin itself remembers nothing of having. */
static int marked(void)
{
    return access(MARKER, F_OK) == 0;
}

static void segfaults(void)
{
    static int *volatile nowhere;
    *nowhere = 1;
}

static int loops(void)
{
    while (marked()) {
        poll(NULL, 0, 1);
    }
    return 0;
}

static int32_t says(const char *text, const eisen_output *output)
{
    eisen_field body = eisen_text(EISEN_BODY, text);
    return eisen_put(output, EISEN_TEXT, &body, 1);
}

/* Reaches for what is none of its business, and says whether it got there. */
static int32_t reaches(const char *what, const char *where, const eisen_output *output)
{
    int got = -1;
    if (strcmp(what, "open") == 0) {
        got = open(where, O_RDONLY);
    } else if (strcmp(what, "make") == 0) {
        got = open(where, O_WRONLY | O_CREAT, 0600);
    } else if (strcmp(what, "env") == 0) {
        got = getenv(where) ? 0 : -1;
    } else if (strcmp(what, "connect") == 0) {
        struct sockaddr_in place;
        memset(&place, 0, sizeof place);
        place.sin_family = AF_INET;
        place.sin_port = htons((uint16_t)atoi(where));
        place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        got = connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&place, sizeof place);
    }
    return says(got < 0 ? "refused" : "got it", output);
}

/* Leaves a process behind that ends by nothing of its own. */
static int32_t forks(const eisen_output *output)
{
    char said[32];
    pid_t child = fork();
    while (child == 0) {
        setsid();
        pause();
    }
    snprintf(said, sizeof said, "%ld", (long)child);
    return says(said, output);
}

static int32_t misreads(void *instance, uint32_t direction, eisen_bytes line,
                        const eisen_output *output)
{
    if (begins(&line, "fail")) {
        return fails(output);
    }
    if (begins(&line, "mute")) {
        return 7;
    }
    if (begins(&line, "null")) {
        put(output, NULL, 16);
        return 0;
    }
    if (begins(&line, "latin")) {
        eisen_bytes text = {(const uint8_t *)"\xe9t\xe9", 3};
        eisen_field body = eisen_data(EISEN_BODY, text);
        return eisen_put(output, EISEN_TEXT, &body, 1);
    }
    if (begins(&line, "torn")) {
        return put(output, "\x09\0\0\0\x63\0\0\0say", 11);
    }
    if (begins(&line, "huge")) {
        static const char piece[1 << 16];
        int i;
        for (i = 0; i < 1 << 14; i++) {
            put(output, piece, sizeof piece);
        }
        return 0;
    }
    if (begins(&line, "much")) {
        static uint8_t unknown[15 << 20];
        eisen_bytes all = {unknown, sizeof unknown};
        eisen_field body = eisen_data(EISEN_BODY, all);
        memset(unknown, 1, sizeof unknown);
        return eisen_put(output, 99, &body, 1);
    }
    if (begins(&line, "forget ")) {
        eisen_field id = eisen_data(EISEN_ID, line);
        return eisen_put(output, EISEN_WITHDRAWN, &id, 1);
    }
    if (begins(&line, "reach ")) {
        char what[8] = "", where[200] = "", words[220] = "";
        memcpy(words, line.data, line.length < sizeof words ? line.length : sizeof words - 1);
        return sscanf(words, "%7s %199s", what, where) == 2 ? reaches(what, where, output) : 1;
    }
    if (begins(&line, "print")) {
        fputs("what nobody", stdout);
        fflush(stdout);
        puts(" asked for");
        fflush(stdout);
    }
    if (begins(&line, "fork")) {
        return forks(output);
    }
    if (begins(&line, "segfault") && marked()) {
        segfaults();
    }
    if (begins(&line, "abort") && marked()) {
        abort();
    }
    if (begins(&line, "exit") && marked()) {
        exit(0);
    }
    if (begins(&line, "loop")) {
        loops();
    }
    if (begins(&line, "last words") && marked()) {
        puts("its last words");
        fflush(stdout);
        segfaults();
    }
    return observe(instance, direction, line, output);
}

static int32_t misgates(void *instance, eisen_bytes line, const eisen_output *output)
{
    eisen_bytes asked = line;
    if (begins(&asked, "may ") && marked()) {
        segfaults();
    }
    if (begins(&asked, "not")) {
        return fails(output);
    }
    return gate(instance, line, output);
}

#ifdef NO_NAME
static int32_t misdescribe(const eisen_output *output)
{
    return NO_NAME ? eisen_put(output, EISEN_DESCRIPTION, NULL, 0) : fails(output);
}
#endif

#ifdef TESTED
static int32_t tells(const eisen_output *output)
{
    (void)output;
    puts(TESTED);
    return fflush(stdout);
}
#endif

#ifdef LOADED
/* Does harm as soon as it is loaded: makes a file, and changes one that is there. */
__attribute__((constructor)) static void harms(void)
{
    int made = open(LOADED ".made", O_WRONLY | O_CREAT, 0600);
    int done = made >= 0;
    done += chmod(LOADED, 0777) == 0;
    done += truncate(LOADED, 0) == 0;
    done += open(LOADED, O_RDONLY | O_TRUNC) >= 0;
    done += rename(LOADED, LOADED ".moved") == 0;
    done += unlink(LOADED) == 0;
    done += socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
    done += kill(getppid(), 0) == 0;
    if (fork() == 0) {
        execl("/bin/sh", "sh", "-c", "touch " LOADED ".run", (char *)NULL);
        _exit(1);
    }
    printf("did %d\n", done);
    fflush(stdout);
}
#endif

#ifdef SPEECHLESS
static int32_t misdenies(void *instance, eisen_bytes id, eisen_bytes why,
                         const eisen_output *output)
{
    (void)instance;
    (void)id;
    (void)why;
    return fails(output);
}

static int32_t misallows(void *instance, eisen_bytes id, const eisen_output *output)
{
    (void)instance;
    (void)id;
    return fails(output);
}
#endif

#ifdef MUTE
static int32_t says_nothing(void *instance, eisen_bytes id, const eisen_output *output)
{
    (void)instance;
    (void)id;
    (void)output;
    return 0;
}
#endif

#ifdef CREATE
static int32_t miscreates(eisen_bytes config, void **instance, const eisen_output *output)
{
    return CREATE || marked() ? fails(output) : create(config, instance, output);
}
#endif

#ifdef NAMED
static int32_t is_named(const eisen_output *output)
{
    eisen_field fields[] = {eisen_text(EISEN_NAME, NAMED), eisen_text(EISEN_VERSION, "2")};
    return eisen_put(output, EISEN_DESCRIPTION, fields, COUNT(fields));
}
#endif

#ifdef DIES
static int32_t dies(const eisen_output *output)
{
    segfaults();
    return fails(output);
}
#endif

#ifdef DESTROYS
static void misdestroys(void *instance)
{
    DESTROYS;
    destroy(instance);
}
#endif

#ifdef NO_ENTRY
#define eisen_plugin_entry other_entry
const eisen_plugin *other_entry(const eisen_host *host);
#endif
const eisen_plugin *eisen_plugin_entry(const eisen_host *host)
{
    static eisen_plugin table;
    table = *plain_entry(host);
    table.abi = ABI;
    table.size = SIZE;
    table.observe = misreads;
    table.gate = misgates;
#ifdef NO_TABLE
    return NULL;
#endif
#ifdef CRASHES
    segfaults();
#endif
#ifdef HANGS
    for (;;) {
        pause();
    }
#endif
#ifdef NO_GATE
    table.features &= ~(uint32_t)EISEN_GATES;
#endif
#ifdef LACKS
    table.LACKS = NULL;
#endif
#ifdef NO_NAME
    table.describe = misdescribe;
#endif
#ifdef SELF_TEST
    table.self_test = fails;
#endif
#ifdef TESTED
    table.self_test = tells;
#endif
#ifdef SPEECHLESS
    table.deny = misdenies;
    table.allow = misallows;
#endif
#ifdef MUTE
    table.allow = says_nothing;
#endif
#ifdef CREATE
    table.create = miscreates;
#endif
#ifdef NAMED
    table.describe = is_named;
#endif
#ifdef DIES
    table.DIES = dies;
#endif
#ifdef DESTROYS
    table.destroy = misdestroys;
#endif
    return &table;
}
