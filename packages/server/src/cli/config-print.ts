import { type ResolvedOptions, resolveOptions, type ServerOptions, splitName, warningsOf } from '../options/options.js'
import type { OptionSpec, TextOption } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { unknownVariables } from './environment.js'
import { type Terminal, warn } from './terminal.js'

/** Replaces the value of a secret. */
const HIDDEN = '[hidden]'

/** Prints the resolved options as a config file. */
export function configPrint(options: ServerOptions, terminal: Terminal): void {
  const resolved = resolveOptions(options)
  for (const warning of [...unknownVariables(terminal.env), ...warningsOf(resolved)]) warn(warning, terminal)
  terminal.stdout.write(`${JSON.stringify(withoutSecrets(resolved), null, 2)}\n`)
}

/** The options with all secrets replaced. */
export function withoutSecrets(options: ResolvedOptions): Readonly<Record<string, unknown>> {
  const shown: Record<string, unknown> = { ...options }
  for (const spec of OPTIONS as readonly OptionSpec[]) {
    if (spec.type !== 'text' || (spec.isSecret !== true && spec.shown === undefined)) continue
    const [group, member] = splitName(spec.name)
    const holder = shown[group]
    if (member === undefined) {
      if (holder !== undefined) shown[group] = withoutSecret(spec, holder)
    } else if (typeof holder === 'object' && holder !== null && member in holder) {
      shown[group] = { ...holder, [member]: withoutSecret(spec, (holder as Record<string, unknown>)[member]) }
    }
  }
  return shown
}

function withoutSecret({ shown }: TextOption, value: unknown): unknown {
  return typeof value === 'string' && shown !== undefined ? shown(value) : HIDDEN
}
