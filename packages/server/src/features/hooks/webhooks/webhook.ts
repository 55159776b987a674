import { matches } from 'webmq-client/protocol'
import { type WebhookOptions, webhookEventsOf } from '../../../doors/options/webhook.js'
import { LogPace } from '../../../kernel/base/log-pace.js'
import type { Logger } from '../../../kernel/base/logger.js'
import { within } from '../../../kernel/base/within.js'
import type { Actor } from '../../../kernel/identity/actor.js'
import type { OutboundMessage, Position } from '../../../kernel/ports/broker.js'
import { withoutPasswords } from '../../../kernel/ports/broker-address.js'
import { formatPosition } from '../../../kernel/ports/position.js'
import type { HookSource } from '../hook-calls.js'
import { type BreakerState, CircuitBreaker } from './circuit-breaker.js'
import { Signer, WebhookClient } from './client.js'
import { eventJson, payloadMembers } from './event-json.js'
import { batchOf, Notices } from './notices.js'
import { webhookHooks } from './questions.js'

/** Counters since the start; gauges at the time of the call. */
export interface WebhookStats {
  /** Of the question that fares worst. */
  readonly breaker: BreakerState
  /** How often it opened. */
  readonly openCount: number
  /** Questions that got no answer, and counted as if the webhook had said nothing. */
  readonly ignoredCount: number
  readonly sentCount: number
  readonly droppedCount: number
  readonly waitingCount: number
}

/** What sessions of websites and their APIs are kept in. */
const DEFAULT_HEADERS: readonly string[] = ['cookie', 'authorization']
/** Longer than a question may take, so that the webhook's own error is reported. */
const GRACE_MS = 1_000
/** A request over HTTP and its answer. Measured: 200 us, with the system's part. */
const QUESTION_UNITS = 200
const LOG_INTERVAL_MS = 1_000

/** Asks an address about what clients do, and tells it what they did. */
export class Webhook {
  readonly #client: WebhookClient
  readonly #notices: Notices
  readonly #breakers: ReadonlyMap<string, CircuitBreaker>
  readonly #logger: Pick<Logger, 'warn' | 'info'>
  readonly #url: string
  readonly source: HookSource
  /** Is told what sessions do; has only the methods of its events. */
  readonly observer: {
    connected?(session: Actor): void
    disconnected?(session: Actor, code: number, reason: string, durationMs: number): void
    published?(actor: Actor, message: OutboundMessage, position: Position | undefined): void
  }
  /** What the event `occupancy` watches, and its way to the webhook; absent: it is not told. */
  readonly occupancy:
    | {
        readonly patterns: readonly string[]
        readonly graceMs: number
        readonly maxPatterns: number
        readonly tell: (events: readonly string[]) => Promise<void>
      }
    | undefined
  #openCount = 0
  #ignoredCount = 0
  readonly #pace = new LogPace(LOG_INTERVAL_MS)

  constructor(options: WebhookOptions, logger: Pick<Logger, 'warn' | 'info'>) {
    const {
      url,
      secret,
      headers = [],
      published = [],
      occupancy = [],
      occupancyGraceMs = 5_000,
      occupancyMaxPatterns = 100_000,
      timeoutMs = 3_000,
      failure = 'closed',
      concurrency = 64,
    } = options
    const events = webhookEventsOf(options)
    this.#logger = logger
    this.#url = withoutPasswords(url)
    this.#client = new WebhookClient(url, concurrency, timeoutMs)
    this.setSecret(secret)
    this.#notices = new Notices(this.#client, (count, reason, err) =>
      this.#log({ reason, err }, count, 'notices to the webhook were dropped'),
    )
    this.#breakers = new Map(
      events.map((event) => [event, new CircuitBreaker((state, err) => this.#changed(event, state, err))]),
    )
    const hooks = webhookHooks({
      client: this.#client,
      breakers: this.#breakers,
      headers: (headers.length === 0 ? DEFAULT_HEADERS : headers).map((name) => name.toLowerCase()),
      failure,
      onIgnored: (event, err) => {
        this.#ignoredCount++
        this.#log({ event, err }, 1, 'the webhook failed, and is ignored')
      },
    })
    const unitsPerQuestion = QUESTION_UNITS
    this.source = { name: 'webhook', hooks, timeoutMs: timeoutMs + GRACE_MS, unitsPerQuestion }
    this.occupancy = events.includes('occupancy')
      ? {
          patterns: occupancy.length === 0 ? ['#'] : occupancy,
          graceMs: occupancyGraceMs,
          maxPatterns: occupancyMaxPatterns,
          tell: async (told) => {
            await this.#client.post(batchOf(told))
          },
        }
      : undefined
    this.observer = this.#observerOf(events, published.length === 0 ? ['#'] : published)
  }

  get stats(): WebhookStats {
    const states = Array.from(this.#breakers.values(), ({ state }) => state)
    return {
      breaker: (['open', 'half-open'] as const).find((state) => states.includes(state)) ?? 'closed',
      openCount: this.#openCount,
      ignoredCount: this.#ignoredCount,
      ...this.#notices.stats,
    }
  }

  setSecret(secret: string | undefined): void {
    this.#client.signer = secret === undefined ? undefined : new Signer(secret)
  }

  /** Sends what waits, within a time, and ends the connections. */
  async close(limitMs: number): Promise<void> {
    await within(this.#notices.close(), limitMs)
    this.#client.close()
  }

  #observerOf(events: readonly string[], patterns: readonly string[]): Webhook['observer'] {
    const tell = (members: object, more?: string) => this.#notices.push(eventJson(members, more))
    const who = ({ door, id, userId, address }: Actor) => ({
      at: Date.now(),
      session: id === '' ? undefined : id,
      user: userId,
      address: door === 'process' ? undefined : address,
    })
    return {
      ...(events.includes('connected') && {
        connected: (session) => tell({ event: 'connected', ...who(session) }),
      }),
      ...(events.includes('disconnected') && {
        disconnected: (session, code, reason, durationMs) =>
          tell({ event: 'disconnected', ...who(session), code, reason, durationMs }),
      }),
      ...(events.includes('published') && {
        published: (actor, { key, payload, isBinary, attributes }, position) => {
          if (!patterns.some((pattern) => matches(pattern, key))) return
          const at = position === undefined ? undefined : formatPosition(position)
          const isEphemeral = attributes?.isEphemeral
          tell({ event: 'published', ...who(actor), key, position: at, isEphemeral }, payloadMembers(payload, isBinary))
        },
      }),
    }
  }

  #changed(event: string, breaker: BreakerState, err: unknown): void {
    if (breaker === 'open') {
      this.#openCount++
      this.#logger.warn({ url: this.#url, event, breaker, err }, 'the webhook fails, and is not asked for now')
    } else if (breaker === 'closed') this.#logger.info({ url: this.#url, event, breaker }, 'the webhook works again')
  }

  #log(fields: object, count: number, message: string): void {
    const others = this.#pace.take(count)
    if (others !== undefined) this.#logger.warn({ url: this.#url, ...fields, count: others + count }, message)
  }
}
