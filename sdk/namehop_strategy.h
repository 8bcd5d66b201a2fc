/*
 * Forwarding strategies for Namehop as eBPF programs.
 *
 *     clang -O2 -target bpf -I sdk -c mine.c -o mine.o
 *     namehop strategy load mine.o
 *     namehop strategy set /example mine
 *
 * A program is one function, defined with NAMEHOP_PROGRAM, that is called for each event of a pending Interest. It has no global
 * variables, no loops that the compiler does not unroll, and calls nothing but the functions below and inline functions of its own.
 * docs/strategies.md says more.
 *
 * Next hops are told apart by their position: 0 is the one of lowest cost. Sets of next hops are numbers: bit i stands for the
 * next hop at position i. So `set & -set` is the cheapest of a set, and 0 is none.
 */
#ifndef NAMEHOP_STRATEGY_H
#define NAMEHOP_STRATEGY_H

typedef unsigned int namehop_u32;
typedef unsigned long long namehop_u64;

#define NAMEHOP_API_VERSION 1

/* Why the program is called. */
enum namehop_event {
    NAMEHOP_INTEREST = 0,     /* An Interest came that is not answered from the cache; ingress 0: one is sent again. */
    NAMEHOP_DATA = 1,         /* Data came; the router sends it on after the call. */
    NAMEHOP_NACK = 2,         /* A Nack came. */
    NAMEHOP_TIMER = 3,        /* A timer is due. */
    NAMEHOP_NEW_NEXT_HOP = 4, /* The prefix got a next hop. */
    NAMEHOP_DROPPED = 5,      /* The link could not deliver the Interest. */
    NAMEHOP_EXPIRY = 6,       /* The pending Interest ends without Data. */
};

/* For the second argument of NAMEHOP_STRATEGY. Events not asked for are handled as usual: a Nack as by namehop_process_nack, the
 * others by doing nothing. */
#define NAMEHOP_ON(event) (1u << (event))

/* For the third argument of NAMEHOP_STRATEGY: takes the parameters retx-suppression-initial, -max and -multiplier. */
#define NAMEHOP_SUPPRESSES 1u
/* Round-trip times of next hops are measured. */
#define NAMEHOP_MEASURES 2u

/* What a program sees of the pending Interest. It can change interest_scratch only. */
struct namehop_context {
    namehop_u64 now_ns;        /* Time, from any start. */
    namehop_u32 event;         /* enum namehop_event */
    namehop_u32 next_hop_count;
    namehop_u32 ingress;       /* Face that the packet came from; 0 without a packet. */
    namehop_u32 subject;       /* NAMEHOP_NACK: the reason. NEW_NEXT_HOP and DROPPED: the face. */
    namehop_u64 parameters[8]; /* By the index of NAMEHOP_PARAMETER. */
    namehop_u32 interest_scratch[2]; /* Memory of the pending Interest; 0 in a new one. */
};

/* The Interest as it was last sent to a next hop. */
struct namehop_out_record {
    namehop_u64 sent_ns;
    namehop_u64 expires_ns;
    namehop_u32 nonce;
    namehop_u32 nack_reason; /* Reason of the Nack that came back; 0 without one. */
    namehop_u32 exists;      /* 0 when it was not sent there; all else is 0 then. */
    namehop_u32 reserved;
};

/* Is the Interest new (nobody is expected to answer it), one to be sent again, or one to be suppressed? With the parameters
 * retx-suppression-*, for the pending Interest as a whole. The interval grows when the answer is NAMEHOP_AGAIN. */
namehop_u64 namehop_decide(struct namehop_context *context);
#define NAMEHOP_NEW 0
#define NAMEHOP_AGAIN 1
#define NAMEHOP_SUPPRESS 2

/* Next hops that the Interest may go to: not where it came from, and not against scope and hop limit. */
namehop_u64 namehop_eligible(struct namehop_context *context);
/* The cheapest of these, with less work. */
namehop_u64 namehop_first_eligible(struct namehop_context *context);
/* Next hops that got the Interest and are expected to answer. */
namehop_u64 namehop_used(struct namehop_context *context);
/* Of a set, the next hop that got the Interest longest ago; 0 when none got it. */
namehop_u64 namehop_oldest(struct namehop_context *context, namehop_u64 set);

/* Sends the Interest to all of a set that it may go to, the cheapest first. Returns those that it was sent to. In one event each next
 * hop gets it once, however often this is called. */
