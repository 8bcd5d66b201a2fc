// Extensions of Namehop beyond v1model. Not part of any other architecture.

#define _NAMEHOP_P4_

// Encrypt and decrypt the payload of the packet with AES-128 in CBC mode (NIST SP 800-38A), from the given byte to the
// end of the packet. The payload is what the parser has not extracted. It is first padded with zeros to whole blocks of
// 16 bytes, which makes the packet longer. A packet may grow by at most 16 bytes; otherwise it is lost. If the payload
// has no byte at the offset, nothing changes. The first byte of a key and of an initialization vector is in its highest
// bits.
extern void aes_cbc_encrypt(in bit<32> offset, in bit<128> key, in bit<128> iv);
extern void aes_cbc_decrypt(in bit<32> offset, in bit<128> key, in bit<128> iv);
