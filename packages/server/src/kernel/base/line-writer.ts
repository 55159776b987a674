import { close, constants, open, openSync, write, writeSync } from 'node:fs'
import { type Deferred, deferred } from './deferred.js'
import { codeOf } from './reason.js'
import { within } from './within.js'

/** Lines that may wait for a slow or full disk, or for the reader of a pipe. Further ones are dropped and counted. */
const MAX_WAITING_BYTES = 4 * 1_048_576
const MAX_WRITE_BYTES = 65_536
/** Time until a descriptor that took nothing is tried again; it doubles, for a reader that only needs a moment. */
const MIN_RETRY_MS = 1
const MAX_RETRY_MS = 256
/** When the process ends, a pipe whose reader is slow gets this time. */
const EXIT_FLUSH_MS = 300
const EXIT_LOOK_MS = 5
/** Nobody reads the other end any more, or the descriptor is not for writing. Lines do not wait for that to change. */
const GONE: readonly unknown[] = ['EPIPE', 'EBADF', 'ENXIO', 'ECONNRESET']
const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants
/** A new file is for its owner alone. A pipe without a reader is an error, and one whose reader is slow is full. */
const APPEND = [O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK, 0o600] as const

/** What became of the lines of one log. */
export interface LineCounts {
  /** The system has taken them. */
  writtenCount: number
  droppedCount: number
  /** Neither of both yet. */
  waitingBytes: number
}

export function noLines(): LineCounts {
  return { writtenCount: 0, droppedCount: 0, waitingBytes: 0 }
}

interface Line {
  readonly bytes: Buffer
  readonly counts: LineCounts
}

/** Those that are open: each has a descriptor. */
const writers = new Set<LineWriter>()

/**
 * Writes lines to a descriptor that an operator owns, in order. The event loop never waits for it: lines wait while it takes none
 * (a full pipe or disk), up to 4 MiB. Further ones are dropped and counted, and so are all once nobody reads them any more.
 */
export class LineWriter {
  readonly #file: string | undefined
  readonly #failed: (error: unknown) => void
  #descriptor: number
  readonly #lines: Line[] = []
  /** The first of them, which are being written, and what is left of their bytes. */
  #batchCount = 0
  #batch = Buffer.alloc(0)
  #waitingBytes = 0
  #isBusy = false
  #isStale = false
  #retry: NodeJS.Timeout | undefined
  #retryMs = MIN_RETRY_MS
  /** Somebody waits until no line does. */
  #idle: Deferred<void> | undefined

  /**
   * @param target A descriptor, or the name of a file.
   * @param failed Called for each attempt that fails, except when a pipe is full.
   * @throws the error of the system: the file cannot be opened.
   */
  constructor(target: number | string, failed: (error: unknown) => void = () => undefined) {
    this.#file = typeof target === 'string' ? target : undefined
    this.#descriptor = typeof target === 'string' ? openSync(target, ...APPEND) : target
    this.#failed = failed
    if (writers.size === 0) process.on('exit', flushAll)
    writers.add(this)
  }

  /** @param line With its line break. @param counts Of its log; logs may share a writer. */
  write(line: string, counts: LineCounts): void {
    const bytes = Buffer.from(line)
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      counts.droppedCount++
      return
    }
    this.#lines.push({ bytes, counts })
    this.#waitingBytes += bytes.length
    counts.waitingBytes += bytes.length
    if (this.#retry === undefined) this.#advance()
  }

  /** Opens the file again by its name, after a tool has moved it away. Lines wait until that works. */
  reopen(): void {
    this.#isStale = this.#file !== undefined
    this.#advance()
  }

  /** Waits until no line does, for at most `limitMs`. From now on, lines that fail are dropped. */
  async flush(limitMs: number): Promise<boolean> {
    this.#idle ??= deferred()
    const { promise } = this.#idle
    this.#advance()
    return await within(promise, limitMs)
  }

