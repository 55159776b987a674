import { type Gap, type ListenOptions, type ListenResult, type Message, WebMQError } from 'webmq-client'
import { validatePattern } from 'webmq-client/protocol'
import { deferred } from '../../../kernel/base/deferred.js'
import { defined } from '../../../kernel/base/defined.js'
import { encodeWithTexts } from '../../../kernel/base/json-text.js'
import { EXIT } from '../exit-codes.js'
import { note, printable, type Terminal } from '../terminal.js'
import { connect, createClient, reasonOf } from './connect.js'
import type { ClientTarget } from './flags.js'
import { Interrupt } from './interrupt.js'

/** Output that may wait for a slow reader of a pipe. Beyond it, the command fails instead of growing. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

export interface SubscribeFlags extends Pick<ListenOptions, 'last' | 'since' | 'rewind'> {
  readonly json?: true
  /** Begins with the last message of each key. */
  readonly state?: true
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
  const { json = false, state: wantsState, count, timeout, last, since, rewind } = flags
  const { stdout } = terminal
  for (const pattern of patterns) validatePattern(pattern)
  using interrupt = new Interrupt(stdout)
  const client = createClient(target, terminal)
  const end = deferred<number>()
  // It is awaited late, and may be rejected early.
  end.promise.catch(() => undefined)
  let isOver = false
  const finish = (code: number) => {
    isOver = true
    end.resolve(code)
  }
  const fail = (error: unknown) => {
    isOver = true
    end.reject(reasonOf(error))
  }
  interrupt.signal.addEventListener('abort', () => finish(EXIT.OK))
  const timedOut = () => finish(count === undefined ? EXIT.OK : EXIT.TIMED_OUT)
  const timer = timeout === undefined ? undefined : setTimeout(timedOut, timeout)
  client.on('status', ({ state, lastError }) => {
    if (state === 'closed' && lastError !== undefined) fail(lastError)
  })
  let left = count ?? Number.POSITIVE_INFINITY
  let previous: Message<unknown> | undefined
  const print = (line: string) => {
    stdout.write(line)
    if (stdout.writableLength <= MAX_WAITING_BYTES) return
    fail(new WebMQError('E_BUFFER_OVERFLOW', { detail: 'the reader of standard output is too slow' }))
  }
  const deliver = (message: Message<unknown>) => {
    // Handlers of several patterns get the same object, one after the other.
    if (message === previous || isOver) return
    previous = message
    print(messageLine(message, json, stdout.isTTY === true))
    left -= 1
    if (left === 0) finish(EXIT.OK)
  }
  try {
    for (const pattern of new Set(patterns)) {
      const subscription = client.listen(pattern, { wantsState, deliver }, defined({ last, since, rewind }))
      subscription.on('ready', (result) => note(`listening to ${printable(pattern)}${describeStart(result)}`, terminal))
      subscription.on('gap', (gap) => {
        if (json) print(gapLine(gap))
        note(`gap: messages of ${printable(pattern)} may be missing (${gap.reason})`, terminal)
      })
      subscription.on('error', fail)
      subscription.ready.catch(fail)
    }
    await Promise.race([connect(client, target), end.promise])
    return await end.promise
  } finally {
    isOver = true
    clearTimeout(timer)
    await client.close({ flushMs: 0 })
  }
}

function describeStart({ replayed, recovered }: ListenResult): string {
  if (recovered) return `, ${replayed} missed messages follow`
  return replayed > 0 ? `, ${replayed} messages of the log come first` : ''
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
    return `${encodeWithTexts({ key, ...content, position, replayed })}\n`
  }
  // A removal from the state has no payload.
  const content = payload === undefined ? '' : encodeWithTexts(payload)
  const text = `${key} ${bytes === undefined ? content : `base64:${bytes}`}`
  return `${isTerminal ? printable(text) : text}\n`
}

/** A gap as one line of JSON, between the messages before and after it. */
function gapLine({ pattern, reason, since }: Gap): string {
  return `${JSON.stringify({ gap: reason, pattern, since })}\n`
}
