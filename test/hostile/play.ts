import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { RunError } from '../../packages/bench/src/exit-codes.js'
import { findLoadgen } from '../../packages/bench/src/loadgen/find.js'
import { LineProcess } from '../../packages/bench/src/loadgen/line-process.js'
import { processUsage } from '../../packages/bench/src/measure/process-usage.js'
import { parseTarget } from '../../packages/bench/src/targets/target-table.js'
import { reasons, Trial, type TrialOptions } from '../../packages/bench/src/trials/trial.js'
import type { AttackCase } from './attack-case.js'
import { startBackend } from './backend.js'
import { memoryBoundBytes } from './memory-bound.js'
import type { Attacked, Probed } from './messages.js'
import { p99sOf, sharesOf, type Window, worseOf } from './p99s.js'
import { startSlowBroker } from './slow-broker.js'
import { claimsOf, tokenOf } from './tokens.js'

/** The load of a play. */
export interface PlayLoad {
  /** Connections, the hostile clients included. */
  readonly connections: number
  readonly hostile: number
  /** Of the honest load before the attack. */
  readonly baselineMs: number
  readonly attackMs: number
  /** Whether an attack beyond the allowed p99 is played once more, on another server. */
  readonly isCompared: boolean
}

/** What one case did to the others and to the server. */
export interface PlayedCase {
  /**
   * p99 of honest deliveries / (2 x that without the attack + 5 ms). If that is above 1, the same attack is played on another
   * server, and what it costs there by the shared processor takes the place of the p99 without it.
   */
  readonly latencyShare: number
  /** The same of pings. */
  readonly pingShare: number
  /** Growth of the server's memory over its bound. */
  readonly memoryShare: number
  readonly lostCount: number
  readonly duplicateCount: number
  readonly unansweredPingCount: number
  /** Honest connections that the server ended, by close code. */
  readonly closes: Readonly<Record<string, number>>
  /** Honest publishes without `ok`, by code. */
  readonly refusals: Readonly<Record<string, number>>
  readonly healthFailures: Readonly<Record<string, number>>
  /** Why the server's process ended, or answers nobody; `undefined` when it lives. */
  readonly death: string | undefined
  readonly attacked: Attacked
  /** p99 in ms with and without the attack, for the report. */
  readonly summary: string
}

const PUBLISHERS = 5
const MAX_PINGERS = 50
const PUBLISHES_PER_SECOND = 100
const PAYLOAD_BYTES = 200
/** Most that one hostile client sends per second: otherwise the attackers take the processor from the server. */
const ATTACKER = { operationsPerSecond: 2_000, bytesPerSecond: 2_000_000 }
/** Nine digits throughout. */
const FIRST_SEQ = 100_000_001
const WARMUP_MS = 500
const KEY_PREFIX = 'bench.tick.'
const TAIL_TIMEOUT_MS = 5_000
const START_TIMEOUT_MS = 30_000
/** Above the prober's own limits for late answers. */
const ANSWER_MARGIN_MS = 40_000
const MEMORY_INTERVAL_MS = 100
/** Below the connections that a server allows one user by default. */
const CONNECTIONS_PER_USER = 50

/** Plays one case on a server of its own: the honest load alone, then beside the attack. */
export async function playCase(hostileCase: AttackCase, load: PlayLoad): Promise<PlayedCase> {
  const program = await findLoadgen({ phase: () => undefined, note: () => undefined })
  // Whom a proxy names is not of this machine, and needs a token.
  const hasTokens = hostileCase.needs === 'tokens' || hostileCase.needs === 'proxy'
  const jwtSecret = hasTokens ? randomBytes(32).toString('base64url') : undefined
  await using backend = hostileCase.needs === 'webhook' ? await startBackend() : undefined
  await using slow = hostileCase.needs === 'slow-broker' ? await startSlowBroker() : undefined
  const settings = {
    ...slow?.settings,
    ...(backend === undefined ? {} : { webhook: { url: backend.url, events: ['publish'] } }),
    ...(hostileCase.needs === 'compression' ? { compression: true } : {}),
    ...(hostileCase.needs === 'proxy' ? { trustedProxies: ['127.0.0.1'] } : {}),
    ...(jwtSecret === undefined ? {} : { jwtSecret }),
  }
  const processes = await startProcesses()
  const options = { choice: parseTarget('webmq-native'), settings, program, generatorThreads: 1 }
  // Its first line must not come before somebody waits for it.
  const trial = new Trial(options)
  const play = new Play(trial, options, processes, jwtSecret)
  try {
    await trial.ready()
    await play.connect(load)
    return await play.observe(hostileCase, load)
  } finally {
    play.stopLooking()
    await Promise.all([trial.stop(), processes.prober.stop(), processes.attackers.stop()])
  }
}

