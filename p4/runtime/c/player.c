/* Runs a compiled program with commands from a file and prints the output, one line each. It runs as a child
   process, so that the parent survives any failure of the program. */
#include "switch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct p4_switch *machine;
static const struct p4_program *program;

static void fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(2);
}

static void print_bytes(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        printf("%02x", bytes[i]);
    putchar('\n');
}

static void sent(void *owner, uint64_t number, uint64_t port, const uint8_t *bytes, size_t length)
{
    (void)owner;
    printf("sent %llu %llu ", (unsigned long long)number, (unsigned long long)port);
    print_bytes(bytes, length);
}

static void lost(void *owner, uint64_t number)
{
    (void)owner;
    printf("lost %llu\n", (unsigned long long)number);
}

/* Packets for the function for frames: memory for them and their room, and their numbers. */
static struct {
    bool used;
    unsigned batch, count;
    uint64_t number;
    struct p4_frame *frames[P4_BATCH];
    struct p4_packet *packets;
} direct;

static void direct_flush(void)
{
    if (direct.count)
        program->burst(direct.packets, direct.frames, direct.count);
    for (unsigned i = 0; i < direct.count; i++) {
        struct p4_frame *frame = direct.frames[i];
        if (frame->port != P4_DROPPED)
            sent(NULL, direct.number - direct.count + i, frame->port, p4_frame_data(frame), frame->length);
        free(frame);
    }
    direct.count = 0;
}

static void direct_packet(uint64_t port, const uint8_t *bytes, size_t length)
{
    if (length > P4_LONGEST_FRAME)
        fail("a packet is longer than 65,279 bytes");
    struct p4_frame *frame = p4_memory(sizeof *frame + P4_HEADROOM + length + P4_SLACK);
    *frame = (struct p4_frame){.storage = (uint8_t *)(frame + 1), .offset = P4_HEADROOM, .port = (uint16_t)port};
    frame->whole_length = frame->length = (uint16_t)length;
    memcpy(p4_frame_data(frame), bytes, length);
    direct.frames[direct.count++] = frame;
    direct.number++;
    if (direct.count == direct.batch)
        direct_flush();
}

static void direct_end(void)
{
    for (unsigned i = 0; direct.packets && i < P4_BATCH; i++)
        free(((struct p4_packet *)((uint8_t *)direct.packets + i * program->packet_bytes))->output.bytes);
    free(direct.packets);
    direct.packets = NULL;
}

/* Chooses how packets are processed from now on. */
static void direct_start(bool wanted, unsigned batch)
{
    size_t bytes = program->packet_bytes * P4_BATCH;
    direct.used = wanted && program->burst;
    direct.batch = program->one_at_a_time ? 1 : batch;
    direct.number = 0;
    direct_end();
    direct.packets = p4_memory(bytes);
}

static char *word(char **rest)
{
    char *start = *rest + strspn(*rest, " ");
    size_t length = strcspn(start, " ");
    if (length == 0)
        fail("incomplete command");
    *rest = start + length;
    if (**rest)
        *(*rest)++ = 0;
    return start;
}

static uint64_t number(char **rest)
{
    return strtoull(word(rest), NULL, 10);
}

