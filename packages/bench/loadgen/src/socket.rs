//! Socket operations.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size, set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Backlog of connections to accept; the system limits it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

/// Starts to connect. The socket becomes writable when it has connected or failed.
pub(crate) fn connect(
    address: SocketAddr,
    source: Option<Ipv4Addr>,
    receive_buffer_bytes: Option<usize>,
) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = stream(family)?;
    set_tcp_nodelay(&socket, true)?;
    if let Some(bytes) = receive_buffer_bytes {
        set_socket_recv_buffer_size(&socket, bytes)?;
    }
    if let Some(source) = source {
        choose_port_when_connecting(&socket)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(source, 0))?;
    }
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

pub(crate) fn listen(port: u16) -> Result<OwnedFd, Errno> {
    let socket = stream(AddressFamily::INET)?;
    set_socket_reuseaddr(&socket, true)?;
    set_tcp_nodelay(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Accepts the next connection. It inherits the options of `listener`.
pub(crate) fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
}

/// Reads without blocking; 0 at the end.
#[inline]
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    retry_on_intr(|| rustix::net::recv(socket, &mut *buffer, RecvFlags::empty())).map(|(count, _)| count)
}

/// Writes as much as the socket takes, possibly nothing.
#[inline]
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    match retry_on_intr(|| rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)) {
        Err(Errno::AGAIN) => Ok(0),
        sent => sent,
    }
}

pub(crate) fn reset_on_close(socket: &OwnedFd) -> Result<(), Errno> {
    set_socket_linger(socket, Some(Duration::ZERO))
}

fn stream(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

/// Lets one source port serve several destinations. Otherwise binding the address reserves it.
fn choose_port_when_connecting(socket: &OwnedFd) -> Result<(), Errno> {
    let value: libc::c_int = 1;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the pointer and the length describe a
    // `c_int` that outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(Errno::INVAL) }
}

/// Short name of the error, such as `ECONNREFUSED`.
pub(crate) fn errno_name(errno: Errno) -> String {
    let known = [
        (Errno::CONNREFUSED, "ECONNREFUSED"),
        (Errno::CONNRESET, "ECONNRESET"),
        (Errno::TIMEDOUT, "ETIMEDOUT"),
        (Errno::PIPE, "EPIPE"),
        (Errno::ADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (Errno::MFILE, "EMFILE"),
        (Errno::NFILE, "ENFILE"),
        (Errno::NOBUFS, "ENOBUFS"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::HOSTUNREACH, "EHOSTUNREACH"),
        (Errno::NETUNREACH, "ENETUNREACH"),
        (Errno::ACCESS, "EACCES"),
        (Errno::ADDRINUSE, "EADDRINUSE"),
    ];
    let name = known.iter().find(|(code, _)| *code == errno).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("errno {}", errno.raw_os_error()))
}
