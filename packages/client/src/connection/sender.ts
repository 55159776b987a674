import type { ClientMessage } from '../protocol/index.js'

/** The connection, as far as those need it who send on it. */
export interface Sender {
  /** Whether messages may be sent. */
  readonly isLive: boolean
  /** Bytes that wait in the socket. */
  readonly bufferedBytes: number
  /** Hands a message to the socket. */
  send(message: ClientMessage): void
}
