import { WebMQError } from 'webmq-client'
import { validateKey } from 'webmq-client/protocol'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { JsonText } from '../../../kernel/base/json-text.js'
import { limitedBytes } from '../../../kernel/base/limited-bytes.js'
import { reasonOf } from '../../../kernel/base/reason.js'
import { EXIT } from '../exit-codes.js'
import { note, type Terminal } from '../terminal.js'
import { connect, createClient, rejectWithReason } from './connect.js'
import type { ClientTarget } from './flags.js'

/** The largest `maxPayloadBytes` of a server, and so the most that is read. */
const MAX_INPUT_BYTES = 64 * 1024 * 1024

export interface PublishFlags {
  readonly id?: string
  readonly json?: true
  readonly binary?: true
  /** Not parsed as JSON. */
  readonly text?: true
}

/**
 * Publishes one message.
 *
 * @param input The payload; `-` or absent: standard input.
 * @returns The exit code.
 * @throws {WebMQError} The server cannot be reached, or refuses.
 */
export async function publish(
  key: string,
  input: string | undefined,
  target: ClientTarget,
  flags: PublishFlags,
  terminal: Terminal,
): Promise<number> {
  const { id, json } = flags
  validateKey(key)
  const payload = await payloadOf(input, flags, terminal.stdin)
  const client = createClient(target, terminal)
  try {
    await connect(client, target)
    const result = await client.publish(key, payload, id === undefined ? {} : { id }).catch(rejectWithReason)
    const { id: messageId, duplicate, position } = result
    if (json) {
      terminal.stdout.write(`${JSON.stringify({ key, id: messageId, duplicate, position })}\n`)
    } else {
      const outcome = duplicate ? 'the server had it already' : 'published'
      note(`${outcome}: ${key}, id ${messageId}${position === undefined ? '' : `, position ${position}`}`, terminal)
    }
    return EXIT.OK
  } finally {
    await client.close({ flushMs: 0 })
  }
}

async function payloadOf(
  payload: string | undefined,
  { binary, text: isText }: PublishFlags,
  stdin: NodeJS.ReadStream,
): Promise<JsonText | Uint8Array> {
  if (binary && isText) throw invalidOption('--binary and --text are both given')
  const isRead = payload === undefined || payload === '-'
  if (payload === undefined && stdin.isTTY === true) {
    throw invalidOption('a payload is missing; - reads it from standard input')
  }
  const bytes = isRead ? await limitedBytes(stdin, MAX_INPUT_BYTES, tooLarge) : Buffer.from(payload)
  if (binary) return new Uint8Array(bytes)
  // Programs end their output with a line break that is not meant.
  const text = isRead ? bytes.toString('utf8').replace(/\r?\n$/, '') : payload
  return new JsonText(isText ? JSON.stringify(text) : jsonOf(text))
}

/**
 * JSON as it is. Any other text is sent as a string, so that quotes are rarely needed, except a text that looks like JSON
 * with a mistake.
 */
function jsonOf(text: string): string {
  try {
    JSON.parse(text)
    return text.trim()
  } catch (cause) {
    if (!/^\s*[[{"]/.test(text) && text.trim() !== '') return JSON.stringify(text)
    const reason = text.trim() === '' ? 'it is empty' : reasonOf(cause)
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: `not JSON (${reason}); --text sends it as a text`, cause })
  }
}

function tooLarge(text: string): WebMQError {
  return new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `standard input has ${text}` })
}
