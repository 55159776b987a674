import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { RunError } from '../exit-codes.js'
import { missingPackage } from '../missing-package.js'

/** A program with JSON lines as commands on its standard input and as answers on its standard output. */
export interface LineProgram {
  /** For messages: `target uws`. */
  readonly title: string
  readonly command: string
  readonly args: readonly string[]
  /** Whether commands may carry an `id` that the answer repeats; without it one command of a kind runs at a time. */
  readonly hasIds: boolean
  /** A descriptor that the program inherits as its descriptor 3. */
  readonly fd?: number
}

/** A message of a program; `event` is its kind. */
export interface LineEvent {
  readonly event: string
  readonly id?: string | number
  readonly message?: string
  readonly [key: string]: unknown
}

interface Waiting {
  readonly id: number
  readonly event: string
  resolve(event: LineEvent): void
  reject(error: RunError): void
}

/** A program that still runs this long after `quit` is killed. */
const STOP_TIMEOUT_MS = 3_000
/** Text on stderr that is kept, to explain the program's death. */
const MAX_OUTPUT_CHARS = 4_000

/** A running {@link LineProgram}. Ends with the bench in any case, because its standard input closes. */
export class LineProcess {
  /** Rejects when the program ends, also when it was asked to; never resolves. */
  readonly failed: Promise<never>
  readonly #title: string
  readonly #hasIds: boolean
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #waiting = new Set<Waiting>()
  /** By kind, the last event that came before somebody waited for it. */
  readonly #early = new Map<string, LineEvent>()
  #fail: (error: RunError) => void = () => undefined
  #output = ''
  #lastId = 0
  #isStopping = false

  constructor({ title, command, args, hasIds, fd }: LineProgram) {
    this.#title = title
    this.#hasIds = hasIds
    this.failed = new Promise((_, reject) => {
      this.#fail = reject
    })
    this.failed.catch(() => undefined) // Whoever waits for this program races against it; between two waits nobody does.
    // A group of its own: Ctrl-C reaches only the bench, which decides when its programs end.
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe', ...(fd === undefined ? [] : [fd])],
      detached: true,
    }) as ChildProcessByStdio<Writable, Readable, Readable> // The types know no fourth.
    this.#child = child
    this.#exited = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.#fail(this.#isStopping ? new RunError(`${title} has been stopped`) : this.#deathNotice(code, signal))
        resolve()
      })
    })
    child.once('error', (cause) =>
      this.#fail(new RunError(`${title} could not be started: ${cause.message}`, { cause })),
    )
    // A closed pipe means that the program is ending. `failed` reports that better than a pipe error.
    child.stdin.on('error', () => undefined)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS)
    })
    createInterface({ input: child.stdout }).on('line', (line) => this.#read(line))
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Waits for an unrequested event, such as the first line of a program; it may have come before. */
  async next(event: string, timeoutMs: number): Promise<LineEvent> {
    const early = this.#early.get(event)
    this.#early.delete(event)
    return early ?? (await this.#wait(0, event, timeoutMs))
  }

  /**
   * Sends a command and waits for the event that answers it.
   * @throws {RunError} when the program answers with an error, dies, or is silent for too long.
   */
  async request(command: { readonly cmd: string; readonly [key: string]: unknown }, event: string, timeoutMs: number) {
    const id = ++this.#lastId
    const answer = this.#wait(id, event, timeoutMs)
    this.#child.stdin?.write(`${JSON.stringify(this.#hasIds ? { ...command, id } : command)}\n`)
    return await answer
  }

  /** Ends the program; resolves when it is gone. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.#child.pid === undefined) return
    this.#child.stdin?.end('{"cmd":"quit"}\n')
    const killTimer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await this.#exited
    clearTimeout(killTimer)
  }

  async #wait(id: number, event: string, timeoutMs: number): Promise<LineEvent> {
    let timer: NodeJS.Timeout | undefined
    let waiting: Waiting | undefined
    const answer = new Promise<LineEvent>((resolve, reject) => {
      waiting = { id, event, resolve, reject }
      this.#waiting.add(waiting)
      timer = setTimeout(
        () => reject(new RunError(`${this.#title} gave no '${event}' within ${timeoutMs / 1_000} s`)),
        timeoutMs,
      )
    })
    try {
      return await Promise.race([this.failed, answer])
    } finally {
      clearTimeout(timer)
      if (waiting !== undefined) this.#waiting.delete(waiting)
    }
  }

  #read(line: string): void {
    const event = parseEvent(line)
    if (event === undefined) {
      this.#output = `${this.#output}${line}\n`.slice(-MAX_OUTPUT_CHARS)
      return
    }
    const all = [...this.#waiting]
    const own = event.id === undefined ? undefined : all.find(({ id }) => id === event.id)
    if (event.event === 'error') {
      const error = new RunError(`${this.#title}: ${event.message ?? line}`)
      const asker = own ?? all[0]
      if (asker === undefined) this.#fail(error)
      else asker.reject(error)
      return
    }
    const asker = own ?? all.find((waiting) => waiting.event === event.event)
    if (asker?.event === event.event) asker.resolve(event)
    else if (event.id === undefined) this.#early.set(event.event, event)
  }

  #deathNotice(code: number | null, signal: NodeJS.Signals | null): RunError {
    const ending = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
    const output = this.#output.trim()
    const way = missingPackage(output)
    if (way !== undefined) return new RunError(`${this.#title}: ${way}`)
    return new RunError(`${this.#title} ${ending}${output === '' ? '' : `; its last output:\n${output}`}`)
  }
}

function parseEvent(line: string): LineEvent | undefined {
  try {
    const event: unknown = JSON.parse(line)
    const isEvent = typeof event === 'object' && event !== null && 'event' in event && typeof event.event === 'string'
    return isEvent ? (event as LineEvent) : undefined
  } catch {
    return undefined // Not JSON: something the program says to people, kept to explain its death.
  }
}
