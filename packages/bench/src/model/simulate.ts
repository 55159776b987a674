import { BUSY_SHARE, restS } from './flush-pacing.js'

/** Nodes that write to connections, and one reader of all of them, on the same cores. */
export interface Simulation {
  /** Of the machine; nodes and reader take turns on them. */
  readonly cores: number
  /** Equal ones, each with one I/O thread. */
  readonly nodes: number
  /** Over all nodes; each gets every message. */
  readonly connections: number
  readonly messages: number
  readonly messagesPerSecond: number
  /** From the publish to the start of the fan-out on a node. */
  readonly hopS: number
  /** CPU time of a write, and of a message in it. */
  readonly writeS: number
  readonly frameS: number
  /** CPU time of the reader for a read, and for a message in it. */
  readonly readS: number
  readonly readFrameS: number
}

/** What the receivers saw. */
export interface Simulated {
  readonly deliveries: number
  readonly writes: number
  /** Over all nodes. */
  readonly writeCpuS: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** Writes that carry the same messages. */
interface Batch {
  readonly first: number
  readonly end: number
  /** Written and not read yet. */
  unread: number
}

/** Steps of a fan-out: finer ones change no figure by a hundredth. */
const STEPS_PER_FLUSH = 400
const MIN_STEP_S = 2e-6
const MAX_STEPS = 1_000_000
/** Width of a latency bucket. */
const BUCKETS_PER_DOUBLING = 50

/**
 * Plays the messages in small steps of time: threads that have work share the cores evenly, a node writes to its
 * connections one after the other and puts all messages that wait into one write, and the reader takes writes in their
 * order. Cost: some hundred steps per message.
 * @throws {RangeError} when the system falls ever further behind.
 */
export function simulate(simulation: Simulation): Simulated {
  const { cores, nodes, connections, messages, messagesPerSecond, hopS, writeS, frameS, readS, readFrameS } = simulation
  const members = connections / nodes
  const publishedAt = (message: number) => message / messagesPerSecond
  const isBusy = members * messagesPerSecond * (writeS + frameS) >= BUSY_SHARE
  const stepS = Math.max(MIN_STEP_S, (members * writeS) / STEPS_PER_FLUSH)
  const latencies = new Map<number, number>()
  const unread: Batch[] = []
  let nowS = hopS
  let nextMessage = 0
  let restUntilS = 0
  let flush: (Batch & { left: number }) | undefined
  let writes = 0
  let writeCpuS = 0
  let readerCores = 0
  for (let step = 0; nextMessage < messages || flush !== undefined || unread.length > 0; step++) {
    if (step > MAX_STEPS) throw new RangeError('the simulated nodes do not keep up')
    const arrived = Math.min(messages, Math.floor((nowS - hopS) * messagesPerSecond + 1e-9) + 1)
    if (flush === undefined && arrived > nextMessage && nowS >= restUntilS) {
      flush = { first: nextMessage, end: arrived, unread: 0, left: members }
      unread.push(flush)
      nextMessage = arrived
    }
    const isReading = unread.some((batch) => batch.unread > 0)
    if (flush === undefined && !isReading) {
      const next = nextMessage < messages ? publishedAt(nextMessage) + hopS : nowS
      nowS = Math.max(nowS + MIN_STEP_S, restUntilS, next)
      readerCores = 0
      continue
    }
    nowS += stepS
    const writing = flush === undefined ? 0 : nodes
    // An even share of the cores, and what the others leave.
    const evenShare = cores / (writing + 1)
    const nodeShare = writing === 0 ? 0 : Math.min(1, Math.max(evenShare, (cores - readerCores) / writing))
    const readerShare = Math.min(1, Math.max(evenShare, cores - writing * nodeShare))
    if (flush !== undefined) {
      const eachS = writeS + (flush.end - flush.first) * frameS
      const done = Math.min(flush.left, (nodeShare * stepS) / eachS)
      flush.left -= done
      flush.unread += done * nodes
      writes += done * nodes
      writeCpuS += done * nodes * eachS
      if (flush.left <= 1e-9) {
        restUntilS = isBusy ? nowS + restS(members * eachS) : nowS
        flush = undefined
      }
    }
    readerCores = read(readerShare * stepS) / stepS
  }
  const at = (share: number) => percentile(latencies, share)
  return {
    deliveries: connections * messages,
    writes: Math.round(writes),
    writeCpuS,
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    p99Ms: at(0.99),
    maxMs: at(1),
  }

  /** Reads in the order of the writes, and returns the processor time that it took. */
  function read(budgetS: number): number {
    let leftS = budgetS
    for (let batch = unread[0]; batch !== undefined && leftS > 0; batch = unread[0]) {
      const eachS = readS + (batch.end - batch.first) * readFrameS
      const taken = Math.min(batch.unread, eachS === 0 ? batch.unread : leftS / eachS)
      batch.unread -= taken
      leftS -= taken * eachS
      for (let message = batch.first; message < batch.end; message++) {
        record((nowS - publishedAt(message)) * 1_000, taken)
      }
      if (batch === flush || batch.unread > 1e-9) break
      unread.shift()
    }
    return budgetS - leftS
  }

  function record(ms: number, count: number): void {
    if (count <= 0) return
    const bucket = Math.round(Math.log2(Math.max(1e-4, ms)) * BUCKETS_PER_DOUBLING)
    latencies.set(bucket, (latencies.get(bucket) ?? 0) + count)
  }
}

function percentile(latencies: ReadonlyMap<number, number>, share: number): number {
  const total = [...latencies.values()].reduce((sum, count) => sum + count, 0)
  let seen = 0
  for (const [bucket, count] of [...latencies].toSorted(([a], [b]) => a - b)) {
    seen += count
    if (seen >= total * share - 1e-6) return 2 ** (bucket / BUCKETS_PER_DOUBLING)
  }
  return 0
}
