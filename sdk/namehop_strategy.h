/*
 * Forwarding strategies for Namehop as eBPF programs.
 *
 *     clang -O2 -target bpf -I sdk -c mine.c -o mine.o
 *     namehop strategy load mine.o
 *     namehop strategy set /example mine
 *
 * A program is one function, defined with NAMEHOP_PROGRAM. The router calls it for each event of a pending Interest. A program has
 * no global variables and no loops except those that the compiler unrolls. It calls only the functions below and its own inline
 * functions. docs/strategies.md explains the interface.
 *
 * A position identifies a next hop: position 0 has the lowest cost. A set of next hops is a number in which bit i stands for the
 * next hop at position i. So `set & -set` is the cheapest next hop of a set, and 0 is the empty set.
 */
#ifndef NAMEHOP_STRATEGY_H
#define NAMEHOP_STRATEGY_H

typedef unsigned int namehop_u32;
typedef unsigned long long namehop_u64;

#define NAMEHOP_API_VERSION 1

/* The event for which the router calls the program. */
enum namehop_event {
    NAMEHOP_INTEREST = 0,     /* An Interest arrived that the cache does not answer; with ingress 0: a pending one is to be sent again. */
    NAMEHOP_DATA = 1,         /* Data arrived; the router forwards it after the call. */
    NAMEHOP_NACK = 2,         /* A Nack arrived. */
    NAMEHOP_TIMER = 3,        /* A timer is due. */
    NAMEHOP_NEW_NEXT_HOP = 4, /* The prefix got a next hop. */
    NAMEHOP_DROPPED = 5,      /* The link could not deliver the Interest. */
    NAMEHOP_EXPIRY = 6,       /* The pending Interest ends without Data. */
};

/* For the `events` argument of NAMEHOP_STRATEGY. The router calls the program for these events only. It handles other Nacks as
 * namehop_process_nack does, and ignores the other events. */
#define NAMEHOP_ON(event) (1u << (event))

/* For the `flags` argument of NAMEHOP_STRATEGY: the strategy has the parameters retx-suppression-initial, -max and -multiplier. */
#define NAMEHOP_SUPPRESSES 1u
/* For the `flags` argument of NAMEHOP_STRATEGY: the router measures the round-trip times of next hops. */
#define NAMEHOP_MEASURES 2u

/* The program's view of the pending Interest. Only interest_scratch is writable. */
struct namehop_context {
    namehop_u64 now_ns;        /* Time since an arbitrary start. */
    namehop_u32 event;         /* enum namehop_event */
    namehop_u32 next_hop_count;
    namehop_u32 ingress;       /* Face on which the packet arrived; 0 without a packet. */
    namehop_u32 subject;       /* NAMEHOP_NACK: the reason. NAMEHOP_NEW_NEXT_HOP and NAMEHOP_DROPPED: the face. */
    namehop_u64 parameters[8]; /* Values, by the index of NAMEHOP_PARAMETER. */
    namehop_u32 interest_scratch[2]; /* Memory that lives as long as the pending Interest; initially 0. */
};

/* Out-record: the Interest as it was last sent to a next hop. */
struct namehop_out_record {
    namehop_u64 sent_ns;
    namehop_u64 expires_ns;
    namehop_u32 nonce;
    namehop_u32 nack_reason; /* Reason of the Nack from this next hop; 0 without a Nack. */
    namehop_u32 exists;      /* 0 if the Interest was not sent there; the other fields are then 0 too. */
    namehop_u32 reserved;
};

/* Returns whether the Interest is new (no next hop is expected to answer it), is to be sent again, or is to be suppressed. The
 * parameters retx-suppression-* decide, for the pending Interest as a whole. NAMEHOP_AGAIN increases the suppression interval. */
namehop_u64 namehop_decide(struct namehop_context *context);
#define NAMEHOP_NEW 0
#define NAMEHOP_AGAIN 1
#define NAMEHOP_SUPPRESS 2

/* Returns the set of eligible next hops: their link is up, scope and hop limit allow them, and the Interest did not come from them. */
namehop_u64 namehop_eligible(struct namehop_context *context);
/* Returns the cheapest eligible next hop. Costs less than namehop_eligible. */
namehop_u64 namehop_first_eligible(struct namehop_context *context);
/* Returns the set of next hops that have received the Interest and are expected to answer. */
namehop_u64 namehop_used(struct namehop_context *context);
/* Returns the next hop of a set that received the Interest longest ago; 0 if none received it. */
namehop_u64 namehop_oldest(struct namehop_context *context, namehop_u64 set);

/* Sends the Interest to all eligible next hops of a set, the cheapest first. Returns the set that it was sent to. Each next hop
 * receives it at most once per event, even if the program calls this several times. */
