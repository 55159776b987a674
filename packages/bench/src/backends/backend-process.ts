import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'
import { missingPackage } from '../missing-package.js'
import type { BackendCommand, BackendEvent, BackendOptions, BackendSample } from './messages.js'

const START_TIMEOUT_MS = 30_000
/** A backend that still runs this long after it lost its channel is killed. */
const STOP_TIMEOUT_MS = 3_000
/** Above the time that a server takes to drain by default. */
const DRAIN_TIMEOUT_MS = 60_000
/** Output of a backend that is kept, to explain its death. */
const MAX_OUTPUT_CHARS = 4_000

/** One server under test and the process it runs in. */
export class BackendProcess {
  readonly index: number
  /** Rejects when the process ends unasked; never resolves. */
  readonly failed: Promise<never>
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #samples = new Map<number, (sample: BackendSample) => void>()
  #output = ''
  #lastSampleId = 0
  #isStopping = false
  #address: { readonly url: string; readonly port: number } | undefined

  constructor(index: number) {
    this.index = index
    const child = fork(new URL('./backend.js', import.meta.url), {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS)
      })
    }
    child.on('message', (event: BackendEvent) => {
      if (event.type === 'sample') this.#samples.get(event.id)?.(event.sample)
    })
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => resolve())
    })
    this.failed = new Promise((_, reject) => {
      child.once('error', (cause) => reject(new RunError(`backend ${index} could not be started`, { cause })))
      child.once('close', (code, signal) => {
        if (!this.#isStopping) reject(this.#deathNotice(code, signal))
      })
    })
    this.failed.catch(() => undefined) // Whoever waits for this backend races against it; between two waits nobody does.
  }

  /** Starts the server; resolves when it accepts connections. */
  async start(options: BackendOptions): Promise<void> {
    const listening = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new RunError(`backend ${this.index} did not start within ${START_TIMEOUT_MS / 1_000} s`)),
        START_TIMEOUT_MS,
      )
      timer.unref()
      this.#child.on('message', (event: BackendEvent) => {
        if (event.type === 'failed') reject(new RunError(`backend ${this.index} could not start: ${event.message}`))
        if (event.type !== 'listening') return
        clearTimeout(timer)
        this.#address = { url: event.url, port: event.port }
        resolve()
      })
    })
    this.#post({ type: 'start', options })
    await Promise.race([this.failed, listening])
  }

  get url(): string {
    return this.#address?.url ?? ''
  }

  get port(): number {
    return this.#address?.port ?? 0
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Resources that the process uses now, by its own count. */
  async sample(): Promise<BackendSample> {
    const id = ++this.#lastSampleId
    const answer = new Promise<BackendSample>((resolve) => {
      this.#samples.set(id, resolve)
    })
    this.#post({ type: 'sample', id })
    try {
      return await Promise.race([this.failed, answer])
    } finally {
      this.#samples.delete(id)
    }
  }

  /**
   * Sends SIGTERM: the server drains, and its process ends. Resolves when it is gone.
   * @returns the resources that it has used, the drain included
   * @throws {RunError} when it died instead, or takes too long.
   */
  async drain(): Promise<BackendSample> {
    this.#isStopping = true
    let last: BackendSample | undefined
    this.#child.on('message', (event: BackendEvent) => {
      if (event.type === 'drained') last = event.sample
    })
    this.#child.kill('SIGTERM')
    const late = sleep(DRAIN_TIMEOUT_MS, undefined, { ref: false })
    await Promise.race([this.#exited, late])
    if (last === undefined) throw new RunError(`backend ${this.index} did not drain; its last output:\n${this.#output}`)
    return last
  }

  /** Ends the process; resolves when it is gone. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.#child.connected) this.#child.disconnect()
    const killTimer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    if (this.#child.pid !== undefined) await this.#exited
    clearTimeout(killTimer)
  }

  #post(command: BackendCommand): void {
    // A closed channel means that the process is ending. `failed` reports that better than a channel error.
    this.#child.send(command, () => undefined)
  }

  #deathNotice(code: number | null, signal: NodeJS.Signals | null): RunError {
    const ending = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
    const output = this.#output.trim()
    const way = missingPackage(output)
    if (way !== undefined) return new RunError(`backend ${this.index}: ${way}`)
    return new RunError(`backend ${this.index} ${ending}${output === '' ? '' : `; its last output:\n${output}`}`)
  }
}
