/*
 * The strategy weighted as a program: one next hop, chosen at random by weight.
 *
 * The weights of the first seven next hops are added one by one. All other next hops have the last weight, so a division chooses
 * among them.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("weighted-ebpf", 1, "one next hop, chosen at random by weight", NAMEHOP_ON(NAMEHOP_INTEREST),
                 NAMEHOP_SUPPRESSES);
NAMEHOP_LIST_PARAMETER(0, "weights", "up to 8 weights of 1 to 255, of the next hops from the cheapest on");

#define LISTED 7

/* Returns the weight of a next hop; 0 if it is not in the set. */
NAMEHOP_INLINE namehop_u64 weight(namehop_u64 weights, namehop_u64 set, int position)
{
    return (weights >> (8 * position) & 255) * (set >> position & 1);
}

NAMEHOP_PROGRAM(context)
{
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    namehop_u64 eligible = namehop_eligible(context), weights = context->parameters[0];
    if (eligible == 0) {
        if (decision == NAMEHOP_NEW)
            namehop_no_route(context);
        return 0;
    }
    namehop_u64 further = eligible >> LISTED << LISTED, last = weights >> (8 * LISTED);
    namehop_u64 total = namehop_count(further) * last;
#pragma unroll
    for (int position = 0; position < LISTED; position++)
        total += weight(weights, eligible, position);
    namehop_u64 drawn = namehop_random(context) % total, before = 0;
#pragma unroll
    for (int position = 0; position < LISTED; position++) {
        namehop_u64 own = weight(weights, eligible, position);
        if (drawn - before < own) {
            namehop_forward(context, 1ull << position);
            return 0;
        }
        before += own;
    }
    namehop_forward(context, namehop_pick(further, (drawn - before) / last));
    return 0;
}
