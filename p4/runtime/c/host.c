/* The functions of a loadable program: see host.h. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern const struct p4_program namehop_p4_program;
extern const char *const namehop_p4_entries[];
extern const char namehop_p4_description[];

struct p4_host_worker {
    unsigned batch;
    /* True if the batch size is chosen by measuring. */
    bool automatic;
    struct p4_tuner tuner;
    struct p4_listener listener;
    /* For a straight program. */
    struct p4_worker *worker;
    struct p4_packet *packets;
    /* For any other program. */
    struct p4_switch *machine;
};

static const struct p4_program *const program = &namehop_p4_program;

static uint64_t began;

/* Reads the clock without a system call. */
static uint64_t ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) * (P4_TICKS / 1000000000);
}

static bool start(unsigned workers)
{
    began = ticks();
    p4_several = workers > 1;
    /* The seed is secret, so that nobody can construct keys that share a bucket. */
    return getentropy(&p4_seed, sizeof p4_seed) == 0;
}

static struct p4_packet *packet_at(const struct p4_host_worker *worker, unsigned place)
{
    return (struct p4_packet *)((uint8_t *)worker->packets + place * program->packet_bytes);
}

static struct p4_host_worker *worker_new(unsigned batch, p4_sent *sent, p4_lost *lost, p4_digest *digest, void *owner)
{
    struct p4_host_worker *worker = p4_memory(sizeof *worker);
    worker->listener = (struct p4_listener){digest, owner};
    worker->automatic = batch == 0 && program->automatic && !program->one_at_a_time;
    batch = batch ? batch : program->batch;
    if (worker->automatic)
        p4_tuner_start(&worker->tuner, program->tables, program->table_count);
    worker->batch = program->one_at_a_time || batch == 0 ? 1 : batch > P4_BATCH ? P4_BATCH : batch;
    if (!program->burst) {
        worker->machine = p4_switch_new(program, sent, lost, owner);
        if (worker->machine)
            p4_switch_batch(worker->machine, worker->batch);
    } else {
        worker->worker = p4_worker_new();
        worker->packets = p4_region_new(program->packet_bytes * P4_BATCH);
    }
    if (!worker->machine && !(worker->worker && worker->packets)) {
        if (worker->worker)
            p4_worker_free(worker->worker);
        free(worker);
        return NULL;
    }
    return worker;
}

static void worker_free(struct p4_host_worker *worker)
{
    if (worker->machine) {
        p4_switch_free(worker->machine);
    } else {
        for (unsigned i = 0; i < P4_BATCH; i++)
            free(packet_at(worker, i)->output.bytes);
        p4_region_free(worker->packets, program->packet_bytes * P4_BATCH);
        p4_worker_free(worker->worker);
    }
    free(p4_data.bytes);
    p4_data = (struct p4_sink){0};
    free(worker);
}

/* Processes frames in batches of the worker's current size. */
static void process_batches(struct p4_host_worker *worker, struct p4_frame *const *frames, size_t count)
{
    if (worker->machine) {
        for (size_t i = 0; i < count; i++)
            p4_switch_packet(worker->machine, frames[i]->port, p4_frame_data(frames[i]), frames[i]->length);
        p4_switch_flush(worker->machine);
        return;
    }
    p4_inside(worker->worker);
    for (size_t at = 0; at < count; at += worker->batch)
        program->burst(worker->packets, frames + at, (unsigned)(count - at < worker->batch ? count - at : worker->batch));
    p4_outside(worker->worker);
}

static void process(struct p4_host_worker *worker, struct p4_frame *const *frames, size_t count)
{
    uint64_t began_at;
    p4_listener = worker->listener;
    if (program->meter_count)
        p4_now = ticks() - began;
    if (!worker->automatic) {
        process_batches(worker, frames, count);
        return;
    }
    worker->batch = p4_tuner_batch(&worker->tuner, count);
    if (worker->machine)
        p4_switch_batch(worker->machine, worker->batch);
    began_at = p4_tuner_clock(&worker->tuner);
    process_batches(worker, frames, count);
    p4_tuner_took(&worker->tuner, count, p4_tuner_clock(&worker->tuner) - began_at);
}

static bool tuned(const struct p4_host_worker *worker, struct p4_tuned *tuned)
{
    if (worker->automatic)
        *tuned = worker->tuner.tuned;
    return worker->automatic;
}

/* Straight programs do not copy packets, so they ignore sessions and groups. */
static void mirror(struct p4_host_worker *worker, uint64_t session, bool group, uint64_t target, uint32_t longest)
{
    if (worker->machine)
        p4_switch_mirror(worker->machine, session, group, target, longest);
}

