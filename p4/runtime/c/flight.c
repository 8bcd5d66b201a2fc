/* Creation, configuration and end of switches, and the memory of packets in flight. */
#include "flight.h"

#include <stdlib.h>

void p4_flight_put(struct list *list, struct flight *flight)
{
    if (list->count == list->room) {
        list->room = list->room * 2 + P4_BATCH;
        list->flights = p4_memory_again(list->flights, list->room * sizeof *list->flights);
    }
    list->flights[list->count++] = flight;
}

struct flight *p4_flight_new(struct p4_switch *machine)
{
    struct flight *flight = machine->spare;
    if (flight) {
        machine->spare = flight->next;
    } else {
        flight = p4_memory(sizeof *flight);
        flight->packet = p4_memory(machine->program->packet_bytes);
    }
    struct p4_packet *packet = flight->packet;
    *flight = (struct flight){.packet = packet};
    return flight;
}

void p4_flight_end(struct p4_switch *machine, struct flight *flight)
{
    p4_buffer_end(machine, flight->buffer);
    flight->next = machine->spare;
    machine->spare = flight;
}

/* Buffers of the usual size are kept for later packets. */
#define USUAL_BYTES 2048

struct buffer *p4_buffer_new(struct p4_switch *machine, const uint8_t *bytes, size_t length)
{
    struct buffer *buffer = length <= USUAL_BYTES ? machine->spare_buffers : NULL;
    if (buffer) {
        machine->spare_buffers = buffer->next;
    } else {
        size_t room = length <= USUAL_BYTES ? USUAL_BYTES : length;
        buffer = p4_memory(sizeof *buffer + room + P4_SLACK);
        buffer->usual = length <= USUAL_BYTES;
    }
    buffer->references = 1;
    buffer->length = length;
    memcpy(buffer->bytes, bytes, length);
    return buffer;
}

void p4_buffer_end(struct p4_switch *machine, struct buffer *buffer)
{
    if (--buffer->references > 0)
        return;
    if (buffer->usual) {
        buffer->next = machine->spare_buffers;
        machine->spare_buffers = buffer;
    } else {
        free(buffer);
    }
}

void p4_packet_own(struct p4_packet *packet)
{
    struct p4_sink *own = &packet->own;
    size_t needed = packet->length + 2 * P4_SLACK;
    if (own->bytes && packet->data == own->bytes)
        return;
    if (own->capacity < needed) {
        own->bytes = p4_memory_again(own->bytes, needed);
        own->capacity = needed;
    }
    memcpy(own->bytes, packet->data, packet->length);
    packet->data = own->bytes;
}

/* A flight with the same state. */
struct flight *p4_flight_copy(struct p4_switch *machine, const struct flight *from)
{
    struct flight *copy = p4_flight_new(machine);
    struct p4_packet *packet = copy->packet;
    struct p4_sink output = packet->output, own = packet->own;
    bool changed = from->packet->own.bytes && from->packet->data == from->packet->own.bytes;
    *copy = *from;
    copy->packet = packet;
    memcpy(packet, from->packet, machine->program->packet_bytes);
    packet->output = output;
    packet->own = own;
    if (changed)
        p4_packet_own(packet);
    copy->buffer->references++;
    return copy;
}

struct p4_switch *p4_switch_new(const struct p4_program *program, p4_sent *sent, p4_lost *lost, void *owner)
{
    struct p4_switch *machine = p4_memory(sizeof *machine);
    machine->program = program;
    machine->worker = p4_worker_new();
    if (!machine->worker) {
        free(machine);
        return NULL;
    }
    machine->sent = sent;
    machine->lost = lost;
    machine->owner = owner;
    machine->batch = 1;
    p4_switch_batch(machine, program->batch);
    return machine;
}

void p4_switch_free(struct p4_switch *machine)
{
    p4_switch_flush(machine);
    p4_worker_free(machine->worker);
    while (machine->spare) {
        struct flight *flight = machine->spare;
        machine->spare = flight->next;
        free(flight->packet->output.bytes);
        free(flight->packet->own.bytes);
        free(flight->packet);
        free(flight);
    }
    while (machine->spare_buffers) {
        struct buffer *buffer = machine->spare_buffers;
        machine->spare_buffers = buffer->next;
        free(buffer);
    }
    free(machine->now.flights);
    free(machine->next.flights);
    free(machine->out);
    free(machine->out_bytes.bytes);
    free(machine->mirrors.list);
    free(machine->groups.list);
    free(machine);
}

static void target_add(struct targets *targets, struct target target)
{
    targets->list = p4_memory_again(targets->list, (targets->count + 1) * sizeof *targets->list);
    targets->list[targets->count++] = target;
}

static void target_delete(struct targets *targets, uint64_t number, int group)
{
    size_t kept = 0;
    for (size_t i = 0; i < targets->count; i++)
        if (targets->list[i].number != number || (group >= 0 && targets->list[i].group != (bool)group))
            targets->list[kept++] = targets->list[i];
    targets->count = kept;
}

void p4_switch_mirror(struct p4_switch *machine, uint64_t session, bool group, uint64_t target, uint32_t longest)
{
    p4_switch_flush(machine);
    target_delete(&machine->mirrors, session, group);
    target_add(&machine->mirrors, (struct target){.number = session, .port = target, .longest = longest, .group = group});
}

void p4_switch_mirror_delete(struct p4_switch *machine, uint64_t session)
{
    p4_switch_flush(machine);
    target_delete(&machine->mirrors, session, -1);
}

void p4_switch_group(struct p4_switch *machine, uint64_t group)
{
    p4_switch_flush(machine);
    target_delete(&machine->groups, group, -1);
}

void p4_switch_group_add(struct p4_switch *machine, uint64_t group, uint64_t replica, uint64_t port)
{
    p4_switch_flush(machine);
    target_add(&machine->groups, (struct target){.number = group, .replica = replica, .port = port, .group = true});
}
