//! The threads' reports on a command, and the answer that they make.

use serde_json::{Value, json};

use super::connection::Connection;
use super::figures::Figures;
use super::window::Window;
use crate::clock::{CpuTime, rss_bytes};

/// A thread's part of an answer.
pub(crate) enum Report {
    /// The thread has no job that the command is for.
    Nothing,
    /// Under the name of the answer.
    Figures(&'static str, Figures),
    Counted(Box<Counted>),
    /// The answer of a thread that has the command alone.
    Alone(&'static str, Value),
    /// The command cannot go on; the other threads are not waited for.
    Failed(String),
}

/// What a thread counted in a window.
pub(crate) struct Counted {
    pub(crate) figures: Figures,
    pub(crate) window: Window,
    pub(crate) ended_us: u64,
    pub(crate) reading_count: u64,
}

/// Fields that the main thread adds.
pub(crate) struct Context {
    pub(crate) duration_us: u64,
    /// CPU time used in the meantime.
    pub(crate) cpu: CpuTime,
    pub(crate) thread_count: usize,
    pub(crate) open_count: usize,
}

impl Report {
    /// Adds the report of another thread on the same command.
    pub(crate) fn merge(&mut self, part: Self) {
        match (self, part) {
            (Self::Figures(_, all), Self::Figures(_, part)) => all.merge(part),
            (Self::Counted(all), Self::Counted(part)) => all.merge(*part),
            (all @ Self::Nothing, part) => *all = part,
            _ => {}
        }
    }

    /// Name and fields of the answer, once all threads have reported.
    pub(crate) fn answer(self, context: &Context) -> (&'static str, Value) {
        let Context { duration_us, cpu, thread_count, open_count } = context;
        let (event, mut body) = match self {
            Self::Nothing => ("", json!({})),
            Self::Figures(event, figures) => (event, json!(figures)),
            Self::Counted(counted) => ("counted", counted.body()),
            Self::Alone(event, body) => return (event, body),
            Self::Failed(message) => return ("error", json!({ "message": message })),
        };
        if matches!(event, "connected" | "sent" | "flooded-in" | "pinged" | "closed") {
            body["durationUs"] = json!(duration_us);
        }
        if matches!(event, "flooded-in" | "counted") {
            body["cpuUserUs"] = json!(cpu.user_us);
            body["cpuSystemUs"] = json!(cpu.system_us);
        }
        if event == "connected" {
            body["open"] = json!(open_count);
        }
        if event == "stats" {
            let cpu = CpuTime::of_process();
            body["threads"] = json!(thread_count);
            body["bytesPerConnection"] = json!(size_of::<Connection>());
            body["cpuUserUs"] = json!(cpu.user_us);
            body["cpuSystemUs"] = json!(cpu.system_us);
            body["rssBytes"] = json!(rss_bytes());
        }
        (event, body)
    }
}

impl Counted {
    fn merge(&mut self, part: Self) {
        self.figures.merge(part.figures);
        self.window.merge(part.window);
        self.ended_us = self.ended_us.max(part.ended_us);
        self.reading_count += part.reading_count;
    }

    fn body(self) -> Value {
        let Self { figures, mut window, ended_us, reading_count } = self;
        let began_us = window.began_us;
        let since = |at_us: &Value| at_us.as_u64().map(|at_us| at_us.saturating_sub(began_us));
        let timeline_ms = window.plan.timeline_ms;
        let entry = |(index, frames): (usize, &u64)| json!({ "atMs": index as u64 * timeline_ms, "frames": frames });
        let fanouts = window.fanouts.complete(reading_count);
        let mut body = json!(figures);
        body["durationUs"] = json!(ended_us.saturating_sub(began_us));
        body["complete"] = json!(body["missingCount"] == 0);
        body["firstFrameUs"] = json!(since(&body["firstFrameAtUs"]));
        body["lastFrameUs"] = json!(since(&body["lastFrameAtUs"]));
        body["timeline"] = window.timeline.iter().enumerate().map(entry).collect();
        body["completeFanoutUs"] = json!(fanouts.latencies);
        body["incompleteFanouts"] = json!(fanouts.incomplete_count);
        body["fanoutsNotKept"] = json!(fanouts.not_kept_count);
        if window.plan.by_seq {
            body["bySeq"] = json!(window.receipts.take_summaries());
            body["earlyReceipts"] = json!(window.receipts.early_count());
            body["receiptsNotKept"] = json!(window.receipts.not_kept_count());
        }
        body
    }
}
