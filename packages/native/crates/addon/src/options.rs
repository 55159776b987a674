//! Options of an engine, as JavaScript gives them.

use std::time::Duration;

use napi::Error;
use napi::bindgen_prelude::{Buffer, Result};
use napi_derive::napi;
use webmq_engine::{CertificatePem, Network, Options};

use crate::ErrorCode;

/// `index.d.ts` says what each is, `webmq_engine::Options` what it prevents.
#[napi(object)]
#[allow(missing_docs, reason = "index.d.ts has them")]
pub struct NativeOptions {
    pub threads: u32,
    pub max_message_bytes: u32,
    pub max_outbox_bytes: f64,
    pub compression_threshold_bytes: Option<u32>,
    pub max_header_bytes: u32,
    pub max_connections: u32,
    pub handshake_timeout_ms: f64,
    pub message_timeout_ms: Option<f64>,
    pub ping_interval_ms: f64,
    pub ping_timeout_ms: f64,
    pub close_timeout_ms: f64,
    pub flush_interval_ms: Option<f64>,
    pub proxy_protocol_from: Option<Vec<String>>,
    pub tls: Option<Vec<NativeCertificate>>,
    pub hands_http_over: bool,
    pub event_stream_path: Option<String>,
}

/// Copied.
#[napi(object)]
#[allow(missing_docs, reason = "index.d.ts has them")]
pub struct NativeCertificate {
    pub cert: Buffer,
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
