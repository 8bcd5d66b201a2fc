/*
 * Example: the next hop with the shortest round-trip time among the four cheapest.
 *
 * Shows measurements of next hops and a parameter. One in `probe-every` Interests goes to all four next hops, and so do the first
 * Interests. The next hop that answers first gets a measurement. A next hop that never answers has no measurement and receives only
 * these probes. A fastest next hop that stops answering is still used until its measurement expires; the strategy asf handles this
 * better.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("lowest-rtt", 1, "shortest round-trip time among the four cheapest next hops", NAMEHOP_ON(NAMEHOP_INTEREST),
                 NAMEHOP_SUPPRESSES | NAMEHOP_MEASURES);
NAMEHOP_PARAMETER(0, "probe-every", 100, 2, 1000000, "one in this many Interests is sent to all four next hops");

#define CANDIDATES 4

NAMEHOP_PROGRAM(context)
{
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    namehop_u64 candidates = namehop_eligible(context) & ((1 << CANDIDATES) - 1);
    if (candidates == 0) {
        if (decision == NAMEHOP_NEW)
            namehop_no_route(context);
        return 0;
    }
    namehop_u64 *count = namehop_prefix_scratch(context);
    count[0]++;
    if (decision == NAMEHOP_AGAIN || count[0] % context->parameters[0] == 0) {
        namehop_forward(context, candidates);
        return 0;
    }
    namehop_u64 best = 0, best_us = ~0ull;
#pragma unroll
    for (int position = 0; position < CANDIDATES; position++) {
        if (candidates >> position & 1) {
            namehop_u64 rtt_us = namehop_rtt_us(context, position);
            if (rtt_us != 0 && rtt_us < best_us) {
                best_us = rtt_us;
                best = 1ull << position;
            }
        }
    }
    namehop_forward(context, best != 0 ? best : candidates);
    return 0;
}
