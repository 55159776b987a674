import type { ClientMessage } from '../protocol/index.js'

/** The sending side of the connection. */
export interface Sender {
  /** Whether messages may be sent. */
  readonly isLive: boolean
  /** Bytes in the buffer of the socket. */
  readonly bufferedBytes: number
  /** Passes a message to the socket. */
  send(message: ClientMessage): void
}
