export { deliveringThrough } from './delivering-broker.js'
export { HookCalls, type HookCounts, type HookSource } from './hook-calls.js'
export {
  type ConnectAnswer,
  type ConnectRequest,
  type DeliverAnswer,
  type DeliverRequest,
  type DisconnectNotice,
  HOOK_NAMES,
  type HookAnswer,
  type HookClient,
  type HookMessage,
  type HookName,
  type Hooks,
  type ListenRequest,
  type PresenceAnswer,
  type PresenceRequest,
  type PublishAnswer,
  type PublishRequest,
  type Refusal,
} from './hooks.js'
export { hooksDefect } from './hooks-defect.js'
export { loadHooks } from './load-hooks.js'
export { HookRefusal } from './refusal.js'
export type { ConnectFacts, HookCaller, PublishChange } from './requests.js'
export {
  isForwardable,
  WEBHOOK_NOTICES,
  WEBHOOK_QUESTIONS,
  type WebhookFailure,
  type WebhookOptions,
  webhookEventsOf,
} from './webhooks/options.js'
export { Webhook, type WebhookStats } from './webhooks/webhook.js'
