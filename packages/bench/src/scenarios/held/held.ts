import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../../exit-codes.js'
import { nowUs } from '../../measure/clock.js'
import { grownCaches, kernelMemory } from '../../measure/kernel-memory.js'
import { processUsage } from '../../measure/process-usage.js'
import { positiveInteger, positiveNumber } from '../../options.js'
import { formatBytes } from '../../report/format.js'
import { column, faults, percentileColumns, VERDICT_COLUMN } from '../../results/columns.js'
import { createTrialScenario } from '../../trials/create-trial-scenario.js'
import { latencyMs } from '../../trials/trial.js'
import type { TrialConfig } from '../../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import { CONNECTIONS_SHARE, connectionsThatFit, raiseDescriptorLimit, readCapacity } from './capacity.js'
import { PUBLISHED } from './reference.js'
import { HeldServers } from './servers.js'

interface HeldConfig extends TrialConfig {
  readonly connections: number
  /** Server processes; `null`: as few as the limit of descriptors allows. */
  readonly processes: number | null
  /** Seconds from one ping of a connection to its next. */
  readonly pingInterval: number
  /** Seconds from one broadcast to the next. */
  readonly broadcastInterval: number
}

const MILLION = 1_000_000
const SECRET_BYTES = 32
/** Connections before the memory of the others counts: the first ones also allocate pools, code and tables. */
const FIRST_SHARE = 0.1
/** A process that rests gives memory back, which is none of connections. */
const REST_MS = 20_000
/** Of each of the first connections: they use the whole young generation of V8, as the pings of all do later. */
const FIRST_PINGS = 20
const SETTLE_MS = 2_000
/** The last ping may be answered, and the last broadcast arrive, as late as this. */
const TAIL_MS = 60_000
/** Kinds of objects of the kernel that the result names. */
const CACHE_COUNT = 12

const held: TrialScenario<HeldConfig> = {
  name: 'held',
  summary:
    'as many connections as the machine holds, with tokens, pings and a broadcast a minute: memory, CPU, latency',
  examples: [
    ['', 'what fits, for ten minutes'],
    ['--connections 250000 --duration 600 --json held.json', 'a quarter of a million'],
    ["--connections 5000 --duration 60 --assert gapCount=0 --assert 'coresPerMillion < 1.5'", 'in CI'],
  ],
  abilities: ['tokens', 'ping', 'fan-out'],
  defaults: { targets: ['webmq-native'], repeat: 1, duration: 600, payload: 100 },
  caseColumns: [],
  columns: [
    column('processCount', 'Server processes', 'count'),
    column('connectsPerSecond', 'Connects/s', 'rate', 'higher'),
    column('bytesPerConnection', 'Memory each', 'bytes', 'lower'),
    column('kernelBytesPerSide', 'Kernel a side', 'bytes', 'lower'),
    column('serverRssBytes', 'Server RSS', 'bytes', 'lower'),
    column('emptyRssBytes', 'of it, empty', 'bytes'),
    column('generatorRssBytes', 'Generator RSS', 'bytes'),
    column('slabBytes', 'Slab', 'bytes', 'lower'),
    column('socketBytes', 'Socket buffers', 'bytes', 'lower'),
    column('serverCpuShare', 'Server CPU cores', 'number', 'lower'),
    column('generatorCpuShare', 'Generator CPU cores', 'number'),
    ...percentileColumns('pingMs', 'Ping', ['p50', 'p99', 'max']),
    column('pingCount', 'Pings', 'count'),
    ...percentileColumns('latencyMs', 'Broadcast', ['p50', 'p99', 'max']),
    column('broadcastCount', 'Broadcasts', 'count'),
    faults('gapCount', 'Lost'),
    faults('duplicateCount', 'Duplicates'),
    faults('missingCount', 'Pings without answer'),
    faults('closedCount', 'Closed'),
    column('bytesPerMillion', 'Memory of 1M', 'bytes', 'lower'),
    column('coresPerMillion', 'Cores of 1M', 'number', 'lower'),
    VERDICT_COLUMN,
  ],
  addOptions(command) {
    command
      .option(
        '--connections <n>',
        'connections (default: by memory and descriptors, at most a million)',
        positiveInteger,
      )
      .option(
        '--processes <n>',
        'server processes (default: as few as the limit of descriptors allows)',
        positiveInteger,
      )
      .option('--ping-interval <s>', 'from one ping of a connection to its next', positiveNumber, 25)
      .option('--broadcast-interval <s>', 'from one broadcast to the next', positiveNumber, 60)
  },
  readConfig(common, { connections, processes = null, pingInterval, broadcastInterval }) {
    const count: number = connections ?? connectionsThatFit(readCapacity())
    return { ...common, tiers: [count], connections: count, processes, pingInterval, broadcastInterval }
  },
  cases: ({ connections }) => [{ mode: 'held', subscribers: connections, fields: {} }],
  notes: ({ pingInterval, broadcastInterval }) => [
    `Every connection has a token of its own and one listen, pings every ${pingInterval} s, at a time of its own, and gets a broadcast every ${broadcastInterval} s. Latency of broadcasts and pings is that of all servers, generator and network of one machine.`,
    'Memory each: what the last nine tenths of the connections have added to the resident size of the servers. Kernel: growth of the slab, half of it for the generator. 1M: by arithmetic, without empty processes.',
    ...PUBLISHED,
  ],
  measure: measureHeld,
}

