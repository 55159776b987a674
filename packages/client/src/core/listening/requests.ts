import { WebMQError } from '../../protocol/errors.js'
import type { ServerMessage } from '../../protocol/messages.js'
import type { Frame, Sender } from '../connection/sender.js'
import { errorOfServer } from '../connection/server-error.js'
import { createTimer } from '../connection/timer.js'

type From<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

/** The outcome of a request: the server's `ok`, its error, `E_TIMEOUT` or `E_DISCONNECTED`. */
export type Reply = From<'ok'> | WebMQError

/** Where a replay begins; a listen sets at most one of these. */
export interface Start {
  readonly since?: string | undefined
  readonly last?: number | undefined
  readonly rewindMs?: number | undefined
  /** The last message of each key [P-17.1]; with `since`, of keys that changed after it. */
  readonly state?: true | undefined
}

/**
 * Requests without an answer yet. Each gets exactly one: from the server, from its timer, or from a lost connection.
 */
export interface Requests {
  /**
   * Sends a request. The connection must be live.
   * @param encode Encodes it with its id.
   */
  send(encode: (id: string) => Frame, onReply: (reply: Reply) => void): void
  /**
   * A message has arrived. An answer keeps its place behind others, so a slow reader waits longer for it than for a
   * server that is gone: a request times out when nothing at all arrives in its time.
   */
  received(): void
  /** Handles an answer of the server. Returns whether it belongs to one of these requests. */
  answer(message: From<'ok'> | From<'error'>): boolean
  /** The connection is lost. */
  down(): void
  /** The client is closed. */
  close(): void
}

export function createRequests(sender: Sender, timeoutMs: number): Requests {
  const waiting = new Map<string, (answer: Reply) => void>()
  let lastId = 0
  let receivedCount = 0
  function down(): void {
    for (const settle of [...waiting.values()]) settle(new WebMQError('E_DISCONNECTED'))
  }
  return {
    send(encode, onReply) {
      const id = `l${++lastId}`
      const timer = createTimer()
      const settle = (answer: Reply) => {
        timer()
        waiting.delete(id)
        onReply(answer)
      }
      const wait = (countBefore: number) => {
        timer(() => {
          if (countBefore === receivedCount) settle(new WebMQError('E_TIMEOUT'))
          else wait(receivedCount)
        }, timeoutMs)
      }
      wait(receivedCount)
      waiting.set(id, settle)
      try {
        sender.send(encode(id))
      } catch (cause) {
        // One request that cannot be sent must not keep others from being sent.
        settle(cause instanceof WebMQError ? cause : new WebMQError('E_MESSAGE_INVALID', { cause }))
      }
    },
    received: () => {
      receivedCount++
    },
    answer(message) {
      const settle = waiting.get(message.id ?? '')
      settle?.(message.verb === 'ok' ? message : errorOfServer(message))
      return settle !== undefined
    },
    down,
    close: down,
  }
}
