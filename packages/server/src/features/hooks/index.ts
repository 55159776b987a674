export { DeliveringBroker } from './delivering-broker.js'
export { HookCalls, type HookCounts, NO_HOOK_COUNTS } from './hook-calls.js'
export type * from './hooks.js'
export { hooksDefect, loadHooks } from './load-hooks.js'
export {
  isForwardable,
  WEBHOOK_NOTICES,
  WEBHOOK_QUESTIONS,
  type WebhookFailure,
  type WebhookOptions,
  webhookEventsOf,
} from './webhooks/options.js'
export { Webhook, type WebhookStats } from './webhooks/webhook.js'
