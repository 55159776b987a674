import { randomBytes } from 'node:crypto'
import { startBroker } from '../../brokers/running-broker.js'
import { RunError } from '../../exit-codes.js'
import type { AttackCase } from '../../hostile/attack-case.js'
import { hostileCases } from '../../hostile/cases/index.js'
import type { Attacked, Probed } from '../../hostile/messages.js'
import { claimsOf, tokenOf } from '../../hostile/tokens.js'
import type { Counted } from '../../loadgen/events.js'
import type { TargetSettings } from '../../targets/messages.js'
import { reasons, type Trial, type UsageMark } from '../../trials/trial.js'
import type { Measured, TrialContext } from '../../trials/trial-scenario.js'
import { hostileFigures } from './figures.js'
import { MemoryWatch } from './memory-watch.js'
import type { HostileConfig } from './options.js'
import { HostilePrograms } from './programs.js'

/** Nine digits throughout. */
const FIRST_SEQ = 100_000_001
const WARMUP_MS = 500
const KEY_PREFIX = 'bench.tick.'
const LISTEN = { text: `listen 1 ${KEY_PREFIX}*`, awaited: 'ok 1' }
const TAIL_TIMEOUT_MS = 5_000
const SECRET_BYTES = 32
/** Below the connections that a server allows one user by default. */
const CONNECTIONS_PER_USER = 50

/** What one window of the honest load gave. */
export interface HonestWindow {
  readonly probed: Probed
  readonly counted: Counted
  readonly start: UsageMark
  /** `undefined` when the server has ended, or answers nobody. */
  readonly end: UsageMark | undefined
  readonly memoryFromMs: number
}

/** Everything that was observed of one case. */
export interface HostileObservation {
  readonly hostileCase: AttackCase
  readonly baseline: HonestWindow
  readonly attack: HonestWindow
  readonly attacked: Attacked
  readonly memory: MemoryWatch
  /** Honest connections that the server has ended, by close code. */
  readonly closes: Readonly<Record<string, number>>
  /** Why the server does not live any more, or answers nobody; `undefined` when it does. */
  readonly death: string | undefined
}

/** Measures the honest load without one case and beside it, on a server of its own. */
export async function measureHostile(context: TrialContext<HostileConfig>): Promise<Measured> {
  const { config, testCase, signal, startTrial, progress } = context
  const hostileCase = hostileCases.find(({ name }) => name === testCase.fields.case)
  if (hostileCase === undefined) throw new RunError(`there is no case '${testCase.fields.case}'`)
  const programs = new HostilePrograms()
  const stop = () => void programs.stop()
  signal.addEventListener('abort', stop, { once: true })
  const starting = startBroker({ kind: config.broker }, 1)
  let memory: MemoryWatch | undefined
  try {
    const broker = await starting
    const jwtSecret = hostileCase.needs === 'tokens' ? randomBytes(SECRET_BYTES).toString('base64url') : undefined
    const settings: TargetSettings = {
      ...broker.nodeOptions(0),
      ...(hostileCase.needs === 'compression' ? { compression: true } : {}),
      ...(jwtSecret === undefined ? {} : { jwtSecret }),
    }
    const [trial] = await Promise.all([startTrial(settings, true), programs.ready()])
    memory = new MemoryWatch(trial.target.pid)
    const run = new HostileRun({ context, hostileCase, programs, trial, memory, jwtSecret })
    progress.phase('connecting')
    await run.connect()
    return hostileFigures(await run.observe(), config)
  } finally {
    signal.removeEventListener('abort', stop)
    memory?.stop()
    await programs.stop()
    await starting.then(
      (broker) => broker.stop(),
      () => undefined, // It did not start, which the measurement reports.
    )
  }
}

interface RunParts {
  readonly context: TrialContext<HostileConfig>
  readonly hostileCase: AttackCase
  readonly programs: HostilePrograms
  readonly trial: Trial
  readonly memory: MemoryWatch
  readonly jwtSecret: string | undefined
}

class HostileRun {
  readonly #parts: RunParts
  #seq = FIRST_SEQ
  #death: string | undefined

