/* Encryption of payloads with AES-128-CBC, by the library intel-ipsec-mb, for programs that include namehop.p4. The
   blocks of one packet depend on each other, so only different packets can be processed in parallel: all waiting
   packets of a batch are passed to the library together. */
#ifndef P4_CIPHER_H
#define P4_CIPHER_H

#include "p4.h"

#if !__has_include(<intel-ipsec-mb.h>)
#error the headers of intel-ipsec-mb are missing
#endif
#include <intel-ipsec-mb.h>
#if IMB_VERSION_NUM < IMB_VERSION(1, 3, 0)
#error intel-ipsec-mb is older than version 1.3
#endif
#include <stdio.h>
#include <stdlib.h>

#define P4_CIPHER_BLOCK 16
/* Size of the round keys of AES-128, in bytes. */
#define P4_CIPHER_ROUNDS (11 * 16)

struct p4_cipher_schedule {
    _Alignas(16) uint8_t encrypt[P4_CIPHER_ROUNDS];
    _Alignas(16) uint8_t decrypt[P4_CIPHER_ROUNDS];
};

/* Encryption state of a thread: waiting payloads, and their keys. */
struct p4_cipher {
    IMB_MGR *manager;
    /* Key of the last packet. */
    uint64_t key[2];
    /* More schedules than packets can wait, so that the one that is written next is unused. */
    struct p4_cipher_schedule schedules[P4_BATCH + 1];
    const struct p4_cipher_schedule *schedule;
    unsigned next_schedule;
    /* Jobs to decrypt, and jobs to encrypt. */
    unsigned counts[2];
    IMB_JOB jobs[2][P4_BATCH];
    uint64_t ivs[2][P4_BATCH][2];
};

/* Lives as long as its thread; threads that process packets live as long as the process. */
static __thread struct p4_cipher *p4_cipher_of_thread __attribute__((tls_model("initial-exec")));

static void p4_cipher_fail(const char *why)
{
    fprintf(stderr, "cannot encrypt packets: %s\n", why);
    exit(3);
}

static P4_APART struct p4_cipher *p4_cipher_new(void)
{
    size_t bytes = (sizeof(struct p4_cipher) + 63) / 64 * 64;
    struct p4_cipher *cipher = aligned_alloc(64, bytes);
    if (!cipher)
        p4_cipher_fail("out of memory");
    memset(cipher, 0, bytes);
    cipher->manager = alloc_mb_mgr(0);
    if (!cipher->manager)
        p4_cipher_fail("intel-ipsec-mb failed to start");
    init_mb_mgr_auto(cipher->manager, NULL);
    if (imb_get_errno(cipher->manager))
        p4_cipher_fail(imb_get_strerror(imb_get_errno(cipher->manager)));
    for (unsigned encrypts = 0; encrypts < 2; encrypts++)
        for (unsigned i = 0; i < P4_BATCH; i++) {
            IMB_JOB *job = &cipher->jobs[encrypts][i];
            job->key_len_in_bytes = IMB_KEY_128_BYTES;
            job->iv = (const uint8_t *)cipher->ivs[encrypts][i];
            job->iv_len_in_bytes = P4_CIPHER_BLOCK;
            job->cipher_mode = IMB_CIPHER_CBC;
            job->cipher_direction = encrypts ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
            job->chain_order = IMB_ORDER_CIPHER_HASH;
            job->hash_alg = IMB_AUTH_NULL;
        }
    p4_cipher_of_thread = cipher;
    return cipher;
}

static P4_APART void p4_cipher_expand(struct p4_cipher *cipher, const uint64_t *key)
{
    struct p4_cipher_schedule *schedule = &cipher->schedules[cipher->next_schedule];
    cipher->next_schedule = (cipher->next_schedule + 1) % (P4_BATCH + 1);
    IMB_AES_KEYEXP_128(cipher->manager, key, schedule->encrypt, schedule->decrypt);
    memcpy(cipher->key, key, sizeof cipher->key);
    cipher->schedule = schedule;
}

/* Writes fewer zeros than a block has, in words that may overlap. */
static inline void p4_cipher_fill(uint8_t *to, uint32_t count)
{
    if (count >= 8) {
        memset(to, 0, 8);
        memset(to + count - 8, 0, 8);
    } else if (count >= 4) {
        memset(to, 0, 4);
        memset(to + count - 4, 0, 4);
    } else {
        while (count > 0)
            to[--count] = 0;
    }
}

