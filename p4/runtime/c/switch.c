/* The path of packets through a compiled program: ingress, traffic manager, egress, and resubmission, recirculation
   and cloning. Packets go in batches. Copies and recirculated packets form the next batches. The packets that result
   from one packet leave in the order in which they would have left alone. */
#include "flight.h"

/* Maximum number of rounds of one packet, over all of its copies. */
#define ROUNDS 1000
#define DROP_PORT 511

/* instance_type, with the numbers of the behavioural model. */
enum { NORMAL = 0, INGRESS_CLONE = 1, EGRESS_CLONE = 2, RECIRCULATED = 4, REPLICATED = 5, RESUBMITTED = 6 };

/* Starts with the packet as received. */
static void begin(struct flight *flight)
{
    struct p4_packet *packet = flight->packet;
    packet->data = flight->buffer->bytes;
    packet->length = flight->buffer->length;
    packet->grown = 0;
    packet->position = 0;
    packet->error = 0;
    packet->rejected = packet->checksum_error = false;
}

static void without_requests(struct p4_packet *packet)
{
    packet->steps = 0;
    packet->lost = false;
    packet->clones = packet->resubmits = packet->recirculates = packet->truncates = false;
}

/* Runs a part for a set of packets. Returns the set without the packets that are lost. */
static uint64_t run(struct p4_switch *machine, unsigned part, struct flight **lanes, uint64_t set)
{
    struct p4_packet *packets[P4_BATCH];
    for (uint64_t rest = set; rest; rest &= rest - 1)
        packets[__builtin_ctzll(rest)] = lanes[__builtin_ctzll(rest)]->packet;
    return machine->program->parts[part](packets, set);
}

/* Maximum length of copies of a session, in bytes; 0 means no limit. */
static uint32_t longest_copy(const struct p4_switch *machine, uint64_t session)
{
    uint32_t longest = 0;
    for (size_t i = 0; i < machine->mirrors.count; i++) {
        const struct target *mirror = &machine->mirrors.list[i];
        if (mirror->number == session && mirror->longest && (!longest || mirror->longest < longest))
            longest = mirror->longest;
    }
    return longest;
}

static void mirrored(struct p4_switch *machine, uint64_t session, const struct flight *from)
{
    for (int groups = 0; groups < 2; groups++)
        for (size_t i = 0; i < machine->mirrors.count; i++) {
            const struct target *mirror = &machine->mirrors.list[i];
            if (mirror->number != session || mirror->group != (bool)groups)
                continue;
            if (!mirror->group) {
                struct flight *copy = p4_flight_copy(machine, from);
                copy->port = mirror->port;
                p4_flight_put(&machine->next, copy);
                continue;
            }
            for (size_t j = 0; j < machine->groups.count; j++) {
                const struct target *member = &machine->groups.list[j];
                if (member->number != mirror->port || !member->group)
                    continue;
                struct flight *copy = p4_flight_copy(machine, from);
                copy->port = member->port;
                copy->replica = member->replica;
                p4_flight_put(&machine->next, copy);
            }
        }
}

static void lose(struct p4_switch *machine, struct flight *flight)
{
    machine->lost(machine->owner, flight->origin);
    p4_flight_end(machine, flight);
}

/* Runs the first three parts. */
static uint64_t parsed_and_processed(struct p4_switch *machine, struct flight **lanes, uint64_t set, bool whole)
{
    const struct p4_program *program = machine->program;
    set = run(machine, P4_PARSER, lanes, set);
    for (uint64_t rest = set; rest; rest &= rest - 1)
        program->after_parser(lanes[__builtin_ctzll(rest)]->packet);
    if (!whole)
        return set;
    set = run(machine, P4_VERIFY, lanes, set);
    for (uint64_t rest = set; rest; rest &= rest - 1)
        program->after_verify(lanes[__builtin_ctzll(rest)]->packet);
    return run(machine, P4_INGRESS, lanes, set);
}

/* Makes a copy of the packet as received, truncated to the session's limit before it is parsed. Returns false if it
   is lost. */