static unsigned digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* Parses bytes in hexadecimal digits; "-" stands for none. */
static size_t bytes_of(char **rest, uint8_t **bytes)
{
    static uint8_t *memory[4];
    static unsigned turn;
    char *text = word(rest);
    size_t length = text[0] == '-' ? 0 : strlen(text) / 2;
    turn = (turn + 1) % 4;
    memory[turn] = p4_memory_again(memory[turn], length + P4_SLACK);
    for (size_t i = 0; i < length; i++)
        memory[turn][i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    *bytes = memory[turn];
    return length;
}

static struct p4_table *table(char **rest)
{
    uint64_t place = number(rest);
    if (place >= program->table_count)
        fail("unknown table");
    return program->tables[place];
}

/* Adds, modifies or deletes an entry of a table. */
static void change(char **rest, enum p4_outcome (*change)(struct p4_table *, const struct p4_new_entry *))
{
    char why[256];
    enum p4_outcome outcome;
    struct p4_table *to = table(rest);
    struct p4_new_entry entry = {0};
    uint8_t *key, *mask, *ranges, *data;
    entry.order.priority = strtoll(word(rest), NULL, 10);
    entry.order.prefix = (uint32_t)number(rest);
    entry.action = (uint8_t)number(rest);
    size_t words = (to->key_bits + 63) / 64 ? (to->key_bits + 63) / 64 : 1;
    if (bytes_of(rest, &key) != words * 8 || bytes_of(rest, &mask) != words * 8 ||
        bytes_of(rest, &ranges) != to->range_count * 16 || bytes_of(rest, &data) != p4_table_data_bytes(to, entry.action))
        fail("the size of the entry does not match its table");
    entry.key = (const uint64_t *)key;
    entry.mask = (const uint64_t *)mask;
    entry.ranges = (const uint64_t *)ranges;
    entry.data = data;
    outcome = change(to, &entry);
    if (outcome != P4_OK) {
        p4_outcome_text(outcome, to, why, sizeof why);
        fail(why);
    }
}

static const struct p4_cells *cells(const struct p4_cells *list, size_t count, uint64_t place, uint64_t index)
{
    if (place >= count || index >= list[place].count)
        fail("unknown cell");
    return &list[place];
}

static void command(char *line)
{
    char *rest = line;
    const char *what = word(&rest);
    uint8_t *bytes;
    if (strcmp(what, "packet") == 0) {
        uint64_t port = number(&rest);
        size_t length = bytes_of(&rest, &bytes);
        if (direct.used)
            direct_packet(port, bytes, length);
        else
            p4_switch_packet(machine, port, bytes, length);
        return;
    }
    direct_flush();
    if (machine)
        p4_switch_flush(machine);
    if (strcmp(what, "add") == 0) {
        change(&rest, p4_table_insert);
    } else if (strcmp(what, "default") == 0) {
        struct p4_table *to = table(&rest);
        uint8_t action = (uint8_t)number(&rest);
        if (bytes_of(&rest, &bytes) != p4_table_data_bytes(to, action))
            fail("the size of the default action does not match its table");
        p4_table_default(to, action, bytes);
    } else if (strcmp(what, "valueset") == 0) {
        uint64_t place = number(&rest), count = number(&rest);
        struct p4_value_set *set = &program->value_sets[place];
        if (place >= program->value_set_count || bytes_of(&rest, &bytes) != count * set->words * 32)
            fail("the size of the value set does not match the program");
        p4_value_set_put(set, (const uint64_t *)bytes, count);
    } else if (strcmp(what, "mirror") == 0) {
        uint64_t session = number(&rest), group = number(&rest), target = number(&rest);
        p4_switch_mirror(machine, session, group, target, (uint32_t)number(&rest));
    } else if (strcmp(what, "unmirror") == 0) {
        p4_switch_mirror_delete(machine, number(&rest));
    } else if (strcmp(what, "group") == 0) {
        p4_switch_group(machine, number(&rest));
    } else if (strcmp(what, "member") == 0) {
        uint64_t group = number(&rest), replica = number(&rest);
        p4_switch_group_add(machine, group, replica, number(&rest));
    } else if (strcmp(what, "register") == 0) {
        uint64_t place = number(&rest), index = number(&rest);
        const struct p4_cells *list = cells(program->registers, program->register_count, place, index);
        size_t length = bytes_of(&rest, &bytes);
        memcpy((uint8_t *)list->cells + index * list->cell_bytes, bytes, length < list->cell_bytes ? length : list->cell_bytes);
    } else if (strcmp(what, "clear") == 0) {
        const struct p4_cells *list = cells(program->registers, program->register_count, number(&rest), 0);
        memset(list->cells, 0, list->count * list->cell_bytes);
    } else if (strcmp(what, "counter") == 0) {
        uint64_t place = number(&rest), index = number(&rest), packets = number(&rest);
        const struct p4_cells *list = cells(program->counters, program->counter_count, place, index);
        ((struct p4_counter_cell *)list->cells)[index] = (struct p4_counter_cell){packets, number(&rest)};
    } else {
        fail("unknown command");
    }
}

static void lines_of(const char *const *list)
{
    for (; *list; list++) {
        char *copy = p4_memory(strlen(*list) + 1);
        strcpy(copy, *list);
        command(copy);
        free(copy);
    }
}

static void end(void)
{
    if (machine)
        p4_switch_free(machine);
    direct_end();
    machine = NULL;
    for (size_t i = 0; i < program->table_count; i++)
        p4_table_clear(program->tables[i]);
    for (size_t i = 0; i < program->value_set_count; i++)
        p4_value_set_put(&program->value_sets[i], NULL, 0);
}

static void reset(const char *const *entries)
{
    end();
    for (size_t i = 0; i < program->register_count; i++)
        memset(program->registers[i].cells, 0, program->registers[i].count * program->registers[i].cell_bytes);
    for (size_t i = 0; i < program->counter_count; i++)
        memset(program->counters[i].cells, 0, program->counters[i].count * program->counters[i].cell_bytes);
    p4_restart_random();
    lines_of(entries);
    machine = p4_switch_new(program, sent, lost, NULL);
    if (!machine)
        fail("too many switches");
}

static void dump(const char *word, const struct p4_cells *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t cell = 0; cell < list[i].count; cell++) {
            const uint8_t *bytes = (const uint8_t *)list[i].cells + cell * list[i].cell_bytes;
            size_t used = list[i].cell_bytes;
            while (used > 0 && bytes[used - 1] == 0)
                used--;
            if (used == 0)
                continue;
            printf("%s %zu %zu ", word, i, cell);
            print_bytes(bytes, list[i].cell_bytes);
        }
}

