import { WebMQClient, WebMQError } from 'webmq-client'
import { endMessages } from 'webmq-client/protocol'
import { WebSocket } from 'ws'
import { defined } from '../../../kernel/base/defined.js'
import { within } from '../../../kernel/base/within.js'
import { note, printable, type Terminal } from '../terminal.js'
import type { ClientTarget } from './flags.js'
import { JSON_TEXTS } from './json-texts.js'

// Commands end with a hint at `explain`. The client has set links when it was imported.
endMessages(() => '')

/** A client whose state changes and errors are lines on standard error. Close it when the command ends. */
export function createClient({ url, token, connectTimeoutMs }: ClientTarget, terminal: Terminal): WebMQClient {
  const client = new WebMQClient({
    url,
    connectTimeoutMs,
    // Node 20 has no WebSocket of its own.
    WebSocket,
    codec: JSON_TEXTS,
    ...defined({ token }),
  })
  let hasConnected = false
  let loggedReason: string | undefined
  client.on('status', ({ state, connection, lastError }, previous) => {
    const reason = printable(lastError?.message ?? 'closed')
    if (state === 'reconnecting' && reason !== loggedReason) {
      loggedReason = reason
      note(`no connection (${reason}); trying again`, terminal)
    }
    if (!connection || connection === previous.connection) return
    loggedReason = undefined
    if (hasConnected) note(`connected again, to node ${printable(connection.node)}`, terminal)
    hasConnected = true
  })
  // Without a handler, the client prints them with their stacks. Errors that end the command are thrown.
  client.on('error', ({ error }) => {
    if (error instanceof WebMQError && error.code === 'E_PAYLOAD_INVALID') note(printable(error.message), terminal)
  })
  return client
}

/**
 * Resolves when the client is connected.
 * @throws {WebMQError} `E_CONNECT_FAILED` with the last reason; the error of a server that refuses for good.
 */
export async function connect(client: WebMQClient, { connectTimeoutMs }: ClientTarget): Promise<void> {
  const isConnected = await within(client.connect().catch(rejectWithReason), connectTimeoutMs)
  if (!isConnected) throw notConnected(client, connectTimeoutMs)
}

function notConnected({ status }: WebMQClient, timeoutMs: number): WebMQError {
  const { lastError } = status
  if (lastError === undefined) {
    return new WebMQError('E_CONNECT_FAILED', { detail: `no answer within ${timeoutMs} ms` })
  }
  return new WebMQError(lastError.code, { message: printable(lastError.message) })
}

/** The error that has closed the client, instead of `E_CLOSED`. */
export function rejectWithReason(error: unknown): never {
  throw reasonOf(error)
}

/** The error that has closed the client, for one that says `E_CLOSED`. */
export function reasonOf(error: unknown): unknown {
  const isClosed = error instanceof WebMQError && error.code === 'E_CLOSED'
  return isClosed && error.cause instanceof WebMQError ? error.cause : error
}
