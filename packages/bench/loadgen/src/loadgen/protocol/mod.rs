//! The commands and their defaults. The README explains them.

pub(crate) mod plans;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Connect {
    pub(crate) count: usize,
    pub(crate) port: Option<u16>,
    pub(crate) ports: Option<Vec<u16>>,
    pub(crate) groups: Option<Vec<GroupShare>>,
    #[serde(default = "loopback")]
    pub(crate) host: String,
    #[serde(default = "default_path")]
    pub(crate) path: String,
    pub(crate) subprotocol: Option<String>,
    /// Of the connections, in turn.
    #[serde(default)]
    pub(crate) tokens: Vec<String>,
    pub(crate) source_addresses: Option<Vec<Ipv4Addr>>,
    #[serde(default = "number::<_, 500>")]
    pub(crate) batch: usize,
    #[serde(default)]
    pub(crate) batch_mode: BatchMode,
    pub(crate) ready: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) compression: bool,
    #[serde(default)]
    pub(crate) replies: BTreeMap<String, String>,
    #[serde(default = "number::<_, 10_000>")]
    pub(crate) timeout_ms: u64,
    pub(crate) receive_buffer_bytes: Option<usize>,
    pub(crate) per_second: Option<f64>,
    pub(crate) authority: Option<String>,
    pub(crate) tls: Option<TlsOptions>,
}

/// A group's connections of one `connect`. Groups are numbered by their place in the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupShare {
    pub(crate) count: usize,
    /// Of all connections of the group; absent: the ports of the command in turn.
    pub(crate) port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TlsOptions {
    pub(crate) server_name: String,
    #[serde(default)]
    pub(crate) insecure: bool,
    pub(crate) ca: Option<String>,
    #[serde(default = "yes")]
    pub(crate) resume: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BatchMode {
    #[default]
    Window,
    Batches,
}

impl CountStop {
    /// Whether a number is awaited.
    pub(crate) fn has_last(&self) -> bool {
        self.last_seq.is_some() || self.last_seqs.is_some()
    }

    /// The number that the connections of a group should get last; 0, the number before the first: nothing is expected.
    pub(crate) fn last_of(&self, group: usize) -> u64 {
        let of_group = || self.last_seqs.as_ref().and_then(|lasts| lasts.get(group).copied());
        self.last_seq.or_else(of_group).unwrap_or(0)
    }
}

impl Connect {
    /// Prefix of the message that makes a connection ready; `None`: the upgrade does.
    pub(crate) fn ready_prefix(&self) -> Result<Option<Box<[u8]>>, String> {
        match self.ready.as_deref() {
            None | Some("upgrade") => Ok(None),
            Some("welcome") => Ok(Some(b"welcome".as_slice().into())),
            Some(ready) => match ready.strip_prefix("text:") {
                Some(prefix) => Ok(Some(prefix.as_bytes().into())),
                None => Err(format!("connect: ready is upgrade, welcome or text:PREFIX, not {ready}")),
            },
        }
    }

    pub(crate) fn ip(&self) -> Result<IpAddr, String> {
        match self.host.as_str() {
            "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
            host => host.parse().map_err(|_| format!("connect: host is an IP address, not {host}")),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Send {
    pub(crate) per_connection: Vec<String>,
    pub(crate) r#await: Option<String>,
    #[serde(default = "number::<_, 10_000>")]
    pub(crate) timeout_ms: u64,
    pub(crate) connections: Option<usize>,
}

/// What a window counts.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Count {
    pub(crate) duration_ms: Option<u64>,
    #[serde(default = "yes")]
    pub(crate) seq_field: bool,
    #[serde(default = "yes")]
    pub(crate) latency: bool,
    #[serde(default = "yes")]
    pub(crate) fanout: bool,
    pub(crate) first_seq: Option<u64>,
    #[serde(default)]
    pub(crate) clock: Clock,
    #[serde(default)]
    pub(crate) by_seq: bool,
    #[serde(default = "number::<_, 100>")]
    pub(crate) timeline_ms: u64,
}

/// The clock that publishers read their `ts_us` from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clock {
    /// `CLOCK_MONOTONIC`, for publishers of this machine.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`.
    Wall,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CountStop {
    pub(crate) last_seq: Option<u64>,
    pub(crate) last_seqs: Option<Vec<u64>>,
    #[serde(default)]
    pub(crate) quiet_ms: u64,
    #[serde(default = "number::<_, 10_000>")]
    pub(crate) timeout_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FloodIn {
    pub(crate) duration_ms: u64,
    pub(crate) frame: Frames,
    pub(crate) connections: Option<usize>,
    #[serde(default)]
    pub(crate) mode: FloodMode,
    pub(crate) per_second: Option<f64>,
    #[serde(default = "one_write")]
    pub(crate) pipeline_bytes: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FloodMode {
    #[default]
    Flood,
    Paced,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Frames {
    Many(Vec<Frame>),
    One(Frame),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Frame {
    Text(String),
    Encoded(EncodedFrame),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncodedFrame {
    pub(crate) base64: String,
    #[serde(default)]
    pub(crate) binary: bool,
    #[serde(default)]
    pub(crate) compressed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Ping {
    #[serde(default = "number::<_, 50>")]
    pub(crate) per_connection: u32,
    #[serde(default)]
    pub(crate) interval_ms: u64,
    #[serde(default)]
    pub(crate) kind: PingKind,
    #[serde(default = "number::<_, 30_000>")]
    pub(crate) timeout_ms: u64,
    pub(crate) connections: Option<usize>,
    pub(crate) text: Option<String>,
    pub(crate) r#await: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PingKind {
    #[default]
    App,
    Ws,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Slow {
    pub(crate) share: Option<f64>,
    pub(crate) connections: Option<usize>,
    #[serde(default)]
    pub(crate) mode: SlowMode,
    pub(crate) bytes_per_second: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SlowMode {
    #[default]
    Stop,
    Throttle,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Close {
    #[serde(default = "number::<_, 5_000>")]
    pub(crate) timeout_ms: u64,
    #[serde(default)]
    pub(crate) abrupt: bool,
    pub(crate) connections: Option<usize>,
}

/// A command without fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bare {}

fn loopback() -> String {
    "127.0.0.1".to_owned()
}

fn default_path() -> String {
    "/ws".to_owned()
}

pub(super) fn number<T: From<u16>, const N: u16>() -> T {
    N.into()
}

/// Bytes per write of a flood.
fn one_write() -> usize {
    64 << 10
}

fn yes() -> bool {
    true
}
