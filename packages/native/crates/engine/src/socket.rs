//! What is asked of a socket.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix};

use crate::error::EngineError;

/// Connections that may wait to be accepted; the system cuts it to its `somaxconn`.
const BACKLOG: i32 = 4_096;
/// Bytes that the kernel takes before it has sent them. Without it a stalled peer pins 3.9 MB of kernel memory (measured).
const MAX_UNSENT_BYTES: usize = 128 << 10;
#[cfg(target_os = "linux")]
const TCP_NOTSENT_LOWAT: libc::c_int = libc::TCP_NOTSENT_LOWAT;
/// From `netinet/tcp.h`; the libc crate does not have it.
#[cfg(target_os = "macos")]
const TCP_NOTSENT_LOWAT: libc::c_int = 0x201;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    At(SocketAddr),
    /// Whoever may open the file of the Unix socket.
    Unix,
}

pub(crate) fn listen(address: SocketAddr) -> Result<OwnedFd, EngineError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = system::open(family)?;
    set_socket_reuseaddr(&socket, true)?;
    tune(&socket)?;
    rustix::net::bind(&socket, &address)
        .and_then(|()| rustix::net::listen(&socket, BACKLOG))
        .map_err(|errno| unbound(address.to_string(), errno))?;
    Ok(socket)
}

/// As [`listen`], on a Unix socket. The file MUST NOT exist, and stays when the socket is closed.
pub(crate) fn listen_unix(path: &Path) -> Result<OwnedFd, EngineError> {
    let socket = system::open(AddressFamily::UNIX)?;
    SocketAddrUnix::new(path)
        .and_then(|address| rustix::net::bind(&socket, &address))
        .and_then(|()| rustix::net::listen(&socket, BACKLOG))
        .map_err(|errno| unbound(path.display().to_string(), errno))?;
    Ok(socket)
}

fn unbound(place: String, errno: Errno) -> EngineError {
    match errno {
        Errno::ADDRINUSE => EngineError::AddressInUse(place, errno.into()),
        _ => EngineError::AddressUnavailable(place, errno.into()),
    }
}

/// Small frames leave at once, and a peer that does not read costs the kernel little. A Unix socket does both by itself.
pub(crate) fn tune(socket: &OwnedFd) -> Result<(), Errno> {
    #[cfg(target_os = "macos")]
    rustix::net::sockopt::set_socket_nosigpipe(socket, true)?;
    if is_unix(socket) {
        return Ok(());
    }
    set_tcp_nodelay(socket, true)?;
    limit_unsent(socket, MAX_UNSENT_BYTES)
}

fn is_unix(socket: &OwnedFd) -> bool {
    rustix::net::getsockname(socket).is_ok_and(|address| address.address_family() == AddressFamily::UNIX)
}

/// The kernel takes no more than about `max_bytes` before it has sent them.
pub(crate) fn limit_unsent(socket: &OwnedFd, max_bytes: usize) -> Result<(), Errno> {
    let value = max_bytes as libc::c_int;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the pointer and the length describe a
    // `c_int` that outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_NOTSENT_LOWAT,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(last_error()) }
}

/// Ends the connection when the peer has not acknowledged output for this long, or takes none. Otherwise the system tries for
/// about a quarter of an hour. macOS and Unix sockets have no such option.
pub(crate) fn set_user_timeout(socket: &OwnedFd, timeout: Duration) -> Result<(), Errno> {
    if is_unix(socket) {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(socket, u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX))?;
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, timeout);
    Ok(())
}

/// What the last call into the C library failed with.
pub(crate) fn last_error() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Where a listening socket is bound.
pub(crate) fn local_address(socket: &OwnedFd) -> Result<SocketAddr, Errno> {
    rustix::net::getsockname(socket)?.try_into()
}

/// Who is at the other end; `None` when nobody is any more.
pub(crate) fn peer(socket: &OwnedFd) -> Option<Peer> {
    let address = rustix::net::getpeername(socket).ok()??;
    if address.address_family() == AddressFamily::UNIX {
        return Some(Peer::Unix);
    }
    address.try_into().ok().map(Peer::At)
}

/// The next connection that waits, [tuned](tune).
pub(crate) fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    system::accept(listener)
}

/// Reads what is there, without waiting.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::net::recv(socket.as_fd(), &mut *buffer, RecvFlags::empty()))
        .map(|(count, _)| count)
}

/// Appends the bytes that are there to `bytes`, at most `max_bytes`, without waiting. Returns how much that was.
pub(crate) fn receive_appended(socket: &OwnedFd, bytes: &mut Vec<u8>, max_bytes: usize) -> Result<usize, Errno> {
    bytes.reserve(max_bytes);
    let room = &mut bytes.spare_capacity_mut()[..max_bytes];
    let count = rustix::io::retry_on_intr(|| {
        rustix::net::recv(socket.as_fd(), &mut *room, RecvFlags::empty()).map(|((received, _), _)| received.len())
    })?;
    // SAFETY: the first `count` bytes behind the end were just received there.
    unsafe { bytes.set_len(bytes.len() + count) };
    Ok(count)
}

/// Reads what is there, without waiting, and leaves it there.
pub(crate) fn peek(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::net::recv(socket.as_fd(), &mut *buffer, RecvFlags::PEEK))
        .map(|(count, _)| count)
}

/// Writes as much as the socket takes. Returns how much that was: 0 if it is full.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    match rustix::io::retry_on_intr(|| rustix::net::send(socket, bytes, system::SEND_FLAGS)) {
        Err(Errno::AGAIN) => Ok(0),
        sent => sent,
    }
}

/// Two sockets that are connected with each other and do not block.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    system::pair()
}

#[cfg(target_os = "linux")]
mod system {
    use std::os::fd::OwnedFd;

    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, accept_with, socket_with, socketpair};

    pub(super) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
    const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

    pub(super) fn open(family: AddressFamily) -> Result<OwnedFd, Errno> {
        socket_with(family, SocketType::STREAM, FLAGS, None)
    }

    /// The options are those of the listening socket.
    pub(super) fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
        accept_with(listener, FLAGS)
    }

    pub(super) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)
    }
}

#[cfg(target_os = "macos")]
mod system {
    use std::os::fd::OwnedFd;

    use rustix::io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio};
    use rustix::net::sockopt::set_socket_nosigpipe;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socket, socketpair};

    /// The sockets have `SO_NOSIGPIPE` instead; see [`tune`](super::tune).
    pub(super) const SEND_FLAGS: SendFlags = SendFlags::empty();

    pub(super) fn open(family: AddressFamily) -> Result<OwnedFd, Errno> {
        configured(socket(family, SocketType::STREAM, None)?)
    }

    /// Sets all options again: not all are those of the listening socket.
    pub(super) fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
        let socket = configured(rustix::net::accept(listener)?)?;
        // `EINVAL`: the peer is gone already.
        super::tune(&socket).map_err(|errno| if errno == Errno::INVAL { Errno::CONNABORTED } else { errno })?;
        Ok(socket)
    }

    pub(super) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
        let (one, other) = (configured(one)?, configured(other)?);
        set_socket_nosigpipe(&one, true)?;
        Ok((one, other))
    }

    /// There are no flags for it: a process that is started right now inherits the socket.
    fn configured(socket: OwnedFd) -> Result<OwnedFd, Errno> {
        fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        ioctl_fionbio(&socket, true)?;
        Ok(socket)
    }
}
