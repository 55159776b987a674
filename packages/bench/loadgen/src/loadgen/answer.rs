//! Merges the threads' reports into one answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::connection::Connection;
use super::order::{Counted, Flooded, Progress, Report, Secured, Stats};
use super::receipts::Receipts;
use super::window::Counts;
use crate::clock::{CpuTime, rss_bytes};
use crate::latencies::Latencies;

/// Fields that the main thread adds.
pub(crate) struct Context {
    pub(crate) duration_us: u64,
    /// CPU time used in the meantime.
    pub(crate) cpu: CpuTime,
    pub(crate) thread_count: usize,
    pub(crate) open_count: usize,
}

/// Name and fields of the answer, once all threads have reported.
pub(crate) fn merge(reports: Vec<Report>, context: &Context) -> (&'static str, Value) {
    let mut connect = (0, Latencies::new(), BTreeMap::<String, u64>::new());
    let mut secured = Secured::default();
    let (mut sent, mut slowed, mut pinged) = ((0, 0), (0, 0), (Latencies::new(), 0));
    let mut counted: Vec<Counted> = Vec::new();
    let mut flooded = Flooded::default();
    let mut stats = Stats::default();
    let mut closed = BTreeMap::<u16, u64>::new();
    let (mut live_count, mut tallies) = (0, Vec::new());
    let mut plan = Value::Null;
    let mut event = "";
    for report in reports {
        match report {
            // From a thread that started after the window.
            Report::Counting if !event.is_empty() => {}
            Report::Counting => event = "counting",
            Report::Connected(part) => {
                event = "connected";
                connect.0 += part.ok_count;
                part.latencies.iter().for_each(|latencies| connect.1.merge(latencies));
                add_counts(&mut connect.2, part.errors);
                secured.merge(part.secured);
            }
            Report::Sent { ok_count, failed_count } => {
                event = "sent";
                sent = (sent.0 + ok_count, sent.1 + failed_count);
            }
            Report::Counted(part) => {
                event = "counted";
                counted.push(*part);
            }
            Report::Flooded(part) => {
                event = "flooded-in";
                add_flooded(&mut flooded, part);
            }
            Report::Pinged { latencies, missing_count } => {
                event = "pinged";
                pinged.0.merge(&latencies);
                pinged.1 += missing_count;
            }
            Report::Slowed { slow_count, reading_count } => {
                event = "slowed";
                slowed = (slowed.0 + slow_count, slowed.1 + reading_count);
            }
            Report::Stats(part) => {
                event = "stats";
                add_stats(&mut stats, part);
            }
            Report::Closed { by_code } => {
                event = "closed";
                add_counts(&mut closed, by_code);
            }
            Report::ClientsConnected { live_count: count } => {
                event = "clients-connected";
                live_count += count;
            }
            Report::ClientsBegun => event = "clients-begun",
            Report::ClientsFinished(tally) => {
                event = "clients-finished";
                tallies.push(tally.body());
            }
            Report::UsersRan(body) => (event, plan) = ("users-ran", body),
            Report::Replayed(body) => (event, plan) = ("replayed", body),
            // The main thread has answered it.
            Report::Failed(_) => {}
        }
    }
    let duration_us = context.duration_us;
    let body = match event {
        "connected" => json!({
            "ok": connect.0,
            "failed": connect.2.values().sum::<u64>(),
            "durationUs": duration_us,
            "latencyUs": connect.1.summary(),
            "errors": connect.2,
            "tls": (!secured.suites.is_empty())
                .then(|| json!({ "resumed": secured.resumed_count, "suites": secured.suites })),
            "open": context.open_count,
        }),
        "sent" => json!({ "ok": sent.0, "failed": sent.1, "durationUs": duration_us }),
        "counted" => counted_body(counted, context),
        "flooded-in" => json!({
            "writtenFrames": flooded.frame_count,
            "writtenBytes": flooded.wire_bytes,
            "payloadBytes": flooded.payload_bytes,
            "unfinished": flooded.unfinished_count,
            "lateUs": flooded.late.and_then(|late| late.summary()),
            "durationUs": duration_us,
            "cpuUserUs": context.cpu.user_us,
            "cpuSystemUs": context.cpu.system_us,
        }),
        "pinged" => json!({
            "count": pinged.0.count(),
            "missing": pinged.1,
            "latencyUs": pinged.0.summary(),
            "durationUs": duration_us,
        }),
        "slowed" => json!({ "connections": slowed.0, "reading": slowed.1 }),
        "stats" => stats_body(&stats, context),
        "closed" => json!({
            "count": closed.values().sum::<u64>(),
            "byCode": closed,
            "durationUs": duration_us,
        }),
        "clients-connected" => json!({ "clients": live_count }),
        "clients-finished" => json!({ "threads": tallies }),
        "users-ran" | "replayed" => plan,
        _ => json!({}),
    };
    (event, body)
}

fn add_counts<K: Ord>(total: &mut BTreeMap<K, u64>, part: BTreeMap<K, u64>) {
    for (key, count) in part {
        *total.entry(key).or_default() += count;
    }
}

fn add_flooded(total: &mut Flooded, part: Flooded) {
    total.frame_count += part.frame_count;
    total.wire_bytes += part.wire_bytes;
    total.payload_bytes += part.payload_bytes;
    total.unfinished_count += part.unfinished_count;
    if let Some(late) = part.late {
        total.late.get_or_insert_with(Latencies::new).merge(&late);
    }
}

