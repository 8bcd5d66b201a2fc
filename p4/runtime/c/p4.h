/* Shared declarations of compiled programs and of the code that runs them: packets in flight, bits, arithmetic. No
   function here allocates memory except p4_grow. */
#ifndef P4_H
#define P4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "frame.h"

/* Functions that are always inlined, and never inlined. */
#ifndef P4_IN_PLACE
#define P4_IN_PLACE inline __attribute__((always_inline))
#endif
#define P4_APART __attribute__((noinline))
/* Maximum number of packets in a batch: sets of packets are the bits of a word. */
#define P4_BATCH 64
/* The action number that stands for no action. */
#define P4_NONE 255
/* Maximum number of loop iterations of a packet, and of states that a parser passes. */
#define P4_STEPS 1000000u
#define P4_STATES 100000u
/* Readable bytes behind the end of packets and entries. */
#define P4_SLACK 16

/* Bits in network byte order, appended at the end. */
struct p4_sink {
    uint8_t *bytes;
    size_t capacity;
    /* In bits. */
    uint64_t length;
};

struct p4_entry;
struct p4_hash;
struct p4_tuples;

/* Maximum number of bits of action data that fit into a word beside the action number. */
#define P4_SMALL 56

/* State of a lookup. */
struct p4_cursor {
    /* The memory that the next step reads. */
    const uint8_t *place;
    const struct p4_hash *table;
    /* Hash tables: the hash of the key. */
    uint64_t hash;
    /* Tries: the word that describes the current position. */
    uint64_t word;
    /* Tables of tuples. */
    const struct p4_tuples *tuples;
    const struct p4_entry *best;
    uint32_t tuple;
};

/* Result of a lookup: the action data, the first one in the highest bits; action data of more than P4_SMALL bits is
   in data. */
struct p4_found {
    uint64_t value;
    const uint8_t *data;
    uint8_t action;
    bool hit;
};

/* A packet in flight; the program's own state follows it in memory. The fields that every lookup needs come last,
   next to that state. */
struct p4_packet {
    /* As received, with P4_SLACK bytes behind. */
    const uint8_t *data;
    /* In bytes. */
    uint64_t length;
    struct p4_found found;
    uint32_t steps;
    uint32_t error;
    bool rejected;
    bool lost;
    bool checksum_error;
    bool clones, resubmits, recirculates, truncates;
    bool clone_listed, resubmit_listed, recirculate_listed;
    /* Numbers of field lists have 8 bits. */
    uint8_t clone_list, resubmit_list, recirculate_list;
    /* Number of bytes that were added at its end. */
    uint8_t grown;
    uint64_t clone_session, truncate_length;
    struct p4_sink output;
    /* Holds its bytes if the program has changed the payload of a packet that has copies. */
    struct p4_sink own;
    /* Parsed length, in bits. */
    uint64_t position;
    struct p4_cursor cursor;
};

/* Makes room for more bits. Returns false if there is no memory; the packet is then lost. */
bool p4_grow(struct p4_sink *sink, uint64_t bits);
/* Hashes data with an algorithm of HashAlgorithm; returns the lowest 64 bits of the result. */
uint64_t p4_hash(const struct p4_sink *data, uint64_t algorithm);
uint64_t p4_random(void);
/* Data to be hashed; in each thread, one packet at a time uses it. */
extern __thread struct p4_sink p4_data;

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

/* Up to 64 bits at an offset in bits. */
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