async function measureHeld(context: TrialContext<HeldConfig>): Promise<Measured> {
  const { config, progress, signal } = context
  const { connections } = config
  const { processCount, notes } = processesFor(config)
  const servers = await HeldServers.start(context, processCount, randomBytes(SECRET_BYTES).toString('base64'))
  progress.phase('warming up')
  await servers.warmUp()
  const kernelBefore = kernelMemory()
  progress.phase('connecting')
  const first = Math.ceil(connections * FIRST_SHARE)
  const rest = connections - first
  await servers.connect(first)
  await servers.listen()
  await sleep(Math.min(REST_MS, config.duration * 1_000), undefined, { signal })
  await servers.ping({ perConnection: FIRST_PINGS })
  const firstRssBytes = await servers.settledRssBytes()
  const connectSeconds = await servers.connect(rest)
  progress.phase('listening')
  await servers.listen()
  await sleep(SETTLE_MS, undefined, { signal })

  progress.phase('holding')
  const held = await hold(context, servers)
  const kernel = kernelMemory()
  const serverRssBytes = await servers.settledRssBytes()
  const bytesPerConnection = (serverRssBytes - firstRssBytes) / rest
  const slabBytes = kernel.slabBytes - kernelBefore.slabBytes
  const { open } = await servers.loadgen.stats()
  const closedCount = connections - open
  const grown = grownCaches(kernelBefore, kernel, CACHE_COUNT)
  return {
    figures: {
      ...held.figures,
      processCount,
      connectsPerSecond: per(rest, connectSeconds),
      bytesPerConnection,
      bytesPerMillion: bytesPerConnection * MILLION,
      emptyRssBytes: firstRssBytes - bytesPerConnection * first,
      serverRssBytes,
      generatorRssBytes: processUsage(servers.loadgen.pid).rssBytes,
      kernelBytesPerSide: slabBytes / connections / 2,
      slabBytes,
      socketBytes: kernel.socketBytes,
      caches: Object.fromEntries(grown),
      closedCount,
      ...judge({
        lostCount: held.figures.gapCount,
        duplicateCount: held.figures.duplicateCount,
        generatorUtilization: held.figures.generatorUtilization,
        failure: failureOf(closedCount, held.figures.missingCount),
      }),
    },
    notes: [
      ...notes,
      `Growth of the slab: ${grown.map(([name, bytes]) => `${name} ${formatBytes(bytes)}`).join(', ')}.`,
    ],
  }
}

/** Pings and broadcasts, and what they cost. */
async function hold({ config, progress }: TrialContext<HeldConfig>, servers: HeldServers) {
  const { connections, duration, pingInterval, broadcastInterval, payload: payloadBytes } = config
  const { loadgen } = servers
  const durationMs = Math.ceil(duration * 1_000)
  const generatorCpuSeconds = async () => {
    const { cpuUserUs, cpuSystemUs } = await loadgen.stats()
    return (cpuUserUs + cpuSystemUs) / MILLION
  }
  await loadgen.startCounting({ latency: true })
  const before = { atUs: nowUs(), server: servers.cpuSeconds(), generator: await generatorCpuSeconds() }
  const pinging = servers.ping({
    perConnection: Math.max(1, Math.floor(duration / pingInterval)),
    intervalMs: Math.ceil(pingInterval * 1_000),
    timeoutMs: durationMs + TAIL_MS,
  })
  const publishing = servers.publish({ perSecond: 1 / broadcastInterval, durationMs, payloadBytes })
  const resting = sleep(durationMs)
  const work = Promise.all([pinging, publishing, resting])
  const [pinged, published] = await progress.during(work, { expectedMs: durationMs })
  const seconds = (nowUs() - before.atUs) / MILLION
  const serverCpuSeconds = servers.cpuSeconds() - before.server
  const used = (await generatorCpuSeconds()) - before.generator
  const lastSeq = Math.max(...published.map((one) => one.lastSeq))
  const counted = await loadgen.stopCounting({ lastSeq, timeoutMs: TAIL_MS })
  const serverCpuShare = serverCpuSeconds / seconds
  return {
    figures: {
      serverCpuSeconds,
      serverCpuShare,
      coresPerMillion: (serverCpuShare / connections) * MILLION,
      generatorCpuSeconds: used,
      generatorCpuShare: used / seconds,
      generatorUtilization: counted.busiestThreadShare,
      pingMs: latencyMs(pinged.latencyUs),
      pingCount: pinged.count,
      missingCount: pinged.missing,
      latencyMs: latencyMs(counted.latencyUs),
      fanoutMs: latencyMs(counted.completeFanoutUs),
      broadcastCount: published[0]?.count ?? 0,
      gapCount: counted.gapCount + counted.missingCount,
      duplicateCount: counted.duplicateCount,
    },
  }
}

/** @throws {RunError} when so many connections do not fit so few processes. */
function processesFor({ connections, processes }: HeldConfig): { processCount: number; notes: string[] } {
  const wanted = Math.ceil(connections / (processes ?? 1) / CONNECTIONS_SHARE)
  const { limit, refusal } = raiseDescriptorLimit(wanted)
  const fewest = Math.ceil(connections / Math.floor(limit * CONNECTIONS_SHARE))
  const processCount = processes ?? fewest
  if (processCount < fewest) {
    const why = refusal === null ? '' : `: ${refusal}`
    throw new RunError(`${processes} processes have too few descriptors, ${limit} each${why}; ${fewest} have enough`)
  }
  if (refusal === null) return { processCount, notes: [] }
  return {
    processCount,
    notes: [`A process has ${limit} descriptors, and no more were to be had (${refusal}): ${processCount} servers.`],
  }
}

function failureOf(closedCount: number, missingCount: number): string | null {
  if (closedCount > 0) return `${closedCount} connections were closed`
  return missingCount > 0 ? `${missingCount} pings were not answered` : null
}

export const heldScenario = createTrialScenario(held)