namehop_u64 namehop_forward(struct namehop_context *context, namehop_u64 set);
/* The same, with a suppression interval for each next hop. */
namehop_u64 namehop_forward_unsuppressed(struct namehop_context *context, namehop_u64 set);
/* Answers the Interest at hand with Nack NoRoute; the pending Interest ends unless others wait. */
namehop_u64 namehop_no_route(struct namehop_context *context);
/* Answers all who wait with a Nack; the pending Interest ends. */
namehop_u64 namehop_nack(struct namehop_context *context, namehop_u64 reason);
#define NAMEHOP_NACK_CONGESTION 50
#define NAMEHOP_NACK_DUPLICATE 100
#define NAMEHOP_NACK_NO_ROUTE 150
/* After a Nack: when all next hops that were asked have refused, tells those who wait. */
namehop_u64 namehop_process_nack(struct namehop_context *context);
/* Calls the program with NAMEHOP_TIMER in so many microseconds, if the Interest is pending then. One at a time. */
namehop_u64 namehop_timer(struct namehop_context *context, namehop_u64 delay_us);
/* A random number. */
namehop_u64 namehop_random(struct namehop_context *context);

/* 64 bytes of memory for the prefix of the FIB; 0 at first. Each worker has its own. Writing it back costs little. */
namehop_u64 *namehop_prefix_scratch(struct namehop_context *context);
/* What was sent to a next hop. The next call overwrites it. */
const struct namehop_out_record *namehop_out_record(struct namehop_context *context, namehop_u64 position);
/* Number of the face at a position; 0 when there is none. */
namehop_u64 namehop_face(struct namehop_context *context, namehop_u64 position);
/* The next hop through a face, as a set. */
namehop_u64 namehop_next_hop_of(struct namehop_context *context, namehop_u64 face);
/* Smoothed round-trip time of the next hop at a position in microseconds; 0 when unknown. Needs NAMEHOP_MEASURES. */
namehop_u64 namehop_rtt_us(struct namehop_context *context, namehop_u64 position);
/* Faces that wait for the Data. */
namehop_u64 namehop_downstreams(struct namehop_context *context);

/* Number of members of a set. */
namehop_u64 namehop_count(namehop_u64 set);
/* The member at a position of a set, as a set; positions count modulo the number of members. */
namehop_u64 namehop_pick(namehop_u64 set, namehop_u64 position);

/* What follows is how the object file describes the strategy. */

struct namehop_info {
    namehop_u32 api_version, events, flags, version;
    char name[32], summary[88];
};

struct namehop_parameter {
    namehop_u32 index, kind;
    namehop_u64 default_value, min, max;
    char key[32], meaning[96];
};

/* Describes the strategy: its name (small letters, digits, hyphens), version, a line of help, events and flags. Once. */
#define NAMEHOP_STRATEGY(name, version, summary, events, flags)                                                   \
    __attribute__((section("namehop_info"), used)) static const struct namehop_info namehop_strategy_info = {     \
        NAMEHOP_API_VERSION, events, flags, version, name, summary}

/* Describes a parameter, a number from min to max: its index in the context (0 to 7), what stands before the ~, and its meaning. */
#define NAMEHOP_PARAMETER(index, key, default_value, min, max, meaning)                                           \
    __attribute__((section("namehop_parameters"), used)) static const struct namehop_parameter                    \
        namehop_parameter_##index = {index, 0, default_value, min, max, key, meaning}

/* Describes a parameter that is a list of up to eight numbers from 1 to 255, joined by hyphens. In the context they are packed
 * into one number, the first in the lowest eight bits; when there are less, the last is there several times. */
#define NAMEHOP_LIST_PARAMETER(index, key, meaning)                                                               \
    __attribute__((section("namehop_parameters"), used)) static const struct namehop_parameter                    \
        namehop_parameter_##index = {index, 1, 0, 0, 0, key, meaning}

/* The function: NAMEHOP_PROGRAM(context) { ... return 0; } */
#define NAMEHOP_PROGRAM(context)                                                                                  \
    __attribute__((section("namehop_strategy"), used)) namehop_u64 namehop_program(struct namehop_context *context)

/* For functions of your own. */
#define NAMEHOP_INLINE static inline __attribute__((always_inline))

/* The cheapest of a set, as a set. */
NAMEHOP_INLINE namehop_u64 namehop_first(namehop_u64 set) { return set & -set; }

/* The next hop of a set at or behind a position, as a set; behind the last comes the first. */
NAMEHOP_INLINE namehop_u64 namehop_first_from(namehop_u64 set, namehop_u64 position)
{
    namehop_u64 behind = position < 32 ? set & (~0ull << position) : 0;
    return namehop_first(behind != 0 ? behind : set);
}

#endif
