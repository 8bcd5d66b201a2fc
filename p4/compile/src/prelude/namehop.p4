// What programs for Namehop can have besides v1model. Not part of any architecture of others.

#define _NAMEHOP_P4_

// Encrypt and decrypt the payload of the packet with AES-128 in CBC mode (NIST SP 800-38A), from a byte of it on to the end of the
// packet. The payload is what the parser has not extracted. When it does not end at a whole block of 16 bytes, zeros are appended first,
// and the packet becomes longer by these; it becomes longer by at most 16 bytes, or is lost. Where the payload has no byte at the
// offset, nothing changes. The first byte of a key and of an initialization vector is in its highest bits.
extern void aes_cbc_encrypt(in bit<32> offset, in bit<128> key, in bit<128> iv);
extern void aes_cbc_decrypt(in bit<32> offset, in bit<128> key, in bit<128> iv);