/* Action data from the word of an entry. */
static inline uint64_t p4_argument(uint64_t value, unsigned bit, unsigned width)
{
    return width == 0 ? 0 : value << bit >> (64 - width);
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

/* An undefined result is zero. */
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

/* The checksum for a sum of 32-bit words. */
static inline uint64_t p4_folded(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Content of headers that are not in the packet; the longest header has P4_LONGEST_HEADER bytes. */
#define P4_LONGEST_HEADER 8192
extern const uint8_t p4_zeros[P4_LONGEST_HEADER + P4_SLACK];
/* The result of a prefix table without results. */
extern const uint32_t p4_no_result;

static inline void p4_request_truncate(struct p4_packet *packet, uint64_t length)
{
    packet->truncates = true;
    packet->truncate_length = length;
}

static inline void p4_begin_data(void)
{
    p4_data.length = 0;
}

/* Makes room for whole bytes at the end, which must be at a byte boundary. Returns NULL if there is no memory. */
static inline uint8_t *p4_put_bytes(struct p4_sink *sink, size_t bytes)
{
    uint8_t *at;
    if (sink->length / 8 + bytes + P4_SLACK >= sink->capacity && !p4_grow(sink, bytes * 8))
        return NULL;
    at = sink->bytes + sink->length / 8;
    sink->length += bytes * 8;
    return at;
}

/* Writes the first bytes of a word, the highest first. */
static inline void p4_store(uint8_t *to, uint64_t word, unsigned bytes)
{
    uint32_t half = __builtin_bswap32((uint32_t)(word >> 32));
    uint16_t quarter = __builtin_bswap16((uint16_t)(word >> 48));
    if (bytes == 1) {
        *to = (uint8_t)(word >> 56);
    } else if (bytes == 2) {
        memcpy(to, &quarter, 2);
    } else if (bytes == 4) {
        memcpy(to, &half, 4);
    } else {
        word = __builtin_bswap64(word);
        memcpy(to, &word, bytes);
    }
}

/* Appends the packet's content behind the parsed headers. */
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

/* Gives a packet its own copy of its bytes, with P4_SLACK writable bytes behind. */
void p4_packet_own(struct p4_packet *packet);

/* An array of cells. */
struct p4_cells {
    const char *name;
    void *cells;
    size_t cell_bytes;
    size_t count;
};

struct p4_counter_cell {
    uint64_t packets, bytes;
};

/* True if several threads process packets. */
extern bool p4_several;

static inline void p4_count(struct p4_counter_cell *cell, uint64_t bytes)
{
    if (p4_several) {
        __atomic_fetch_add(&cell->packets, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&cell->bytes, bytes, __ATOMIC_RELAXED);
    } else {
        cell->packets++;
        cell->bytes += bytes;
    }
}

/* The members of a value set, from the control plane. A member has four words for each word of the compared values:
   mask, value, and the two bounds of a range. */
struct p4_members {
    uint64_t count;
    uint64_t rows[];
};

struct p4_value_set {
    const char *name;
    /* Words of a value. */
    uint32_t words;
    uint64_t size;
    /* NULL if it is empty. */
    const struct p4_members *members;
};

static inline bool p4_in_set(const struct p4_value_set *set, const uint64_t *value, unsigned words)
{
    const struct p4_members *members = __atomic_load_n(&set->members, __ATOMIC_ACQUIRE);
    if (!members)
        return false;
    for (uint64_t i = 0; i < members->count; i++) {
        const uint64_t *row = members->rows + i * words * 4;
        bool fits = true;
        for (unsigned word = 0; word < words; word++, row += 4)
            fits &= (value[word] & row[0]) == row[1] && value[word] >= row[2] && value[word] <= row[3];
        if (fits)
            return true;
    }
    return false;
}

struct p4_table;

/* A part of the pipeline, for a set of packets. Returns the set without the packets that are lost. */
typedef uint64_t p4_part(struct p4_packet **packets, uint64_t set);

/* The function of a part for one packet runs from one stage to the next, and returns the number of that stage, or 0
   at its end. */

/* Returns a set and empties it. */
static inline uint64_t p4_taken(uint64_t *set)
{
    uint64_t taken = *set;
    *set = 0;
    return taken;
}

/* Takes all packets that wait for a stage through it. */
#define P4_STAGE(PART, STAGE) \
    for (uint64_t rest = waiting[STAGE], here = (waiting[STAGE] = 0, rest); here; here &= here - 1) { \
        unsigned lane = (unsigned)__builtin_ctzll(here); \
        uint32_t next = PART(lanes[lane], STAGE); \
        if (next) \
            waiting[next] |= UINT64_C(1) << lane; \
        else if (lanes[lane]->lost) \
            left &= ~(UINT64_C(1) << lane); \
    }

/* Completes their lookups step by step: each packet makes the first step before any packet makes the second. */
#define P4_LOOK(STAGE, STEP) \
    for (uint64_t looking = waiting[STAGE]; looking;) \
        for (uint64_t rest = looking; rest; rest &= rest - 1) { \
            struct p4_packet *p = lanes[__builtin_ctzll(rest)]; \
            struct packet *s = (struct packet *)p; \
            (void)s; \
            if (STEP) \
                looking &= ~(rest & -rest); \
        }

enum { P4_PARSER, P4_VERIFY, P4_INGRESS, P4_EGRESS, P4_COMPUTE, P4_DEPARSER, P4_PARTS };

/* Writes the output headers in front of the unparsed rest. Returns false if there is no room. */
static inline bool p4_frame_end(const struct p4_packet *packet, struct p4_frame *frame)
{
    size_t before = packet->position / 8, after = packet->output.length / 8;
    if (after > before + P4_HEADROOM)
        return false;
    frame->offset = (uint16_t)(frame->offset + before - after);
    /* There may be no headers, and no memory for them. */
    if (after)
        memcpy(p4_frame_data(frame), packet->output.bytes, after);
    frame->length = (uint16_t)(frame->length - before + after);
    frame->whole_length = frame->length;
    return true;
}

/* The interface of a compiled program to the code that runs it. */
struct p4_program {
    uint32_t version;
    const char *name;
    size_t packet_bytes;
    p4_part *parts[P4_PARTS];
    struct p4_table *const *tables;
    size_t table_count;
    const struct p4_cells *registers;
    size_t register_count;
    const struct p4_cells *counters;
    size_t counter_count;
    const struct p4_cells *meters;
    size_t meter_count;
    /* Number of digest types. */
    size_t digest_count;
    struct p4_value_set *value_sets;
    size_t value_set_count;
    /* Clears metadata and standard metadata. */
    void (*clear)(struct p4_packet *packet);
    void (*begin_ingress)(struct p4_packet *packet, uint64_t port, uint64_t kind);
    void (*begin_egress)(struct p4_packet *packet, uint64_t port, uint64_t replica, uint64_t kind);
    /* Write the results of the parser and of checksums to the standard metadata. */
    void (*after_parser)(struct p4_packet *packet);
    void (*after_verify)(struct p4_packet *packet);
    uint64_t (*egress_spec)(const struct p4_packet *packet);
    uint64_t (*multicast_group)(const struct p4_packet *packet);
    uint64_t (*ingress_port)(const struct p4_packet *packet);
    /* Initial metadata of a copy: the fields of a field list. */
    void (*preserve)(struct p4_packet *to, const struct p4_packet *from, uint64_t list, bool listed);
    /* Packets must access registers in order, so they go one at a time. */
    bool one_at_a_time;
    uint32_t batch;
    /* Choose the batch size by measuring: see tune.h. */
    bool automatic;
    /* Takes up to P4_BATCH frames through all parts, in place, with one packet's memory per frame, which must be
       zero at first. NULL if the program copies or recirculates packets, or has fields across byte boundaries. */
    void (*burst)(struct p4_packet *packets, struct p4_frame *const *frames, unsigned count);
    /* The same in G-Opt's order, one lookup per turn: for comparison. NULL if it was not compiled. */
    void (*in_turns)(struct p4_packet *packets, struct p4_frame *const *frames, unsigned count);
};

#define P4_VERSION 7

#endif
