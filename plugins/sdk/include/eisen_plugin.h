/* The interface between eisen-core and its extractor plugins, version 1.
 *
 * A plugin is a shared library that exports one function, eisen_plugin_entry. It reads the lines of
 * one agent's protocol and reports what happened, as records: bytes in, records out. Bytes that are
 * passed to a function belong to the caller and are valid until the function returns. Records are
 * put into the caller's output with the eisen_put_… functions below; nothing else is passed,
 * so each side frees what it allocated.
 *
 * Text is UTF-8 without a final NUL. A function returns 0 on success, anything else
 * on failure; it may then put one EISEN_ERROR record, a sentence with the reason.
 *
 * All functions of one instance are called one after the other, not always from the same thread.
 * Instances don't wait for each other. A library is never unloaded.
 */
#ifndef EISEN_PLUGIN_H
#define EISEN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A plugin of another one is not loaded. Within a version, records
 * and fields that a side does not know are skipped, and functions are only added at the end of the
 * table, whose size says which are there. */
#define EISEN_ABI 1u

/* Borrowed bytes. data may be NULL where length is 0. */
typedef struct eisen_bytes {
    const uint8_t *data;
    size_t length;
} eisen_bytes;

/* The output for records. put returns 0, or anything else once no more is taken: the records of one
 * call are limited to 16 MiB. */
typedef struct eisen_output {
    void *host;
    int32_t (*put)(void *host, const uint8_t *data, size_t length);
} eisen_output;

/* The host: its version of the interface, and its features (none yet: 0). */
typedef struct eisen_host {
    uint32_t size; /* sizeof(eisen_host) of the host */
    uint32_t abi;
    uint64_t features;
} eisen_host;

/* Directions of a line. */
enum { EISEN_TO_AGENT = 0, EISEN_TO_CLIENT = 1 };

/* Features of a plugin, to be or-ed. Unknown ones are ignored. */
enum {
    EISEN_GATES = 1,  /* gate and deny enforce a zone; without it only the kernel can */
    EISEN_DRIVES = 2, /* start, prompt, cancel and answer work: a team can prompt the agent */
};

/* The functions of a plugin. All but those marked optional are required; size covers the last one
 * present. An instance reads the lines of one run of an agent. */
typedef struct eisen_plugin {
    uint32_t size; /* sizeof(eisen_plugin) of the plugin */
    uint32_t abi;  /* EISEN_ABI of the plugin */
    uint64_t features;

    /* Puts EISEN_DESCRIPTION. */
    int32_t (*describe)(const eisen_output *output);
    /* Tries the plugin on examples of its own. Optional. */
    int32_t (*self_test)(const eisen_output *output);
    /* Makes an instance. config is a JSON object: `config` of the plugin in eisen.toml. */
    int32_t (*create)(eisen_bytes config, void **instance, const eisen_output *output);
    /* Ends an instance. */
    void (*destroy)(void *instance);
    /* Reads a line of the agent, after gate, or a line that was sent to the agent; without its line
     * end. Puts EISEN_SESSION, EISEN_TURN_BEGAN, EISEN_TURN_ENDED, EISEN_TOUCHED, EISEN_RUNS, EISEN_USAGE, EISEN_MODEL, EISEN_TEXT,
     * EISEN_WITHDRAWN. */
    int32_t (*observe)(void *instance, uint32_t direction, eisen_bytes line,
                       const eisen_output *output);

    /* Reads a line of the agent before it has any effect. Puts EISEN_ASK if the line asks for
     * permission, EISEN_LINE for an answer that needs no permission, and nothing for other lines.
     * With EISEN_GATES. */
    int32_t (*gate)(void *instance, eisen_bytes line, const eisen_output *output);
    /* Puts the EISEN_LINE that denies a request, with the reason. The id is that of EISEN_ASK. It
     * must contain all that deny and allow need: an instance that replaces one that died has to
     * answer the requests of the former. If no line is put, the agent would wait forever, so it is
     * stopped. With EISEN_GATES. */
    int32_t (*deny)(void *instance, eisen_bytes id, eisen_bytes why, const eisen_output *output);

    /* Puts the EISEN_LINEs that begin a conversation, if the agent needs any. settings is a JSON
     * object: {"cwd": absolute path, "model": text, "resume": session id}, all but cwd only if
     * known. resume is the EISEN_SESSION of an earlier run: put it again if the agent
     * resumes it; otherwise a new session begins. An instance that replaces one that died is
     * started, too, and its lines are dropped. With EISEN_DRIVES. */
    int32_t (*start)(void *instance, eisen_bytes settings, const eisen_output *output);
    /* Puts the EISEN_LINEs that prompt the agent. With EISEN_DRIVES. */
    int32_t (*prompt)(void *instance, eisen_bytes text, const eisen_output *output);
    /* Puts the EISEN_LINEs that cancel the running turn; none if the agent can't cancel: then it
     * is stopped. With EISEN_DRIVES. */
    int32_t (*cancel)(void *instance, const eisen_output *output);
    /* Puts the EISEN_LINEs, at least one, that allow a request, by the id of EISEN_ASK. With
     * EISEN_DRIVES. */
    int32_t (*allow)(void *instance, eisen_bytes id, const eisen_output *output);
} eisen_plugin;

