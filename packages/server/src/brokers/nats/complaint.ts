const TOO_MANY_SUBSCRIPTIONS = /maximum subscriptions/i
const VIOLATION = /^Permissions Violation for (Publish|Subscription) to "(.*?)"(?: using queue ".*")?$/i
/** Characters that Go does not take for printable, as it writes them; subjects of keys have nothing else that Go escapes. */
const GO_ESCAPE = /\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))/g

/** What a server complains of while the connection goes on. */
export type NatsComplaint =
  /** The server did not take a message to this subject. */
  | { readonly kind: 'publish'; readonly subject: string }
  /** The server did not make a subscription to this subject, or ended it. */
  | { readonly kind: 'subscription'; readonly subject: string }
  | { readonly kind: 'too-many-subscriptions' }

/**
 * Reads what a server complains of; `undefined` for a complaint after which the connection is of no use.
 * @param text The message of the library's error, which is the server's. The library's own reading keeps Go's escapes.
 */
export function complaintOf(text: string): NatsComplaint | undefined {
  if (TOO_MANY_SUBSCRIPTIONS.test(text)) return { kind: 'too-many-subscriptions' }
  const [, kind, quoted = ''] = VIOLATION.exec(text) ?? []
  if (kind === undefined) return undefined
  const subject = quoted.replace(GO_ESCAPE, (_, short: string | undefined, long: string | undefined) =>
    String.fromCodePoint(Number.parseInt(short ?? long ?? '', 16)),
  )
  return { kind: kind.toLowerCase() === 'publish' ? 'publish' : 'subscription', subject }
}
