/* Runs a compiled program between two DPDK rings, in several variants that take turns, and prints the cycles per
   packet, one JSON object per line. All variants must output the same packets. */
#include "bench.h"
#include "tune.h"

#include <assert.h>
#include <dlfcn.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Packets per measurement. */
#define CHUNK 4096u
#define MOST_ROUNDS 10000u

enum kind {
    /* A compiled program: with fixed batches, with batches of a size that it chooses, and with packets in turns. */
    COMPILED,
    TUNED,
    IN_TURNS,
    /* Hand-written loops: on DPDK's tables, and as published elsewhere. */
    BY_HAND,
    PUBLISHED,
    /* DPDK's own P4 engine. */
    ENGINE,
    /* From one ring to the other, without processing. */
    RINGS,
};

enum prefetch { NEVER, BY_SIZE, ALWAYS };

/* Number of packets in flight in SWX. */
#define SWX 16

/* A variant: burst is the number of packets taken from the ring at a time, batch the number that go through a stage
   together. */
struct way {
    const char *name;
    enum kind kind;
    const struct p4_program *program;
    unsigned burst, batch;
    enum prefetch prefetch;
    double *cycles;
};

static const struct workload *workload;
static struct rte_ring *input, *output;
static struct rte_mbuf *packets[CHUNK];
static struct p4_packet *memory;
static struct p4_worker *worker;
static struct p4_tuner tuner;
/* True if there is an SWX program. */
static bool swx;

void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

void missing(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(P4_EXIT_MISSING);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const struct p4_program *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct p4_program *program;
    if (!library)
        fail(dlerror());
    program = dlsym(library, "namehop_p4_program");
    if (!program || program->version != P4_VERSION || !program->burst)
        fail("the program cannot be measured");
    return program;
}

/* Writes the packets of a round again, for random entries, and enqueues them into the input. */
static void refill(uint64_t round, uint64_t entries)
{
    for (unsigned i = 0; i < CHUNK; i++) {
        struct rte_mbuf *packet = packets[i];
        uint64_t random = mixed(round * CHUNK + i);
        packet->data_off = RTE_PKTMBUF_HEADROOM;
        packet->port = (uint16_t)(random & 7);
        packet->data_len = (uint16_t)workload->packet(rte_pktmbuf_mtod(packet, uint8_t *), random % entries, mixed(random) % entries);
        packet->pkt_len = packet->data_len;
    }
    if (rte_ring_enqueue_bulk(input, (void **)packets, CHUNK, NULL) != CHUNK)
        fail("the ring is too short");
}

/* Programs process DPDK's packets without conversion. */
#define SAME(FIELD, OTHER) \
    static_assert(offsetof(struct p4_frame, FIELD) == offsetof(struct rte_mbuf, OTHER), "struct p4_frame is not laid out as struct rte_mbuf")
SAME(storage, buf_addr);
SAME(offset, data_off);
SAME(port, port);
SAME(whole_length, pkt_len);
SAME(length, data_len);

/* Processes a burst with a compiled program. */
static void compiled(const struct way *way, unsigned batch, struct rte_mbuf **burst, unsigned count)
{
    void (*take)(struct p4_packet *, struct p4_frame *const *, unsigned) =
        way->kind == IN_TURNS ? way->program->in_turns : way->program->burst;
    for (unsigned start = 0; start < count; start += batch)
        take(memory, (struct p4_frame *const *)burst + start, count - start < batch ? count - start : batch);
}

static void process(const struct way *way, struct rte_mbuf **burst, unsigned count)
{
    void (*loop)(struct rte_mbuf **, unsigned) = way->kind == BY_HAND ? workload->by_hand : workload->published;
    switch (way->kind) {
    case COMPILED:
    case IN_TURNS:
        compiled(way, way->batch, burst, count);
        break;
    case TUNED: {
        unsigned batch = p4_tuner_batch(&tuner, count);
        uint64_t start = p4_tuner_clock(&tuner);
        compiled(way, batch, burst, count);
        p4_tuner_took(&tuner, count, p4_tuner_clock(&tuner) - start);
        break;
    }
    case BY_HAND:
    case PUBLISHED:
        for (unsigned at = 0; at < count; at += way->batch)
            loop(burst + at, count - at < way->batch ? count - at : way->batch);
        break;
    case ENGINE:
    case RINGS:
        break;
    }
    p4_quiet(worker);
}