fn add_stats(total: &mut Stats, part: Stats) {
    total.open_count += part.open_count;
    total.connecting_count += part.connecting_count;
    total.compressed_count += part.compressed_count;
    total.slow_count += part.slow_count;
    total.frame_count += part.frame_count;
    total.wire_bytes += part.wire_bytes;
    add_counts(&mut total.closed, part.closed);
    if let Some((name, progress)) = part.plan {
        let (_, total) = total.plan.get_or_insert_with(|| (name, Progress::new()));
        add_counts(total, progress);
    }
}

fn stats_body(stats: &Stats, context: &Context) -> Value {
    let cpu = CpuTime::of_process();
    let mut body = json!({
        "open": stats.open_count,
        "connecting": stats.connecting_count,
        "closed": stats.closed,
        "compressed": stats.compressed_count,
        "slow": stats.slow_count,
        "frames": stats.frame_count,
        "wireBytes": stats.wire_bytes,
        "threads": context.thread_count,
        "bytesPerConnection": size_of::<Connection>(),
        "cpuUserUs": cpu.user_us,
        "cpuSystemUs": cpu.system_us,
        "rssBytes": rss_bytes(),
    });
    if let Some((name, progress)) = &stats.plan {
        body[*name] = json!(progress);
    }
    body
}

fn counted_body(parts: Vec<Counted>, context: &Context) -> Value {
    let sum = |of: fn(&Counted) -> u64| parts.iter().map(of).sum::<u64>();
    let began_us = parts.iter().map(|part| part.window.began_us).min().unwrap_or(0);
    let ended_us = parts.iter().map(|part| part.ended_us).max().unwrap_or(0);
    let first_us = parts.iter().filter_map(|part| part.window.first_frame_us).min();
    let last_us = parts.iter().filter_map(|part| part.window.last_frame_us).max();
    let has_receipts = parts.iter().any(|part| part.window.plan.by_sequence);
    let (mut counts, mut slow) = (Counts::default(), Counts::default());
    let mut latencies = Latencies::new();
    let mut timeline: Vec<u64> = Vec::new();
    let timeline_us = parts.first().map_or(1, |part| part.window.plan.timeline_us);
    for part in &parts {
        counts.add(part.window.counts);
        slow.add(part.window.slow_counts);
        latencies.merge(&part.window.latencies);
        timeline.resize(timeline.len().max(part.window.timeline.len()), 0);
        timeline.iter_mut().zip(&part.window.timeline).for_each(|(total, frames)| *total += frames);
    }
    let reading_count = sum(|part| part.reading_count);
    let slow_count = sum(|part| part.slow_count);
    let since = |at: Option<u64>| at.map(|at_us| at_us.saturating_sub(began_us));
    let entry =
        |(index, frames): (usize, &u64)| json!({ "atMs": index as u64 * timeline_us / 1_000, "frames": frames });
    let mut body = json!({
        "durationUs": ended_us.saturating_sub(began_us),
        "frames": counts.frame_count,
        "otherFrames": sum(|part| part.window.other_count),
        "compressedFrames": sum(|part| part.window.compressed_count),
        "payloadBytes": sum(|part| part.window.payload_bytes),
        "wireBytes": sum(|part| part.window.wire_bytes),
        "reads": sum(|part| part.window.read_count),
        "gapCount": counts.gap_count,
        "duplicateCount": counts.duplicate_count,
        "reorderedCount": counts.reordered_count,
        "missingCount": sum(|part| part.missing_count),
        "connections": reading_count,
        "connectionsSilent": sum(|part| part.silent_count),
        "firstSeq": parts.iter().filter_map(|part| part.window.first_sequence).min(),
        "lastSeq": parts.iter().filter_map(|part| part.last_sequence).max(),
        "complete": parts.iter().all(|part| part.is_complete),
        "latencyUs": latencies.summary(),
        "firstFrameUs": since(first_us),
        "lastFrameUs": since(last_us),
        "firstFrameAtUs": first_us,
        "lastFrameAtUs": last_us,
        "cpuUserUs": context.cpu.user_us,
        "cpuSystemUs": context.cpu.system_us,
        "busiestThreadShare": parts.iter().map(|part| part.thread_share).fold(0.0, f64::max),
        "timeline": timeline.iter().enumerate().map(entry).collect::<Vec<_>>(),
        "slow": (slow_count > 0 || slow.frame_count > 0).then(|| json!({
            "connections": slow_count,
            "frames": slow.frame_count,
            "gapCount": slow.gap_count,
            "duplicateCount": slow.duplicate_count,
            "reorderedCount": slow.reordered_count,
        })),
    });
    let mut receipts = Receipts::default();
    let fanouts = parts.into_iter().map(|part| {
        receipts.merge(part.window.receipts);
        part.window.fanouts
    });
    let fanouts = fanouts.reduce(|mut all, part| {
        all.merge(part);
        all
    });
    if has_receipts {
        body["bySeq"] = json!(receipts.take_summaries());
        body["earlyReceipts"] = json!(receipts.early_count());
        body["receiptsNotKept"] = json!(receipts.not_kept_count());
    }
    if let Some(complete) = fanouts.map(|fanouts| fanouts.complete(reading_count)) {
        body["completeFanoutUs"] = json!(complete.latencies.summary());
        body["incompleteFanouts"] = json!(complete.incomplete_count);
        body["fanoutsNotKept"] = json!(complete.not_kept_count);
    }
    body
}