static void unmirror(struct p4_host_worker *worker, uint64_t session)
{
    if (worker->machine)
        p4_switch_mirror_delete(worker->machine, session);
}

static void group(struct p4_host_worker *worker, uint64_t number)
{
    if (worker->machine)
        p4_switch_group(worker->machine, number);
}

static void member(struct p4_host_worker *worker, uint64_t number, uint64_t replica, uint64_t port)
{
    if (worker->machine)
        p4_switch_group_add(worker->machine, number, replica, port);
}

static bool refuse(char *why, size_t room, const char *reason)
{
    snprintf(why, room, "%s", reason);
    return false;
}

static bool change(size_t place, unsigned change, const struct p4_host_entry *entry, char *why, size_t room)
{
    struct p4_new_entry new = {{.priority = entry->priority, .prefix = entry->prefix}, (uint8_t)entry->action, entry->key, entry->mask,
        entry->ranges, entry->data};
    struct p4_table *table;
    enum p4_outcome outcome;
    size_t words;
    if (place >= program->table_count)
        return refuse(why, room, "unknown table");
    table = program->tables[place];
    words = (table->key_bits + 63) / 64 ? (table->key_bits + 63) / 64 : 1;
    if (entry->key_words != words || entry->range_words != 2 * (size_t)table->range_count || entry->action >= table->action_count ||
        entry->data_bytes != p4_table_data_bytes(table, (uint8_t)entry->action) ||
        (uint64_t)table->exact_bits + entry->prefix > table->key_bits)
        return refuse(why, room, "the size of the entry does not match its table");
    outcome = change == 0 ? p4_table_insert(table, &new) : change == 1 ? p4_table_modify(table, &new) : p4_table_delete(table, &new);
    if (outcome != P4_OK)
        p4_outcome_text(outcome, table, why, room);
    return outcome == P4_OK;
}

static bool set_default(size_t place, uint32_t action, const uint8_t *data, size_t data_bytes, char *why, size_t room)
{
    struct p4_table *table = place < program->table_count ? program->tables[place] : NULL;
    if (!table || action >= table->action_count || data_bytes != p4_table_data_bytes(table, (uint8_t)action))
        return refuse(why, room, "the size of the default action does not match its table");
    p4_table_default(table, (uint8_t)action, data);
    return true;
}

static void *cells(const struct p4_cells *lists, size_t list_count, size_t place, size_t *count, size_t *bytes)
{
    if (place >= list_count)
        return NULL;
    *count = lists[place].count;
    *bytes = lists[place].cell_bytes;
    return lists[place].cells;
}

static void *counters(size_t place, size_t *count, size_t *bytes)
{
    return cells(program->counters, program->counter_count, place, count, bytes);
}

static void *registers(size_t place, size_t *count, size_t *bytes)
{
    return cells(program->registers, program->register_count, place, count, bytes);
}

static bool meter_set(size_t place, size_t index, const struct p4_host_rates *rates)
{
    size_t count, bytes;
    struct p4_meter_cell *cell = cells(program->meters, program->meter_count, place, &count, &bytes);
    if (!cell || index >= count)
        return false;
    cell += index;
    cell->is_set = rates != NULL;
    if (rates) {
        p4_bucket_set(&cell->committed, rates->committed_rate, rates->committed_burst);
        p4_bucket_set(&cell->peak, rates->peak_rate, rates->peak_burst);
    }
    return true;
}

static bool value_set(size_t place, const uint64_t *rows, size_t count, size_t words)
{
    struct p4_value_set *set = place < program->value_set_count ? &program->value_sets[place] : NULL;
    if (!set || words != (size_t)set->words * 4 || count > set->size)
        return false;
    p4_value_set_put(set, rows, count);
    return true;
}

/* Filled by namehop_p4_host: the program is in another object file, so its fields are not constant expressions. */
static struct p4_host host;

__attribute__((visibility("default"))) const struct p4_host *namehop_p4_host(void)
{
    host = (struct p4_host){
        .version = P4_HOST_VERSION,
        .name = program->name,
        .entries = namehop_p4_entries,
        .description = namehop_p4_description,
        .straight = program->burst != NULL,
        .one_worker = program->register_count > 0 || program->one_at_a_time,
        .batch = program->batch,
        .automatic = program->automatic,
        .start = start,
        .worker_new = worker_new,
        .worker_free = worker_free,
        .process = process,
        .mirror = mirror,
        .unmirror = unmirror,
        .group = group,
        .member = member,
        .change = change,
        .set_default = set_default,
        .counters = counters,
        .registers = registers,
        .meter_set = meter_set,
        .value_set = value_set,
        .digest_count = program->digest_count,
        .size_count = P4_SIZES,
        .sizes = p4_sizes,
        .tuned = tuned,
    };
    return &host;
}
