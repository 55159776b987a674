//! Splits a command into tasks for the I/O threads.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::batch::{self, Batch};
use super::connections::Connections;
use super::jobs::Job;
use super::jobs::close::Closing;
use super::jobs::connect::{Connecting, Part};
use super::jobs::count::Counting;
use super::jobs::flood::Flooding;
use super::jobs::ping::Pinging;
use super::jobs::send::Sending;
use super::jobs::slow::Throttle;
use super::opening::Opening;
use super::order::{Change, Task};
use super::places;
use super::plans::clients::Clients;
use super::plans::clients::setup::Setup;
use super::plans::replay::Replay;
use super::plans::users::Users;
use super::protocol::plans::PlayClients;
use super::protocol::{Bare, Close, Connect, Count, CountStop, FloodIn, FloodMode, Ping, Send, Slow, SlowMode};
use super::threads::{Thread, Threads};
use super::upgrade::Request;
use crate::lines::Command;

/// Connections per loopback source address, which has 28,232 ephemeral ports.
const CONNECTIONS_PER_SOURCE: u64 = 20_000;
const MICROS_PER_MILLI: u64 = 1_000;

/// The tasks by index of the thread.
type Tasks = Vec<(usize, Task)>;

/// # Errors
/// The command is unknown or impossible.
pub(crate) fn tasks(threads: &mut Threads, command: &Command) -> Result<Tasks, String> {
    match command.name.as_str() {
        "connect" => connect(threads, command.fields()?),
        "send" => on_open(threads, command, |fields: &Send| fields.connections, Sending::begin),
        "count" => {
            let fields: Count = command.fields()?;
            if fields.timeline_ms == 0 {
                return Err("count: timelineMs is at least 1".to_owned());
            }
            Ok(for_all(threads, |_| Task::begin(move |connections| Counting::begin(&fields, connections))))
        }
        "count-stop" => {
            let fields: Arc<CountStop> = Arc::new(command.fields()?);
            if fields.last_seq.is_some() && fields.last_seqs.is_some() {
                return Err("count-stop: either lastSeq or lastSeqs".to_owned());
            }
            Ok(for_all(threads, |_| Task::Change(Change::StopCount(fields.clone()))))
        }
        "flood-in" => flood_in(threads, &command.fields()?),
        "ping" => on_open(threads, command, |fields: &Ping| fields.connections, Pinging::begin),
        "slow" => slow(threads, &command.fields()?),
        "stats" => command.fields::<Bare>().map(|_| for_all(threads, |_| Task::Stats)),
        "close" => on_open(threads, command, |fields: &Close| fields.connections, Closing::begin),
        "clients" => clients(threads, command.fields()?),
        "clients-begin" => {
            let window = command.fields()?;
            Ok(for_all(threads, |_| Task::Change(Change::BeginClients(window))))
        }
        "clients-finish" => command.fields::<Bare>().map(|_| for_all(threads, |_| Task::Change(Change::FinishClients))),
        // One client's view, or one of each user: a thread is enough.
        "users" => {
            let plan = command.fields()?;
            Ok(vec![(0, Task::try_begin(|connections| Users::new(plan, connections)))])
        }
        "replay" => {
            let plan = command.fields()?;
            Ok(vec![(0, Task::try_begin(|_| Replay::new(plan)))])
        }
        name => Err(format!("unknown command {name}")),
    }
}

fn for_all(threads: &Threads, task: impl Fn(usize) -> Task) -> Tasks {
    (0..threads.all.len()).map(|index| (index, task(index))).collect()
}

/// A job on the first open connections, at most as many as the command says.
fn on_open<F: DeserializeOwned + std::marker::Send + Sync + 'static, J: Job + 'static>(
    threads: &Threads,
    command: &Command,
    max_of: fn(&F) -> Option<usize>,
    begin: fn(&F, usize, &mut Connections) -> J,
) -> Result<Tasks, String> {
    let fields: Arc<F> = Arc::new(command.fields()?);
    let shares = shares(threads, max_of(&fields));
    Ok(for_all(threads, |index| {
        let (fields, share) = (fields.clone(), shares[index]);
        Task::begin(move |connections| begin(&fields, share, connections))
    }))
}

/// How many of the first `max` open connections each thread has.
fn shares(threads: &Threads, max: Option<usize>) -> Vec<usize> {
    let mut left = max.unwrap_or(usize::MAX);
    let take = |thread: &Thread| {
        let share = thread.shared.open_count().min(left);
        left -= share;
        share
    };
    threads.all.iter().map(take).collect()
}