static bool ingress_clone(struct p4_switch *machine, struct flight *flight)
{
    const struct p4_program *program = machine->program;
    struct p4_packet *packet = flight->packet;
    struct flight *copy = p4_flight_copy(machine, flight);
    uint32_t longest = longest_copy(machine, packet->clone_session);
    if (longest && longest < copy->buffer->length) {
        struct buffer *whole = copy->buffer;
        copy->buffer = p4_buffer_new(machine, whole->bytes, longest);
        p4_buffer_end(machine, whole);
    }
    program->clear(copy->packet);
    program->preserve(copy->packet, packet, packet->clone_list, packet->clone_listed);
    begin(copy);
    without_requests(copy->packet);
    program->begin_ingress(copy->packet, flight->port, INGRESS_CLONE);
    if (!parsed_and_processed(machine, &copy, 1, false)) {
        p4_flight_end(machine, copy);
        return false;
    }
    copy->kind = INGRESS_CLONE;
    copy->egress = true;
    copy->replica = 0;
    copy->truncates = packet->truncates;
    copy->truncate = packet->truncate_length;
    mirrored(machine, packet->clone_session, copy);
    p4_flight_end(machine, copy);
    return true;
}

static void after_ingress(struct p4_switch *machine, struct flight *flight)
{
    const struct p4_program *program = machine->program;
    struct p4_packet *packet = flight->packet;
    uint64_t group, port;
    if (packet->clones && !ingress_clone(machine, flight)) {
        lose(machine, flight);
        return;
    }
    if (packet->resubmits) {
        struct flight *again = p4_flight_copy(machine, flight);
        program->clear(again->packet);
        program->preserve(again->packet, packet, packet->resubmit_list, packet->resubmit_listed);
        again->kind = RESUBMITTED;
        p4_flight_put(&machine->next, again);
        p4_flight_end(machine, flight);
        return;
    }
    group = program->multicast_group(packet);
    port = program->egress_spec(packet);
    flight->egress = true;
    flight->replica = 0;
    flight->truncates = packet->truncates;
    flight->truncate = packet->truncate_length;
    if (group != 0) {
        flight->kind = REPLICATED;
        for (size_t i = 0; i < machine->groups.count; i++) {
            const struct target *member = &machine->groups.list[i];
            if (member->number != group || !member->group)
                continue;
            struct flight *copy = p4_flight_copy(machine, flight);
            copy->port = member->port;
            copy->replica = member->replica;
            p4_flight_put(&machine->next, copy);
        }
        p4_flight_end(machine, flight);
    } else if (port != DROP_PORT) {
        flight->port = port;
        p4_flight_put(&machine->next, flight);
    } else {
        p4_flight_end(machine, flight);
    }
}

static void send(struct p4_switch *machine, struct flight *flight, const uint8_t *bytes, size_t length)
{
    if (machine->out_count == machine->out_room) {
        machine->out_room = machine->out_room * 2 + P4_BATCH;
        machine->out = p4_memory_again(machine->out, machine->out_room * sizeof *machine->out);
    }
    if (!p4_grow(&machine->out_bytes, length * 8)) {
        machine->lost(machine->owner, flight->origin);
        return;
    }
    size_t start = machine->out_bytes.length / 8;
    memcpy(machine->out_bytes.bytes + start, bytes, length);
    machine->out_bytes.length += length * 8;
    machine->out[machine->out_count++] = (struct sent){flight->origin, flight->port, start, length};
}

/* The packet is complete: it leaves, or is recirculated. */
static void after_deparser(struct p4_switch *machine, struct flight *flight)
{
    const struct p4_program *program = machine->program;
    struct p4_packet *packet = flight->packet;
    uint64_t longest = packet->truncates ? packet->truncate_length : flight->truncate;
    size_t length;
    if (!p4_put_rest(&packet->output, packet)) {
        lose(machine, flight);
        return;
    }
    length = (packet->output.length + 7) / 8;
    if (packet->output.length & 7)
        packet->output.bytes[length - 1] &= (uint8_t)(0xff00 >> (packet->output.length & 7));
    if ((packet->truncates || flight->truncates) && longest < length)
        length = longest;
    if (flight->longest && flight->longest < length)
        length = flight->longest;
    if (packet->recirculates) {
        struct flight *again = p4_flight_copy(machine, flight);
        p4_buffer_end(machine, again->buffer);
        again->buffer = p4_buffer_new(machine, packet->output.bytes, length);
        program->clear(again->packet);
        program->preserve(again->packet, packet, packet->recirculate_list, packet->recirculate_listed);
        again->port = program->ingress_port(packet);
        again->kind = RECIRCULATED;
        again->egress = false;
        again->longest = 0;
        p4_flight_put(&machine->next, again);
    } else {
        send(machine, flight, packet->output.bytes, length);
    }
    p4_flight_end(machine, flight);
}

