/* What compiled programs and the programs that run them have in common: packets in flight, bits, arithmetic.
   No function here allocates memory but p4_grow. */
#ifndef P4_H
#define P4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The largest number of packets in a batch: sets of them are bits of a word. */
#define P4_BATCH 64
/* Number of an action that stands for none. */
#define P4_NONE 255
/* How many rounds of loops a packet may take, and how many states a parser may pass. */
#define P4_STEPS 1000000u
#define P4_STATES 100000u
/* Bytes that can be read behind the end of packets and entries. */
#define P4_SLACK 16

/* Bits in network order that grow at their end. */
struct p4_sink {
    uint8_t *bytes;
    size_t capacity;
    /* In bits. */
    uint64_t length;
};

struct p4_entry;

/* Where a lookup is. */
struct p4_cursor {
    uint64_t hash;
    uint64_t bucket;
    const struct p4_entry *best;
    /* Values for the action. */
    const uint8_t *data;
    uint32_t tuple;
    uint8_t action;
    bool hit;
};

/* A packet in flight; the program's own state follows it in memory. */
struct p4_packet {
    /* As it came in, with P4_SLACK bytes behind. */
    const uint8_t *data;
    /* In bytes. */
    uint64_t length;
    /* In bits: how much of it is parsed. */
    uint64_t position;
    struct p4_cursor cursor;
    struct p4_sink output;
    uint32_t steps;
    uint32_t error;
    bool rejected;
    bool lost;
    bool checksum_error;
    /* Lookups return, so that those of other packets can be started. */
    bool staged;
    bool clones, resubmits, recirculates, truncates;
    bool clone_listed, resubmit_listed, recirculate_listed;
    uint64_t clone_session, clone_list, resubmit_list, recirculate_list, truncate_length;
};

/* Makes room for more bits. False when there is no memory; the packet is lost then. */
bool p4_grow(struct p4_sink *sink, uint64_t bits);
/* Hashes data, by the number of the algorithm in HashAlgorithm; the lowest 64 bits of the result. */
uint64_t p4_hash(const struct p4_sink *data, uint64_t algorithm);
uint64_t p4_random(void);
/* Data to be hashed; one packet at a time puts them together. */
extern struct p4_sink p4_data;
/* Whether tables are to be fetched into the cache ahead. */
extern int p4_prefetching;

static inline uint64_t p4_mask(unsigned width)
{
    return width >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
}

static inline uint64_t p4_load(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return __builtin_bswap64(word);
}

/* Up to 64 bits from a place that is counted in bits. */
static inline uint64_t p4_get(const uint8_t *bytes, uint64_t bit, unsigned width)
{
    unsigned shift = bit & 7;
    uint64_t word;
    if (width == 0)
        return 0;
    bytes += bit >> 3;
    word = p4_load(bytes) << shift;
    if (shift + width > 64)
        word |= bytes[8] >> (8 - shift);
    return word >> (64 - width);
}

/* Appends up to 64 bits. */
static inline bool p4_put(struct p4_sink *sink, uint64_t value, unsigned width)
{
    unsigned used = sink->length & 7;
    uint8_t *bytes;
    uint64_t word;
    if (width == 0)
        return true;
    if ((sink->length + width + 128) / 8 >= sink->capacity && !p4_grow(sink, width))
        return false;
    bytes = sink->bytes + (sink->length >> 3);
    value = (value & p4_mask(width)) << (64 - width);
    word = value >> used;
    if (used)
        word |= (uint64_t)(bytes[0] & ~(0xff >> used)) << 56;
    word = __builtin_bswap64(word);
    memcpy(bytes, &word, 8);
    if (used + width > 64)
        bytes[8] = (uint8_t)((value & 0xff) << (8 - used));
    sink->length += width;
    return true;
}

static inline int64_t p4_sign(uint64_t value, unsigned width)
{
    return width == 0 ? 0 : (int64_t)(value << (64 - width)) >> (64 - width);
}

static inline uint64_t p4_shl(uint64_t value, uint64_t count)
{
    return count >= 64 ? 0 : value << count;
}

static inline uint64_t p4_shr(uint64_t value, uint64_t count)
{
    return count >= 64 ? 0 : value >> count;
}

static inline int64_t p4_sar(int64_t value, uint64_t count)
{
    return value >> (count >= 63 ? 63 : count);
}

