/* Choice of the batch size: see tune.h. */
#include "tune.h"

#include <stdlib.h>

const uint32_t p4_sizes[P4_SIZES] = {1, 2, 4, 8, 16, 32, 64};

/* A size that costs more than the best one by less than this share is as good. */
#define AS_GOOD 0.02f
/* Bursts between two checks of the tables' size, and packets after which everything is measured again. */
#define LOOK_BURSTS 256
#define ANEW_PACKETS (UINT64_C(1) << 26)

static uint64_t footprint(const struct p4_tuner *tuner)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < tuner->table_count; i++)
        bytes += __atomic_load_n(&tuner->tables[i]->footprint, __ATOMIC_RELAXED);
    return bytes;
}

static void begin(struct p4_tuner *tuner)
{
    tuner->trying = true;
    tuner->turn = tuner->size = 0;
    memset(tuner->sample_counts, 0, sizeof tuner->sample_counts);
    tuner->footprint = footprint(tuner);
    tuner->packets = tuner->bursts = 0;
}

void p4_tuner_start(struct p4_tuner *tuner, struct p4_table *const *tables, size_t table_count)
{
    memset(tuner, 0, sizeof *tuner);
    tuner->tables = tables;
    tuner->table_count = table_count;
    tuner->tuned.batch = P4_USUAL_BATCH;
    begin(tuner);
}

static int by_size(const void *one, const void *other)
{
    float left = *(const float *)one, right = *(const float *)other;
    return left < right ? -1 : left > right;
}

static void choose(struct p4_tuner *tuner)
{
    float least = 0;
    tuner->trying = false;
    for (unsigned size = 0; size < P4_SIZES; size++) {
        unsigned count = tuner->sample_counts[size];
        float *samples = tuner->samples[size];
        qsort(samples, count, sizeof *samples, by_size);
        tuner->tuned.cycles[size] = count ? samples[count / 2] : 0;
        if (count && (least == 0 || samples[count / 2] < least))
            least = samples[count / 2];
    }
    if (least == 0)
        return;
    for (unsigned size = P4_SIZES; size-- > 0;)
        if (tuner->tuned.cycles[size] != 0 && tuner->tuned.cycles[size] <= least * (1 + AS_GOOD))
            tuner->tuned.batch = p4_sizes[size];
    tuner->tuned.choices++;
}

/* The next size; after the last one, the next round. */
static void next(struct p4_tuner *tuner)
{
    if (++tuner->size < P4_SIZES)
        return;
    tuner->size = 0;
    if (++tuner->turn > P4_TURNS)
        choose(tuner);
}

unsigned p4_tuner_batch(struct p4_tuner *tuner, size_t count)
{
    if (!tuner->trying && ++tuner->bursts % LOOK_BURSTS == 0) {
        uint64_t now = footprint(tuner), before = tuner->footprint;
        if (now > 2 * before || 2 * now < before || tuner->packets > ANEW_PACKETS)
            begin(tuner);
    }
    tuner->measuring = tuner->trying && count >= P4_MEASURED;
    if (tuner->measuring && p4_sizes[tuner->size] > count)
        next(tuner);
    tuner->measuring &= tuner->trying;
    return tuner->measuring ? p4_sizes[tuner->size] : tuner->tuned.batch;
}

void p4_tuner_took(struct p4_tuner *tuner, size_t count, uint64_t cycles)
{
    tuner->packets += count;
    if (!tuner->measuring)
        return;
    if (tuner->turn > 0)
        tuner->samples[tuner->size][tuner->sample_counts[tuner->size]++] = (float)cycles / (float)count;
    next(tuner);
}