fn connect(threads: &mut Threads, command: Connect) -> Result<Tasks, String> {
    let routes = places::routes(&command)?;
    let ready_prefix = command.ready_prefix()?;
    let tls = command.tls.as_ref().map(|options| threads.tls_clients.client(options)).transpose()?;
    if command.per_second.is_some_and(|per_second| per_second <= 0.0) {
        return Err("connect: perSecond is above 0".to_owned());
    }
    let authority = command.authority.clone().or_else(|| Some(routes.first()?.address.to_string()));
    let opening = |token| {
        let request = Request {
            authority: authority.as_deref().unwrap_or_default(),
            path: &command.path,
            subprotocol: command.subprotocol.as_deref(),
            token,
            headers: &command.headers,
            compression: command.compression,
        };
        let opening = Opening {
            request: request.encode()?.into(),
            subprotocol: command.subprotocol.as_deref().map(Box::from),
            tls: tls.clone(),
            awaits_message: ready_prefix.is_some(),
            receive_buffer_bytes: command.receive_buffer_bytes,
        };
        Ok::<_, String>(Arc::new(opening))
    };
    let openings: Arc<[Arc<Opening>]> = match command.tokens.as_slice() {
        [] => Arc::new([opening(None)?]),
        tokens => tokens.iter().map(|token| opening(Some(token.as_str()))).collect::<Result<_, _>>()?,
    };
    let needs_sources = threads.connection_count + command.count as u64 > CONNECTIONS_PER_SOURCE;
    let is_loopback = routes.first().is_some_and(|route| route.address.is_ipv4() && route.address.ip().is_loopback());
    let source_of = |number: u64| match &command.source_addresses {
        Some(addresses) => addresses.get((number % addresses.len().max(1) as u64) as usize).copied(),
        // 127.0.0.1 and following addresses, as many as needed.
        None if is_loopback && needs_sources => {
            Some(Ipv4Addr::new(127, 0, 0, 1 + (number / CONNECTIONS_PER_SOURCE % 250) as u8))
        }
        None => None,
    };
    let counts = spread(threads, command.count)?;
    let used_count = counts.iter().filter(|count| **count > 0).count().max(1);
    let max_in_flight = command.batch.div_ceil(used_count).max(1);
    let mut parts = Vec::with_capacity(counts.len());
    for mut routes in places::deal(&routes, &counts) {
        let first_number = threads.connection_count;
        threads.connection_count += routes.len() as u64;
        (first_number..).zip(&mut routes).for_each(|(number, route)| route.source = source_of(number));
        let share = routes.len() as f64 / command.count.max(1) as f64;
        let per_second = command.per_second.map(|per_second| per_second * share);
        let (openings, ready_prefix) = (openings.clone(), ready_prefix.clone());
        parts.push(Part { routes, openings, ready_prefix, first_number, max_in_flight, per_second });
    }
    let command = Arc::new(command);
    let task = |part| {
        let command = command.clone();
        Task::begin(move |connections| Connecting::begin(command, part, connections))
    };
    Ok(parts.into_iter().map(task).enumerate().collect())
}

/// How many new connections each thread gets: evenly, where there is room. Starts threads when there is no room.
fn spread(threads: &mut Threads, count: usize) -> Result<Vec<usize>, String> {
    let capacity = threads.arguments.connections_per_thread;
    let room = |threads: &Threads| -> Vec<usize> {
        threads.all.iter().map(|thread| capacity.saturating_sub(thread.shared.held_count())).collect()
    };
    while room(threads).iter().sum::<usize>() < count {
        threads.start_thread().map_err(|error| format!("connect: no further thread: {error}"))?;
    }
    let room = room(threads);
    let mut counts = vec![0; room.len()];
    let mut left = count;
    while left > 0 {
        let open: Vec<usize> = (0..room.len()).filter(|index| counts[*index] < room[*index]).collect();
        for (position, index) in open.iter().enumerate() {
            let share = left.div_ceil(open.len() - position).min(room[*index] - counts[*index]);
            counts[*index] += share;
            left -= share;
        }
    }
    Ok(counts)
}

fn flood_in(threads: &Threads, command: &FloodIn) -> Result<Tasks, String> {
    let messages = batch::messages(&command.frame)?;
    let per_second = match command.mode {
        FloodMode::Flood => None,
        FloodMode::Paced => match command.per_second {
            Some(per_second) if per_second > 0.0 => Some(per_second),
            _ => return Err("flood-in: paced needs perSecond".to_owned()),
        },
    };
    let min_bytes = if per_second.is_none() { command.pipeline_bytes } else { 0 };
    let batch = Arc::new(Batch::new(&messages, min_bytes));
    if batch.is_template() && per_second.is_none() {
        return Err("flood-in: $SEQ and $TS_US need mode paced".to_owned());
    }
    let shares = shares(threads, command.connections);
    let sender_count = shares.iter().sum::<usize>().max(1);
    let duration_us = command.duration_ms * MICROS_PER_MILLI;
    Ok(for_all(threads, |index| {
        let (batch, share) = (batch.clone(), shares[index]);
        let per_second = per_second.map(|per_second| per_second * share as f64 / sender_count as f64);
        Task::begin(move |connections| Flooding::begin(batch, duration_us, per_second, share, connections))
    }))
}

fn slow(threads: &Threads, command: &Slow) -> Result<Tasks, String> {
    let share = match (command.share, command.connections) {
        (Some(share), None) => share,
        (None, Some(count)) => count as f64 / threads.open_count().max(1) as f64,
        _ => return Err("slow: either share or connections".to_owned()),
    };
    if !(0.0..=1.0).contains(&share) {
        return Err("slow: share is from 0 to 1".to_owned());
    }
    let bytes_per_second = match (command.mode, command.bytes_per_second) {
        (SlowMode::Stop, None) => None,
        (SlowMode::Throttle, Some(bytes_per_second)) => Some(bytes_per_second),
        _ => return Err("slow: bytesPerSecond belongs to mode throttle".to_owned()),
    };
    Ok(for_all(threads, |_| Task::begin(move |connections| Throttle::begin(share, bytes_per_second, connections))))
}

/// Each thread gets consecutive clients.
fn clients(threads: &Threads, command: PlayClients) -> Result<Tasks, String> {
    let setup = Arc::new(Setup::new(command)?);
    let client_count = u64::from(setup.plan.client_count());
    let thread_count = threads.all.len() as u64;
    let first_of = |index: usize| (index as u64 * client_count / thread_count) as u32;
    Ok(for_all(threads, |index| {
        let (setup, part) = (setup.clone(), first_of(index)..first_of(index + 1));
        Task::begin(|_| Clients::new(setup, part))
    }))
}
