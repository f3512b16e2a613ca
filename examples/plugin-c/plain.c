/* An extractor plugin in plain C, for an agent that speaks in words:
 *
 *   it says                  it hears
 *   read PATH                do TEXT            a prompt
 *   wrote PATH               yes ID, no ID      to what it asks
 *   may ID write PATH        stop               the turn is cancelled
 *   say TEXT
 *   done
 */
#include <eisen_plugin.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The word that a line begins with is cut off, if it is this one. */
static int begins(eisen_bytes *line, const char *word)
{
    size_t length = strlen(word);
    if (line->length < length || memcmp(line->data, word, length) != 0) {
        return 0;
    }
    line->data += length;
    line->length -= length;
    return 1;
}

/* Cuts off what stands before the next blank. */
static eisen_bytes word(eisen_bytes *line)
{
    eisen_bytes first = {line->data, 0};
    while (first.length < line->length && line->data[first.length] != ' ') {
        first.length++;
    }
    line->data += first.length;
    line->length -= first.length;
    if (line->length > 0) {
        line->data++;
        line->length--;
    }
    return first;
}

static int32_t touched(const char *action, eisen_bytes path, const eisen_output *output)
{
    eisen_field fields[] = {eisen_text(EISEN_ACTION, action), eisen_data(EISEN_PATH, path)};
    return eisen_put(output, EISEN_TOUCHED, fields, COUNT(fields));
}

/* A line for the agent: a word, and what follows it. */
static int32_t say(const char *first, eisen_bytes rest, const eisen_output *output)
{
    size_t length = strlen(first);
    uint8_t *line = malloc(length + rest.length + 1);
    eisen_bytes whole = {line, length + rest.length};
    eisen_field body;
    size_t i;
    int32_t failed;
    if (line == NULL) {
        return 1;
    }
    memcpy(line, first, length);
    for (i = 0; i < rest.length; i++) {
        line[length + i] = rest.data[i] == '\n' ? ' ' : rest.data[i];
    }
    body = eisen_data(EISEN_BODY, whole);
    failed = eisen_put(output, EISEN_LINE, &body, 1);
    free(line);
    return failed;
}

static int32_t describe(const eisen_output *output)
{
    eisen_field fields[] = {eisen_text(EISEN_NAME, "plain"), eisen_text(EISEN_VERSION, "1.0.0"),
                            eisen_text(EISEN_PROTOCOL, "plain words")};
    return eisen_put(output, EISEN_DESCRIPTION, fields, COUNT(fields));
}

/* The agent's lines say all there is: an instance remembers nothing. */
static int32_t create(eisen_bytes config, void **instance, const eisen_output *output)
{
    (void)config;
    (void)output;
    *instance = NULL;
    return 0;
}

static void destroy(void *instance)
{
    (void)instance;
}

static int32_t observe(void *instance, uint32_t direction, eisen_bytes line,
                       const eisen_output *output)
{
    (void)instance;
    if (direction != EISEN_TO_CLIENT) {
        return begins(&line, "do ") ? eisen_put(output, EISEN_TURN_BEGAN, NULL, 0) : 0;
    }
    if (begins(&line, "read ")) {
        return touched("read", line, output);
    }
    if (begins(&line, "wrote ")) {
        return touched("write", line, output);
    }
    if (begins(&line, "say ")) {
        eisen_field body = eisen_data(EISEN_BODY, line);
        return eisen_put(output, EISEN_TEXT, &body, 1);
    }
    if (begins(&line, "done")) {
        eisen_field reason = eisen_text(EISEN_REASON, "end_turn");
        return eisen_put(output, EISEN_TURN_ENDED, &reason, 1);
    }
    return 0;
}

static int32_t gate(void *instance, eisen_bytes line, const eisen_output *output)
{
    eisen_field fields[4];
    (void)instance;
    if (!begins(&line, "may ")) {
        return 0;
    }
    fields[0] = eisen_data(EISEN_ID, word(&line));
    fields[1] = eisen_data(EISEN_ACTION, word(&line));
    fields[2] = eisen_data(EISEN_PATH, line);
    fields[3] = eisen_data(EISEN_TITLE, line);
    return eisen_put(output, EISEN_ASK, fields, COUNT(fields));
}

static int32_t deny(void *instance, eisen_bytes id, eisen_bytes why, const eisen_output *output)
{
    (void)instance;
    (void)why;
    return say("no ", id, output);
}

static int32_t start(void *instance, eisen_bytes settings, const eisen_output *output)
{
    (void)instance;
    (void)settings;
    (void)output;
    return 0;
}

static int32_t prompt(void *instance, eisen_bytes text, const eisen_output *output)
{
    (void)instance;
    return say("do ", text, output);
}

static int32_t cancel(void *instance, const eisen_output *output)
{
    eisen_bytes nothing = {NULL, 0};
    (void)instance;
    return say("stop", nothing, output);
}

static int32_t allow(void *instance, eisen_bytes id, const eisen_output *output)
{
    (void)instance;
    return say("yes ", id, output);
}

const eisen_plugin *eisen_plugin_entry(const eisen_host *host)
{
    static const eisen_plugin table = {
        sizeof(eisen_plugin), EISEN_ABI, EISEN_GATES | EISEN_DRIVES,
        describe, NULL, create, destroy, observe, gate, deny, start, prompt, cancel, allow,
    };
    (void)host;
    return &table;
}
