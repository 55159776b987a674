//! What is asked of a socket.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::error::EngineError;
use crate::fanout::Written;

/// Connections that may wait to be accepted; the system cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 4_096;
/// Bytes that the kernel takes before it has sent them. Without it a stalled peer pins 3.9 MB of kernel memory (measured).
const MAX_UNSENT_BYTES: libc::c_int = 128 << 10;

/// Binds and listens. Connections inherit the options that are set here.
pub(crate) fn listen(address: SocketAddr) -> Result<OwnedFd, EngineError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    tune(&socket)?;
    rustix::net::bind(&socket, &address).and_then(|()| rustix::net::listen(&socket, BACKLOG)).map_err(|errno| {
        let source = errno.into();
        match errno {
            Errno::ADDRINUSE => EngineError::AddressInUse { address, source },
            _ => EngineError::AddressUnavailable { address, source },
        }
    })?;
    Ok(socket)
}

/// Small frames leave at once, and a peer that does not read costs the kernel little.
pub(crate) fn tune(socket: &OwnedFd) -> Result<(), Errno> {
    set_tcp_nodelay(socket, true)?;
    let value = MAX_UNSENT_BYTES;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the pointer and the length describe a
    // `c_int` that outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(Errno::IO) }
}

/// Where a listening socket is bound.
pub(crate) fn local_address(socket: &OwnedFd) -> Result<SocketAddr, Errno> {
    rustix::net::getsockname(socket)?.try_into()
}

/// Who is at the other end; `None` when nobody is any more.
pub(crate) fn peer_address(socket: &OwnedFd) -> Option<SocketAddr> {
    rustix::net::getpeername(socket).ok().flatten()?.try_into().ok()
}

/// The next connection that waits.
pub(crate) fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
}

/// Reads what is there, without waiting.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::net::recv(socket.as_fd(), &mut *buffer, RecvFlags::empty()))
        .map(|(count, _)| count)
}

/// Writes as much as the socket takes.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Written {
    match rustix::io::retry_on_intr(|| rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)) {
        Ok(count) if count == bytes.len() => Written::All,
        Ok(count) => Written::Part(count),
        Err(Errno::AGAIN) => Written::Part(0),
        Err(_) => Written::Failed,
    }
}
