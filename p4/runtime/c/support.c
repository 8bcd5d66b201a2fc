/* Growing bit strings, random numbers, and the hash functions of v1model. */
#include "switch.h"
#include "meter.h"

#include <stdlib.h>

/* Maximum output of a packet, in bytes. */
#define LONGEST (64u << 20)

const uint8_t p4_zeros[P4_LONGEST_HEADER + P4_SLACK];
const uint32_t p4_no_result;
__thread struct p4_sink p4_data;
__thread uint64_t p4_now;
__thread struct p4_listener p4_listener;
bool p4_several;
static __thread uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

void p4_restart_random(void)
{
    random_state = UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t p4_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

bool p4_grow(struct p4_sink *sink, uint64_t bits)
{
    uint64_t needed = (sink->length + bits) / 8 + 2 * P4_SLACK;
    uint8_t *bytes;
    size_t capacity;
    if (needed < sink->capacity)
        return true;
    if (needed > LONGEST)
        return false;
    capacity = needed * 2 + 256;
    bytes = realloc(sink->bytes, capacity);
    if (!bytes)
        return false;
    memset(bytes + sink->capacity, 0, capacity - sink->capacity);
    sink->bytes = bytes;
    sink->capacity = capacity;
    return true;
}

/* CRC-32 as in Ethernet. */
static uint32_t crc32(const uint8_t *bytes, size_t length)
{
    uint32_t state = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            state = state & 1 ? state >> 1 ^ 0xedb88320u : state >> 1;
    }
    return ~state;
}

/* CRC-16/ARC */
static uint16_t crc16(const uint8_t *bytes, size_t length)
{
    uint16_t state = 0;
    for (size_t i = 0; i < length; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            state = state & 1 ? (uint16_t)(state >> 1 ^ 0xa001) : (uint16_t)(state >> 1);
    }
    return state;
}

static uint16_t word_at(const uint8_t *bytes, size_t length, size_t place)
{
    return (uint16_t)(bytes[place] << 8 | (place + 1 < length ? bytes[place + 1] : 0));
}

uint64_t p4_hash(const struct p4_sink *data, uint64_t algorithm)
{
    size_t length = (data->length + 7) / 8;
    /* Clear the bits behind the end in the last byte. */
    if (data->length & 7)
        data->bytes[length - 1] &= (uint8_t)(0xff00 >> (data->length & 7));
    switch (algorithm) {
    case 0:
    case 1:
        return crc32(data->bytes, length);
    case 2:
    case 3:
        return crc16(data->bytes, length);
    case 5:
        return data->length <= 64 ? p4_get(data->bytes, 0, (unsigned)data->length)
                                  : p4_get(data->bytes, data->length - 64, 64);
    case 6: {
        uint64_t sum = 0;
        for (size_t i = 0; i < length; i += 2)
            sum += word_at(data->bytes, length, i);
        while (sum > 0xffff)
            sum = (sum & 0xffff) + (sum >> 16);
        return (uint16_t)~sum;
    }
    case 7: {
        uint16_t all = 0;
        for (size_t i = 0; i < length; i += 2)
            all ^= word_at(data->bytes, length, i);
        return all;
    }
    default:
        return 0;
    }
}