/* Arguments: the program, the commands, then the batch sizes. A suffix "n" means without prefetching, "d" straight
   through in one function if possible, and "s" that small tables count as small. */
int main(int count, char **arguments)
{
    char *line = NULL;
    size_t room = 0;
    FILE *script;
    void *library;
    const char *const *entries;
    if (count < 4)
        fail("usage: player PROGRAM COMMANDS BATCH[n][d][s]...");
    /* The seed is secret, so that nobody can construct keys that share a bucket. */
    if (getentropy(&p4_seed, sizeof p4_seed))
        fail("the system provides no random numbers");
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(dlerror());
    program = dlsym(library, "namehop_p4_program");
    entries = dlsym(library, "namehop_p4_entries");
    if (!program || !entries || program->version != P4_VERSION)
        fail("not a program of this version");
    for (int run = 3; run < count; run++) {
        ssize_t length;
        script = fopen(arguments[2], "r");
        if (!script)
            fail("cannot read the commands");
        p4_ahead_bytes = strchr(arguments[run], 's') ? SIZE_MAX : 0;
        p4_prefetch(program->tables, program->table_count, strchr(arguments[run], 'n') == NULL);
        reset(entries);
        printf("run %s\n", arguments[run]);
        p4_switch_batch(machine, (unsigned)strtoul(arguments[run], NULL, 10));
        direct_start(strchr(arguments[run], 'd') != NULL, (unsigned)strtoul(arguments[run], NULL, 10));
        while ((length = getline(&line, &room, script)) > 0) {
            if (line[length - 1] == '\n')
                line[length - 1] = 0;
            if (line[0])
                command(line);
        }
        direct_flush();
        p4_switch_flush(machine);
        fclose(script);
        dump("register", program->registers, program->register_count);
        dump("counter", program->counters, program->counter_count);
        printf("end\n");
        fflush(stdout);
    }
    end();
    p4_epoch_end();
    free(p4_data.bytes);
    free(line);
    return 0;
}
