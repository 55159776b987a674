import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningBroker, startBroker } from '../../brokers/running-broker.js'
import { type Measured, per, type TrialContext } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import { CountingRelay } from './counting-relay.js'
import type { NodeMark, NodeOptions, PublishReport } from './messages.js'
import { NodeProcess } from './node-process.js'
import type { PartitionsBroker, PartitionsConfig } from './partitions.js'
import { chooseRooms, type Layout, partitionCountOf, shuffledRooms } from './rooms.js'

const NODE_COUNT = 2
/** Every room is logged; a log keeps at most as many messages as the server's default says. */
const HISTORY_RULE = '#=100'
/** A partition takes long to start on a busy machine. */
const BROKER_TIMEOUT_MS = 30_000
/** Time for the last messages to arrive. */
const TAIL_TIMEOUT_MS = 10_000
const TAIL_POLL_MS = 50
/** A publisher later than this did not keep the pace. */
const MAX_LATE_MS = 1_000

/** Everything at one moment. */
interface Mark {
  readonly node: NodeMark
  readonly publisher: NodeMark
  readonly bytes: CountingRelay['counts']
  readonly brokerCpuSeconds: number
}

/** One measurement; when it settles, none of its processes is left. */
export async function measurePartitions(context: TrialContext<PartitionsConfig>): Promise<Measured> {
  const { testCase, progress, signal } = context
  const kind = testCase.mode as PartitionsBroker
  progress.phase(`starting ${kind}`)
  const broker = await startBroker({ kind }, NODE_COUNT, { hasLog: true })
  const relay = await CountingRelay.start(broker.nodeOptions(0).broker)
  const nodes = [new NodeProcess('the measured node'), new NodeProcess('the publishing node')] as const
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  aborted.catch(() => undefined) // The race below may be over before.
  try {
    signal.throwIfAborted()
    return await Promise.race([aborted, measure(context, broker, relay, nodes)])
  } finally {
    await Promise.all(nodes.map((node) => node.stop()))
    relay.stop()
    await broker.stop()
  }
}

async function measure(
  { config, testCase, progress }: TrialContext<PartitionsConfig>,
  broker: RunningBroker,
  relay: CountingRelay,
  [node, publisher]: readonly [NodeProcess, NodeProcess],
): Promise<Measured> {
  const { rooms: roomCount, share, rate, payload, duration, warmup, seed } = config
  const partitions = Number(testCase.fields.partitions)
  const layout = (partitions === 1 ? 'spread' : testCase.fields.layout) as Layout
  const count = Math.max(1, Math.round(roomCount * share))
  const rooms = chooseRooms({ roomCount, count, seed }, layout, partitions)
  const options: NodeOptions = {
    ...broker.nodeOptions(0),
    history: [HISTORY_RULE],
    historyPartitions: partitions,
    brokerTimeoutMs: BROKER_TIMEOUT_MS,
  }
  await Promise.all([
    node.ask({ type: 'start', options: { ...options, broker: relay.addressOf(options.broker) } }),
    publisher.ask({ type: 'start', options }),
  ])
  await node.ask({ type: 'listen', rooms })

  const durationMs = (warmup + duration) * 1_000
  const plan = { rooms: shuffledRooms(roomCount, seed + 1), perSecond: rate, durationMs, payloadBytes: payload }
  await publisher.ask({ type: 'prepare', plan })
  const mark = async (): Promise<Mark> => {
    const [marked, publishing] = await Promise.all([node.ask({ type: 'mark' }), publisher.ask({ type: 'mark' })])
    return { node: marked, publisher: publishing, bytes: relay.counts, brokerCpuSeconds: broker.cpuSeconds() ?? 0 }
  }
  progress.phase('publishing')
  const publishing = publisher.ask({ type: 'publish', plan }, durationMs)
  publishing.catch(() => undefined) // Awaited below.
  await sleep(warmup * 1_000)
  const start = await mark()
  await progress.during(sleep(duration * 1_000), { expectedMs: duration * 1_000 })
  const end = await mark()
  const report = await publishing
  const { node: last } = await tail(mark, expectedCount(plan.rooms, rooms, Math.floor((rate * durationMs) / 1_000)))
  return { figures: figuresOf({ start, end, last, report }, partitionCountOf(rooms, partitions), { plan, rooms }) }
}

/** Waits until all messages have arrived, or it is too late. */
async function tail(mark: () => Promise<Mark>, expected: number): Promise<Mark> {
  const endMs = performance.now() + TAIL_TIMEOUT_MS
  for (;;) {
    const marked = await mark()
    if (marked.node.deliveredCount >= expected || performance.now() >= endMs) return marked
    await sleep(TAIL_POLL_MS)
  }
}

/** How many of the first messages, which go to the rooms in turn, are for some of them. */
function expectedCount(order: readonly number[], wanted: readonly number[], messageCount: number): number {
  const isWanted = new Set(wanted)
  const rounds = Math.floor(messageCount / order.length)
  const rest = order.slice(0, messageCount % order.length)
  return rounds * wanted.length + rest.filter((room) => isWanted.has(room)).length
}

function figuresOf(
  {
    start,
    end,
    last,
    report,
  }: { readonly start: Mark; readonly end: Mark; readonly last: NodeMark; readonly report: PublishReport },
  neededCount: number,
  { plan, rooms }: { readonly plan: { readonly rooms: readonly number[] }; readonly rooms: readonly number[] },
) {
  const seconds = (end.node.atUs - start.node.atUs) / 1_000_000
  const published = report.publishedCount + report.refusedCount
  // Holes are counted when a later message comes. Behind the last one, nothing comes.
  const lostCount = Math.max(last.missedCount, expectedCount(plan.rooms, rooms, published) - last.deliveredCount)
  const { disorderCount, gapCount } = last
  const failure = [
    ...(report.refusedCount > 0 ? [`${report.refusedCount} publishes were refused`] : []),
    ...(gapCount > 0 ? [`${gapCount} gaps were told`] : []),
  ]
  return {
    neededCount,
    publishedPerSecond: per(end.publisher.acceptedCount - start.publisher.acceptedCount, seconds),
    deliveriesPerSecond: per(end.node.deliveredCount - start.node.deliveredCount, seconds),
    receivedPerSecond: per(end.node.receivedCount - start.node.receivedCount, seconds),
    receivedBytesPerSecond: per(end.bytes.toNodeBytes - start.bytes.toNodeBytes, seconds),
    sentBytesPerSecond: per(end.bytes.toBrokerBytes - start.bytes.toBrokerBytes, seconds),
    connectionCount: end.bytes.connectionCount,
    serverCpuSeconds: end.node.cpuSeconds - start.node.cpuSeconds,
    brokerCpuSeconds: end.brokerCpuSeconds - start.brokerCpuSeconds,
    publisherCpuSeconds: end.publisher.cpuSeconds - start.publisher.cpuSeconds,
    serverRssBytes: end.node.rssBytes,
    latencyMs: end.node.latencyMs,
    gapCount: lostCount,
    disorderCount,
    ...judge({
      lostCount,
      reorderedCount: disorderCount,
      failure: failure.length === 0 ? null : failure.join(', '),
      generatorLate:
        report.maxLateMs > MAX_LATE_MS ? `messages were published up to ${Math.round(report.maxLateMs)} ms late` : null,
    }),
  }
}
