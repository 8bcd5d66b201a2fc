/* Integers of more than 64 bits: words, the lowest one first, always with room for one more bit. Signed integers are
   sign-extended to all words. P4_WIDE(K) defines the type wK of K words and its functions. */
#ifndef P4_WIDE_H
#define P4_WIDE_H

#include "p4.h"

static inline void p4_wide_read(uint64_t *words, unsigned count, const uint8_t *bytes, uint64_t bit, uint64_t width)
{
    unsigned place;
    memset(words, 0, count * 8);
    for (place = 0; place < count && width > 0; place++) {
        unsigned part = width < 64 ? (unsigned)width : 64;
        words[place] = p4_get(bytes, bit + width - part, part);
        width -= part;
    }
}

static inline bool p4_wide_put(struct p4_sink *sink, const uint64_t *words, unsigned count, uint64_t width)
{
    while (width > 0) {
        unsigned part = (width - 1) % 64 + 1;
        uint64_t place = (width - part) / 64;
        if (!p4_put(sink, place < count ? words[place] : 0, part))
            return false;
        width -= part;
    }
    return true;
}

#define P4_WIDE(K) \
    typedef struct { uint64_t w[K]; } w##K; \
    static inline w##K w##K##_load(const uint64_t *words, unsigned count, bool sign) \
    { \
        w##K r; \
        uint64_t fill = sign && words[count - 1] >> 63 ? ~UINT64_C(0) : 0; \
        for (unsigned i = 0; i < K; i++) r.w[i] = i < count ? words[i] : fill; \
        return r; \
    } \
    static inline w##K w##K##_u(uint64_t value) { return w##K##_load(&value, 1, false); } \
    static inline w##K w##K##_s(int64_t value) { uint64_t word = (uint64_t)value; return w##K##_load(&word, 1, true); } \
    /* The value, or the largest word if it does not fit into one. */ \
    static inline uint64_t w##K##_word(w##K a) \
    { \
        for (unsigned i = 1; i < K; i++) if (a.w[i]) return ~UINT64_C(0); \
        return a.w[0]; \
    } \
    static inline w##K w##K##_wrap(w##K a, unsigned width) \
    { \
        for (unsigned i = 0; i < K; i++) { \
            if (i * 64 >= width) a.w[i] = 0; \
            else a.w[i] &= p4_mask(width - i * 64 < 64 ? width - i * 64 : 64); \
        } \
        return a; \
    } \
    static inline bool w##K##_bit(w##K a, unsigned bit) { return a.w[bit / 64] >> (bit % 64) & 1; } \
    static inline w##K w##K##_not(w##K a) { for (unsigned i = 0; i < K; i++) a.w[i] = ~a.w[i]; return a; } \
    static inline w##K w##K##_and(w##K a, w##K b) { for (unsigned i = 0; i < K; i++) a.w[i] &= b.w[i]; return a; } \
    static inline w##K w##K##_or(w##K a, w##K b) { for (unsigned i = 0; i < K; i++) a.w[i] |= b.w[i]; return a; } \
    static inline w##K w##K##_xor(w##K a, w##K b) { for (unsigned i = 0; i < K; i++) a.w[i] ^= b.w[i]; return a; } \
    static inline w##K w##K##_add(w##K a, w##K b) \
    { \
        unsigned __int128 sum = 0; \
        for (unsigned i = 0; i < K; i++) { sum += a.w[i]; sum += b.w[i]; a.w[i] = (uint64_t)sum; sum >>= 64; } \
        return a; \
    } \
    static inline w##K w##K##_neg(w##K a) { return w##K##_add(w##K##_not(a), w##K##_u(1)); } \
    static inline w##K w##K##_sub(w##K a, w##K b) { return w##K##_add(a, w##K##_neg(b)); } \
    static inline w##K w##K##_sign(w##K a, unsigned width) \
    { \
        a = w##K##_wrap(a, width); \
        if (width > 0 && w##K##_bit(a, width - 1)) a = w##K##_or(a, w##K##_not(w##K##_wrap(w##K##_s(-1), width))); \
        return a; \
    } \
    static inline w##K w##K##_mul(w##K a, w##K b) \
    { \
        w##K r = w##K##_u(0); \
        for (unsigned i = 0; i < K; i++) { \
            unsigned __int128 carry = 0; \
            for (unsigned j = 0; i + j < K; j++) { \
                carry += (unsigned __int128)a.w[i] * b.w[j] + r.w[i + j]; \
                r.w[i + j] = (uint64_t)carry; carry >>= 64; \
            } \
        } \
        return r; \
    } \
    static inline w##K w##K##_shl(w##K a, uint64_t count) \
    { \
        w##K r = w##K##_u(0); \
        if (count >= 64 * K) return r; \
        for (unsigned i = (unsigned)(count / 64); i < K; i++) { \
            unsigned from = i - (unsigned)(count / 64); \
            r.w[i] = a.w[from] << (count % 64); \
            if (count % 64 && from > 0) r.w[i] |= a.w[from - 1] >> (64 - count % 64); \
        } \
        return r; \
    } \
    static inline w##K w##K##_shift_right(w##K a, uint64_t count, uint64_t fill) \
    { \
        w##K r; \
        for (unsigned i = 0; i < K; i++) { \
            uint64_t from = count >= 64 * K ? K : i + count / 64; \
            uint64_t low = from < K ? a.w[from] : fill, high = from + 1 < K ? a.w[from + 1] : fill; \
            r.w[i] = count % 64 ? low >> (count % 64) | high << (64 - count % 64) : low; \
        } \
        return r; \
    } \
    static inline w##K w##K##_shr(w##K a, uint64_t count) { return w##K##_shift_right(a, count, 0); } \
    static inline w##K w##K##_sar(w##K a, uint64_t count) \
    { \
        return w##K##_shift_right(a, count, a.w[K - 1] >> 63 ? ~UINT64_C(0) : 0); \
    } \
    static inline bool w##K##_eq(w##K a, w##K b) { return memcmp(a.w, b.w, sizeof a.w) == 0; } \
    static inline bool w##K##_lt(w##K a, w##K b) \
    { \
        for (unsigned i = K; i-- > 0;) if (a.w[i] != b.w[i]) return a.w[i] < b.w[i]; \
        return false; \
    } \
    static inline bool w##K##_slt(w##K a, w##K b) \
    { \
        bool x = a.w[K - 1] >> 63, y = b.w[K - 1] >> 63; \
        return x != y ? x : w##K##_lt(a, b); \
    } \
    /* An undefined result is zero. */ \
    static inline w##K w##K##_divide(w##K a, w##K b, bool remainder) \
    { \
        w##K quotient = w##K##_u(0), rest = w##K##_u(0); \
        if (w##K##_eq(b, quotient)) return quotient; \
        for (unsigned i = 64 * K; i-- > 0;) { \
            rest = w##K##_shl(rest, 1); \
            rest.w[0] |= w##K##_bit(a, i); \
            if (!w##K##_lt(rest, b)) { rest = w##K##_sub(rest, b); quotient.w[i / 64] |= UINT64_C(1) << (i % 64); } \
        } \
        return remainder ? rest : quotient; \
    } \
    static inline w##K w##K##_div(w##K a, w##K b) { return w##K##_divide(a, b, false); } \
    static inline w##K w##K##_mod(w##K a, w##K b) { return w##K##_divide(a, b, true); } \
    static inline w##K w##K##_sdiv(w##K a, w##K b) \
    { \
        bool x = a.w[K - 1] >> 63, y = b.w[K - 1] >> 63; \
        w##K r = w##K##_div(x ? w##K##_neg(a) : a, y ? w##K##_neg(b) : b); \
        return x != y ? w##K##_neg(r) : r; \
    } \
    static inline w##K w##K##_smod(w##K a, w##K b) \
    { \
        bool x = a.w[K - 1] >> 63, y = b.w[K - 1] >> 63; \
        w##K r = w##K##_mod(x ? w##K##_neg(a) : a, y ? w##K##_neg(b) : b); \
        return x ? w##K##_neg(r) : r; \
    } \
    static inline w##K w##K##_sat(w##K a, unsigned width, bool sign) \
    { \
        w##K low = sign ? w##K##_neg(w##K##_shl(w##K##_u(1), width - 1)) : w##K##_u(0); \
        w##K high = w##K##_wrap(w##K##_s(-1), sign ? width - 1 : width); \
        return w##K##_slt(a, low) ? low : w##K##_slt(high, a) ? high : a; \
    } \
    static inline w##K w##K##_insert(w##K a, unsigned high, unsigned low, w##K part) \
    { \
        w##K mask = w##K##_shl(w##K##_wrap(w##K##_s(-1), high - low + 1), low); \
        return w##K##_or(w##K##_and(a, w##K##_not(mask)), w##K##_and(w##K##_shl(part, low), mask)); \
    } \
    static inline w##K w##K##_get(const uint8_t *bytes, uint64_t bit, uint64_t width) \
    { \
        w##K r; \
        p4_wide_read(r.w, K, bytes, bit, width); \
        return r; \
    } \
    static inline w##K w##K##_hash(const struct p4_sink *data, uint64_t algorithm) \
    { \
        return algorithm == 5 ? w##K##_get(data->bytes, 0, data->length) : w##K##_u(p4_hash(data, algorithm)); \
    }

#endif