  constructor(parts: RunParts) {
    this.#parts = parts
    parts.trial.target.failed.catch((error: unknown) => {
      this.#death ??= error instanceof Error ? error.message : String(error)
    })
  }

  /** @throws {RunError} unless every honest client is there. */
  async connect(): Promise<void> {
    const { context, trial, programs } = this.#parts
    const { listeners, publishers, pingers, payload: payloadBytes } = context.config
    for (let done = 0, user = 0; done < listeners; user++) {
      const token = this.#tokenOf(user)
      const count = token === undefined ? listeners : Math.min(CONNECTIONS_PER_USER, listeners - done)
      const connected = await trial.tryConnect({ count, ...(token === undefined ? {} : { token }) })
      if (connected.failed > 0)
        throw new RunError(`${connected.failed} of ${count} honest connections failed: ${reasons(connected)}`)
      done += count
    }
    const { failed } = await trial.loadgen.send([LISTEN.text], LISTEN.awaited)
    if (failed > 0) throw new RunError(`${failed} honest connections got no answer to '${LISTEN.text}'`)
    const tokens = Array.from({ length: publishers + pingers }, (_, place) => this.#tokenOf(-1 - place)).filter(
      (token) => token !== undefined,
    )
    const { port } = trial.target
    const load = { port, publishers, pingers, payloadBytes, keyPrefix: KEY_PREFIX }
    await programs.connect({ ...load, ...(tokens.length === 0 ? {} : { tokens }) })
  }

  async observe(): Promise<HostileObservation> {
    const { context, hostileCase, programs, trial, memory, jwtSecret } = this.#parts
    const { config, progress } = context
    progress.phase('warming up')
    await this.#window(WARMUP_MS)
    progress.phase('baseline')
    const baseline = await progress.during(this.#window(config.baseline * 1_000), {
      expectedMs: config.baseline * 1_000,
    })
    progress.phase('attack')
    const durationMs = config.duration * 1_000
    const attacking = programs.attack({
      case: hostileCase.name,
      port: trial.target.port,
      clients: config.hostile,
      durationMs,
      operationsPerSecond: config.operations,
      bytesPerSecond: config.bytes,
      ...(jwtSecret === undefined ? {} : { jwtSecret }),
    })
    attacking.catch(() => undefined) // Awaited below, if nothing fails before.
    const attack = await progress.during(this.#window(durationMs), { expectedMs: durationMs })
    const attacked = await attacking
    const { closed } = await trial.loadgen.stats()
    const closes = { ...closed }
    for (const [code, count] of Object.entries(attack.probed.closes)) closes[code] = (closes[code] ?? 0) + count
    memory.stop()
    return { hostileCase, baseline, attack, attacked, memory, closes, death: this.#death }
  }

  /** One window of the honest load: until its last message has come everywhere, or some seconds after it. */
  async #window(durationMs: number): Promise<HonestWindow> {
    const { context, programs, trial, memory } = this.#parts
    const firstSeq = this.#seq
    await trial.loadgen.startCounting({ seqField: true, latency: true, fanout: false, firstSeq })
    const memoryFromMs = memory.nowMs
    const start = await trial.mark()
    const probed = await programs.probe({ durationMs, publishPerSecond: context.config.rate, firstSeq })
    this.#seq = probed.lastSeq + 1
    const counted = await trial.loadgen.stopCounting({ lastSeq: probed.lastSeq, timeoutMs: TAIL_TIMEOUT_MS })
    return { probed, counted, start, end: await this.#markOfLiving(), memoryFromMs }
  }

  async #markOfLiving(): Promise<UsageMark | undefined> {
    if (this.#death !== undefined) return undefined
    try {
      return await this.#parts.trial.mark()
    } catch (error) {
      // A server that ended, or that answers nobody, is the result of the case and not a failure of the bench.
      if (!(error instanceof RunError)) throw error
      this.#death ??= error.message
      return undefined
    }
  }

  #tokenOf(user: number): string | undefined {
    const { jwtSecret } = this.#parts
    return jwtSecret === undefined ? undefined : tokenOf(jwtSecret, claimsOf(`honest${user}`))
  }
}
