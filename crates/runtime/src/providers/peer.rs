//! Finds out whether a process of an agent has the other end of a connection on loopback: the kernel says which socket
//! it is, and `/proc` who has that.

use crate::endpoint::AgentConnection;
use crate::process::Family;

/// Whether one of an agent's processes has the other end. Blocks.
#[cfg(target_os = "linux")]
pub(super) fn is_of(family: &Family, from: &AgentConnection) -> bool {
    linux::socket_of(from.peer, from.local)
        .is_some_and(|socket| linux::has_socket(family.processes(), &socket))
}

/// Other systems don't say it: the token alone tells.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_of(_: &Family, _: &AgentConnection) -> bool {
    true
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, read_dir, read_link};
    use std::io::{BufRead as _, BufReader};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::os::fd::AsRawFd as _;

    use nix::sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
    };

    /// Sockets, and descriptors of a process, that are looked at.
    const MOST: usize = 1_000_000;

    /// The socket with this end and that other end, as a descriptor names it.
    pub(super) fn socket_of(own: SocketAddr, other: SocketAddr) -> Option<String> {
        if let Some(inode) = asked_inode(own, other) {
            return Some(format!("socket:[{inode}]"));
        }
        // A client may have connected by an IPv6 socket to the IPv4 address.
        let mut lines = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(|table| {
            let lines = File::open(table).map(BufReader::new).into_iter();
            lines.flat_map(|table| table.lines().map_while(Result::ok)).take(MOST)
        });
        let inode = lines.find_map(|line| inode(&line, own, other))?;
        Some(format!("socket:[{inode}]"))
    }

    /// Asks the kernel for one socket (`sock_diag`), which takes as long however many there are. None: it does not
    /// say, and the table may.
    fn asked_inode(own: SocketAddr, other: SocketAddr) -> Option<u64> {
        const BY_FAMILY: u16 = 20;
        const REQUEST: u16 = 1;
        const TCP: u8 = 6;
        const INET: u8 = 2;
        // The header of netlink, `inet_diag_req_v2`, and within that `inet_diag_sockid`.
        const LENGTH: u32 = 16 + 8 + 48;
        let (IpAddr::V4(own_ip), IpAddr::V4(other_ip)) =
            (own.ip().to_canonical(), other.ip().to_canonical())
        else {
            return None;
        };
        let mut request = Vec::with_capacity(LENGTH as usize);
        request.extend(LENGTH.to_ne_bytes());
        request.extend(BY_FAMILY.to_ne_bytes());
        request.extend(REQUEST.to_ne_bytes());
        request.extend([0; 8]);
        request.extend([INET, TCP, 0, 0]);
        request.extend(u32::MAX.to_ne_bytes());
        let ports = [own.port().to_be_bytes(), other.port().to_be_bytes()].concat();
        request.extend(&ports);
        for ip in [own_ip, other_ip] {
            request.extend(ip.octets());
            request.extend([0; 12]);
        }
        request.extend([0; 4]);
        // No cookie.
        request.extend([0xff; 8]);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let kind = (AddressFamily::Netlink, SockType::Raw, SockProtocol::NetlinkSockDiag);
        let kernel = socket(kind.0, kind.1, flags, kind.2).ok()?;
        send(kernel.as_raw_fd(), &request, MsgFlags::empty()).ok()?;
        let mut answer = [0; 512];
        // It answers before `send` returns.
        let length = recv(kernel.as_raw_fd(), &mut answer, MsgFlags::empty()).ok()?;
        let answer = answer.get(..length)?;
        let is_it = answer.get(4..6)? == BY_FAMILY.to_ne_bytes() && answer.get(20..24)? == ports;
        let inode = u32::from_ne_bytes(answer.get(84..88)?.try_into().ok()?);
        (is_it && inode != 0).then_some(inode.into())
    }

    /// Whether one of these processes has it open.
    pub(super) fn has_socket(pids: Vec<u32>, socket: &str) -> bool {
        pids.into_iter().any(|pid| {
            let open = read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let mut open = open.take(MOST).filter_map(|it| read_link(it.path()).ok());
            open.any(|open| open.as_os_str() == socket)
        })
    }

    /// The inode of a line's socket, if it has these ends.
    fn inode(line: &str, own: SocketAddr, other: SocketAddr) -> Option<u64> {
        const INODE: usize = 9;
        let words: Vec<&str> = line.split_ascii_whitespace().take(INODE + 1).collect();
        let is_it = address(words.get(1)?)? == canonical(own)
            && address(words.get(2)?)? == canonical(other);
        // A socket that is closing has none.
        is_it.then(|| words.get(INODE)?.parse().ok().filter(|inode| *inode != 0))?
    }

    fn canonical(address: SocketAddr) -> (IpAddr, u16) {
        (address.ip().to_canonical(), address.port())
    }

    /// Reads `0100007F:1F90`: words of 32 bits, as the machine has them in memory.
    fn address(text: &str) -> Option<(IpAddr, u16)> {
        let (ip, port) = text.split_once(':')?;
        let word = |at: usize| {
            let digits = ip.get(at * 8..at * 8 + 8)?;
            Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
        };
        let ip = match ip.len() {
            8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
            32 => {
                let words = [word(0)?, word(1)?, word(2)?, word(3)?];
                let bytes: [u8; 16] = words.concat().try_into().ok()?;
                IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
            }
            _ => return None,
        };
        Some((ip, u16::from_str_radix(port, 16).ok()?))
    }

    #[cfg(test)]
    mod tests {
        #![allow(clippy::unwrap_used)]
        use std::net::{TcpListener, TcpStream};

        use super::*;

        #[test]
        fn the_process_that_has_the_other_end_is_found_and_no_other_one() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let local = listener.local_addr().unwrap();
            let client = TcpStream::connect(local).unwrap();
            let mapped = SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), local.port()));
            let by_v6 = TcpStream::connect(mapped).unwrap();
            for client in [&client, &by_v6] {
                let (_served, peer) = listener.accept().unwrap();
                let socket = socket_of(peer, local).unwrap();
                assert!(has_socket(vec![std::process::id()], &socket), "{client:?}");
                assert!(!has_socket(vec![1, u32::MAX], &socket) || std::process::id() == 1);
                let beside = SocketAddr::from(([127, 0, 0, 2], peer.port()));
                assert_eq!(socket_of(beside, local), None);
                // Where the kernel says it, it is what the table says.
                let asked = asked_inode(peer, local).map(|inode| format!("socket:[{inode}]"));
                assert!(asked.is_none_or(|asked| asked == socket), "{client:?}");
            }
        }
    }
}