/* Words with their highest bits first. */
struct p4_cipher_words {
    uint64_t key[2], iv[2];
};

/* Adds a job that encrypts or decrypts bytes in whole blocks. The last block is padded with zeros, so
   P4_CIPHER_BLOCK - 1 bytes must be writable behind the last byte. Returns the number of bytes added. */
static inline uint32_t p4_cipher_add(bool encrypts, uint8_t *bytes, uint64_t count, const struct p4_cipher_words *words)
{
    struct p4_cipher *cipher = p4_cipher_of_thread;
    uint32_t added = (uint32_t)-count & (P4_CIPHER_BLOCK - 1);
    if (__builtin_expect(!cipher, 0))
        cipher = p4_cipher_new();
    uint64_t key[2] = {__builtin_bswap64(words->key[0]), __builtin_bswap64(words->key[1])};
    if (__builtin_expect(!cipher->schedule || key[0] != cipher->key[0] || key[1] != cipher->key[1], 0))
        p4_cipher_expand(cipher, key);
    p4_cipher_fill(bytes + count, added);
    unsigned place = cipher->counts[encrypts]++;
    cipher->ivs[encrypts][place][0] = __builtin_bswap64(words->iv[0]);
    cipher->ivs[encrypts][place][1] = __builtin_bswap64(words->iv[1]);
    IMB_JOB *job = &cipher->jobs[encrypts][place];
    job->enc_keys = cipher->schedule->encrypt;
    job->dec_keys = cipher->schedule->decrypt;
    job->src = job->dst = bytes;
    job->msg_len_to_cipher_in_bytes = count + added;
    return added;
}

/* Adds a job for the payload of a packet, which begins behind the parsed part, from a byte offset on. Returns false
   if it begins within a byte, or if there is no room for whole blocks. */
static inline bool p4_cipher_payload(struct p4_packet *packet, bool encrypts, uint8_t *data, uint64_t *length, uint64_t position,
    uint64_t offset, struct p4_cipher_words words)
{
    uint64_t start = position / 8 + offset;
    if (position & 7)
        return false;
    if (start >= *length)
        return true;
    packet->grown += (uint8_t)(start - *length) & (P4_CIPHER_BLOCK - 1);
    if (packet->grown > P4_SLACK)
        return false;
    *length += p4_cipher_add(encrypts, data + start, *length - start, &words);
    return true;
}

/* The same for a packet that is processed in place. */
static inline bool p4_cipher_frame(struct p4_packet *packet, struct p4_frame *frame, bool encrypts, uint64_t position, uint64_t offset,
    struct p4_cipher_words words)
{
    uint64_t length = frame->length;
    if (!p4_cipher_payload(packet, encrypts, p4_frame_data(frame), &length, position, offset, words))
        return false;
    frame->length = (uint16_t)length;
    frame->whole_length = frame->length;
    return true;
}

/* The same for a packet that may have been copied: it first gets its own copy of the bytes. */
static inline bool p4_cipher_packet(struct p4_packet *packet, bool encrypts, uint64_t offset, struct p4_cipher_words words)
{
    p4_packet_own(packet);
    return p4_cipher_payload(packet, encrypts, packet->own.bytes, &packet->length, packet->position, offset, words);
}

/* Encrypts and decrypts all waiting payloads. */
static inline void p4_cipher_all(void)
{
    struct p4_cipher *cipher = p4_cipher_of_thread;
    for (unsigned encrypts = 0; cipher && encrypts < 2; encrypts++) {
        unsigned count = cipher->counts[encrypts];
        IMB_CIPHER_DIRECTION direction = encrypts ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
        if (count == 0)
            continue;
        cipher->counts[encrypts] = 0;
        if (IMB_SUBMIT_CIPHER_BURST_NOCHECK(cipher->manager, cipher->jobs[encrypts], count, IMB_CIPHER_CBC, direction,
                IMB_KEY_128_BYTES) != count)
            p4_cipher_fail(imb_get_strerror(imb_get_errno(cipher->manager)));
    }
}

#endif
