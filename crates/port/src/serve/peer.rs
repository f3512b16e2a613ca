//! Finds the user of a local connection's other end by asking the kernel.

use std::net::SocketAddr;

use tokio::net::TcpStream;

/// Whether the other end is a local process of our user or root; false if that is unknown.
#[cfg(target_os = "linux")]
pub(super) fn is_own(stream: &TcpStream) -> bool {
    let ends = stream.peer_addr().ok().zip(stream.local_addr().ok());
    let owner = ends.and_then(|(peer, own)| linux::owner(peer, own));
    owner.is_some_and(|uid| uid == 0 || uid == nix::unistd::geteuid().as_raw())
}

/// Other systems don't report it.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_own(stream: &TcpStream) -> bool {
    let is_local = |peer: SocketAddr| peer.ip().to_canonical().is_loopback();
    stream.peer_addr().is_ok_and(is_local)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::IpAddr;
    use std::os::fd::AsRawFd as _;

    use nix::libc::{IPPROTO_TCP, NLM_F_REQUEST};
    use nix::sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
    };

    use super::SocketAddr;

    /// `SOCK_DIAG_BY_FAMILY`, the type of query and answer.
    const BY_FAMILY: u16 = 20;

    /// Bytes of a `nlmsghdr`, and of the `inet_diag_req_v2` behind it.
    const HEADER: usize = 16;
    const QUESTION: usize = 56;

    /// Offsets of user and inode in an answer, an `inet_diag_msg` behind a `nlmsghdr`.
    const UID: usize = HEADER + 64;
    const INODE: usize = HEADER + 68;

    /// Returns the owner of the socket with these two ends, if it is in this network namespace and
    /// a process holds it.
    pub(super) fn owner(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        let netlink = socket(
            AddressFamily::Netlink,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkSockDiag,
        )
        .ok()?;
        send(netlink.as_raw_fd(), &question(local, remote), MsgFlags::empty()).ok()?;
        let mut answer = [0; 1024];
        // The kernel answers before `send` returns.
        let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT).ok()?;
        let answer = &answer[..length];
        let number = |at: usize| {
            let bytes = answer.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        if answer.get(4..6)? != BY_FAMILY.to_ne_bytes() {
            return None;
        }
        // A socket without a holder has no inode, and is listed as root's.
        (number(INODE)? != 0).then(|| number(UID))?
    }

    fn question(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
        let (from, to) = (local.ip().to_canonical(), remote.ip().to_canonical());
        let family = if from.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let mut question = Vec::with_capacity(HEADER + QUESTION);
        #[expect(clippy::cast_possible_truncation, reason = "72, and small constants")]
        {
            question.extend(((HEADER + QUESTION) as u32).to_ne_bytes());
            question.extend(BY_FAMILY.to_ne_bytes());
            question.extend((NLM_F_REQUEST as u16).to_ne_bytes());
            // Sequence number and port id, which the kernel fills in.
            question.extend([0; 8]);
            question.extend([family as u8, IPPROTO_TCP as u8, 0, 0]);
        }
        // In any state.
        question.extend(u32::MAX.to_ne_bytes());
        question.extend(local.port().to_be_bytes());
        question.extend(remote.port().to_be_bytes());
        for ip in [from, to] {
            let mut bytes = [0; 16];
            match ip {
                IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => bytes.copy_from_slice(&ip.octets()),
            }
            question.extend(bytes);
        }
        // On any interface, with any cookie.
        question.extend(0_u32.to_ne_bytes());
        question.extend([u8::MAX; 8]);
        question
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{Ipv4Addr, Ipv6Addr};

    use tokio::net::TcpListener;

    use super::*;

    async fn connected(listen: SocketAddr, to: impl Into<SocketAddr>) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(listen).await.unwrap();
        let mut to = to.into();
        to.set_port(listener.local_addr().unwrap().port());
        let (near, accepted) = tokio::join!(TcpStream::connect(to), listener.accept());
        (near.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn our_own_connections_are_known_by_either_protocol() {
        let v4 = (Ipv4Addr::LOCALHOST, 0);
        let mapped = (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), 0);
        let (_near, accepted) = connected(v4.into(), v4).await;
        assert!(is_own(&accepted));
        let (_near, accepted) = connected(v4.into(), mapped).await;
        assert!(is_own(&accepted));
        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok() {
            let (_near, accepted) =
                connected((Ipv6Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0)).await;
            assert!(is_own(&accepted));
            let (_near, accepted) = connected((Ipv6Addr::UNSPECIFIED, 0).into(), v4).await;
            assert!(is_own(&accepted));
        }
    }

    #[tokio::test]
    async fn a_connection_that_nobody_holds_any_more_is_nobodys() {
        let v4 = (Ipv4Addr::LOCALHOST, 0);
        let (near, accepted) = connected(v4.into(), v4).await;
        drop(near);
        assert!(!is_own(&accepted));
    }
}