/* Runs up to P4_BATCH flights. The resulting flights are in the next list. */
static void chunk(struct p4_switch *machine, struct flight **lanes, size_t count)
{
    const struct p4_program *program = machine->program;
    struct flight *clones[P4_BATCH] = {0};
    uint64_t ingress = 0, egress = 0, kept, sending = 0;
    for (size_t lane = 0; lane < count; lane++) {
        struct flight *flight = lanes[lane];
        struct p4_packet *packet = flight->packet;
        if (++machine->rounds[flight->origin % P4_BATCH] > ROUNDS) {
            lose(machine, flight);
            continue;
        }
        without_requests(packet);
        if (flight->egress) {
            program->begin_egress(packet, flight->port, flight->replica, flight->kind);
            packet->output.length = 0;
            egress |= UINT64_C(1) << lane;
        } else {
            begin(flight);
            program->begin_ingress(packet, flight->port, flight->kind);
            ingress |= UINT64_C(1) << lane;
        }
    }
    uint64_t processed = parsed_and_processed(machine, lanes, ingress, true);
    kept = run(machine, P4_EGRESS, lanes, egress);
    for (uint64_t rest = kept; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(rest);
        struct flight *flight = lanes[lane];
        struct p4_packet *packet = flight->packet;
        if (packet->clones) {
            clones[lane] = p4_flight_copy(machine, flight);
            program->preserve(clones[lane]->packet, packet, packet->clone_list, packet->clone_listed);
            clones[lane]->kind = EGRESS_CLONE;
            clones[lane]->replica = 0;
            uint32_t longest = longest_copy(machine, packet->clone_session);
            if (longest && (!flight->longest || longest < flight->longest))
                clones[lane]->longest = longest;
        }
        if (program->egress_spec(packet) != DROP_PORT)
            sending |= UINT64_C(1) << lane;
    }
    uint64_t complete = run(machine, P4_COMPUTE, lanes, sending);
    complete = run(machine, P4_DEPARSER, lanes, complete);
    for (uint64_t rest = ingress | egress; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(rest);
        uint64_t bit = UINT64_C(1) << lane;
        if (clones[lane]) {
            mirrored(machine, clones[lane]->packet->clone_session, clones[lane]);
            p4_flight_end(machine, clones[lane]);
        }
        if (processed & bit)
            after_ingress(machine, lanes[lane]);
        else if (complete & bit)
            after_deparser(machine, lanes[lane]);
        else if (kept & ~sending & bit)
            p4_flight_end(machine, lanes[lane]);
        else
            lose(machine, lanes[lane]);
    }
}

void p4_switch_flush(struct p4_switch *machine)
{
    if (machine->now.count == 0)
        return;
    p4_inside(machine->worker);
    memset(machine->rounds, 0, sizeof machine->rounds);
    while (machine->now.count) {
        for (size_t start = 0; start < machine->now.count; start += machine->batch) {
            size_t count = machine->now.count - start;
            chunk(machine, machine->now.flights + start, count < machine->batch ? count : machine->batch);
        }
        struct list done = machine->now;
        machine->now = machine->next;
        machine->next = done;
        machine->next.count = 0;
    }
    p4_outside(machine->worker);
    /* Send in the order of the received packets. */
    for (uint64_t origin = machine->number < P4_BATCH ? 0 : machine->number - P4_BATCH; origin < machine->number; origin++)
        for (size_t i = 0; i < machine->out_count; i++) {
            const struct sent *sent = &machine->out[i];
            if (sent->origin == origin)
                machine->sent(machine->owner, origin, sent->port, machine->out_bytes.bytes + sent->start, sent->length);
        }
    machine->out_count = 0;
    machine->out_bytes.length = 0;
}

void p4_switch_packet(struct p4_switch *machine, uint64_t port, const uint8_t *bytes, size_t length)
{
    struct flight *flight = p4_flight_new(machine);
    flight->buffer = p4_buffer_new(machine, bytes, length);
    flight->origin = machine->number++;
    flight->port = port;
    flight->kind = NORMAL;
    machine->program->clear(flight->packet);
    p4_flight_put(&machine->now, flight);
    if (machine->now.count >= machine->batch)
        p4_switch_flush(machine);
}

void p4_switch_batch(struct p4_switch *machine, unsigned batch)
{
    p4_switch_flush(machine);
    machine->batch = machine->program->one_at_a_time || batch == 0 ? 1 : batch > P4_BATCH ? P4_BATCH : batch;
}
