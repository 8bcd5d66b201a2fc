/*
 * What the AF_PACKET driver of DPDK leaves to others: state and address of a kernel interface, membership in Ethernet
 * multicast groups, and a descriptor that becomes readable when an NDN frame arrives, for a worker that sleeps.
 */
#include "shim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ethernet type of NDN. */
#define ETHERTYPE_NDN 0x8624
/* Frames that are forgotten at once. Whatever is left rings the bell once more. */
#define MOST_KEPT 1024

static int request(int descriptor, const char *name, unsigned long code, struct ifreq *answer)
{
    memset(answer, 0, sizeof(*answer));
    if (strlen(name) >= sizeof(answer->ifr_name))
        return -ENAMETOOLONG;
    strcpy(answer->ifr_name, name);
    return ioctl(descriptor, code, answer) < 0 ? -errno : 0;
}

int namehop_interface_query(const char *name, struct namehop_interface *interface)
{
    struct ifreq answer;
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -errno;
    int result = request(descriptor, name, SIOCGIFMTU, &answer);
    if (result == 0) {
        interface->mtu_bytes = answer.ifr_mtu < 0 ? 0 : (uint32_t)answer.ifr_mtu;
        result = request(descriptor, name, SIOCGIFFLAGS, &answer);
    }
    if (result == 0) {
        interface->is_up = (answer.ifr_flags & IFF_UP) != 0 && (answer.ifr_flags & IFF_RUNNING) != 0;
        result = request(descriptor, name, SIOCGIFHWADDR, &answer);
    }
    if (result == 0)
        memcpy(interface->address, answer.ifr_hwaddr.sa_data, sizeof(interface->address));
    close(descriptor);
    return result;
}

int namehop_interface_arm(int descriptor, int armed)
{
    /* Keeps one byte of a frame, or nothing at all. */
    struct sock_filter instruction = BPF_STMT(BPF_RET | BPF_K, armed ? 1 : 0);
    struct sock_fprog program = {.len = 1, .filter = &instruction};
    char byte;
    if (setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
        return -errno;
    /* What was kept before; also takes an error that would make the descriptor readable for ever. */
    for (int kept = 0; kept < MOST_KEPT && recv(descriptor, &byte, 1, MSG_DONTWAIT) >= 0; kept++)
        ;
    return 0;
}

int namehop_interface_listen(const char *name)
{
    unsigned int index = if_nametoindex(name);
    if (index == 0)
        return -errno;
    /* No protocol before the filter is in place: nothing is kept that arrives until then. */
    int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -errno;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE_NDN), .sll_ifindex = (int)index};
    int result = namehop_interface_arm(descriptor, 0);
    if (result == 0 && bind(descriptor, (struct sockaddr *)&address, sizeof(address)) < 0)
        result = -errno;
    if (result < 0) {
        close(descriptor);
        return result;
    }
    return descriptor;
}

int namehop_interface_join(int descriptor, const char *name, const uint8_t group[6], int join)
{
    struct packet_mreq membership = {
        .mr_ifindex = (int)if_nametoindex(name), .mr_type = PACKET_MR_MULTICAST, .mr_alen = 6};
    memcpy(membership.mr_address, group, 6);
    int option = join ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP;
    return setsockopt(descriptor, SOL_PACKET, option, &membership, sizeof(membership)) < 0 ? -errno : 0;
}