namehop_u64 namehop_forward(struct namehop_context *context, namehop_u64 set);
/* The same, but with a separate suppression interval for each next hop. */
namehop_u64 namehop_forward_unsuppressed(struct namehop_context *context, namehop_u64 set);
/* Answers the current Interest with Nack NoRoute. The pending Interest ends unless it has other downstreams. */
namehop_u64 namehop_no_route(struct namehop_context *context);
/* Answers all downstreams with a Nack. The pending Interest ends. */
namehop_u64 namehop_nack(struct namehop_context *context, namehop_u64 reason);
#define NAMEHOP_NACK_CONGESTION 50
#define NAMEHOP_NACK_DUPLICATE 100
#define NAMEHOP_NACK_NO_ROUTE 150
/* Processes a Nack: informs the downstreams once all upstreams have refused. */
namehop_u64 namehop_process_nack(struct namehop_context *context);
/* Calls the program with NAMEHOP_TIMER after this many microseconds, if the Interest is still pending. Only one timer is pending at a
 * time: further calls have no effect meanwhile. A timer cannot be cancelled. */
namehop_u64 namehop_timer(struct namehop_context *context, namehop_u64 delay_us);
/* Returns a random number. */
namehop_u64 namehop_random(struct namehop_context *context);

/* Returns 64 bytes of memory for the FIB prefix, initially 0. Each worker has its own. Writing it back costs little. */
namehop_u64 *namehop_prefix_scratch(struct namehop_context *context);
/* Returns the out-record of the next hop at a position. The next call overwrites it. */
const struct namehop_out_record *namehop_out_record(struct namehop_context *context, namehop_u64 position);
/* Returns the id of the face at a position; 0 if there is none. */
namehop_u64 namehop_face(struct namehop_context *context, namehop_u64 position);
/* Returns the next hop through a face, as a set. */
namehop_u64 namehop_next_hop_of(struct namehop_context *context, namehop_u64 face);
/* Returns the smoothed round-trip time of the next hop at a position, in microseconds; 0 if unknown. Needs NAMEHOP_MEASURES. */
namehop_u64 namehop_rtt_us(struct namehop_context *context, namehop_u64 position);
/* Returns the number of downstreams. */
namehop_u64 namehop_downstreams(struct namehop_context *context);

/* Returns the number of members of a set. */
namehop_u64 namehop_count(namehop_u64 set);
/* Returns the member of a set at a position, as a set. The position is taken modulo the number of members. */
namehop_u64 namehop_pick(namehop_u64 set, namehop_u64 position);

/* The rest of this file generates the description of the strategy in the object file. */

struct namehop_info {
    namehop_u32 api_version, events, flags, version;
    char name[32], summary[88];
};

struct namehop_parameter {
    namehop_u32 index, kind;
    namehop_u64 default_value, min, max;
    char key[32], meaning[96];
};

/* Describes the strategy: its name (small letters, digits, hyphens), version, a line of help, events and flags. Use it once. */
#define NAMEHOP_STRATEGY(name, version, summary, events, flags)                                                   \
    __attribute__((section("namehop_info"), used)) static const struct namehop_info namehop_strategy_info = {     \
        NAMEHOP_API_VERSION, events, flags, version, name, summary}

/* Describes a parameter, a number from min to max: its index in the context (0 to 7), its key before the ~, and its meaning. */
#define NAMEHOP_PARAMETER(index, key, default_value, min, max, meaning)                                           \
    __attribute__((section("namehop_parameters"), used)) static const struct namehop_parameter                    \
        namehop_parameter_##index = {index, 0, default_value, min, max, key, meaning}

/* Describes a parameter that is a list of up to eight numbers from 1 to 255, joined by hyphens. The context packs them into one
 * number, with the first one in the lowest eight bits. The last number of a shorter list is repeated. */
#define NAMEHOP_LIST_PARAMETER(index, key, meaning)                                                               \
    __attribute__((section("namehop_parameters"), used)) static const struct namehop_parameter                    \
        namehop_parameter_##index = {index, 1, 0, 0, 0, key, meaning}

/* Defines the function of the program: NAMEHOP_PROGRAM(context) { ... return 0; } */
#define NAMEHOP_PROGRAM(context)                                                                                  \
    __attribute__((section("namehop_strategy"), used)) namehop_u64 namehop_program(struct namehop_context *context)

/* Precedes the definition of a program's own function. */
#define NAMEHOP_INLINE static inline __attribute__((always_inline))

/* Returns the cheapest next hop of a set, as a set. */
NAMEHOP_INLINE namehop_u64 namehop_first(namehop_u64 set) { return set & -set; }

/* Returns the first next hop of a set at or after a position, as a set. The first follows the last. */
NAMEHOP_INLINE namehop_u64 namehop_first_from(namehop_u64 set, namehop_u64 position)
{
    namehop_u64 behind = position < 32 ? set & (~0ull << position) : 0;
    return namehop_first(behind != 0 ? behind : set);
}

#endif
