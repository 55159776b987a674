import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSecondsOf, isAlive, peakRssBytesOf, processTree, standsStill } from './process-tree.js'
import { ServiceError } from './service-error.js'

/** A program to run. */
export interface ProcessSpec {
  /** For messages: `redis-server`. */
  readonly title: string
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment; default: only PATH, so that this process's variables do not change a service. */
  readonly env?: Readonly<Record<string, string>>
  /** Asks it to end; default SIGTERM. */
  readonly endSignal?: 'SIGINT'
  /** Removed when this process dies without stopping the program. */
  readonly folder?: string
}

/**
 * A shell that starts a watcher in its process group and then becomes the program (`exec`). The watcher reads from a
 * pipe whose other end only this process has. The pipe closes when this process ends, even by SIGKILL. The watcher then
 * ends the program, removes its folder and ends the rest of the group.
 */
const WATCHED =
  '{ read -r _ <&3; kill -s KILL $$; [ -z "$0" ] || rm -rf -- "$0"; kill -s KILL -- -$$; } >/dev/null 2>&1 & exec "$@" 3<&-'
const MAX_OUTPUT_CHARS = 8_000
const GONE_TIMEOUT_MS = 5_000
const MAX_FREEZE_MS = 2_000
const POLL_INTERVAL_MS = 10

/** A program that cannot outlive this process. */
export class SupervisedProcess {
  readonly title: string
  /** Resolves when the program has ended or could not start; never rejects. */
  readonly exited: Promise<void>
  readonly #child: ChildProcess
  readonly #endSignal: NodeJS.Signals
  #isRunning = true
  #exitCode: number | undefined
  #output = ''
  /** The last known value: `/proc` forgets a process that has ended. */
  #cpuSeconds: number | undefined

  constructor(spec: ProcessSpec) {
    const { title, command, args, env = { PATH: process.env.PATH ?? '' }, folder = '', endSignal = 'SIGTERM' } = spec
    this.title = title
    this.#endSignal = endSignal
    // Detached: its own session and group, so that Ctrl-C does not reach it and one signal ends all of it.
    const child = spawn('/bin/sh', ['-c', WATCHED, folder, command, ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true,
      env,
      cwd: '/',
    })
    this.#child = child
    const take = (text: string) => {
      this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS)
    }
    child.stdout?.setEncoding('utf8').on('data', take)
    child.stderr?.setEncoding('utf8').on('data', take)
    const pipe = child.stdio[3] as Writable | null
    pipe?.on('error', () => undefined) // The watcher is gone: so is the program, which `exited` tells.
    this.exited = new Promise((resolve) => {
      const end = () => {
        this.#isRunning = false
        this.#signalGroup()
        pipe?.destroy()
        resolve()
      }
      child.once('exit', (code, signalName) => {
        this.#exitCode = code ?? 128 + (signalName === null ? 0 : constants.signals[signalName])
        end()
      })
      child.once('error', (cause) => {
        take(String(cause))
        end()
      })
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** The end of its standard output and error. */
  get output(): string {
    return this.#output.trim()
  }

  /** CPU time of it and its children so far; `undefined` where unknown. */
  cpuSeconds(): number | undefined {
    if (this.#isRunning) this.#cpuSeconds = cpuSecondsOf(this.pid) ?? this.#cpuSeconds
    return this.#cpuSeconds
  }

  /** Largest memory of it and its children so far; `undefined` when it does not run, or where unknown. */
  peakRssBytes(): number | undefined {
    return this.#isRunning ? peakRssBytesOf(this.pid) : undefined
  }

  /** 128 and the number of the signal that ended it, as in a shell; `undefined` while it runs, or when it could not start. */
  get exitCode(): number | undefined {
    return this.#exitCode
  }

  /**
   * Sends SIGSTOP; resolves when all threads of the program stand still. On a busy machine some run on for a while after the
   * signal. Its children run on.
   * @throws {ServiceError} when it does not stand still in time.
   */
  async freeze(): Promise<void> {
    if (!this.#isRunning) return
    signal(this.pid, 'SIGSTOP')
    const deadlineMs = performance.now() + MAX_FREEZE_MS
    while (this.#isRunning && !standsStill(this.pid)) {
      if (performance.now() > deadlineMs)
        throw new ServiceError(`${this.title} does not stand still ${MAX_FREEZE_MS} ms after SIGSTOP`)
      await sleep(1)
    }
  }

  /** Signals the program, not its children; has no effect when it has ended. */
  signal(name: 'SIGCONT' | 'SIGTERM'): void {
    if (this.#isRunning) signal(this.pid, name)
  }

  /** Asks it to end, and sends SIGKILL after the timeout; resolves when all processes are gone. Idempotent. */
  async end(timeoutMs: number): Promise<void> {
    if (this.#isRunning) {
      this.cpuSeconds()
      const tree = processTree(this.pid)
      let timer: NodeJS.Timeout | undefined
      const timeout = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timeoutMs)
      })
      signal(this.pid, this.#endSignal)
      await Promise.race([this.exited, timeout])
      clearTimeout(timer)
      await this.#sweep(tree)
    }
    await this.kill()
  }

  /** Sends SIGKILL to it and its descendants; resolves when all are gone. Idempotent. */
  async kill(): Promise<void> {
    this.cpuSeconds()
    const tree = processTree(this.pid)
    if (this.#isRunning) this.#signalGroup()
    await this.exited
    await this.#sweep(tree)
  }

  /** Kills children in groups of their own that do not end with their parent. */
  async #sweep(tree: ReturnType<typeof processTree>): Promise<void> {
    if (this.#isRunning) return
    const deadline = Date.now() + GONE_TIMEOUT_MS
    let left = tree.filter(isAlive)
    while (left.length > 0) {
      for (const { pid } of left) signal(pid, 'SIGKILL')
      if (Date.now() > deadline) {
        throw new ServiceError(`${this.title} left processes that do not end: ${left.map(({ pid }) => pid).join(', ')}`)
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
      left = left.filter(isAlive)
    }
  }

  #signalGroup(): void {
    if (this.pid > 0) signal(-this.pid, 'SIGKILL')
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // ESRCH: it has ended, which is what was wanted.
  }
}
