import {
  type Gap,
  type ListenOptions,
  type ListenResult,
  type Message,
  type Receiver,
  type WebMQClient,
  WebMQError,
} from 'webmq-client'
import { EXIT } from '../exit-codes.js'
import { note, printable, type Terminal } from '../terminal.js'
import { connect, createClient, reasonOf } from './connect.js'
import type { ClientTarget } from './flags.js'
import { Interrupt } from './interrupt.js'

/** Output that may wait for a slow reader of a pipe. Beyond it, the command fails instead of growing. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** What `sub` shows, and until when. */
export interface SubscribeFlags extends Pick<ListenOptions, 'last' | 'since' | 'rewind'> {
  readonly json?: true
  /** Begins with the last message of each key. */
  readonly state?: true
  /** Messages after which the command ends. */
  readonly count?: number
  /** Time after which the command ends, in milliseconds. */
  readonly timeout?: number
}

/**
 * Writes every message that matches one of the patterns to standard output, until a signal, `count`, `timeout`, or
 * until nobody reads the output.
 *
 * @returns The exit code: `TIMED_OUT` if the time was over before `count` messages came.
 * @throws {WebMQError} The server cannot be reached, or refuses.
 */
export async function subscribe(
  patterns: readonly string[],
  target: ClientTarget,
  flags: SubscribeFlags,
  terminal: Terminal,
): Promise<number> {
  using interrupt = new Interrupt()
  const client = createClient(target, terminal)
  const end = new Ending(client, interrupt.signal, flags.timeout, flags.count, terminal)
  try {
    listen(client, patterns, flags, terminal, end)
    const connected = connect(client, target)
    await Promise.race([connected, end.reached])
    return await end.reached
  } finally {
    end.stop()
    await client.close({ flushMs: 0 })
  }
}

function listen(
  client: WebMQClient,
  patterns: readonly string[],
  { json, state, last, since, rewind }: SubscribeFlags,
  terminal: Terminal,
  end: Ending,
): void {
  const { stdout } = terminal
  let previous: Message<unknown> | undefined
  const start: ListenOptions = {
    ...(last === undefined ? {} : { last }),
    ...(since === undefined ? {} : { since }),
    ...(rewind === undefined ? {} : { rewind }),
  }
  for (const pattern of new Set(patterns)) {
    const receiver: Receiver = {
      wantsState: state,
      deliver: (message) => {
        // Handlers of several patterns get the same object, one after the other.
        if (message === previous || end.isReached) return
        previous = message
        stdout.write(messageLine(message, json === true, stdout.isTTY === true))
        end.count(stdout.writableLength)
      },
    }
    const subscription = client.listen(pattern, receiver, start)
    subscription.on('ready', (result) => note(`listening to ${printable(pattern)}${describeStart(result)}`, terminal))
    subscription.on('gap', (gap) => {
      if (json) stdout.write(gapLine(gap))
      note(`gap: messages of ${printable(pattern)} may be missing (${gap.reason})`, terminal)
    })
    subscription.on('error', (error) => end.fail(error))
    subscription.ready.catch((error: unknown) => end.fail(error))
  }
}

function describeStart({ replayed, recovered }: ListenResult): string {
  if (recovered) return `, ${replayed} missed messages follow`
  return replayed > 0 ? `, ${replayed} messages of the log come first` : ''
}

/** When a subscription ends, and with which exit code. */
class Ending {
  /** Resolves to the exit code; rejects with the error of the server. */
  readonly reached: Promise<number>
  isReached = false
  #left: number
  readonly #timer: NodeJS.Timeout | undefined
  readonly #stopped: () => void
  readonly #interrupted: AbortSignal
  readonly #stdout: NodeJS.WriteStream
  #settle: (code: number) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined

  constructor(
    client: WebMQClient,
    interrupted: AbortSignal,
    timeoutMs: number | undefined,
    count: number | undefined,
    { stdout }: Terminal,
  ) {
    this.reached = new Promise((resolve, reject) => {
      this.#settle = resolve
      this.#reject = reject
    })
    // It is awaited late, and may be rejected early.
    this.reached.catch(() => undefined)
    this.#left = count ?? Number.POSITIVE_INFINITY
    this.#interrupted = interrupted
    this.#stdout = stdout
    this.#stopped = () => this.#end(EXIT.OK)
    interrupted.addEventListener('abort', this.#stopped)
    // The reader has closed the pipe, as `head` does.
    stdout.on('error', this.#stopped)
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(() => this.#end(count === undefined ? EXIT.OK : EXIT.TIMED_OUT), timeoutMs)
    }
    client.on('status', ({ state, lastError }) => {
      if (state === 'closed' && lastError !== undefined) this.fail(lastError)
    })
  }

  /** One message more was written. */
  count(waitingBytes: number): void {
    this.#left -= 1
    if (this.#left === 0) this.#end(EXIT.OK)
    else if (waitingBytes > MAX_WAITING_BYTES)
      this.fail(new WebMQError('E_BUFFER_OVERFLOW', { detail: 'the reader of standard output is too slow' }))
  }

  fail(error: unknown): void {
    this.isReached = true
    this.#reject(reasonOf(error))
  }

  stop(): void {
    this.isReached = true
    clearTimeout(this.#timer)
    this.#interrupted.removeEventListener('abort', this.#stopped)
    this.#stdout.off('error', this.#stopped)
  }

  #end(code: number): void {
    this.isReached = true
    this.#settle(code)
  }
}

/**
 * A message as one line: `<key> <payload as JSON>`, bytes as base64, nothing without a payload.
 *
 * On a terminal, what others sent is escaped. Keys contain no white space, so the first space ends the key. JSON has no line breaks.
 */
function messageLine(
  { key, payload, position, replayed }: Message<unknown>,
  json: boolean,
  isTerminal: boolean,
): string {
  const bytes = payload instanceof Uint8Array ? Buffer.from(payload).toString('base64') : undefined
  if (json) {
    const content = bytes === undefined ? { payload } : { payloadBase64: bytes }
    return `${JSON.stringify({ key, ...content, ...(position === undefined ? {} : { position }), replayed })}\n`
  }
  // A removal from the state has no payload.
  const content = payload === undefined ? '' : JSON.stringify(payload)
  const text = `${key} ${bytes === undefined ? content : `base64:${bytes}`}`
  return `${isTerminal ? printable(text) : text}\n`
}

/** A gap as one line of JSON, between the messages before and after it. */
function gapLine({ pattern, reason, since }: Gap): string {
  return `${JSON.stringify({ gap: reason, pattern, ...(since === undefined ? {} : { since }) })}\n`
}
