import { isDeepStrictEqual } from 'node:util'
import { brokerNameOf, hasSamePlace } from '../../kernel/ports/broker-address.js'
import { resolveOptions } from './options.js'
import type { ResolvedOptions, ServerOptions } from './server-options.js'
import { optionValue, setOption } from './spec.js'
import { OPTIONS, type OptionName } from './table.js'

export interface ReloadPlan {
  /** The present options with the new values of `changed`. */
  readonly options: ResolvedOptions
  /** These take their new value at once. */
  readonly changed: readonly OptionName[]
  /** These differ too, and keep their value until the next start. */
  readonly needRestart: readonly OptionName[]
}

/**
 * Compares the options of a server that runs with new ones.
 *
 * @throws {WebMQError} As {@link resolveOptions}: for the new options, and for the present ones with what can change.
 */
export function planReload(present: ResolvedOptions, input: ServerOptions): ReloadPlan {
  const wanted = resolveOptions(input)
  const changed: OptionName[] = []
  const needRestart: OptionName[] = []
  const options: Record<string, unknown> = { ...present }
  for (const { name, reloadable } of OPTIONS) {
    const [from, to] = [optionValue(present, name), optionValue(wanted, name)]
    if (isDeepStrictEqual(from, to)) continue
    if (reloadable === true && canChange(name, present, wanted)) {
      setOption(options, name, to)
      changed.push(name)
    } else needRestart.push(name)
  }
  resolveOptions(options as ServerOptions)
  return { options: options as unknown as ResolvedOptions, changed, needRestart }
}

/** Whether this change of a reloadable option is one that a running server can make. */
function canChange(name: OptionName, present: ResolvedOptions, wanted: ResolvedOptions): boolean {
  // With the first key, everyone who is connected would be a stranger; without the last one, nobody.
  if (name.startsWith('jwt.')) return (present.jwt === undefined) === (wanted.jwt === undefined)
  if (name === 'webhook.secret') return present.webhook !== undefined && wanted.webhook !== undefined
  // Nodes hear of revocations from the start on, or not at all.
  if (name === 'apiKeys') return present.apiKeys.length > 0 === wanted.apiKeys.length > 0
  if (name !== 'broker') return true
  const { broker: from } = present
  const { broker: to } = wanted
  if (typeof from !== 'string' || typeof to !== 'string') return false
  return brokerNameOf(from) !== 'mesh' && hasSamePlace(from, to)
}
