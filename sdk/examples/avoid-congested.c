/*
 * Example: the strategy does not use a next hop for a while after its Nack.
 *
 * Shows Nacks, out-records, and the memory of a prefix: one word for each of the four cheapest next hops holds the time until which
 * it rests.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("avoid-congested", 1, "lowest-cost next hop that has not refused an Interest lately",
                 NAMEHOP_ON(NAMEHOP_INTEREST) | NAMEHOP_ON(NAMEHOP_NACK), NAMEHOP_SUPPRESSES);
NAMEHOP_PARAMETER(0, "rest", 1000, 1, 60000, "how long a next hop rests after a Nack, in milliseconds");

#define CANDIDATES 4

NAMEHOP_PROGRAM(context)
{
    namehop_u64 *rests_until_ns = namehop_prefix_scratch(context);
    if (context->event == NAMEHOP_NACK) {
        namehop_u64 from = namehop_next_hop_of(context, context->ingress);
#pragma unroll
        for (int position = 0; position < CANDIDATES; position++)
            if (from == 1ull << position && namehop_out_record(context, position)->nack_reason != 0)
                rests_until_ns[position] = context->now_ns + context->parameters[0] * 1000000;
        namehop_process_nack(context);
        return 0;
    }
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    namehop_u64 eligible = namehop_eligible(context), rested = eligible;
#pragma unroll
    for (int position = 0; position < CANDIDATES; position++)
        if (context->now_ns < rests_until_ns[position])
            rested &= ~(1ull << position);
    /* Use the cheapest next hop if all are resting. */
    namehop_u64 chosen = namehop_first(rested != 0 ? rested : eligible);
    if (chosen != 0)
        namehop_forward(context, chosen);
    else if (decision == NAMEHOP_NEW)
        namehop_no_route(context);
    return 0;
}
