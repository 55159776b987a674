import { type OptionSpec, type Row, specOf } from './spec.js'
import { ADDRESS_OPTIONS } from './table/address.js'
import { BROKER_OPTIONS } from './table/broker.js'
import { ENGINE_OPTIONS } from './table/engine.js'
import { HISTORY_OPTIONS } from './table/history.js'
import { HOOKS_OPTIONS } from './table/hooks.js'
import { LIMITS_OPTIONS } from './table/limits.js'
import { OBSERVING_OPTIONS } from './table/observing.js'
import { OUTBOX_OPTIONS } from './table/outbox.js'
import { PRESENCE_OPTIONS } from './table/presence.js'
import { SECURITY_OPTIONS } from './table/security.js'
import { TIME_LIMITS_OPTIONS } from './table/time-limits.js'
import { TOKENS_OPTIONS } from './table/tokens.js'

/** The rows, one file of `table/` per heading in `--help` and in the documentation. */
const SECTIONS = {
  Address: ADDRESS_OPTIONS,
  Engine: ENGINE_OPTIONS,
  Broker: BROKER_OPTIONS,
  'Database outbox': OUTBOX_OPTIONS,
  Limits: LIMITS_OPTIONS,
  'Time limits': TIME_LIMITS_OPTIONS,
  History: HISTORY_OPTIONS,
  Presence: PRESENCE_OPTIONS,
  Security: SECURITY_OPTIONS,
  Tokens: TOKENS_OPTIONS,
  Hooks: HOOKS_OPTIONS,
  'Logging and metrics': OBSERVING_OPTIONS,
}

/** The members of all of a union. */
type All<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer Members) => void
  ? Members
  : never

type Rows = All<(typeof SECTIONS)[keyof typeof SECTIONS]>

export type OptionName = keyof Rows

interface Values {
  readonly integer: number
  readonly switch: boolean
  readonly text: string
  readonly list: readonly string[]
}

type ValueOf<R> = R extends { readonly choices: readonly (infer Choice)[] }
  ? Choice
  : R extends { readonly type: infer Type extends keyof Values }
    ? Values[Type]
    : never

/** The options that a row describes whole. */
export type TableOptions = {
  readonly [Name in keyof Rows as Name extends `${string}.${string}` ? never : Name]?: ValueOf<Rows[Name]> | undefined
}

/**
 * All options of the server. This table drives `--help`, the flags, the environment, the config file, validation and
 * `docs/configuration.md`.
 */
export const OPTIONS: readonly (OptionSpec & { readonly name: OptionName })[] = Object.entries(SECTIONS).flatMap(
  ([section, rows]) => Object.entries<Row>(rows).map(([name, row]) => specOf(name as OptionName, section, row)),
)

export const OPTION_SECTIONS = Object.keys(SECTIONS)
