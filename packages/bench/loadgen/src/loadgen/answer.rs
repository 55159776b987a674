//! Merges the threads' reports into one answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::connection::Connection;
use super::order::{Connected, Counted, Report};
use super::plans::clients::tally::Tally;
use super::receipts::Receipts;
use super::shared::{Progress, Stats};
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
    let all = reports.into_iter().reduce(|mut all, part| {
        all.absorb(part);
        all
    });
    // A command has at least one thread.
    all.map_or(("", Value::Null), |report| report.answer(context))
}

impl Report {
    /// Adds the report of another thread on the same command.
    fn absorb(&mut self, part: Self) {
        match (self, part) {
            (Self::Connected(all), Self::Connected(part)) => {
                all.ok_count += part.ok_count;
                add_latencies(&mut all.latencies, part.latencies);
                add_counts(&mut all.errors, part.errors);
                all.secured.merge(part.secured);
            }
            (Self::Sent { ok_count, failed_count }, Self::Sent { ok_count: ok, failed_count: failed }) => {
                *ok_count += ok;
                *failed_count += failed;
            }
            (Self::Counted(all), Self::Counted(part)) => all.extend(part),
            (Self::Flooded(all), Self::Flooded(part)) => {
                all.frame_count += part.frame_count;
                all.wire_bytes += part.wire_bytes;
                all.payload_bytes += part.payload_bytes;
                all.unfinished_count += part.unfinished_count;
                add_latencies(&mut all.late, part.late);
            }
            (Self::Pinged { latencies, missing_count }, Self::Pinged { latencies: part, missing_count: missing }) => {
                latencies.merge(&part);
                *missing_count += missing;
            }
            (Self::Slowed { slow_count, reading_count }, Self::Slowed { slow_count: slow, reading_count: reading }) => {
                *slow_count += slow;
                *reading_count += reading;
            }
            (Self::Stats(all), Self::Stats(part)) => add_stats(all, part),
            (Self::Closed { by_code }, Self::Closed { by_code: part }) => add_counts(by_code, part),
            (Self::ClientsConnected { live_count }, Self::ClientsConnected { live_count: part }) => *live_count += part,
            (Self::ClientsFinished(all), Self::ClientsFinished(part)) => all.extend(part),
            // Of a thread that started after the window.
            (all @ Self::Counting, part) => *all = part,
            _ => {}
        }
    }

    fn answer(self, context: &Context) -> (&'static str, Value) {
        let Context { duration_us, cpu, open_count, .. } = context;
        match self {
            Self::Connected(all) => {
                let Connected { ok_count, latencies, errors, secured } = *all;
                let tls = (!secured.suites.is_empty())
                    .then(|| json!({ "resumed": secured.resumed_count, "suites": secured.suites }));
                let body = json!({
                    "ok": ok_count,
                    "failed": errors.values().sum::<u64>(),
                    "durationUs": duration_us,
                    "latencyUs": latencies.and_then(|latencies| latencies.summary()),
                    "errors": errors,
                    "tls": tls,
                    "open": open_count,
                });
                ("connected", body)
            }
            Self::Sent { ok_count, failed_count } => {
                ("sent", json!({ "ok": ok_count, "failed": failed_count, "durationUs": duration_us }))
            }
            Self::Counting => ("counting", json!({})),
            Self::Counted(all) => ("counted", counted_body(all, context)),
            Self::Flooded(all) => {
                let body = json!({
                    "writtenFrames": all.frame_count,
                    "writtenBytes": all.wire_bytes,
                    "payloadBytes": all.payload_bytes,
                    "unfinished": all.unfinished_count,
                    "lateUs": all.late.and_then(|late| late.summary()),
                    "durationUs": duration_us,
                    "cpuUserUs": cpu.user_us,
                    "cpuSystemUs": cpu.system_us,
                });
                ("flooded-in", body)
            }
            Self::Pinged { latencies, missing_count } => {
                let body = json!({
                    "count": latencies.count(),
                    "missing": missing_count,
                    "latencyUs": latencies.summary(),
                    "durationUs": duration_us,
                });
                ("pinged", body)
            }
            Self::Slowed { slow_count, reading_count } => {
                ("slowed", json!({ "connections": slow_count, "reading": reading_count }))
            }
            Self::Stats(all) => ("stats", stats_body(&all, context)),
            Self::Closed { by_code } => {
                let count = by_code.values().sum::<u64>();
                ("closed", json!({ "count": count, "byCode": by_code, "durationUs": duration_us }))
            }
            Self::ClientsConnected { live_count } => ("clients-connected", json!({ "clients": live_count })),
            Self::ClientsBegun => ("clients-begun", json!({})),
            Self::ClientsFinished(all) => {
                ("clients-finished", json!({ "threads": all.iter().map(Tally::body).collect::<Vec<_>>() }))
            }
            Self::UsersRan(body) => ("users-ran", body),
            Self::Replayed(body) => ("replayed", body),
            Self::Failed(message) => ("error", json!({ "message": message })),
        }
    }
}

fn add_latencies(total: &mut Option<Latencies>, part: Option<Latencies>) {
    if let Some(part) = part {
        total.get_or_insert_with(Latencies::new).merge(&part);
    }
}

fn add_counts<K: Ord>(total: &mut BTreeMap<K, u64>, part: BTreeMap<K, u64>) {
    for (key, count) in part {
        *total.entry(key).or_default() += count;
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
