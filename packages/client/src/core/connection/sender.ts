/** An encoded message: text, or bytes with a binary payload. */
export type Frame = string | Uint8Array<ArrayBuffer>

/** The sending side of the connection. */
export interface Sender {
  /** Whether messages may be sent. */
  readonly isLive: boolean
  /** Bytes in the buffer of the socket. */
  readonly bufferedBytes: number
  /** Passes an encoded message to the socket. @param isAnswered Whether the server answers it; default `true`. */
  send(frame: Frame, isAnswered?: boolean): void
}
