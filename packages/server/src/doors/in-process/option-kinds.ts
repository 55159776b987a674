import type { OptionKinds } from 'webmq-client/protocol'
import type { ServerEvents } from '../../kernel/node/emitter.js'
import type { BatchMessage, PublishOptions } from '../../kernel/publishing/publish-options.js'
import type { LocalListenOptions } from '../../kernel/routing/local-listeners.js'
import type { HistoryQuery } from './read-history.js'
import type { RequestOptions, RespondOptions, StopOptions, StreamOptions } from './webmq-server.js'

export const PUBLISH = {
  id: true,
  traceparent: 'string',
  ephemeral: 'boolean',
} satisfies OptionKinds<PublishOptions>
export const MESSAGE = { ...PUBLISH, key: true, payload: true } satisfies OptionKinds<BatchMessage>
export const HISTORY = {
  limit: true,
  since: true,
  before: true,
  rewindMs: true,
  reverse: 'boolean',
} satisfies OptionKinds<HistoryQuery>
export const LISTEN = { onGap: 'function', group: true } satisfies OptionKinds<LocalListenOptions>
export const RESPOND = { group: true } satisfies OptionKinds<RespondOptions>
export const REQUEST = { timeoutMs: 'number' } satisfies OptionKinds<RequestOptions>
export const STREAM = { meta: true } satisfies OptionKinds<StreamOptions>
export const STOP = { drainMs: 'number', delayMs: 'number' } satisfies OptionKinds<StopOptions>
export const EVENTS = { broker: 'function', gap: 'function' } satisfies OptionKinds<ServerEvents>
