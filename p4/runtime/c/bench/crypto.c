/* Programs equivalent to DPDK's example l2fwd-crypto: packets leave on the partner of their port, encrypted. */
#include "bench.h"

#include <rte_cryptodev.h>
#include <rte_dev.h>
#include <rte_errno.h>

/* Ethernet, and IPv4 without options. */
#define HEADERS 34
/* IPv4 payload lengths: in frames of 64 bytes (which end with a checksum of 4 bytes that is not in memory), and in
   longer ones. */
#define SHORT_BYTES 26
#define MIDDLE_BYTES 256
#define LONG_BYTES 1024
#define BLOCK 16
#define DEVICE "crypto_aesni_mb"
/* Number of operations that can wait at a device, as in l2fwd-crypto. */
#define DESCRIPTORS 2048
#define OPERATIONS 8191
/* The initialization vector follows the operation. */
#define IV_OFFSET (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))

static const uint8_t session_of_program[2 * BLOCK] =
    "\x2b\x7e\x15\x16\x28\xae\xd2\xa6\xab\xf7\x15\x88\x09\xcf\x4f\x3c\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";

/* The first action of the program encrypts. */
static void set_session(const struct p4_program *program)
{
    uint8_t data[sizeof session_of_program + P4_SLACK] = {0};
    memcpy(data, session_of_program, sizeof session_of_program);
    p4_table_default(table_of(program, "session"), 0, data);
}

uint64_t crypto_fill(const struct p4_program *ours, uint64_t entries)
{
    set_session(ours);
    return l2fwd_fill(ours, entries);
}

static uint8_t device;
static void *session;
static struct rte_mempool *operations;

static void start_device(void)
{
    struct rte_cryptodev_config config = {.nb_queue_pairs = 1, .socket_id = SOCKET_ID_ANY};
    struct rte_cryptodev_qp_conf queue = {.nb_descriptors = DESCRIPTORS};
    struct rte_crypto_sym_xform cipher = {
        .type = RTE_CRYPTO_SYM_XFORM_CIPHER,
        .cipher = {.op = RTE_CRYPTO_CIPHER_OP_ENCRYPT, .algo = RTE_CRYPTO_CIPHER_AES_CBC, .key = {session_of_program, BLOCK},
            .iv = {IV_OFFSET, BLOCK}},
    };
    struct rte_mempool *sessions;
    int number;
    if (rte_eal_hotplug_add("vdev", DEVICE, "") < 0 || (number = rte_cryptodev_get_dev_id(DEVICE)) < 0)
        missing("DPDK has no driver " DEVICE " here: apt install librte-crypto-ipsec-mb23, or skip DPDK with --no-dpdk");
    device = (uint8_t)number;
    sessions = rte_cryptodev_sym_session_pool_create("sessions", 16, rte_cryptodev_sym_get_private_session_size(device), 0, 0, SOCKET_ID_ANY);
    operations = rte_crypto_op_pool_create("operations", RTE_CRYPTO_OP_TYPE_SYMMETRIC, OPERATIONS, 128, BLOCK, SOCKET_ID_ANY);
    queue.mp_session = sessions;
    if (!sessions || !operations || rte_cryptodev_configure(device, &config) < 0 ||
        rte_cryptodev_queue_pair_setup(device, 0, &queue, SOCKET_ID_ANY) < 0 || rte_cryptodev_start(device) < 0)
        fail("the crypto device failed to start");
    session = rte_cryptodev_sym_session_create(device, &cipher, sessions);
    if (!session)
        fail(rte_strerror(rte_errno));
}

bool crypto_fill_dpdk(const struct p4_program *theirs, uint64_t entries)
{
    set_session(theirs);
    start_device();
    return l2fwd_fill_dpdk(theirs, entries);
}

static uint32_t packet_of(uint8_t *to, uint32_t bytes, uint64_t random)
{
    ipv4_packet(to, 0, random);
    put_big(to + 16, HEADERS - 14 + bytes, 2);
    for (uint32_t at = 0; at < bytes; at += 8) {
        uint64_t word = random + at;
        memcpy(to + HEADERS + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
    return HEADERS + bytes;
}

uint32_t crypto_packet(uint8_t *to, uint64_t entry, uint64_t random)
{
    return packet_of(to, SHORT_BYTES, random * PORTS + entry);
}

uint32_t crypto_packet_256(uint8_t *to, uint64_t entry, uint64_t random)
{
    return packet_of(to, MIDDLE_BYTES, random * PORTS + entry);
}

uint32_t crypto_packet_1024(uint8_t *to, uint64_t entry, uint64_t random)
{
    return packet_of(to, LONG_BYTES, random * PORTS + entry);
}

/* Prepares an operation for the IPv4 payload of a packet, padded with zeros to whole blocks. */
static bool prepare(struct rte_crypto_op *operation, struct rte_mbuf *packet)
{
    const uint8_t *data = rte_pktmbuf_mtod(packet, const uint8_t *);
    uint32_t offset, length, missing;
    if (get_big(data + 12, 2) != 0x0800 || (data[14] & 15) < 5)
        return false;
    offset = 14 + 4u * (data[14] & 15);
    length = packet->data_len - offset;
    missing = -length & (BLOCK - 1);
    if (missing) {
        char *end = rte_pktmbuf_append(packet, (uint16_t)missing);
        if (!end)
            return false;
        memset(end, 0, missing);
    }
    rte_crypto_op_attach_sym_session(operation, session);
    memcpy(rte_crypto_op_ctod_offset(operation, uint8_t *, IV_OFFSET), session_of_program + BLOCK, BLOCK);
    operation->sym->m_src = packet;
    operation->sym->cipher.data.offset = offset;
    operation->sym->cipher.data.length = length + missing;
    return true;
}

/* Like l2fwd-crypto with AES-CBC and a software driver: sends a burst to the device, and forwards what the device
   returns. */
void crypto_by_hand(struct rte_mbuf **packets, unsigned count)
{
    struct rte_crypto_op *burst[HAND];
    unsigned sent = 0;
    if (rte_crypto_op_bulk_alloc(operations, RTE_CRYPTO_OP_TYPE_SYMMETRIC, burst, (uint16_t)count) == 0)
        fail("no crypto operations are available");
    for (unsigned i = 0; i < count; i++)
        if (!prepare(burst[i], packets[i]))
            fail("a packet cannot be encrypted");
    while (sent < count)
        sent += rte_cryptodev_enqueue_burst(device, 0, burst + sent, (uint16_t)(count - sent));
    for (unsigned waiting = count; waiting > 0;) {
        unsigned done = rte_cryptodev_dequeue_burst(device, 0, burst, HAND);
        for (unsigned i = 0; i < done; i++) {
            struct rte_mbuf *packet = burst[i]->sym->m_src;
            if (burst[i]->status != RTE_CRYPTO_OP_STATUS_SUCCESS)
                fail("a packet was not encrypted");
            rte_crypto_op_free(burst[i]);
            l2fwd_by_hand(&packet, 1);
        }
        waiting -= done;
    }
}
