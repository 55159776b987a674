import { setTimeout as sleep } from 'node:timers/promises'
import type { BalancerName } from 'webmq-services'
import { UsageError } from '../exit-codes.js'
import { listOf, nonNegativeNumber, positiveInteger, positiveNumber } from '../options.js'
import { type Parts, startBalancer, startService, withParts } from '../parts.js'
import { column, faults, percentileColumns } from '../results/columns.js'
import type { ResultColumn, ResultRow } from '../results/result.js'
import type { RunProgress } from '../run-progress.js'
import { createRowScenario, measureInTurns, NOT_MEASURED } from '../trials/row-scenario.js'
import { Audience } from './drops/audience.js'
import { Bystander } from './drops/bystander.js'
import { InFlight } from './drops/in-flight.js'
import { type Flags, PEERS, type PeerName, readPeers, systemOf } from './drops/peers.js'
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
import { allBack, checkAlive, gathered, quiet, started, startNodes, versionOf, watchMachine } from './drops/stage.js'

interface AvalancheConfig {
  readonly target: readonly PeerName[]
  readonly balancers: readonly BalancerName[]
  readonly clients: number
  readonly rooms: number
  /** Messages per second, to all rooms in turn. */
  readonly publishRate: number
  readonly drainPerSecond: number
  /** Seconds before the deploy. */
  readonly steady: number
  /** Seconds between two nodes. */
  readonly rest: number
  readonly processes: number
  readonly repeat: number
}

interface Place {
  readonly target: PeerName
  readonly balancer: BalancerName
}

const BALANCERS = ['haproxy', 'nginx'] as const satisfies readonly BalancerName[]
const IDENTITY = ['target', 'mode', 'subscribers']
const NODE_COUNT = 3
const CLIENTS_PER_ROOM = 100
/** A balancer has 20,000 descriptors, and a client takes two; while it moves, four. */
const CLIENTS_PER_BALANCER = 7_000
const BACK_TIMEOUT_MS = 90_000
/** Longer than two checks of the load balancer. */
const DRAIN_DELAY_MS = 600

const COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('mode', 'Behind', 'text'),
  column('subscribers', 'Clients', 'count'),
  column('deployMs', 'Deploy', 'ms', 'lower'),
  column('backMs', 'All back', 'ms', 'lower'),
  ...AWAY_COLUMNS,
  ...LOSS_COLUMNS,
  ...percentileColumns('quietMs', 'bystander before', ['p50', 'p99']),
  ...percentileColumns('latencyMs', 'bystander', ['p50', 'p99', 'max']),
  ...percentileColumns('answerMs', 'its publishes', ['p99', 'max']),
  column('wordCount', 'Words of streams', 'count'),
  faults('brokenTextCount', 'Streams broken'),
  column('answeredCount', 'Requests answered', 'count'),
  faults('unansweredCount', 'refused, told'),
  faults('twiceCount', 'handled twice'),
  ...CLIENT_COLUMNS,
]

/** A rolling deploy of three nodes under many clients. */
export const avalancheScenario = createRowScenario<AvalancheConfig>({
  name: 'avalanche',
  summary: 'three nodes behind load balancers are deployed anew, one after the other, under 20,000 clients',
  examples: [
    ['', '20,000 clients of WebMQ behind HAProxy'],
    ['--balancer haproxy,nginx --target webmq,socketio,centrifugo,uws --clients 5000', 'others, on the same schedule'],
    ["--clients 500 --assert gapCount=0 --assert 'latencyMs.p99 < 100ms'", 'in CI'],
  ],
  columns: COLUMNS,
  identity: IDENTITY,
  addOptions(command) {
    command
      .option('--target <list>', `servers with their own clients, in turn: ${PEERS.join(', ')}`, readPeers, ['webmq'])
      .option('--balancer <list>', `load balancers in turn: ${BALANCERS.join(', ')}`, listOf(BALANCERS), ['haproxy'])
      .option('--clients <n>', 'clients that listen to one room each', positiveInteger, 20_000)
      .option('--rooms <n>', 'rooms; a message goes to all clients of one (default: clients/100)', positiveInteger)
      .option('--publish-rate <n>', 'messages per second, to all rooms in turn', positiveNumber, 50)
      .option(
        '--drain-per-second <n>',
        'connections that a leaving node of WebMQ closes per second',
        positiveInteger,
        1_000,
      )
      .option('--steady <s>', 'time before the deploy, with all clients', positiveNumber, 5)
      .option('--rest <s>', 'time between two nodes, once everybody is back', nonNegativeNumber, 1)
      .option('--processes <n>', 'processes that play the clients', positiveInteger, 2)
      .option('--repeat <n>', 'rounds, all targets in turn', positiveInteger, 1)
  },
  readConfig(values) {
    const given = values as Omit<AvalancheConfig, 'rooms' | 'balancers'> & {
      readonly rooms?: number
      readonly balancer: readonly BalancerName[]
    }
    const { target, balancer, clients, publishRate, drainPerSecond, steady, rest, processes, repeat } = given
    const rooms = given.rooms ?? Math.max(1, Math.floor(clients / CLIENTS_PER_ROOM))
    if (rooms > clients) throw new UsageError('--rooms must be at most --clients: nobody would listen to the others')
    const settings = { target, balancers: balancer, clients, rooms, publishRate, drainPerSecond }
    return { ...settings, steady, rest, processes, repeat }
  },
  targets: ({ target }) => target,
  describe: (config) => ({ ...config }),
  heading: ({ target, balancers, clients, rooms, publishRate, drainPerSecond }) =>
    [
      `  Servers: ${target.join(', ')}: ${NODE_COUNT} nodes behind ${balancers.join(', then ')}, and one beside them; one Redis`,
      `  Clients: ${clients.toLocaleString('en')} in ${rooms} rooms, ${publishRate} messages/s to all rooms in turn; ${balancersFor(clients)} load balancers`,
      `  Deploy: SIGTERM (WebMQ drains ${drainPerSecond} connections/s), start, and the next node once all clients are back`,
    ].join('\n'),
  async measure(config, { progress: output, signal }) {
    const versions: Record<string, string> = {}
    const cases = config.balancers.flatMap((balancer) => config.target.map((target): Place => ({ target, balancer })))
    const rows = await measureInTurns<Place>({
      cases,
      repeat: config.repeat,
      columns: COLUMNS,
      progress: output,
      signal,
      titleOf: ({ target, balancer }) => `${target} behind ${balancer}, ${config.clients.toLocaleString('en')} clients`,
      identityOf: ({ target, balancer }) => ({ target, mode: balancer, subscribers: config.clients }),
      measure: async (place, progress) => {
        const { row, version } = await measureAvalanche(place, config, progress, signal)
        versions[place.target] = version
        return row
      },
    })
    return { ...rows, versions }
  },
  text: dropsText(COLUMNS, IDENTITY),
})

