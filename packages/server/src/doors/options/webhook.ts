/** Events of a webhook whose answer decides. */
export const WEBHOOK_QUESTIONS = ['connect', 'listen', 'publish', 'presence'] as const
/** Events that a webhook is told of. */
export const WEBHOOK_NOTICES = ['connected', 'disconnected', 'published', 'occupancy'] as const

/** What counts while a webhook cannot be asked. */
export type WebhookFailure = 'closed' | 'open'

/** An address that decides about what clients do, and is told what they did. */
export interface WebhookOptions {
  /** `https://`, or `http://` of this machine. */
  readonly url: string
  /** Default `connect`. */
  readonly events?: readonly string[] | undefined
  /** Signs requests, as Standard Webhooks does; at least 16 bytes. */
  readonly secret?: string | undefined
  /** Headers of the upgrade request that `connect` passes on; default `cookie` and `authorization`. */
  readonly headers?: readonly string[] | undefined
  /** Patterns of the keys whose messages are told; default `#`. */
  readonly published?: readonly string[] | undefined
  /** Patterns of the listens that `occupancy` tells; default `#`. */
  readonly occupancy?: readonly string[] | undefined
  /** Time without a listener after which a pattern is vacated; default 5,000. */
  readonly occupancyGraceMs?: number | undefined
  /** Patterns that are watched, per node; default 100,000. */
  readonly occupancyMaxPatterns?: number | undefined
  /** Time for one answer; default 3,000. */
  readonly timeoutMs?: number | undefined
  /** `closed` (the default) refuses what a failing webhook was asked about; `open` goes on as if it had said nothing. */
  readonly failure?: WebhookFailure | undefined
  /** Requests at the same time; default 64. */
  readonly concurrency?: number | undefined
}

/** The events of a webhook; an empty list is none. */
export function webhookEventsOf({ events = [] }: Pick<WebhookOptions, 'events'>): readonly string[] {
  return events.length === 0 ? ['connect'] : events
}

/** Headers that belong to the request to the webhook. */
const OWN_HEADERS: readonly string[] = [
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** Whether a header of the upgrade request may be passed on. @param name In lower case. */
export function isForwardable(name: string): boolean {
  return /^[a-z0-9-]{1,64}$/.test(name) && !OWN_HEADERS.includes(name) && !/^(webhook|sec-websocket)-/.test(name)
}
