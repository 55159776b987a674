import { didYouMean } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { isObject } from '../../kernel/base/is-object.js'
import type { Broker } from '../../kernel/ports/broker.js'
import { fingerprintOf, HistoryRules, historyRulesOf } from '../../kernel/ports/history-rules.js'
import { hooksDefect } from './hooks-defect.js'
import { checkTogether } from './rules.js'
import type { ResolvedOptions, ServerOptions } from './server-options.js'
import { defaultOf, type OptionSpec, optionValue, setOption, shownValue, splitName } from './spec.js'
import { OPTIONS } from './table.js'
import { validateOption } from './values.js'

/**
 * Fills in the defaults, and checks every value and every rule between options.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the option's name, the bad value and the allowed values; `E_INSECURE` when
 *   the options open the server to everyone without `insecure`.
 */
export function resolveOptions(input: ServerOptions = {}): ResolvedOptions {
  rejectUnknownNames(input)
  const resolved: Record<string, unknown> = input.logger === undefined ? {} : { logger: input.logger }
  for (const spec of OPTIONS) {
    const [group, member] = splitName(spec.name)
    const source = member === undefined ? input : groupOf(input, group)
    if (source === undefined) continue
    const given = (source as Record<string, unknown>)[member ?? group]
    const value = given === undefined ? defaultOf(spec) : validate(spec, given)
    if (value !== undefined) setOption(resolved, spec.name, value)
  }
  const options = resolved as unknown as ResolvedOptions
  checkTogether(input, options)
  return Object.freeze(options)
}

/** Only `broker` and `hooks` may be objects; all other values are texts, numbers, switches or lists. */
function validate(spec: OptionSpec, value: unknown): unknown {
  if (typeof value !== 'object' || (spec.name !== 'broker' && spec.name !== 'hooks')) return validateOption(spec, value)
  if (spec.name === 'broker') assertBroker(value)
  else {
    const defect = hooksDefect(value)
    if (defect !== undefined) throw invalidOption(`hooks: the value ${defect}`)
  }
  return value
}

function groupOf(input: ServerOptions, group: string): object | undefined {
  const value: unknown = input[group as keyof ServerOptions]
  if (value === undefined) return undefined
  if (isObject(value)) return value
  throw invalidOption(`${group}: not an object`)
}

function rejectUnknownNames(input: ServerOptions): void {
  const names = OPTIONS.map((spec) => spec.name)
  const groups = new Set(names.filter((name) => name.includes('.')).map((name) => splitName(name)[0]))
  const given = Object.keys(input).flatMap((name) =>
    groups.has(name) ? Object.keys(groupOf(input, name) ?? {}).map((member) => `${name}.${member}`) : [name],
  )
  for (const name of given) {
    if (name === 'logger' || names.some((known) => known === name)) continue
    throw invalidOption(`${name}: unknown option${didYouMean(name, names)}`)
  }
}

const METHODS: readonly (keyof Broker)[] = ['start', 'bind', 'unbind', 'publish', 'read', 'position', 'stats', 'stop']
const FLAGS: readonly (keyof Broker['capabilities'])[] = [
  'history',
  'retained',
  'ordered',
  'sharedLog',
  'confirms',
  'queueGroups',
  'durable',
  'manyNodes',
]

/**
 * Checks that an object has all members of the broker port. The conformance suite checks its behaviour.
 * @throws {WebMQError} `E_OPTION_INVALID` with the missing members.
 */
function assertBroker(value: object | null): asserts value is Broker {
  const missing = value === null ? ['everything'] : missingOf(value)
  if (missing.length === 0) return
  throw invalidOption(
    `broker: neither an address nor an object that implements the broker port; it lacks ${missing.join(', ')}`,
  )
}

function missingOf(value: object): string[] {
  const broker = value as Partial<Record<string, unknown>>
  const capabilities = (broker.capabilities ?? {}) as Partial<Record<string, unknown>>
  return [
    ...(typeof broker.name === 'string' ? [] : ['name']),
    ...FLAGS.filter((flag) => typeof capabilities[flag] !== 'boolean').map((flag) => `capabilities.${flag}`),
    ...METHODS.filter((method) => typeof broker[method] !== 'function'),
  ]
}

/**
 * A hash of the options that all nodes of one system must share: with others, a node logs, remembers or accepts something
 * else, and its clients miss messages that those of other nodes get. It reveals no value.
 */
export function sharedOptionsFingerprint(options: ResolvedOptions): string {
  const { history, historyMaxMessages, historyMaxBytes, retain, retainMaxKeys, retainMaxBytes } = options
  const { dedupeWindowMs, dedupeMaxIds, maxPayloadBytes, meta } = options
  const shared = { history, historyMaxMessages, historyMaxBytes, retain, retainMaxKeys, retainMaxBytes }
  return fingerprintOf({ ...shared, dedupeWindowMs, dedupeMaxIds, maxPayloadBytes, meta })
}

/** The same of the keys alone that are logged, whatever the bounds of their rules: with others, messages go another way. */
export function loggedKeysFingerprint(options: ResolvedOptions): string {
  const isOn = options.historyMaxMessages > 0 && options.historyMaxBytes > 0
  return (isOn ? historyRulesOf(options, false) : new HistoryRules([])).fingerprint
}

const HIDDEN = '[hidden]'

/** The options with all secrets replaced. A broker or a logger of the embedder is left out: only its name is shown. */
export function withoutSecrets(options: ResolvedOptions): Readonly<Record<string, unknown>> {
  const { logger: _, ...rest } = options
  const shown: Record<string, unknown> = { ...rest }
  if (typeof options.broker !== 'string') shown.broker = options.broker.name
  for (const spec of OPTIONS) {
    const value = optionValue(shown, spec.name)
    const visible = shownValue(spec, value)
    if (visible === value) continue
    setOption(shown, spec.name, visible ?? (Array.isArray(value) ? value.map(() => HIDDEN) : HIDDEN))
  }
  return shown
}
