const VIOLATION = /^Permissions Violation for (Publish|Subscription) to "(.*?)"(?: using queue ".*")?$/i
const TOO_MANY_SUBSCRIPTIONS = /maximum subscriptions/i
/** Characters that Go does not take for printable, as it writes them; subjects of keys have nothing else that it would escape. */
const GO_ESCAPE = /\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))/g

/** What a server complains of with `-ERR` while it goes on. */
export type NatsComplaint =
  /** A message to this subject was not taken. */
  | { readonly kind: 'publish'; readonly subject: string }
  /** A subscription to this subject was not made, or is no longer allowed. */
  | { readonly kind: 'subscription'; readonly subject: string }
  | { readonly kind: 'too-many-subscriptions' }

/** Reads the text of an `-ERR`; `undefined` for one after which the connection is of no use. */
export function complaintOf(text: string): NatsComplaint | undefined {
  if (TOO_MANY_SUBSCRIPTIONS.test(text)) return { kind: 'too-many-subscriptions' }
  const [, kind, quoted = ''] = VIOLATION.exec(text) ?? []
  if (kind === undefined) return undefined
  const subject = quoted.replace(GO_ESCAPE, (_, short: string | undefined, long: string | undefined) =>
    String.fromCodePoint(Number.parseInt(short ?? long ?? '', 16)),
  )
  return { kind: kind.toLowerCase() === 'publish' ? 'publish' : 'subscription', subject }
}
