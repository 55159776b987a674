//! Options of an engine, as JavaScript gives them.

use std::time::Duration;

use napi::Error;
use napi::bindgen_prelude::{Buffer, Result};
use napi_derive::napi;
use webmq_engine::{CertificatePem, Network, Options};

use crate::ErrorCode;

/// Limits and timers of an engine, in bytes and milliseconds; `webmq_engine::Options` says what each prevents.
#[napi(object)]
pub struct NativeOptions {
    /// I/O threads.
    pub threads: u32,
    /// Largest message that is accepted.
    pub max_message_bytes: u32,
    /// Bytes that may wait for one connection.
    pub max_outbox_bytes: f64,
    /// Payloads from this size on are compressed for clients that offer it; absent: no compression.
    pub compression_threshold_bytes: Option<u32>,
    /// Largest request head.
    pub max_header_bytes: u32,
    /// Connections held at once; 0: as many as the system allows.
    pub max_connections: u32,
    /// Time from accept to the end of the handshake.
    pub handshake_timeout_ms: f64,
    /// Time from the first byte of a message to its last; 0: any; absent: 30 s.
    pub message_timeout_ms: Option<f64>,
    /// Silence after which a ping is sent; 0: never.
    pub ping_interval_ms: f64,
    /// Time that a peer has to answer a ping.
    pub ping_timeout_ms: f64,
    /// Time that a peer has to answer a close frame.
    pub close_timeout_ms: f64,
    /// Time that a busy thread may hold publications back so that they share writes; 0: never; absent: 10.
    pub flush_interval_ms: Option<f64>,
    /// Networks whose connections begin with a PROXY header, as `10.0.0.0/8`; absent: none.
    pub proxy_protocol_from: Option<Vec<String>>,
    /// Certificates of the listening socket, which then serves TLS; absent: it does not.
    pub tls: Option<Vec<NativeCertificate>>,
    /// Whether plain HTTP requests are handed over.
    pub hands_http_over: bool,
    /// Path of event streams; absent: there are none.
    pub event_stream_path: Option<String>,
}

/// A certificate with its chain, and its private key, both in PEM. Copied.
#[napi(object)]
pub struct NativeCertificate {
    /// The certificate of the server first.
    pub cert: Buffer,
    /// PKCS #8, PKCS #1 or SEC 1, without a passphrase.
    pub key: Buffer,
}

pub(crate) fn engine_options(options: &NativeOptions) -> Result<Options, ErrorCode> {
    let defaults = Options::default();
    Ok(Options {
        shards: options.threads as usize,
        max_message_bytes: options.max_message_bytes,
        max_outbox_bytes: options.max_outbox_bytes as usize,
        deflate_from_bytes: options.compression_threshold_bytes.map(|bytes| bytes as usize),
        max_header_bytes: options.max_header_bytes as usize,
        max_connections: options.max_connections as usize,
        handshake_timeout: duration(options.handshake_timeout_ms)?,
        message_timeout: options.message_timeout_ms.map_or(Ok(defaults.message_timeout), duration)?,
        ping_interval: duration(options.ping_interval_ms)?,
        ping_timeout: duration(options.ping_timeout_ms)?,
        close_timeout: duration(options.close_timeout_ms)?,
        flush_interval: options.flush_interval_ms.map_or(Ok(defaults.flush_interval), duration)?,
        proxy_protocol_from: networks_of(options.proxy_protocol_from.as_deref().unwrap_or_default())?,
        tls: options.tls.as_deref().map(certificates_of),
        hands_http_over: options.hands_http_over,
        event_stream_path: options.event_stream_path.clone(),
        ..defaults
    })
}

fn networks_of(texts: &[String]) -> Result<Vec<Network>, ErrorCode> {
    let network = |text: &String| {
        text.parse().map_err(|_| Error::new("E_OPTION_INVALID", format!("{text} is not a range of IP addresses")))
    };
    texts.iter().map(network).collect()
}

pub(crate) fn certificates_of(certificates: &[NativeCertificate]) -> Vec<CertificatePem> {
    let copied = |of: &NativeCertificate| CertificatePem { certificate: of.cert.to_vec(), key: of.key.to_vec() };
    certificates.iter().map(copied).collect()
}

fn duration(milliseconds: f64) -> Result<Duration, ErrorCode> {
    Duration::try_from_secs_f64(milliseconds / 1_000.0)
        .map_err(|_| Error::new("E_OPTION_INVALID", format!("{milliseconds} ms is not a time")))
}
