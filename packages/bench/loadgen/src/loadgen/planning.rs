//! Splits a command into tasks for the I/O threads.

use std::net::SocketAddr;
use std::sync::Arc;

use super::batch::{self, Batch};
use super::order::{ConnectTask, FloodTask, SlowTask, Sources, Task};
use super::places;
use super::plans::clients::setup::Setup;
use super::protocol::plans::PlayClients;
use super::protocol::{
    Bare, BatchMode, Close, Connect, Count, CountStop, FloodIn, FloodMode, Ping, Send, Slow, SlowMode,
};
use super::threads::{Thread, Threads};
use super::upgrade::Request;
use crate::lines::Command;

/// Beyond this many connections one loopback source address may not be enough.
const CONNECTIONS_WITHOUT_SOURCE: u64 = 20_000;
const MICROS_PER_MILLI: u64 = 1_000;

/// The tasks by index of the thread.
type Tasks = Vec<(usize, Task)>;

/// # Errors
/// The command is unknown or impossible.
pub(crate) fn tasks(threads: &mut Threads, command: &Command) -> Result<Tasks, String> {
    match command.name.as_str() {
        "connect" => connect(threads, &command.fields()?),
        "send" => {
            let fields: Arc<Send> = Arc::new(command.fields()?);
            let shares = shares(threads, fields.connections);
            Ok(for_all(threads, |index| Task::Send(fields.clone(), shares[index])))
        }
        "count" => {
            let fields: Arc<Count> = Arc::new(command.fields()?);
            if fields.timeline_ms == 0 {
                return Err("count: timelineMs is at least 1".to_owned());
            }
            Ok(for_all(threads, |_| Task::Count(fields.clone())))
        }
        "count-stop" => {
            let fields: Arc<CountStop> = Arc::new(command.fields()?);
            if fields.last_seq.is_some() && fields.last_seqs.is_some() {
                return Err("count-stop: either lastSeq or lastSeqs".to_owned());
            }
            Ok(for_all(threads, |_| Task::StopCount(fields.clone())))
        }
        "flood-in" => flood_in(threads, &command.fields()?),
        "ping" => {
            let fields: Arc<Ping> = Arc::new(command.fields()?);
            let shares = shares(threads, fields.connections);
            Ok(for_all(threads, |index| Task::Ping(fields.clone(), shares[index])))
        }
        "slow" => slow(threads, &command.fields()?),
        "stats" => command.fields::<Bare>().map(|_| for_all(threads, |_| Task::Stats)),
        "close" => {
            let fields: Arc<Close> = Arc::new(command.fields()?);
            let shares = shares(threads, fields.connections);
            Ok(for_all(threads, |index| Task::Close(fields.clone(), shares[index])))
        }
        "clients" => clients(threads, command.fields()?),
        "clients-begin" => {
            let window = command.fields()?;
            Ok(for_all(threads, |_| Task::BeginClients(window)))
        }
        "clients-finish" => command.fields::<Bare>().map(|_| for_all(threads, |_| Task::FinishClients)),
        // One client's view, or one of each user: a thread is enough.
        "users" => Ok(vec![(0, Task::Users(Box::new(command.fields()?)))]),
        "replay" => Ok(vec![(0, Task::Replay(Box::new(command.fields()?)))]),
        name => Err(format!("unknown command {name}")),
    }
}

fn for_all(threads: &Threads, task: impl Fn(usize) -> Task) -> Tasks {
    (0..threads.all.len()).map(|index| (index, task(index))).collect()
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

fn connect(threads: &mut Threads, command: &Connect) -> Result<Tasks, String> {
    let ip = command.ip()?;
    let places = places::places(command)?;
    let first_port = places.first().map_or(0, |place| place.port);
    let authority = command.authority.clone().unwrap_or_else(|| SocketAddr::new(ip, first_port).to_string());
    let request = |token| {
        let request = Request {
            authority: &authority,
            path: &command.path,
            subprotocol: command.subprotocol.as_deref(),
            token,
            headers: &command.headers,
            compression: command.compression,
        };
        request.encode().map(Arc::<[u8]>::from)
    };
    let requests: Arc<[Arc<[u8]>]> = match command.tokens.as_slice() {
        [] => Arc::new([request(None)?]),
        tokens => tokens.iter().map(|token| request(Some(token.as_str()))).collect::<Result<_, _>>()?,
    };
    let ready_prefix = command.ready_prefix()?;
    let tls = command.tls.as_ref().map(|options| threads.tls_clients.client(options)).transpose()?;
    if command.per_second.is_some_and(|per_second| per_second <= 0.0) {
        return Err("connect: perSecond is above 0".to_owned());
    }
    let needs_sources = threads.connection_count + command.count as u64 > CONNECTIONS_WITHOUT_SOURCE;
    let sources = match &command.source_addresses {
        Some(addresses) => Sources::Listed(addresses.clone().into()),
        None if ip.is_ipv4() && ip.is_loopback() && needs_sources => Sources::Loopback,
        None => Sources::System,
    };
    let counts = spread(threads, command.count)?;
    let used_count = counts.iter().filter(|count| **count > 0).count().max(1);
    let mut first_number = threads.connection_count;
    threads.connection_count += command.count as u64;
    let mut tasks = Vec::new();
    for (index, places) in places::deal(&places, &counts).into_iter().enumerate() {
        let count = places.len();
        let task = ConnectTask {
            places,
            ip,
            tls: tls.clone(),
            requests: requests.clone(),
            subprotocol: command.subprotocol.as_deref().map(Arc::from),
            ready_prefix: ready_prefix.clone(),
            sources: sources.clone(),
            first_number,
            max_in_flight: command.batch.div_ceil(used_count).max(1),
            waits_for_batch: command.batch_mode == BatchMode::Batches,
            per_second: command.per_second.map(|per_second| per_second * count as f64 / command.count.max(1) as f64),
            timeout_us: command.timeout_ms * MICROS_PER_MILLI,
            receive_buffer_bytes: command.receive_buffer_bytes,
            replies: command.replies.clone().into_iter().collect(),
        };
        first_number += count as u64;
        tasks.push((index, Task::Connect(task)));
    }
    Ok(tasks)
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
    Ok(for_all(threads, |index| {
        Task::Flood(FloodTask {
            batch: batch.clone(),
            duration_us: command.duration_ms * MICROS_PER_MILLI,
            per_second: per_second.map(|per_second| per_second * shares[index] as f64 / sender_count as f64),
            max_connections: shares[index],
        })
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
    Ok(for_all(threads, |_| Task::Slow(SlowTask { share, bytes_per_second })))
}

/// Each thread gets consecutive clients.
fn clients(threads: &Threads, command: PlayClients) -> Result<Tasks, String> {
    let setup = Arc::new(Setup::new(command)?);
    let client_count = u64::from(setup.plan.options.client_count);
    let thread_count = threads.all.len() as u64;
    let first_of = |index: usize| (index as u64 * client_count / thread_count) as u32;
    Ok(for_all(threads, |index| Task::Clients(setup.clone(), first_of(index)..first_of(index + 1))))
}