/* What has no result gives zero. */
static inline uint64_t p4_div(uint64_t left, uint64_t right)
{
    return right ? left / right : 0;
}

static inline uint64_t p4_mod(uint64_t left, uint64_t right)
{
    return right ? left % right : 0;
}

static inline int64_t p4_sdiv(int64_t left, int64_t right)
{
    if (right == 0)
        return 0;
    return right == -1 ? (int64_t)(0 - (uint64_t)left) : left / right;
}

static inline int64_t p4_smod(int64_t left, int64_t right)
{
    return right == 0 || right == -1 ? 0 : left % right;
}

static inline uint64_t p4_sat_add(uint64_t left, uint64_t right, unsigned width)
{
    uint64_t sum = left + right;
    return sum < left || sum > p4_mask(width) ? p4_mask(width) : sum;
}

static inline uint64_t p4_sat_sub(uint64_t left, uint64_t right)
{
    return left < right ? 0 : left - right;
}

static inline int64_t p4_clamp(__int128 value, unsigned width)
{
    __int128 limit = (__int128)1 << (width ? width - 1 : 0);
    return value >= limit ? (int64_t)(limit - 1) : value < -limit ? (int64_t)-limit : (int64_t)value;
}

static inline void p4_request_truncate(struct p4_packet *packet, uint64_t length)
{
    packet->truncates = true;
    packet->truncate_length = length;
}

static inline void p4_begin_data(void)
{
    p4_data.length = 0;
}

/* What follows the parsed headers. */
static inline bool p4_put_rest(struct p4_sink *sink, const struct p4_packet *packet)
{
    uint64_t bit = packet->position, end = packet->length * 8;
    if (!p4_grow(sink, end - bit + 64))
        return false;
    if (((bit | sink->length) & 7) == 0) {
        memcpy(sink->bytes + sink->length / 8, packet->data + bit / 8, (end - bit) / 8);
        sink->length += end - bit;
        return true;
    }
    for (; bit < end; bit += 32) {
        unsigned width = end - bit < 32 ? (unsigned)(end - bit) : 32;
        if (!p4_put(sink, p4_get(packet->data, bit, width), width))
            return false;
    }
    return true;
}

/* How many cells, and what is in them. */
struct p4_cells {
    const char *name;
    void *cells;
    size_t cell_bytes;
    size_t count;
};

struct p4_counter_cell {
    uint64_t packets, bytes;
};

struct p4_table;

/* A part of the pipeline: runs from a stage to the next one, which it returns, or to its end, which is 0. */
typedef uint32_t p4_part(struct p4_packet *packet, uint32_t stage);

enum { P4_PARSER, P4_VERIFY, P4_INGRESS, P4_EGRESS, P4_COMPUTE, P4_DEPARSER, P4_PARTS };

/* What a compiled program shows to the one that runs it. */
struct p4_program {
    uint32_t version;
    const char *name;
    size_t packet_bytes;
    p4_part *parts[P4_PARTS];
    uint32_t stages[P4_PARTS];
    struct p4_table *const *tables;
    size_t table_count;
    const struct p4_cells *registers;
    size_t register_count;
    const struct p4_cells *counters;
    size_t counter_count;
    /* Clears metadata and standard metadata. */
    void (*clear)(struct p4_packet *packet);
    void (*begin_ingress)(struct p4_packet *packet, uint64_t port, uint64_t kind);
    void (*begin_egress)(struct p4_packet *packet, uint64_t port, uint64_t replica, uint64_t kind);
    /* Puts the outcome of the parser and of checksums into the standard metadata. */
    void (*after_parser)(struct p4_packet *packet);
    void (*after_verify)(struct p4_packet *packet);
    uint64_t (*egress_spec)(const struct p4_packet *packet);
    uint64_t (*multicast_group)(const struct p4_packet *packet);
    uint64_t (*ingress_port)(const struct p4_packet *packet);
    /* Metadata that a copy starts with: the fields of a list. */
    void (*preserve)(struct p4_packet *to, const struct p4_packet *from, uint64_t list, bool listed);
    /* Registers are to be seen in the order of packets, so they go one at a time. */
    bool one_at_a_time;
    uint32_t batch;
};

#define P4_VERSION 1

#endif