/* Processes all packets of the input into the output. Returns the cycles taken. */
static uint64_t run(const struct way *way)
{
    struct rte_mbuf *burst[MOST_BURST];
    unsigned count;
    uint64_t start = rte_rdtsc_precise();
    /* The engine has its own loop, after which the input of the loop below is empty. */
    if (way->kind == ENGINE)
        swx_forward(CHUNK);
    while ((count = rte_ring_dequeue_burst(input, (void **)burst, way->burst, NULL)) > 0) {
        for (unsigned i = 0; i < count; i++)
            rte_prefetch0(rte_pktmbuf_mtod(burst[i], void *));
        process(way, burst, count);
        rte_ring_enqueue_burst(output, (void **)burst, count, NULL);
    }
    return rte_rdtsc_precise() - start;
}

/* Moves the packets that SWX has sent from its ports to the output, in their original order. */
static void gather(void)
{
    swx_collect(packets, CHUNK);
    if (rte_ring_enqueue_bulk(output, (void **)packets, CHUNK, NULL) != CHUNK)
        fail("the ring is too short");
}

/* Digest of the output: all ports, and all bytes of packets that are not dropped. */
static uint64_t drain(uint64_t *dropped)
{
    struct rte_mbuf *out[CHUNK];
    uint64_t digest = 0;
    if (rte_ring_dequeue_bulk(output, (void **)out, CHUNK, NULL) != CHUNK)
        fail("packets are missing");
    for (unsigned i = 0; i < CHUNK; i++) {
        digest = mixed(digest ^ out[i]->port);
        *dropped += out[i]->port == P4_DROPPED;
        for (unsigned at = 0; out[i]->port != P4_DROPPED && at < out[i]->data_len; at++)
            digest = digest * 31 + rte_pktmbuf_mtod(out[i], const uint8_t *)[at];
    }
    return digest;
}

static int by_size(const void *one, const void *other)
{
    double left = *(const double *)one, right = *(const double *)other;
    return left < right ? -1 : left > right;
}

static void report(struct way *way, unsigned rounds)
{
    static const char *const prefetches[] = {"never", "by size", "always"};
    qsort(way->cycles, rounds, sizeof *way->cycles, by_size);
    printf("{\"way\": \"%s\", \"burst\": %u, \"batch\": %u, \"prefetch\": \"%s\", \"cycles\": %.1f, \"low\": %.1f, \"high\": %.1f}\n",
        way->name, way->burst, way->kind == TUNED ? tuner.tuned.batch : way->batch, prefetches[way->prefetch], way->cycles[rounds / 2],
        way->cycles[rounds / 10], way->cycles[rounds - 1 - rounds / 10]);
}

/* True if this variant can be measured. */
static bool exists(const struct way *way)
{
    switch (way->kind) {
    case BY_HAND:
        return way->program && workload->by_hand;
    case PUBLISHED:
        return workload->published != NULL;
    case IN_TURNS:
        return way->program && way->program->in_turns;
    case ENGINE:
        return swx;
    case RINGS:
        return true;
    default:
        return way->program != NULL;
    }
}

static void set_prefetch(const struct way *way)
{
    static size_t usual;
    if (!usual)
        usual = p4_ahead_bytes;
    p4_ahead_bytes = way->prefetch == ALWAYS ? 0 : usual;
    if (way->program)
        p4_prefetch(way->program->tables, way->program->table_count, way->prefetch != NEVER);
}

/* Arguments: workload, entries (0 for the paper's number), rounds, program; program with DPDK's tables, and program
   for SWX, or "-"; then the arguments of DPDK's environment. */
