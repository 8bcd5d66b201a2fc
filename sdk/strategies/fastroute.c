/*
 * The strategy fastroute as a program: the next hop that answered the last probe of all next hops first.
 */
#include "namehop_strategy.h"

NAMEHOP_STRATEGY("fastroute-ebpf", 1, "the next hop that was fastest in the last probe of all next hops",
                 NAMEHOP_ON(NAMEHOP_INTEREST) | NAMEHOP_ON(NAMEHOP_DATA) | NAMEHOP_ON(NAMEHOP_NACK), NAMEHOP_SUPPRESSES);
NAMEHOP_PARAMETER(0, "probe-every", 1024, 1, 4294967295, "one in this many Interests is sent to all next hops");

/* Indices of the words in the prefix's memory. */
#define FASTEST 0
#define SINCE_PROBE 1

NAMEHOP_PROGRAM(context)
{
    if (context->event == NAMEHOP_DATA) {
        if (namehop_downstreams(context) != 0)
            namehop_prefix_scratch(context)[FASTEST] = context->ingress;
        return 0;
    }
    if (context->event == NAMEHOP_NACK) {
        namehop_u64 *prefix = namehop_prefix_scratch(context);
        if (prefix[FASTEST] == context->ingress)
            prefix[FASTEST] = 0;
        namehop_process_nack(context);
        return 0;
    }
    namehop_u64 decision = namehop_decide(context);
    if (decision == NAMEHOP_SUPPRESS)
        return 0;
    namehop_u64 eligible = namehop_eligible(context);
    if (decision == NAMEHOP_NEW) {
        namehop_u64 *prefix = namehop_prefix_scratch(context);
        if (prefix[FASTEST] != 0) {
            prefix[SINCE_PROBE]++;
            if (prefix[SINCE_PROBE] >= context->parameters[0]) {
                prefix[SINCE_PROBE] = 0;
            } else {
                namehop_u64 fastest = namehop_next_hop_of(context, prefix[FASTEST]) & eligible;
                if (fastest != 0) {
                    namehop_forward(context, fastest);
                    return 0;
                }
            }
        }
    }
    if (namehop_forward(context, eligible) == 0 && decision == NAMEHOP_NEW)
        namehop_no_route(context);
    return 0;
}