class Play {
  readonly #trial: Trial
  readonly #options: TrialOptions
  readonly #processes: Processes
  readonly #jwtSecret: string | undefined
  #seq = FIRST_SEQ
  #death: string | undefined
  #peakRssBytes = 0
  #looks: NodeJS.Timeout | undefined

  constructor(trial: Trial, options: TrialOptions, processes: Processes, jwtSecret: string | undefined) {
    this.#trial = trial
    this.#options = options
    this.#processes = processes
    this.#jwtSecret = jwtSecret
    trial.target.failed.catch((error: unknown) => {
      this.#death ??= error instanceof Error ? error.message : String(error)
    })
  }

  /** @throws {RunError} unless every honest client is there. */
  async connect({ connections, hostile }: PlayLoad): Promise<void> {
    const honest = connections - hostile
    const pingers = Math.min(MAX_PINGERS, Math.floor(honest / 10))
    const listeners = honest - pingers - PUBLISHERS
    for (let done = 0, user = 0; done < listeners; user++) {
      const token = this.#tokenOf(user)
      const count = token === undefined ? listeners : Math.min(CONNECTIONS_PER_USER, listeners - done)
      const connected = await this.#trial.tryConnect({ count, ...(token === undefined ? {} : { tokens: [token] }) })
      if (connected.failed > 0) throw new RunError(`${connected.failed} of ${count} failed: ${reasons(connected)}`)
      done += count
    }
    const { failed } = await this.#trial.loadgen.send([`listen 1 ${KEY_PREFIX}*`], 'ok 1')
    if (failed > 0) throw new RunError(`${failed} honest connections may not listen`)
    const tokens = Array.from({ length: PUBLISHERS + pingers }, (_, place) => this.#tokenOf(-1 - place))
    const command = {
      cmd: 'connect',
      port: this.#trial.target.port,
      publishers: PUBLISHERS,
      pingers,
      payloadBytes: PAYLOAD_BYTES,
      keyPrefix: KEY_PREFIX,
      ...(this.#jwtSecret === undefined ? {} : { tokens }),
    }
    await this.#processes.prober.request(command, 'connected', START_TIMEOUT_MS)
  }

  async observe(hostileCase: AttackCase, { hostile, baselineMs, attackMs, isCompared }: PlayLoad): Promise<PlayedCase> {
    const { attackers } = this.#processes
    const { pid, port } = this.#trial.target
    await this.#window(WARMUP_MS)
    const baseline = await this.#window(baselineMs)
    const before = processUsage(pid)
    this.#look()
    this.#looks = setInterval(() => this.#look(), MEMORY_INTERVAL_MS)
    const command = {
      cmd: 'attack',
      case: hostileCase.name,
      port,
      clients: hostile,
      durationMs: attackMs,
      ...ATTACKER,
      ...(this.#jwtSecret === undefined ? {} : { jwtSecret: this.#jwtSecret }),
    }
    const attacking = attackers.request(command, 'attacked', attackMs + ANSWER_MARGIN_MS)
    attacking.catch(() => undefined) // Awaited below, if nothing fails before.
    const { probed, counted } = await this.#window(attackMs)
    const attacked = (await attacking) as unknown as Attacked
    await this.#checkLife()
    this.#look()
    const { closed } = await this.#trial.loadgen.stats()
    const closes = { ...closed }
    for (const [code, count] of Object.entries(probed.closes)) closes[code] = (closes[code] ?? 0) + count
    const alone = p99sOf(baseline)
    const p99 = p99sOf({ probed, counted })
    let shares = sharesOf(p99, alone)
    let note = ''
    if (isCompared && Math.max(shares.delivery, shares.ping) > 1 && this.#death === undefined) {
      const elsewhere = p99sOf(await this.#elsewhere(command))
      shares = sharesOf(p99, worseOf(alone, elsewhere))
      note = `, ${elsewhere.delivery} and ${elsewhere.ping} ms beside the same attack on another server`
    }
    const growth = Math.max(0, this.#peakRssBytes - before.rssBytes) / memoryBoundBytes(hostileCase, hostile)
    return {
      latencyShare: shares.delivery,
      pingShare: shares.ping,
      memoryShare: growth,
      lostCount: counted.gapCount + counted.missingCount,
      duplicateCount: counted.duplicateCount,
      unansweredPingCount: probed.unansweredPingCount,
      closes,
      refusals: probed.refusals,
      healthFailures: probed.healthFailures,
      death: this.#death,
      attacked,
      summary:
        `${hostileCase.name}: deliveries ${p99.delivery} / ${alone.delivery} ms, pings ${p99.ping} / ${alone.ping} ms ` +
        `(p99 with / without)${note}, ` +
        `memory ${growth.toFixed(2)} of its bound, prober late by ${probed.lagMs.p99} ms, ` +
        `attackers ${attacked.cpuSeconds.toFixed(1)} s of CPU, /health up to ${probed.healthMs.max} ms, answers ${JSON.stringify(attacked.statuses)}`,
    }
  }

  /** The honest load while the attackers misuse another server: what they cost by the processor that all share. */
  async #elsewhere(command: { readonly durationMs: number }): Promise<Window> {
    const other = new Trial(this.#options)
    try {
      await other.ready()
      const attack = { ...command, cmd: 'attack', port: other.target.port }
      const attacking = this.#processes.attackers.request(attack, 'attacked', command.durationMs + ANSWER_MARGIN_MS)
      attacking.catch(() => undefined) // Awaited below, if nothing fails before.
      const window = await this.#window(command.durationMs)
      await attacking
      return window
    } finally {
      await other.stop()
    }
  }

  stopLooking(): void {
    clearInterval(this.#looks)
  }

  /** One window of the honest load: until its last message has come everywhere, or some seconds after it. */
  async #window(durationMs: number): Promise<Window> {
    const { loadgen } = this.#trial
    const firstSeq = this.#seq
    await loadgen.startCounting({ seqField: true, latency: true, fanout: false, firstSeq })
    const command = { cmd: 'probe', durationMs, publishPerSecond: PUBLISHES_PER_SECOND, firstSeq }
    const probed = (await this.#processes.prober.request(
      command,
      'probed',
      durationMs + ANSWER_MARGIN_MS,
    )) as unknown as Probed
    this.#seq = probed.lastSeq + 1
    const counted = await loadgen.stopCounting({ lastSeq: probed.lastSeq, timeoutMs: TAIL_TIMEOUT_MS })
    return { probed, counted }
  }

  /** A server that ended, or that answers nobody, is the result of the case and not a failure of the play. */
  async #checkLife(): Promise<void> {
    if (this.#death !== undefined) return
    await this.#trial.mark().catch((error: unknown) => {
      if (!(error instanceof RunError)) throw error
      this.#death ??= error.message
    })
  }

  #look(): void {
    if (this.#death !== undefined) return
    try {
      this.#peakRssBytes = Math.max(this.#peakRssBytes, processUsage(this.#trial.target.pid).rssBytes)
    } catch (error) {
      if (!(error instanceof RunError)) throw error
      this.stopLooking() // The process has ended, which the case reports.
    }
  }

  #tokenOf(user: number): string | undefined {
    return this.#jwtSecret === undefined ? undefined : tokenOf(this.#jwtSecret, claimsOf(`honest${user}`))
  }
}

/** Honest clients that ask, and hostile clients, each in a process of its own. */
interface Processes {
  readonly prober: LineProcess
  readonly attackers: LineProcess
}

let bundled: Promise<string> | undefined

async function startProcesses(): Promise<Processes> {
  bundled ??= bundle()
  const folder = await bundled
  const start = (title: string, file: string) =>
    new LineProcess({ title, command: process.execPath, args: [join(folder, file)], hasIds: false })
  const prober = start('the prober', 'prober-process.mjs')
  const attackers = start('the hostile clients', 'attack-process.mjs')
  await Promise.all([prober, attackers].map((one) => one.next('ready', START_TIMEOUT_MS)))
  return { prober, attackers }
}

async function bundle(): Promise<string> {
  const outdir = join(tmpdir(), `webmq-hostile-${process.pid}`)
  const here = fileURLToPath(new URL('.', import.meta.url))
  await build({
    entryPoints: ['prober-process', 'attack-process'].map((name) => join(here, `${name}.ts`)),
    outdir,
    bundle: true,
    platform: 'node',
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
  return outdir
}
