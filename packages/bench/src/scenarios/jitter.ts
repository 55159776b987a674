import { setTimeout as sleep } from 'node:timers/promises'
import { UsageError } from '../exit-codes.js'
import { nowUs } from '../measure/clock.js'
import { positiveInteger, positiveNumber, seedNumber } from '../options.js'
import { withParts } from '../parts.js'
import { column, percentileColumns } from '../results/columns.js'
import type { ResultColumn, ResultRow } from '../results/result.js'
import type { RunProgress } from '../run-progress.js'
import { createRowScenario, measureInTurns, NOT_MEASURED } from '../trials/row-scenario.js'
import { Audience } from './drops/audience.js'
import { PEERS, type PeerName, readPeers, systemOf } from './drops/peers.js'
import {
  AWAY_COLUMNS,
  CLIENT_COLUMNS,
  dropsText,
  judgeDrops,
  LOSS_COLUMNS,
  lossFigures,
  percentilesOf,
} from './drops/result.js'
import { RoomPublisher } from './drops/room-publisher.js'
import { allBack, checkAlive, gathered, quiet, startNodes, versionOf, watchMachine } from './drops/stage.js'

interface JitterConfig {
  readonly target: readonly PeerName[]
  readonly clients: number
  readonly rooms: number
  /** Messages per second, to all rooms in turn. */
  readonly publishRate: number
  /** Seconds in which all drops are. */
  readonly duration: number
  /** Seconds. */
  readonly drop: number
  /** Of each client. */
  readonly drops: number
  readonly processes: number
  readonly seed: number
  readonly repeat: number
}

const MODE = 'jitter'
const IDENTITY = ['target', 'subscribers']
const RECOVERY_TIMEOUT_MS = 60_000
const CLIENTS_PER_ROOM = 100

const COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('subscribers', 'Clients', 'count'),
  column('dropCount', 'Drops', 'count'),
  ...LOSS_COLUMNS,
  ...AWAY_COLUMNS,
  ...percentileColumns('backMs', 'back after', ['p50', 'p99', 'max']),
  column('serverCpuSeconds', 'Server CPU', 'seconds', 'lower'),
  ...CLIENT_COLUMNS,
]

/** Networks of clients that go away and come back while messages flow. */
export const jitterScenario = createRowScenario<JitterConfig>({
  name: 'jitter',
  summary: 'networks of clients that drop at random for 2 s while messages flow: what is lost, and what is said of it',
  examples: [
    ['', '10,000 clients of WebMQ, each dropped twice within 40 s, 100 messages per second'],
    ['--target webmq,socketio,centrifugo,uws --clients 5000', 'others by their own clients, on the same schedule'],
    ["--clients 500 --duration 10 --assert 'gapCount=0' --assert 'falseRecoveredCount=0'", 'in CI'],
  ],
  columns: COLUMNS,
  identity: IDENTITY,
  addOptions(command) {
    command
      .option('--target <list>', `servers with their own clients, in turn: ${PEERS.join(', ')}`, readPeers, ['webmq'])
      .option('--clients <n>', 'clients that listen to one room each', positiveInteger, 10_000)
      .option('--rooms <n>', 'rooms; a message goes to all clients of one (default: clients/100)', positiveInteger)
      .option('--publish-rate <n>', 'messages per second, to all rooms in turn', positiveNumber, 100)
      .option('--duration <s>', 'time in which all drops are', positiveNumber, 40)
      .option('--drop <s>', 'time for which a network is away', positiveNumber, 2)
      .option('--drops <n>', 'drops of each client', positiveInteger, 2)
      .option('--processes <n>', 'processes that play the clients', positiveInteger, 2)
      .option('--seed <n>', 'whose network drops when', seedNumber, 1)
      .option('--repeat <n>', 'rounds, all targets in turn', positiveInteger, 1)
  },
  readConfig(values) {
    const given = values as Omit<JitterConfig, 'rooms'> & { readonly rooms?: number }
    const { target, clients, publishRate, duration, drop, drops, processes, seed, repeat } = given
    if (duration / drops <= drop) throw new UsageError('--duration must have room for --drops of --drop')
    const rooms = given.rooms ?? Math.max(1, Math.floor(clients / CLIENTS_PER_ROOM))
    if (rooms > clients) throw new UsageError('--rooms must be at most --clients: nobody would listen to the others')
    return { target, clients, rooms, publishRate, duration, drop, drops, processes, seed, repeat }
  },
  targets: ({ target }) => target,
  describe: (config) => ({ ...config }),
  heading: ({ target, clients, rooms, publishRate, duration, drop, drops, seed }) =>
    [
      `  Servers: ${target.join(', ')}, one node each, which keeps what it needs in its memory`,
      `  Clients: ${clients.toLocaleString('en')} in ${rooms} rooms, ${publishRate} messages/s to all rooms in turn`,
      `  Drops: ${drops} of ${drop} s for each client within ${duration} s (seed ${seed}); half of them end the connection at once, half are silent until they end`,
    ].join('\n'),
  async measure(config, { progress: output, signal }) {
    const versions: Record<string, string> = {}
    const rows = await measureInTurns<PeerName>({
      cases: config.target,
      repeat: config.repeat,
      columns: COLUMNS,
      progress: output,
      signal,
      titleOf: (target) => `${target}, ${config.clients.toLocaleString('en')} clients`,
      identityOf: (target) => ({ target, mode: MODE, subscribers: config.clients }),
      measure: async (target, progress) => {
        const { row, version } = await measureJitter(target, config, progress, signal)
        versions[target] = version
        return row
      },
    })
    return { ...rows, versions }
  },
  text: dropsText(COLUMNS, IDENTITY),
})

