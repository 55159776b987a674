/** One connection of a client, as the model broker sees it. */
export interface WireLink {
  /** Sends bytes to the client. The model does not touch them afterwards. */
  send(bytes: Uint8Array): void
  /** Ends the connection; `reset`: as ECONNRESET. */
  end(how: 'end' | 'reset'): void
}

/** What the model does with a connection. */
export interface WireSession {
  /** Bytes of the client, in any pieces. The model keeps no view of them: they may be overwritten. */
  receive(bytes: Uint8Array): void
  /** The client has gone, or {@link WireLink.end} was called. Called once. */
  closed(): void
}

/**
 * A broker that speaks its wire: no sockets, no timers but setTimeout, no clock but Date.now, no chance but what it is
 * given. Its answers leave in the call that brought the question, or from a timer.
 */
export interface WireBroker {
  /** Where clients expect it. */
  readonly port: number
  /** A connection while the broker is dead is reset by the model. */
  connect(link: WireLink): WireSession
  /** The process dies (less its newest `lostCount` log entries) and is back with its data when `start` is called. */
  kill(lostCount: number): void
  start(): void
}
