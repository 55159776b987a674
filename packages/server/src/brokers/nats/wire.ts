/** What a part of a link may do with its connection. */
export interface NatsWire {
  /** Of the server at the other end; others of its cluster may have it when it does not. */
  readonly serverHasJetStream: boolean
  /** Sends lines of the protocol, with what belongs to them, in the order of the calls, those of messages included. */
  send(lines: string): void
  /** Sends a message of text. */
  say(subject: string, replyTo: string, text: string): void
  /** The link is of no use any more. */
  lose(cause: Error): void
}
