import type { CheckedPart } from '../../core/checks.js'
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
import { checkNames, namesOf } from '../names.js'
import { LISTEN } from './range.js'

/** The options of each part, with `client` where the part does not take it away before. */
const NAMES: Readonly<Record<CheckedPart, readonly string[]>> = {
  appLifecycle: namesOf<AppModules>({ AppState: true, NetInfo: true }),
  concurrently: namesOf<ConcurrentlyOptions>({ concurrency: true, maxMessages: true }),
  eventStreams: namesOf<EventStreamsOptions>({ WebSocket: true }),
  history: namesOf<HistoryOptions>({ limit: true, since: true, before: true, rewind: true, reverse: true, meta: true }),
  iterate: namesOf<IterateOptions & ClientOption>({
    ...LISTEN,
    client: true,
    bufferMaxMessages: true,
    bufferOverflow: true,
  }),
  latest: namesOf<LatestOptions>({ every: true, maxKeys: true, batch: true }),
  loaded: namesOf<LoadOptions>({ bufferMaxMessages: true }),
  openStream: namesOf<OpenStreamOptions & ClientOption>({ client: true, meta: true, id: true }),
  outbox: namesOf<OutboxOptions>({ name: true, maxMessages: true, maxBytes: true, maxAgeMs: true, afterWindow: true }),
  presence: namesOf<AnyClientOption>({ client: true }),
  readStream: namesOf<ReadStreamOptions>({ id: true, signal: true }),
  request: namesOf<RequestOptions>({ timeoutMs: true, signal: true }),
  respond: namesOf<RespondOptions & ClientOption>({ client: true, group: true, signal: true }),
  serveTabs: namesOf<ServeTabsOptions>({ maxTabBytes: true, WebSocket: true }),
  sharedTabs: namesOf<SharedTabsOptions>({
    name: true,
    worker: true,
    silentAfterMs: true,
    maxTabBytes: true,
    WebSocket: true,
  }),
  state: namesOf<StateOptions>({ every: true, maxKeys: true, maxBytes: true }),
  stopStream: ['client', 'reason'],
  streamTransport: namesOf<StreamTransportOptions>({ key: true, ask: true, client: true }),
  useMessages: namesOf<Omit<MessagesOptions, 'graceMs'>>({
    limit: true,
    maxMessages: true,
    loadOlder: true,
    meta: true,
  }),
  withTopics: namesOf<SchemaOptions>({ receive: true }),
  work: namesOf<WorkOptions & ClientOption>({ client: true, group: true, signal: true }),
  YjsProvider: namesOf<ProviderOptions>({
    client: true,
    awareness: true,
    snapshotAfterMs: true,
    snapshotAfterUpdates: true,
    maxBytes: true,
    random: true,
  }),
}

/** Of all that has `on`: each has few, and a misspelt one is of none. */
const EVENTS = namesOf<ClientEvents & SubscriptionEvents & PresenceEvents & OutboxEvents & ProviderEvents>({
  ...{ status: true, gap: true, error: true, ready: true, closed: true, sent: true, failed: true, change: true },
  ...{ enter: true, update: true, leave: true, 'user-enter': true, 'user-leave': true, sync: true, synced: true },
})

/** Checks the names of a part's options. */
export function checkPart(name: CheckedPart, options: object): void {
  checkNames(`${name}: `, options, NAMES[name])
}

export function checkEvent(name: string): void {
  if (!EVENTS.includes(name)) throw invalid(`on: ${name} is no event${didYouMean(name, EVENTS)}`)
}

export function checkReceiver(receiving: unknown): void {
  const { deliver } = Object(receiving) as { readonly deliver?: unknown }
  if (typeof (deliver ?? receiving) !== 'function') throw invalid('handler: it is no function')
}
