import type { OptionSpec } from './spec.js'
import { ADDRESS_OPTIONS } from './table/address.js'
import { API_OPTIONS } from './table/api.js'
import { AUDIT_OPTIONS } from './table/audit.js'
import { BROKER_OPTIONS } from './table/broker.js'
import { ENGINE_OPTIONS } from './table/engine.js'
import { HISTORY_OPTIONS } from './table/history.js'
import { HOOKS_OPTIONS } from './table/hooks.js'
import { LIMITS_OPTIONS } from './table/limits.js'
import { META_OPTIONS } from './table/meta.js'
import { OBSERVING_OPTIONS } from './table/observing.js'
import { PRESENCE_OPTIONS } from './table/presence.js'
import { PROXIES_OPTIONS } from './table/proxies.js'
import { RATES_OPTIONS } from './table/rates.js'
import { RETAIN_OPTIONS } from './table/retain.js'
import { SECURITY_OPTIONS } from './table/security.js'
import { SLOW_OPTIONS } from './table/slow.js'
import { SSE_OPTIONS } from './table/sse.js'
import { TIME_LIMITS_OPTIONS } from './table/time-limits.js'
import { TOKENS_OPTIONS } from './table/tokens.js'
import { WEBHOOKS_OPTIONS } from './table/webhooks.js'

/**
 * All options of the server, one file of `table/` per topic. This table drives `--help`, the flags, the environment, the
 * config file, validation and `docs/configuration.md`.
 */
export const OPTIONS = [
  ...ADDRESS_OPTIONS,
  ...SSE_OPTIONS,
  ...ENGINE_OPTIONS,
  ...BROKER_OPTIONS,
  ...LIMITS_OPTIONS,
  ...RATES_OPTIONS,
  ...SLOW_OPTIONS,
  ...TIME_LIMITS_OPTIONS,
  ...HISTORY_OPTIONS,
  ...META_OPTIONS,
  ...RETAIN_OPTIONS,
  ...PRESENCE_OPTIONS,
  ...SECURITY_OPTIONS,
  ...API_OPTIONS,
  ...PROXIES_OPTIONS,
  ...TOKENS_OPTIONS,
  ...HOOKS_OPTIONS,
  ...WEBHOOKS_OPTIONS,
  ...OBSERVING_OPTIONS,
  ...AUDIT_OPTIONS,
] as const satisfies readonly OptionSpec[]

/** Name of an option, `jwt.secret` for nested ones. */
export type OptionName = (typeof OPTIONS)[number]['name']
