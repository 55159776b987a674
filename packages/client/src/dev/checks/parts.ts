import type { ClientEvents } from '../../core/events/events.js'
import type { AnyClientOption, ClientOption } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import type { SubscriptionEvents } from '../../core/types.js'
import type { AppModules } from '../../frameworks/native/app-lifecycle.js'
import type { MessagesOptions } from '../../frameworks/stores/messages.js'
import type { StreamTransportOptions } from '../../parts/ai/index.js'
import type { ConcurrentlyOptions } from '../../parts/concurrency/index.js'
import type { HistoryOptions } from '../../parts/history/types.js'
import type { IterateOptions } from '../../parts/iterate/index.js'
import type { LatestOptions } from '../../parts/latest/index.js'
import type { LoadOptions } from '../../parts/load/index.js'
import type { OutboxEvents, OutboxOptions } from '../../parts/outbox/types.js'
import type { PresenceEvents } from '../../parts/presence/types.js'
import type { RequestOptions, RespondOptions, WorkOptions } from '../../parts/requests/types.js'
import type { SchemaOptions } from '../../parts/schema/index.js'
import type { EventStreamsOptions } from '../../parts/sse/event-streams.js'
import type { StateOptions } from '../../parts/state/types.js'
import type { OpenStreamOptions, ReadStreamOptions } from '../../parts/stream/types.js'
import type { ServeTabsOptions } from '../../parts/tabs/serve-tabs.js'
import type { SharedTabsOptions } from '../../parts/tabs/shared-tabs.js'
import type { ProviderEvents, ProviderOptions } from '../../parts/yjs/types.js'
import { didYouMean } from '../../protocol/closest-name.js'
import { assertOptions, type OptionKinds } from '../../protocol/option-kinds.js'
import { LISTEN } from './range.js'

/** The options of each part, with `client` where the part does not take it away before. */
const KINDS: Readonly<Record<string, OptionKinds<Record<string, unknown>>>> = {
  appLifecycle: { AppState: 'object', NetInfo: 'object' } satisfies OptionKinds<AppModules>,
  concurrently: { concurrency: 'number', maxMessages: 'number' } satisfies OptionKinds<ConcurrentlyOptions>,
  eventStreams: { WebSocket: 'function' } satisfies OptionKinds<EventStreamsOptions>,
  history: {
    ...{ limit: true, since: true, before: true, rewind: true, reverse: 'boolean', meta: 'boolean' },
  } satisfies OptionKinds<HistoryOptions>,
  iterate: {
    ...LISTEN,
    ...{ client: 'object', bufferMaxMessages: 'number', bufferOverflow: ['close', 'drop-oldest', 'drop-newest'] },
  } satisfies OptionKinds<IterateOptions & ClientOption>,
  latest: { every: true, maxKeys: 'number', batch: 'boolean' } satisfies OptionKinds<LatestOptions>,
  loaded: { bufferMaxMessages: 'number' } satisfies OptionKinds<LoadOptions>,
  openStream: { client: 'object', meta: true, id: 'string' } satisfies OptionKinds<OpenStreamOptions & ClientOption>,
  outbox: {
    ...{ name: 'string', maxMessages: 'number', maxBytes: 'number' },
    ...{ maxAgeMs: 'number', afterWindow: ['report', 'send'] },
  } satisfies OptionKinds<OutboxOptions>,
  presence: { client: 'object' } satisfies OptionKinds<AnyClientOption>,
  readStream: { id: 'string', signal: 'object' } satisfies OptionKinds<ReadStreamOptions>,
  request: { timeoutMs: 'number', signal: 'object' } satisfies OptionKinds<RequestOptions>,
  respond: { client: 'object', group: true, signal: 'object' } satisfies OptionKinds<RespondOptions & ClientOption>,
  serveTabs: { maxTabBytes: 'number', WebSocket: 'function' } satisfies OptionKinds<ServeTabsOptions>,
  sharedTabs: {
    ...{ name: 'string', worker: 'function', silentAfterMs: 'number', maxTabBytes: 'number', WebSocket: 'function' },
  } satisfies OptionKinds<SharedTabsOptions>,
  state: { every: true, maxKeys: 'number', maxBytes: 'number' } satisfies OptionKinds<StateOptions>,
  stopStream: { client: 'object', reason: 'string' },
  streamTransport: { key: 'function', ask: 'function', client: 'object' } satisfies OptionKinds<StreamTransportOptions>,
  useMessages: {
    ...{ limit: 'number', maxMessages: 'number', loadOlder: 'function', meta: 'boolean' },
  } satisfies OptionKinds<Omit<MessagesOptions, 'graceMs'>>,
  withTopics: { receive: ['report', 'off'] } satisfies OptionKinds<SchemaOptions>,
  work: { client: 'object', group: true, signal: 'object' } satisfies OptionKinds<WorkOptions & ClientOption>,
  YjsProvider: {
    ...{ client: 'object', awareness: 'object', snapshotAfterMs: 'number', snapshotAfterUpdates: 'number' },
    ...{ maxBytes: 'number', random: 'function' },
  } satisfies OptionKinds<ProviderOptions>,
}

/** Of all that has `on`: each has few, and a misspelt one is of none. */
const EVENTS = Object.keys({
  ...{ status: true, gap: true, error: true, ready: true, closed: true, sent: true, failed: true, change: true },
  ...{ enter: true, update: true, leave: true, 'user-enter': true, 'user-leave': true, sync: true, synced: true },
} satisfies OptionKinds<ClientEvents & SubscriptionEvents & PresenceEvents & OutboxEvents & ProviderEvents>)

/** Checks the options of a part. */
export function checkPart(name: string, options: object): void {
  assertOptions(`${name}: `, options, KINDS[name] ?? {})
}

export function checkEvent(name: string): void {
  if (!EVENTS.includes(name)) throw invalid(`on: ${name} is no event${didYouMean(name, EVENTS)}`)
}

export function checkReceiver(receiving: unknown): void {
  const { deliver } = Object(receiving) as { readonly deliver?: unknown }
  if (typeof (deliver ?? receiving) !== 'function') throw invalid('handler: it is no function')
}