/* The one function that a plugin exports. Returns a table that stays valid forever, whatever the
 * version of the host is: the host compares the versions. */
const eisen_plugin *eisen_plugin_entry(const eisen_host *host);

/* Records. Each is a kind and its fields; a field that is missing is empty. */
enum {
    /* The plugin: EISEN_NAME, EISEN_VERSION, EISEN_PROTOCOL for each protocol it reads. */
    EISEN_DESCRIPTION = 1,
    /* Why a call failed: EISEN_BODY, one sentence. */
    EISEN_ERROR = 2,
    /* The agent's own id of its session: EISEN_ID. */
    EISEN_SESSION = 3,
    /* A turn began. */
    EISEN_TURN_BEGAN = 4,
    /* The turn ended: EISEN_REASON as ACP has it (end_turn, max_tokens, max_turn_requests, refusal,
     * cancelled), or "error" with EISEN_BODY, the error. */
    EISEN_TURN_ENDED = 5,
    /* A file was touched: EISEN_ACTION (read, write, search), EISEN_PATH (relative to the
     * agent's folder, or absolute), EISEN_ID of the tool call if there is one. */
    EISEN_TOUCHED = 6,
    /* The agent's own count: EISEN_USED of EISEN_SIZE tokens of its context; the cost so far,
     * EISEN_COST as a decimal number, in EISEN_CURRENCY (USD). Numbers in decimal digits. */
    EISEN_USAGE = 7,
    /* The model from now on: EISEN_ID, EISEN_NAME. */
    EISEN_MODEL = 8,
    /* Text of the agent for its client: EISEN_BODY; EISEN_REASON is "thought" for a thought. */
    EISEN_TEXT = 9,
    /* The agent asks for permission: EISEN_ID, the id for the answer; EISEN_TITLE, for users; for
     * each path an EISEN_ACTION and then its EISEN_PATH; EISEN_COMMAND if it wants to run a shell
     * command. The action is read, write, or search (the contents of all files below a folder; a
     * read of a folder lists its names). */
    EISEN_ASK = 10,
    /* A line for the agent: EISEN_BODY, without a line end. */
    EISEN_LINE = 11,
    /* The agent runs a shell command: EISEN_COMMAND, the command line, EISEN_ID of the tool call if
     * there is one. The host finds the files that it plainly reads and writes. */
    EISEN_RUNS = 12,
    /* The agent withdrew the request EISEN_ID: it needs no answer any more. An id without an open
     * request is ignored. */
    EISEN_WITHDRAWN = 13,
};

/* Fields. */
enum {
    EISEN_ID = 1,
    EISEN_NAME = 2,
    EISEN_VERSION = 3,
    EISEN_PROTOCOL = 4,
    EISEN_BODY = 5,
    EISEN_REASON = 6,
    EISEN_ACTION = 7,
    EISEN_PATH = 8,
    EISEN_TITLE = 9,
    EISEN_USED = 10,
    EISEN_SIZE = 11,
    EISEN_COST = 12,
    EISEN_CURRENCY = 13,
    EISEN_COMMAND = 14,
};

/* One field of a record. */
typedef struct eisen_field {
    uint32_t tag;
    eisen_bytes value;
} eisen_field;

static inline eisen_field eisen_text(uint32_t tag, const char *text)
{
    eisen_field field = {tag, {(const uint8_t *)text, text ? strlen(text) : 0}};
    return field;
}

static inline eisen_field eisen_data(uint32_t tag, eisen_bytes value)
{
    eisen_field field = {tag, value};
    return field;
}

static inline void eisen_number(uint8_t *at, uint32_t number)
{
    at[0] = (uint8_t)number;
    at[1] = (uint8_t)(number >> 8);
    at[2] = (uint8_t)(number >> 16);
    at[3] = (uint8_t)(number >> 24);
}

/* Puts one record. As bytes: its kind and the length of its fields; then each field's tag, length
 * and value. Numbers are 32 bits, least significant byte first. Returns 0 if it was taken. */
static inline int32_t eisen_put(const eisen_output *output, uint32_t kind,
                                const eisen_field *fields, size_t count)
{
    uint8_t head[8];
    uint64_t length = 0;
    size_t i;
    int32_t failed;
    for (i = 0; i < count; i++) {
        if (fields[i].value.length > UINT32_MAX) {
            return 1;
        }
        length += 8 + (uint64_t)fields[i].value.length;
    }
    if (length > UINT32_MAX) {
        return 1;
    }
    eisen_number(head, kind);
    eisen_number(head + 4, (uint32_t)length);
    failed = output->put(output->host, head, sizeof head);
    for (i = 0; i < count && !failed; i++) {
        eisen_number(head, fields[i].tag);
        eisen_number(head + 4, (uint32_t)fields[i].value.length);
        failed = output->put(output->host, head, sizeof head);
        if (!failed && fields[i].value.length > 0) {
            failed = output->put(output->host, fields[i].value.data, fields[i].value.length);
        }
    }
    return failed;
}

#ifdef __cplusplus
}
#endif

#endif