async function measureAvalanche(
  { target, balancer }: Place,
  config: AvalancheConfig,
  progress: RunProgress,
  signal: AbortSignal,
) {
  const { clients, rooms, publishRate, drainPerSecond, steady, processes } = config
  const system = await systemOf(target, flagsOf(drainPerSecond))
  return await withParts(signal, async (parts) => {
    progress.phase('starting redis and nodes')
    const redis = await parts.add(() => startService('redis', ({ startRedis }) => startRedis({ isPrivate: true })))
    const nodes = await startNodes(system, NODE_COUNT + 1, redis.url, parts)
    const [beside, ...moved] = nodes
    if (beside === undefined) throw new Error('there is no node')
    const checkPath = target === 'webmq' ? '/ready' : '/health'
    const ports = await balancersBefore(
      moved.map(({ port }) => port),
      balancer,
      checkPath,
      clients,
      parts,
    )
    const audience = await parts.add(() => new Audience({ peer: target, ports, clients, rooms }, processes))
    await gathered(audience, progress)
    const publisher = new RoomPublisher(system, `http://127.0.0.1:${beside.port}`, rooms, publishRate)
    await parts.add(() => publisher)
    const bystander = await parts.add(() => new Bystander(system, beside.port))
    await bystander.start()
    const inFlight = target === 'webmq' ? await parts.add(() => new InFlight(ports.map(urlOf))) : undefined
    await inFlight?.start()

    progress.phase('steady')
    publisher.start()
    bystander.take()
    await sleep(steady * 1_000, undefined, { signal: parts.signal })
    const before = bystander.take()
    const beganMs = performance.now()
    const machine = watchMachine()
    const backMs: number[] = []
    for (const [index, node] of moved.entries()) {
      progress.phase(`deploying node ${index + 1}`)
      if (index > 0) await sleep(config.rest * 1_000, undefined, { signal: parts.signal })
      const leftMs = performance.now()
      await node.stop()
      await started(node)
      await allBack(audience, BACK_TIMEOUT_MS, parts.signal)
      backMs.push(performance.now() - leftMs)
    }
    const deployMs = performance.now() - beganMs
    const machineShare = machine()
    const meanwhile = bystander.take()
    progress.phase('last messages')
    const flights = await inFlight?.finish()
    await publisher.stop()
    await bystander.quiesce()
    await quiet(audience, parts.signal)
    checkAlive(nodes)

    const log = await audience.finish(publisher.published)
    const figures = lossFigures(publisher.published.length, log, clients, bystander.counts())
    const busy = { generatorUtilization: log.busiestShare, machineShare }
    const { brokenTextCount = 0, twiceCount = 0 } = flights ?? {}
    const row: ResultRow = {
      ...NOT_MEASURED,
      target,
      mode: balancer,
      subscribers: clients,
      ...figures,
      deployMs,
      backMs: Math.max(...backMs),
      quietMs: percentilesOf(before.deliveryMs),
      latencyMs: percentilesOf(meanwhile.deliveryMs),
      answerMs: percentilesOf(meanwhile.answerMs),
      ...flights,
      examples: [...figures.examples, ...(flights?.examples ?? [])],
      ...busy,
      ...judgeDrops(figures, busy, [
        brokenTextCount > 0 && `${brokenTextCount} streams are broken`,
        twiceCount > 0 && `${twiceCount} requests were handled twice`,
      ]),
      repeatCount: 1,
      spread: {},
    }
    return { row, version: (await versionOf(beside)) ?? system.title }
  })
}

function flagsOf(drainPerSecond: number): Flags {
  return [
    ...['--log-level', 'warn', '--history', '#=100000', '--trusted-proxy', 'loopback'],
    ...['--drain-delay', `${DRAIN_DELAY_MS}ms`, '--drain-per-second', String(drainPerSecond)],
  ]
}

function balancersFor(clients: number): number {
  return Math.ceil(clients / CLIENTS_PER_BALANCER)
}

/** @returns the ports of as many load balancers as the clients need */
async function balancersBefore(
  nodePorts: readonly number[],
  program: BalancerName,
  checkPath: string,
  clients: number,
  parts: Parts,
): Promise<readonly number[]> {
  const starting = Array.from({ length: balancersFor(clients) }, () =>
    parts.add(() => startBalancer(nodePorts, program, { checkPath })),
  )
  return (await Promise.all(starting)).map(({ port }) => port)
}

function urlOf(port: number): string {
  return `ws://127.0.0.1:${port}/ws`
}
