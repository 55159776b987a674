import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SupervisedProcess } from 'webmq-services'

const START_TIMEOUT_MS = 30_000
const HEALTH_TIMEOUT_MS = 1_000
const POLL_INTERVAL_MS = 25
/** A node that has not ended by then never will. */
const STOP_TIMEOUT_MS = 40_000

/** How an orderly stop went. */
export interface StopReport {
  readonly tookMs: number
  readonly exitCode: number | undefined
  readonly output: string
}

/** What a node runs. */
export interface NodeProgram {
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment; default: only PATH. */
  readonly env?: Readonly<Record<string, string>>
  /** Answers when it has started; default `/health`. */
  readonly healthPath?: string
}

/** A `webmq-server`. @throws {Error} if it is not installed. */
export function webmqServer(port: number, flags: readonly string[]): NodeProgram {
  const manifest = createRequire(import.meta.url).resolve('webmq-server/package.json')
  const bin = path.join(path.dirname(manifest), 'bin/webmq-server.js')
  return { command: process.execPath, args: [bin, '--port', String(port), ...flags] }
}

/** A server in a process of its own, which takes signals and answers by HTTP. It ends with this process. */
export class Node {
  readonly name: string
  readonly port: number
  /** What it wrote, each time that it ended by itself. */
  readonly deaths: string[] = []
  readonly #program: NodeProgram
  #process: SupervisedProcess | undefined
  #isExpectedToRun = false
  #isUp = false
  #isFrozen = false

  /** @param port Its own, the same after every start. */
  constructor(name: string, port: number, program: NodeProgram) {
    this.name = name
    this.port = port
    this.#program = program
  }

  /** Whether a load balancer would send clients to it. It does not see that a node is frozen. */
  get isUp(): boolean {
    return this.#isUp
  }

  /**
   * Starts it; resolves when its health path answers.
   * @throws {Error} with its output when that takes too long, or it ends.
   */
  async start(): Promise<void> {
    const started = new SupervisedProcess({ title: this.name, ...this.#program })
    this.#process = started
    this.#isExpectedToRun = true
    this.#isFrozen = false
    void started.exited.then(() => {
      if (!this.#isExpectedToRun || this.#process !== started) return
      this.#isUp = false
      this.deaths.push(`exit code ${started.exitCode}\n${started.output}`)
    })
    const deadline = Date.now() + START_TIMEOUT_MS
    while (!(await this.#answers())) {
      if (!started.isRunning || Date.now() > deadline) {
        const output = started.output
        await this.kill()
        throw new Error(`${this.name} did not start:\n${output}`)
      }
      await sleep(POLL_INTERVAL_MS)
    }
    this.#isUp = true
  }

  /** User and system time of its present process; `undefined` where unknown. */
  cpuSeconds(): number | undefined {
    return this.#process?.cpuSeconds()
  }

  async kill(): Promise<void> {
    this.#isUp = false
    this.#isExpectedToRun = false
    await this.#process?.kill()
  }

  /** Resolves when it stands still. */
  async freeze(): Promise<void> {
    this.#isFrozen = true
    await this.#process?.freeze()
  }

  thaw(): void {
    this.#isFrozen = false
    this.#process?.signal('SIGCONT')
  }

  /** SIGTERM; resolves when it has ended, or was killed because it did not. */
  async stop(): Promise<StopReport> {
    this.#isUp = false
    this.#isExpectedToRun = false
    if (this.#isFrozen) this.thaw()
    const ending = this.#process
    if (ending === undefined || !ending.isRunning) return { tookMs: 0, exitCode: 0, output: '' }
    const beganAtMs = performance.now()
    ending.signal('SIGTERM')
    const timeout = new AbortController()
    const timedOut = sleep(STOP_TIMEOUT_MS, undefined, { signal: timeout.signal }).catch(() => undefined)
    await Promise.race([ending.exited, timedOut])
    timeout.abort()
    const report = { tookMs: performance.now() - beganAtMs, exitCode: ending.exitCode, output: ending.output }
    await ending.kill()
    return report
  }

  async #answers(): Promise<boolean> {
    const { healthPath = '/health' } = this.#program
    try {
      const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS)
      return (await fetch(`http://127.0.0.1:${this.port}${healthPath}`, { signal })).ok
    } catch {
      return false
    }
  }
}
