import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SupervisedProcess } from 'webmq-services'
import { RunError } from './exit-codes.js'
import { processCpuSeconds } from './measure/process-usage.js'
import { importBeside } from './missing-package.js'

const READY_TIMEOUT_MS = 30_000
/** The drain of a node takes at most its `drainTimeoutMs` (25 s), `drainDelayMs` and 2 s. */
const STOP_TIMEOUT_MS = 40_000
const PROBE_TIMEOUT_MS = 1_000
const POLL_INTERVAL_MS = 25

/** One `webmq-server` in a process of its own, as it is installed. It cannot outlive the bench. */
export class ServerNode {
  readonly index: number
  readonly port: number
  /** What it called itself after each start. */
  readonly names: string[] = []
  readonly failed: Promise<never>
  readonly #args: readonly string[]
  #reject: (error: RunError) => void = () => undefined
  #process: SupervisedProcess | undefined
  #isExpectedToRun = false
  /** Of processes that have ended, and of the present one when it was last asked. */
  #pastCpuSeconds = 0
  #lastCpuSeconds = 0

  /**
   * Starts nothing.
   * @param flags Of `webmq-server`, without its port.
   * @param root Of the checkout whose server it is; absent: this one.
   */
  constructor(index: number, port: number, flags: readonly string[], root?: string) {
    this.index = index
    this.port = port
    this.#args = [serverProgram(root), '--port', String(port), ...flags]
    this.failed = new Promise((_, reject) => {
      this.#reject = reject
    })
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
  }

  /**
   * Starts it; resolves when `/ready` says so.
   * @throws {RunError} with its output when that takes too long, or it ends.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { SupervisedProcess } = await importBeside(() => import('webmq-services'), 'a server of its own')
    signal.throwIfAborted()
    const title = `node ${this.index + 1}`
    const started = new SupervisedProcess({ title, command: process.execPath, args: this.#args, env: environment() })
    this.#process = started
    this.#isExpectedToRun = true
    void started.exited.then(() => {
      if (this.#isExpectedToRun && this.#process === started) this.#reject(this.#deathNotice('ended by itself'))
    })
    const deadline = Date.now() + READY_TIMEOUT_MS
    while (!(await this.#isReady())) {
      if (!started.isRunning || Date.now() > deadline) throw this.#deathNotice('did not come back')
      await sleep(POLL_INTERVAL_MS, undefined, { signal })
    }
    this.names.push(await this.#name())
  }

  async stop(): Promise<void> {
    await this.kill()
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#isExpectedToRun = false
    this.cpuSeconds()
    await this.#process?.kill()
    this.#bookCpu()
  }

  /** SIGSTOP; resolves when it stands still, with all its connections, until `thaw` or `kill`. */
  async freeze(): Promise<void> {
    await this.#process?.freeze()
  }

  /** SIGCONT. */
  thaw(): void {
    this.#process?.signal('SIGCONT')
  }

  /**
   * SIGTERM; resolves when it has drained and ended.
   * @throws {RunError} when that takes longer than a drain may.
   */
  async drain(signal: AbortSignal): Promise<void> {
    const ending = this.#process
    if (ending === undefined) return
    this.#isExpectedToRun = false
    ending.signal('SIGTERM')
    const deadline = Date.now() + STOP_TIMEOUT_MS
    while (ending.isRunning) {
      if (Date.now() > deadline) {
        throw this.#deathNotice(`did not end within ${STOP_TIMEOUT_MS / 1_000} s after SIGTERM`)
      }
      this.cpuSeconds() // `/proc` forgets a process that has ended.
      await sleep(POLL_INTERVAL_MS, undefined, { signal })
    }
    this.#bookCpu()
  }

  /** User and system time of all its processes so far. */
  cpuSeconds(): number {
    if (this.#process !== undefined) {
      this.#lastCpuSeconds = processCpuSeconds(this.#process.pid) ?? this.#lastCpuSeconds
    }
    return this.#pastCpuSeconds + this.#lastCpuSeconds
  }

  #bookCpu(): void {
    this.#pastCpuSeconds += this.#lastCpuSeconds
    this.#lastCpuSeconds = 0
    this.#process = undefined
  }

  async #isReady(): Promise<boolean> {
    return await this.#ask('/ready').then(
      ({ ok }) => ok,
      () => false,
    ) // Not started yet, or it stands still.
  }

  async #name(): Promise<string> {
    const { node } = (await (await this.#ask('/health')).json()) as { readonly node?: unknown }
    if (typeof node !== 'string') throw new RunError(`node ${this.index + 1} does not say its name at /health`)
    return node
  }

  async #ask(place: string): Promise<Response> {
    return await fetch(`http://127.0.0.1:${this.port}${place}`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
  }

  #deathNotice(what: string): RunError {
    const output = this.#process?.output ?? ''
    return new RunError(`node ${this.index + 1} ${what}${output === '' ? '' : `; its last output:\n${output}`}`)
  }
}

/** @throws {RunError} when the package is not installed beside the bench. */
function serverProgram(root?: string): string {
  if (root !== undefined) return path.join(root, 'packages', 'server', 'bin', 'webmq-server.js')
  try {
    const manifest = createRequire(import.meta.url).resolve('webmq-server/package.json')
    return path.join(path.dirname(manifest), 'bin', 'webmq-server.js')
  } catch (cause) {
    throw new RunError('a server of its own needs webmq-server: npm install webmq-server', { cause })
  }
}

/** The variables of the bench must not change its nodes; but a test names the engine that it has built. */
function environment(): Record<string, string> {
  const { PATH = '', WEBMQ_NATIVE_ADDON } = process.env
  return { PATH, ...(WEBMQ_NATIVE_ADDON === undefined ? {} : { WEBMQ_NATIVE_ADDON }) }
}
