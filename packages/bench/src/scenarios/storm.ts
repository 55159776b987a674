import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Option } from 'commander'
import { UsageError } from '../exit-codes.js'
import type { Connected } from '../loadgen/events.js'
import { positiveInteger } from '../options.js'
import { column, faults, JUDGEMENT_COLUMNS, percentileColumns, SERVER_COLUMNS } from '../results/columns.js'
import { signToken } from '../targets/json-web-token.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { generatorShare, latencyMs, type Subject, usageBetween } from '../trials/trial.js'
import type { TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

export interface StormConfig extends TrialConfig {
  readonly auth: 'jwt' | 'none'
  /** `known`: those of connections that were made before, as after a restart of the network. */
  readonly tokens: 'new' | 'known'
  /** Handshakes in flight. */
  readonly batch: number
  /** With TLS: `resumed` uses tickets of earlier connections. */
  readonly handshake: 'full' | 'resumed'
}

/** Connections made and closed before. With fewer, V8 compiles during most of the measurement. */
const WARMUP_CONNECTIONS = 5_000
/** Pause for the rest of the compilation. */
const SETTLE_MS = 250
const SECRET_BYTES = 32

export const storm: TrialScenario<StormConfig> = {
  name: 'storm',
  summary: 'connections made as fast as possible: TCP, upgrade, token and the first message of the server',
  examples: [
    ['--tiers 100,1000,5000,10000', 'with a JWT each'],
    ['--target webmq-native,uws,ws --tiers 5000 --repeat 5', 'beside peers that check the same tokens'],
    ['--target webmq-native,raw --auth none', 'without tokens'],
    ['--tls --tiers 1000 --handshake resumed', 'TLS, with the ticket of an earlier connection'],
  ],
  abilities: [],
  defaults: { hasTls: true, targets: ['webmq-native', 'uws', 'ws'], tiers: [100, 500, 1_000, 2_000, 5_000, 10_000] },
  caseColumns: [],
  columns: [
    column('connectsPerSecond', 'Connects/s', 'rate', 'higher'),
    column('connectsPerServerCpuSecond', 'Connects/CPU s', 'rate', 'higher'),
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'p999', 'max']),
    column('resumedShare', 'Resumed', 'percent'),
    faults('failedCount', 'Failed'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .addOption(new Option('--auth <kind>', 'credentials of a connection').choices(['jwt', 'none']).default('jwt'))
      .addOption(
        new Option('--tokens <kind>', 'one for each connection: new ones, or those of earlier connections')
          .choices(['new', 'known'])
          .default('new'),
      )
      .option(
        '--batch <n>',
        'connections at once; the next batch waits for the whole of the last',
        positiveInteger,
        500,
      )
      .addOption(
        new Option('--handshake <kind>', 'with --tls: new ones, or with the ticket of an earlier connection')
          .choices(['full', 'resumed'])
          .default('full'),
      )
  },
  readConfig(common, { auth, tokens, batch, handshake }) {
    const unable = common.targets.find(({ spec }) => !spec.abilities.includes('tokens'))
    if (auth === 'jwt' && unable !== undefined) {
      throw new UsageError(`target '${unable.label}' checks no tokens: leave it out or say --auth none`)
    }
    if (handshake === 'resumed' && common.tls !== true) throw new UsageError('--handshake resumed needs --tls')
    return { ...common, auth, tokens, batch, handshake }
  },
  cases: ({ tiers, auth, tokens, handshake }) =>
    tiers.map((subscribers) => ({
      mode: [auth, ...(tokens === 'known' ? [tokens] : []), ...(handshake === 'full' ? [] : [handshake])].join(', '),
      subscribers,
      fields: {},
    })),
  notes: ({ auth }) => [
    'A connection is made when the first message of the server has come: welcome of webmq.v1, Engine.IO’s open packet, "ready" of the others; raw says nothing.',
    `Before that ${WARMUP_CONNECTIONS} connections are made and closed.`,
    ...(auth === 'jwt'
      ? ['Every target verifies the HS256 token of each connection in the upgrade; webmq as it does for its users.']
      : []),
  ],
  measure: measureStorm,
}

/** Makes the connections of one case. */
async function measureStorm({
  config,
  testCase,
  progress,
  signal,
  startTrial,
}: TrialContext<StormConfig>): Promise<Measured> {
  const jwtSecret = config.auth === 'jwt' ? randomBytes(SECRET_BYTES).toString('base64') : undefined
  const trial = await startTrial(jwtSecret === undefined ? {} : { jwtSecret })
  const options = {
    batch: config.batch,
    batchMode: 'batches' as const,
  }
  /** A user and a token for each connection: a server may know again the token that it has verified before. */
  const nowS = Math.floor(Date.now() / 1_000)
  const tokensFor = (group: string, count: number) => {
    if (jwtSecret === undefined) return {}
    return { tokens: Array.from({ length: count }, (_, number) => signToken(jwtSecret, `${group}-${number}`, nowS)) }
  }
  progress.phase('warming up')
  const resume = config.handshake === 'resumed'
  await trial.tryConnect(
    { ...options, ...tokensFor('before', WARMUP_CONNECTIONS), count: WARMUP_CONNECTIONS },
    { resume },
  )
  await trial.loadgen.close(false)
  await trial.allGone()
  await sleep(SETTLE_MS, undefined, { signal })

  progress.phase('connecting')
  const count = testCase.subscribers
  const known = config.tokens === 'known' ? 'before' : 'user'
  const credentials = tokensFor(known, Math.min(count, known === 'before' ? WARMUP_CONNECTIONS : count))
  const connecting = async () => await trial.tryConnect({ ...options, ...credentials, count }, { resume })
  return await measureConnects(trial, config, async () => await progress.during(connecting()))
}

/** Measures the connects that `connect` makes. */
export async function measureConnects(
  trial: Subject,
  config: Pick<TrialConfig, 'generatorThreads'>,
  connect: () => Promise<Connected>,
): Promise<Measured> {
  const start = await trial.mark()
  const connected = await connect()
  const usage = usageBetween(start, await trial.mark())
  const seconds = connected.durationUs / 1_000_000
  const generatorUtilization = generatorShare(usage.generatorCpuSeconds, seconds, config.generatorThreads)
  return {
    figures: {
      ...usage,
      connectsPerSecond: per(connected.ok, seconds),
      connectsPerServerCpuSecond: per(connected.ok, usage.serverCpuSeconds),
      latencyMs: latencyMs(connected.latencyUs),
      resumedShare: connected.tls === null ? null : per(connected.tls.resumed, connected.ok),
      failedCount: connected.failed,
      generatorUtilization,
      ...judge({
        failure: connected.failed > 0 ? `${connected.failed} connections failed: ${trial.reasons(connected)}` : null,
        generatorUtilization,
      }),
    },
  }
}

/** WSE's test 1: connects per second, and the cost of one. */
export const stormScenario = createTrialScenario(storm)