async function measureJitter(target: PeerName, config: JitterConfig, progress: RunProgress, signal: AbortSignal) {
  const { clients, rooms, publishRate, duration, drop, drops: count, processes, seed } = config
  const system = await systemOf(target)
  return await withParts(signal, async (parts) => {
    progress.phase('starting the server')
    const nodes = await startNodes(system, 1, undefined, parts)
    const [node] = nodes
    if (node === undefined) throw new Error('there is no node')
    const audience = await parts.add(
      () => new Audience({ peer: target, ports: [node.port], clients, rooms }, processes),
    )
    await gathered(audience, progress)
    const publisher = new RoomPublisher(system, `http://127.0.0.1:${node.port}`, rooms, publishRate)
    await parts.add(() => publisher)
    progress.phase('drops')
    const [startUs, startCpu] = [nowUs(), node.cpuSeconds() ?? 0]
    const machine = watchMachine()
    publisher.start()
    audience.drop({ seed, spanMs: duration * 1_000, dropMs: drop * 1_000, count })
    const span = sleep(duration * 1_000, undefined, { signal: parts.signal })
    await progress.during(span, { expectedMs: duration * 1_000, counts: () => ({ deliveries: audience.heardCount }) })
    await publisher.stop()
    progress.phase('clients come back')
    await allBack(audience, RECOVERY_TIMEOUT_MS, parts.signal)
    const seconds = (nowUs() - startUs) / 1_000_000
    const machineShare = machine()
    await quiet(audience, parts.signal)
    checkAlive(nodes)
    const serverCpuSeconds = (node.cpuSeconds() ?? 0) - startCpu
    const log = await audience.finish(publisher.published)
    const figures = lossFigures(publisher.published.length, log, clients)
    const busy = { generatorUtilization: log.busiestShare, machineShare }
    const { heldBackCount, published } = publisher
    const unanswered = published.filter(({ outcome }) => outcome !== 'acked').length
    const row: ResultRow = {
      ...NOT_MEASURED,
      target,
      mode: MODE,
      subscribers: clients,
      dropCount: clients * count,
      ...figures,
      backMs: percentilesOf(log.backMs),
      publishedPerSecond: published.length / seconds,
      deliveriesPerSecond: (Number(figures.expectedCount) * Number(figures.deliveredRatio)) / seconds,
      serverCpuSeconds,
      ...busy,
      ...judgeDrops(figures, busy, [
        heldBackCount > 0 && `${heldBackCount} messages were not offered`,
        unanswered > 0 && `${unanswered} publishes were not accepted`,
      ]),
      repeatCount: 1,
      spread: {},
    }
    return { row, version: (await versionOf(node)) ?? system.title }
  })
}
