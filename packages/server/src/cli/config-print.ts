import { type ResolvedOptions, resolveOptions, type ServerOptions, splitName, warningsOf } from '../options/options.js'
import type { ListOption, OptionSpec, TextOption } from '../options/spec.js'
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
function withoutSecrets(options: ResolvedOptions): object {
  const shown: Record<string, unknown> = { ...options }
  for (const spec of OPTIONS as readonly OptionSpec[]) {
    if (!hidesPart(spec)) continue
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

function hidesPart(spec: OptionSpec): spec is TextOption | ListOption {
  if (spec.type === 'list') return spec.isSecret === true
  return spec.type === 'text' && (spec.isSecret === true || spec.shown !== undefined)
}

function withoutSecret(spec: TextOption | ListOption, value: unknown): unknown {
  if (Array.isArray(value)) return value.map(() => HIDDEN)
  return typeof value === 'string' && spec.type === 'text' && spec.shown !== undefined ? spec.shown(value) : HIDDEN
}