  /** Drops the lines that wait, and closes the file. Write nothing afterwards. */
  close(): void {
    clearTimeout(this.#retry)
    this.#isStale = false
    this.#end(this.#lines.length, 'droppedCount')
    writers.delete(this)
    if (writers.size === 0) process.off('exit', flushAll)
    if (!this.#isBusy) this.#release(this.#descriptor)
  }

  /** Standard streams stay open: the descriptor would go to the next file or connection. */
  #release(descriptor: number): void {
    if (descriptor > 2) close(descriptor, this.#report)
  }

  /** Without the event loop, when the process ends. What a thread is writing is left to it. @returns lines that are lost. */
  flushSync(limitMs: number): number {
    const endMs = performance.now() + limitMs
    if (this.#isBusy) sleep(EXIT_LOOK_MS)
    const further = this.#lines.slice(this.#batchCount).map((line) => line.bytes)
    let bytes = Buffer.concat(this.#isBusy ? further : [this.#batch, ...further])
    while (bytes.length > 0) {
      try {
        bytes = bytes.subarray(writeSync(this.#descriptor, bytes))
      } catch (error) {
        if (codeOf(error) !== 'EAGAIN' || performance.now() > endMs) break
        sleep(EXIT_LOOK_MS)
      }
    }
    const ended = this.#lines.splice(this.#isBusy ? this.#batchCount : 0)
    let lostCount = 0
    for (let left = bytes.length; left > 0; lostCount++) left -= ended.at(-1 - lostCount)?.bytes.length ?? left
    this.#settle(ended.splice(ended.length - lostCount), 'droppedCount')
    this.#settle(ended, 'writtenCount')
    if (!this.#isBusy) this.#end(0, 'writtenCount')
    return lostCount
  }

  readonly #advance = (): void => {
    clearTimeout(this.#retry)
    this.#retry = undefined
    if (this.#isBusy) return
    if (this.#file !== undefined && this.#isStale) this.#open(this.#file)
    else if (this.#lines.length > 0) this.#writeBatch()
    else {
      this.#idle?.resolve()
      this.#idle = undefined
    }
  }

  #writeBatch(): void {
    if (this.#batch.length === 0) this.#fillBatch()
    this.#isBusy = true
    write(this.#descriptor, this.#batch, (error, byteCount) => {
      this.#isBusy = false
      if (!writers.has(this)) return this.#release(this.#descriptor)
      if (error !== null || byteCount === 0) return this.#refused(error)
      this.#retryMs = MIN_RETRY_MS
      this.#batch = this.#batch.subarray(byteCount)
      if (this.#batch.length === 0) this.#end(this.#batchCount, 'writtenCount')
      this.#advance()
    })
  }

  #fillBatch(): void {
    let byteCount = 0
    for (const { bytes } of this.#lines) {
      if (byteCount > 0 && byteCount + bytes.length > MAX_WRITE_BYTES) break
      byteCount += bytes.length
      this.#batchCount++
    }
    this.#batch = Buffer.concat(this.#lines.slice(0, this.#batchCount).map((line) => line.bytes))
  }

  #open(file: string): void {
    this.#isBusy = true
    open(file, ...APPEND, (error, descriptor) => {
      this.#isBusy = false
      if (error !== null && writers.has(this)) return this.#refused(error)
      this.#release(this.#descriptor)
      if (error !== null) return
      if (!writers.has(this)) return this.#release(descriptor)
      this.#descriptor = descriptor
      this.#isStale = false
      this.#advance()
    })
  }

  /** @param error `null`: nothing was taken. */
  #refused(error: NodeJS.ErrnoException | null): void {
    const isFull = error === null || error.code === 'EAGAIN'
    if (!isFull) this.#failed(error)
    const isLast = this.#idle !== undefined && !isFull
    if (isLast) this.#isStale = false
    if (isLast || GONE.includes(error?.code)) this.#end(this.#lines.length, 'droppedCount')
    if (this.#lines.length > 0 || this.#isStale) {
      this.#retry = setTimeout(this.#advance, this.#retryMs).unref()
      this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS)
    } else this.#advance()
  }

  /** The first lines do not wait any more. */
  #end(count: number, outcome: 'writtenCount' | 'droppedCount'): void {
    this.#settle(this.#lines.splice(0, count), outcome)
    this.#batchCount = 0
    this.#batch = Buffer.alloc(0)
  }

  #settle(lines: readonly Line[], outcome: 'writtenCount' | 'droppedCount'): void {
    for (const { bytes, counts } of lines) {
      counts[outcome]++
      counts.waitingBytes -= bytes.length
      this.#waitingBytes -= bytes.length
    }
  }

  readonly #report = (error: unknown): void => {
    if (error) this.#failed(error)
  }
}

const standard = new Map<1 | 2, LineWriter>()

/** The writer of standard output or standard error, which the whole process shares. @param failed As that of the first caller. */
export function standardWriter(descriptor: 1 | 2, failed?: (error: unknown) => void): LineWriter {
  const writer = standard.get(descriptor) ?? new LineWriter(nonBlocking(descriptor), failed)
  standard.set(descriptor, writer)
  return writer
}

/**
 * Node makes pipes and sockets non-blocking when their stream is first used. A terminal would stay blocking, so it is opened
 * again where the system allows that. A write that blocks takes a thread of Node, and the process cannot end before it.
 */
function nonBlocking(descriptor: 1 | 2): number {
  const stream = descriptor === 1 ? process.stdout : process.stderr
  if (!stream.isTTY) return descriptor
  try {
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_NOCTTY | O_NONBLOCK)
  } catch {
    return descriptor
  }
}

function flushAll(): void {
  let lostCount = 0
  for (const writer of writers) lostCount += writer.flushSync(EXIT_FLUSH_MS)
  if (lostCount === 0) return
  try {
    writeSync(2, `error: the last ${lostCount} lines of its logs were lost\n`)
  } catch {
    // Standard error is what takes nothing.
  }
}

const CELL = new Int32Array(new SharedArrayBuffer(4))

function sleep(ms: number): void {
  Atomics.wait(CELL, 0, 0, ms)
}
