/* A switch that runs a compiled program: takes packets through the six parts of the program. */
#ifndef P4_SWITCH_H
#define P4_SWITCH_H

#include "p4.h"
#include "control.h"

/* Restarts the sequence of random numbers. */
void p4_restart_random(void);

/* Called for a packet that leaves the switch; owner is the argument of p4_switch_new. */
typedef void p4_sent(void *owner, uint64_t number, uint64_t port, const uint8_t *bytes, size_t length);
/* Called for a packet that cannot be processed. */
typedef void p4_lost(void *owner, uint64_t number);

struct p4_switch;

/* Returns NULL if there are P4_WORKERS already. */
struct p4_switch *p4_switch_new(const struct p4_program *program, p4_sent *sent, p4_lost *lost, void *owner);
void p4_switch_free(struct p4_switch *machine);
/* Sets the batch size in packets. */
void p4_switch_batch(struct p4_switch *machine, unsigned batch);
/* Accepts a packet; it is processed when the batch is full, or by p4_switch_flush. */
void p4_switch_packet(struct p4_switch *machine, uint64_t port, const uint8_t *bytes, size_t length);
void p4_switch_flush(struct p4_switch *machine);
/* Mirroring sessions and multicast groups. Copies of a session have at most longest bytes; 0 means no limit. */
void p4_switch_mirror(struct p4_switch *machine, uint64_t session, bool group, uint64_t target, uint32_t longest);
void p4_switch_mirror_delete(struct p4_switch *machine, uint64_t session);
void p4_switch_group(struct p4_switch *machine, uint64_t group);
void p4_switch_group_add(struct p4_switch *machine, uint64_t group, uint64_t replica, uint64_t port);

#endif
