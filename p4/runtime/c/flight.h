/* Packets in flight through a switch, and the state of a switch. */
#ifndef P4_FLIGHT_H
#define P4_FLIGHT_H

#include "switch.h"

struct buffer {
    size_t references, length;
    /* True for a buffer of the usual size; next links unused buffers. */
    bool usual;
    struct buffer *next;
    uint8_t bytes[];
};

/* A packet in flight, and its state outside of the program. */
struct flight {
    struct buffer *buffer;
    uint64_t origin, port, replica, kind, truncate;
    /* Maximum length in bytes, for a copy made by egress; 0 means no limit. */
    uint32_t longest;
    bool egress, truncates;
    struct flight *next;
    struct p4_packet *packet;
};

struct list {
    struct flight **flights;
    size_t count, room;
};

struct sent {
    uint64_t origin, port;
    size_t start, length;
};

struct target {
    uint64_t number, replica, port;
    /* Maximum length of copies, in bytes; 0 means no limit. */
    uint32_t longest;
    bool group;
};

struct targets {
    struct target *list;
    size_t count;
};

struct p4_switch {
    const struct p4_program *program;
    struct p4_worker *worker;
    p4_sent *sent;
    p4_lost *lost;
    void *owner;
    unsigned batch;
    uint64_t number;
    struct list now, next;
    struct flight *spare;
    struct buffer *spare_buffers;
    uint32_t rounds[P4_BATCH];
    struct sent *out;
    size_t out_count, out_room;
    struct p4_sink out_bytes;
    struct targets mirrors, groups;
};

/* Appends to a list. */
void p4_flight_put(struct list *list, struct flight *flight);
struct flight *p4_flight_new(struct p4_switch *machine);
void p4_flight_end(struct p4_switch *machine, struct flight *flight);
/* A flight with the same state. */
struct flight *p4_flight_copy(struct p4_switch *machine, const struct flight *from);
struct buffer *p4_buffer_new(struct p4_switch *machine, const uint8_t *bytes, size_t length);
void p4_buffer_end(struct p4_switch *machine, struct buffer *buffer);

#endif