int main(int given, char **arguments)
{
    if (given < 7)
        fail("usage: bench WORKLOAD ENTRIES ROUNDS PROGRAM DPDK-PROGRAM SWX-PROGRAM [EAL ARGUMENTS]");
    for (size_t i = 0; i < workload_count; i++)
        if (strcmp(workloads[i].name, arguments[1]) == 0)
            workload = &workloads[i];
    if (!workload)
        fail("unknown workload");
    uint64_t entries = strtoull(arguments[2], NULL, 10), dropped = 0;
    unsigned rounds = (unsigned)strtoul(arguments[3], NULL, 10);
    entries = entries ? entries : workload->entries;
    /* The number of ports is fixed. */
    if (workload->entries == PORTS)
        entries = PORTS;
    if (rounds == 0 || rounds > MOST_ROUNDS)
        fail("rounds must be from 1 to 10000");
    const char *ours_path = arguments[4], *theirs_path = arguments[5], *swx_path = arguments[6];
    arguments[6] = arguments[0];
    if (rte_eal_init(given - 6, arguments + 6) < 0)
        fail("DPDK failed to start");
    const struct p4_program *ours = load(ours_path), *theirs = strcmp(theirs_path, "-") == 0 ? NULL : load(theirs_path);
    uint32_t room = RTE_PKTMBUF_HEADROOM + (workload->longest > LONGEST ? workload->longest : LONGEST);
    struct rte_mempool *pool = rte_pktmbuf_pool_create("packets", 2 * CHUNK, 0, 0, (uint16_t)room, 0);
    input = rte_ring_create("input", 2 * CHUNK, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
    output = rte_ring_create("output", 2 * CHUNK, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!pool || !input || !output || rte_pktmbuf_alloc_bulk(pool, packets, CHUNK) != 0)
        fail("out of memory for packets");
    size_t most = ours->packet_bytes;
    if (theirs && theirs->packet_bytes > most)
        most = theirs->packet_bytes;
    memory = p4_region_new(most * P4_BATCH);
    worker = p4_worker_new();
    if (getentropy(&p4_seed, sizeof p4_seed))
        fail("the system provides no random numbers");
    double start = seconds();
    uint64_t filled = workload->fill(ours, entries);
    double own_load = seconds() - start, dpdk_load = 0;
    size_t footprint = 0;
    for (size_t i = 0; i < ours->table_count; i++)
        footprint += p4_table_footprint(ours->tables[i]);
    start = seconds();
    if (theirs) {
        workload->fill_dpdk(theirs, entries);
        dpdk_load = seconds() - start;
    }
    if (workload->fill_published)
        workload->fill_published(entries);
    start = seconds();
    bool wanted = strcmp(swx_path, "-") != 0 && workload->fill_swx;
    swx = wanted && swx_start(swx_path, input, CHUNK);
    if (swx)
        workload->fill_swx(entries);
    double swx_load = seconds() - start;
    p4_tuner_start(&tuner, ours->tables, ours->table_count);
    printf("{\"entries\": %llu, \"load_seconds\": %.3f, \"dpdk_load_seconds\": %.3f, \"swx_load_seconds\": %.3f, \"swx_memory_missing\": %s, "
        "\"footprint_bytes\": %zu, \"tsc_hz\": %llu}\n",
        (unsigned long long)filled, own_load, dpdk_load, swx_load, wanted && !swx ? "true" : "false", footprint,
        (unsigned long long)rte_get_tsc_hz());
    const char *batches = "batches", *ahead = "batches, prefetch", *rings = "rings alone", *together = "burst and batch";
    struct way ways[] = {
        {"DPDK tables, per packet", COMPILED, theirs, BURST, 1, NEVER, NULL},
        {"by hand on DPDK tables", BY_HAND, theirs, BURST, HAND, NEVER, NULL},
        {"per packet", COMPILED, ours, BURST, 1, NEVER, NULL},
        {batches, COMPILED, ours, BURST, 8, NEVER, NULL},
        {batches, COMPILED, ours, BURST, 32, NEVER, NULL},
        {batches, COMPILED, ours, BURST, 64, NEVER, NULL},
        {ahead, COMPILED, ours, BURST, 1, BY_SIZE, NULL},
        {ahead, COMPILED, ours, BURST, 2, BY_SIZE, NULL},
        {ahead, COMPILED, ours, BURST, 4, BY_SIZE, NULL},
        {ahead, COMPILED, ours, BURST, 8, BY_SIZE, NULL},
        {ahead, COMPILED, ours, BURST, 16, BY_SIZE, NULL},
        {ahead, COMPILED, ours, BURST, 32, BY_SIZE, NULL},
        {ahead, COMPILED, ours, BURST, 64, BY_SIZE, NULL},
        {"batches, prefetch always", COMPILED, ours, BURST, 32, ALWAYS, NULL},
        {"batches, auto", TUNED, ours, BURST, 0, BY_SIZE, NULL},
        {"G-Opt's order, prefetch", IN_TURNS, ours, BURST, 16, BY_SIZE, NULL},
        {"G-Opt's order, prefetch", IN_TURNS, ours, BURST, 32, BY_SIZE, NULL},
        {"G-Opt's order and tables", PUBLISHED, NULL, BURST, 16, ALWAYS, NULL},
        {"SWX, generated C", ENGINE, NULL, BURST, SWX, ALWAYS, NULL},
        {together, COMPILED, ours, 1, 1, BY_SIZE, NULL},
        {together, COMPILED, ours, 8, 8, BY_SIZE, NULL},
        {together, COMPILED, ours, 16, 16, BY_SIZE, NULL},
        {together, COMPILED, ours, 32, 32, BY_SIZE, NULL},
        {together, COMPILED, ours, 64, 64, BY_SIZE, NULL},
        {together, COMPILED, ours, 128, 64, BY_SIZE, NULL},
        {together, COMPILED, ours, 256, 64, BY_SIZE, NULL},
        {rings, RINGS, NULL, 1, 0, NEVER, NULL},
        {rings, RINGS, NULL, 8, 0, NEVER, NULL},
        {rings, RINGS, NULL, 32, 0, NEVER, NULL},
        {rings, RINGS, NULL, 64, 0, NEVER, NULL},
        {rings, RINGS, NULL, 128, 0, NEVER, NULL},
        {rings, RINGS, NULL, 256, 0, NEVER, NULL},
    };
    unsigned count = sizeof ways / sizeof *ways;
    /* With fewer rounds, a variant would get packets that another one has just processed, and find their data in the
       caches. */
    if (rounds < 2 * count)
        rounds = 2 * count;
    for (size_t i = 0; i < count; i++)
        ways[i].cycles = p4_memory(rounds * sizeof *ways[i].cycles);
    p4_inside(worker);
    /* Each variant gets the packets of all rounds, and no two variants get the same packets shortly after one
       another, so that no variant benefits from cache contents of another. */
    uint64_t *digests = p4_memory(rounds * sizeof *digests);
    for (unsigned round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            struct way *way = &ways[i];
            unsigned set = (unsigned)((round + i * rounds / count) % rounds);
            if (!exists(way))
                continue;
            refill(set, entries);
            set_prefetch(way);
            way->cycles[round] = (double)run(way) / CHUNK;
            if (way->kind == ENGINE)
                gather();
            uint64_t came = drain(&dropped);
            if (way->kind == RINGS)
                continue;
            if (digests[set] && came != digests[set]) {
                fprintf(stderr, "%s outputs different packets\n", way->name);
                return 1;
            }
            digests[set] = came;
        }
    }
    if (dropped)
        fail("packets are dropped");
    for (size_t i = 0; i < count; i++)
        if (exists(&ways[i]))
            report(&ways[i], rounds);
    return 0;
}
