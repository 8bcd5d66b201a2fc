/* A switch that runs a compiled program: the way of packets through the six parts of the program. */
#ifndef P4_SWITCH_H
#define P4_SWITCH_H

#include "p4.h"
#include "control.h"

/* The sequence of random numbers starts anew. */
void p4_restart_random(void);

/* A packet that leaves the switch; the first argument is what p4_switch_new was given. */
typedef void p4_sent(void *owner, uint64_t number, uint64_t port, const uint8_t *bytes, size_t length);
/* A packet that cannot be processed. */
typedef void p4_lost(void *owner, uint64_t number);

struct p4_switch;

/* NULL when there are P4_WORKERS already. */
struct p4_switch *p4_switch_new(const struct p4_program *program, p4_sent *sent, p4_lost *lost, void *owner);
void p4_switch_free(struct p4_switch *machine);
/* How many packets go through a stage together. */
void p4_switch_batch(struct p4_switch *machine, unsigned batch);
/* Takes a packet in; it is processed when the batch is full, or with p4_switch_flush. */
void p4_switch_packet(struct p4_switch *machine, uint64_t port, const uint8_t *bytes, size_t length);
void p4_switch_flush(struct p4_switch *machine);
/* Mirroring sessions and multicast groups. Copies of a session leave with so many bytes at most, 0 for any number. */
void p4_switch_mirror(struct p4_switch *machine, uint64_t session, bool group, uint64_t target, uint32_t longest);
void p4_switch_mirror_delete(struct p4_switch *machine, uint64_t session);
void p4_switch_group(struct p4_switch *machine, uint64_t group);
void p4_switch_group_add(struct p4_switch *machine, uint64_t group, uint64_t replica, uint64_t port);

#endif
