use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters since the start; gauges at the moment of the call.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64),*
        }

        impl Stats {
            /// All of them, by their names here.
            #[must_use]
            pub fn named(&self) -> [(&'static str, u64); [$(stringify!($name)),*].len()] {
                [$((stringify!($name), self.$name)),*]
            }

            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }

        /// The stats of one shard, readable from other threads; written once per turn.
        #[derive(Default)]
        pub(crate) struct SharedStats {
            $($name: AtomicU64),*
        }

        impl SharedStats {
            pub(crate) fn write(&self, stats: &Stats) {
                $(self.$name.store(stats.$name, Ordering::Relaxed);)*
            }

            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }
    };
}

counters! {
    /// Open WebSocket connections.
    connections,
    /// Upgrades that were accepted.
    accepted_count,
    /// Requests that were refused: by the engine or by its owner.
    refused_count,
    /// Those of them that found the engine full: it held as many connections as it may, or the system gave no descriptor.
    full_count,
    /// The most connections that the engine holds: as the options say, or what the descriptor limit leaves room for.
    connection_limit,
    /// Connections of a proxy that were closed because they did not begin with a valid PROXY header.
    proxy_header_refused_count,
    /// Connections that are gone.
    closed_count,
    /// Connections closed with 4008.
    slow_consumer_count,
    /// Frames left out for a connection that lags, because a newer one of their topic follows.
    conflated_count,
    /// Frames left out for a connection that lags, because they were the oldest.
    dropped_count,
    /// Complete messages received.
    received_message_count,
    /// Those of them that were answered without JavaScript.
    answered_message_count,
    /// Bytes received on open connections, framing included.
    received_byte_count,
    /// Frames put into outboxes, one per receiving connection.
    delivered_count,
    /// Bytes written to sockets.
    sent_byte_count,
    /// Memory for messages and heads that are not complete, and for bytes that are not decoded.
    partial_bytes,
    /// Times that a shard was started again after its thread had failed.
    restart_count,
    /// Bytes that wait for all connections, those on their way to the shards included; shared ones count once.
    outbox_bytes,
}
