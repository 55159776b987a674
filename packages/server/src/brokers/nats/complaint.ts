const TOO_MANY_SUBSCRIPTIONS = /maximum subscriptions/i
const VIOLATION = /^Permissions Violation for (Publish|Subscription) to "(.*?)"(?: using queue ".*")?$/i
/** Go's escapes of unprintable characters. Subjects of keys contain nothing else that Go escapes. */
const GO_ESCAPE = /\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))/g

/** An error of the server after which the connection stays up. */
export type NatsComplaint =
  /** The server rejected a message to this subject. */
  | { readonly kind: 'publish'; readonly subject: string }
  /** The server rejected or ended a subscription to this subject. */
  | { readonly kind: 'subscription'; readonly subject: string }
  | { readonly kind: 'too-many-subscriptions' }

/**
 * Reads an error of the server; `undefined` if the connection is useless after it.
 * @param text The message of the library's error: the server's text. The library's own fields keep Go's escapes.
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
